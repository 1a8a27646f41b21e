"""A manager of the code of an earlier commit, in a process of its own: what it wrote is there for the one of today to go on with.

Run as a program it is that manager: it imports what its PYTHONPATH has, which is the earlier code, and reads what to do from its input.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from base64 import b64decode, b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slipway.kube.connection import Connection

COMMIT = "dd8d716"
"""The first that had pools, plans and control planes of hosts."""
_REPOSITORY = Path(__file__).parents[2]


def extract(folder: Path) -> bool:
    """Put the code of the earlier commit into a folder; False where the history of this repository does not have it."""
    found = subprocess.run(["git", "-C", str(_REPOSITORY), "archive", COMMIT, "src"], capture_output=True, check=False)
    if found.returncode:
        return False
    subprocess.run(["tar", "-x", "-C", str(folder)], input=found.stdout, check=True)
    return True


async def start(folder: Path, connection: Connection, **settings: Any) -> asyncio.subprocess.Process:
    """A manager of the code in a folder."""
    told = {
        "server": connection.server,
        "ca": b64encode(connection.ca).decode(),
        "certificate": b64encode(connection.client_certificate).decode(),
        "key": b64encode(connection.client_key).decode(),
        **settings,
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(Path(__file__))),
        stdin=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(told).encode())
    process.stdin.close()
    return process


def _manage(told: dict[str, Any]) -> None:
    from slipway.fleet import registry
    from slipway.fleet.bootstrap.options import BootstrapOptions
    from slipway.fleet.inventory.options import InventoryOptions
    from slipway.fleet.manager import build
    from slipway.fleet.settings import Settings
    from slipway.kube.connection import Connection

    where = f"{told['address']}:{told['port']}"
    settings = Settings(
        controllers=registry.chosen(("all",)),
        namespace="",
        watch_filter="",
        concurrency=10,
        leader_elect=False,
        own_namespace="home",
        metrics_address="0",
        health_address="0",
        webhook_port=0,
        webhook_cert_dir="",
        sync_period=600,
        bootstrap=BootstrapOptions(),
        inventory=InventoryOptions(bind_address=where, url=f"https://{where}"),
        pace=told["pace"],
        log_format="text",
        verbosity=0,
    )
    pem = {key: b64decode(told[key]) for key in ("ca", "certificate", "key")}
    connection = Connection(server=told["server"], ca=pem["ca"], client_certificate=pem["certificate"], client_key=pem["key"])

    async def run() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        await build(connection, settings).run(stop)

    asyncio.run(run())


if __name__ == "__main__":
    _manage(json.load(sys.stdin))
