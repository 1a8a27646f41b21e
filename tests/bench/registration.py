"""Measures the registration of hosts: how many a second, and what one costs the manager with few hosts and with many.

Run it with ``make bench-registration``.  The API server is the embedded one; it, the manager and the hosts are processes of their own.
The hosts' keys are made before anything is measured.  A registration is to cost the same whether there are 100 hosts or 1,000.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.scalemeasure import cpu_seconds
from cryptography.hazmat.primitives.asymmetric import rsa
from fleet.inventory.management import SPACE, Elsewhere, Host, Management
from support.ports import free_port
from support.waiting import eventually, eventually_blocking

from slipway.api.cluster.kinds import MACHINE_INVENTORY, SECRET
from slipway.api.elemental.protocol import Frame
from slipway.credentials.tpm.software import SoftwareTPM
from slipway.embedded.server import EmbeddedServer
from slipway.fleet.inventory import options as inventory
from slipway.kube import kubeconfig
from slipway.kube.aio import AsyncClient
from slipway.kube.connection import from_kubeconfig
from slipway.runtime.webhook.store import from_secret

_AT_ONCE = 16
BAR = 1.25
"""How much dearer a registration may be among many hosts than among few: less than that is chance."""


class Figures(NamedTuple):
    hosts: int
    seconds: float
    manager: float
    server: float

    def shown(self, there: int) -> str:
        each = 1000 / self.hosts
        return f"| {there} | {self.hosts / self.seconds:.1f} | {self.manager * each:.1f} | {self.server * each:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--few", type=int, default=100)
    parser.add_argument("--many", type=int, default=1000)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(_serve(Path(options.serve)))
        return
    print(f"making the keys of {options.many} hosts", file=sys.stderr)
    attestation = rsa.generate_private_key(65537, 2048)
    tpms = [SoftwareTPM.of_keys(rsa.generate_private_key(65537, 2048), attestation) for _ in range(options.many)]
    with tempfile.TemporaryDirectory() as folder, _process("server", __file__, "--serve", folder) as server:
        config = Path(folder, "kubeconfig")
        eventually_blocking(config.exists, "the API server is there")
        asyncio.run(_measure(config, server, tpms, options.few))


async def _serve(folder: Path) -> None:
    server = EmbeddedServer()
    async with server:
        (folder / "new").write_text(server.kubeconfig())
        (folder / "new").rename(folder / "kubeconfig")
        await asyncio.Event().wait()


async def _measure(config: Path, server: int, tpms: list[SoftwareTPM], few: int) -> None:
    document = kubeconfig.load(config.read_bytes(), str(config))
    connection = from_kubeconfig(document, lambda path: Path(path).read_bytes(), source=str(config))
    port = free_port()
    flags = [
        f"--kubeconfig={config}",
        "--controllers=inventory",
        "--leader-elect-namespace=home",
        "--webhook-port=0",
        "--health-addr=0",
        "--metrics-bind-address=0",
    ]
    flags += [f"--registration-bind-address=127.0.0.1:{port}", f"--registration-url=https://127.0.0.1:{port}"]
    async with AsyncClient(connection) as client, Management(Elsewhere(connection), client) as management:
        with _process("manager", "-m", "slipway", "manager", *flags) as manager:
            registration = await management.registration()
            authorities = await eventually(lambda: _authorities(client), "hosts can register")
            url = registration["status"]["registrationURL"]
            hosts = [Host(url, _Known(authorities), tpm) for tpm in tpms]
            first = await _register(hosts[:few], 0, manager, server)
            await _register(hosts[few:-few], few, manager, server)
            last = await _register(hosts[-few:], len(hosts) - few, manager, server)
            assert len(await client.list(MACHINE_INVENTORY, SPACE)) == len(hosts)
    print("| hosts that are there | hosts a second | manager, ms of CPU a host | API server, ms of CPU a host |\n|---|---|---|---|")
    print(first.shown(0))
    print(last.shown(len(hosts) - few))
    ratio = last.manager / first.manager
    print(
        f"\nAmong {len(hosts)} hosts a registration costs {ratio:.2f} of what it costs among {few}: {'holds' if ratio <= BAR else 'MISSED'}"
    )


async def _register(hosts: list[Host], number: int, manager: int, server: int) -> Figures:
    places = asyncio.Semaphore(_AT_ONCE)

    async def one(host: Host, serial: int) -> None:
        async with places:
            await host.register({Frame.SMBIOS: {"System Information": {"UUID": f"4c4c4544-0042-3510-8051-{serial:012x}"}}})

    began, before = time.monotonic(), (cpu_seconds(manager), cpu_seconds(server))
    await asyncio.gather(*(one(host, number + position) for position, host in enumerate(hosts)))
    seconds = time.monotonic() - began
    # What the controllers do for these hosts is theirs, too.
    await _quiet(manager)
    return Figures(len(hosts), seconds, cpu_seconds(manager) - before[0], cpu_seconds(server) - before[1])


async def _quiet(process: int) -> None:
    """Until the process has done nothing for a second."""
    used = -1.0
    while (now := cpu_seconds(process)) - used > 0.02:
        used = now
        await asyncio.sleep(1)


class _Known(NamedTuple):
    """What a host must know of the endpoint: whom to trust."""

    authorities: bytes


async def _authorities(client: AsyncClient) -> bytes:
    found = await client.find(SECRET, inventory.SECRET, "home")
    known = from_secret(found) if found is not None else None
    return known.authorities if known is not None else b""


@contextmanager
def _process(name: str, *arguments: str) -> Iterator[int]:
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([sys.executable, *arguments], stdout=log, stderr=subprocess.STDOUT)
        try:
            yield process.pid
        except BaseException:
            log.seek(0)
            print(f"the {name} said:\n{log.read().decode(errors='replace')[-4000:]}", file=sys.stderr)
            raise
        finally:
            process.terminate()
            process.wait(30)


if __name__ == "__main__":
    main()
