"""Measures our bootstrap provider against upstream's: the bootstrap data of 1,000 workers, on the same real API server.

Run it with ``make bench-bootstrap`` as root.  Each round makes a management plane anew for either program and the same objects in
it; the workload cluster whose tokens are made is the management cluster itself.  The figures are medians.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from e2e.planes import connection_of
from e2e.upstream import INFRASTRUCTURE, Plane, Running, plane

from slipway.api.cluster.kinds import CLUSTER, KUBEADM_CONFIG, MACHINE, SECRET, Kind
from slipway.kube.aio import AsyncClient, PatchType

Manifest = dict[str, Any]
NAME = "bench"
VERSION = "v1.35.4"
BARS = {"secrets per second": (1.0, "at least"), "CPU seconds": (1.5, "at most"), "resident memory, MB": (1.0, "at most")}
_UNTHROTTLED = ("--kube-api-qps=10000", "--kube-api-burst=10000", "--clustercache-client-qps=10000", "--clustercache-client-burst=10000")
_TICKS = os.sysconf("SC_CLK_TCK")


class Figures(NamedTuple):
    """What one manager needed for all workers."""

    rate: float
    cpu: float
    memory: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("ours", "upstream"))
    parser.add_argument("--unthrottled", action="store_true", help="lift upstream's own limits on requests per second")
    options = parser.parse_args()
    found: dict[str, list[Figures]] = {"upstream": [], "ours": []}
    for number in range(options.rounds):
        for who in ("upstream", "ours") if options.only is None else (options.only,):
            with tempfile.TemporaryDirectory() as folder, plane(Path(folder)) as management:
                figures = asyncio.run(_measure(management, who, options.workers, _UNTHROTTLED if options.unthrottled else ()))
            found[who].append(figures)
            shown = f"{figures.rate:.1f} secrets/s, {figures.cpu:.2f} s of CPU, {figures.memory:.0f} MB"
            print(f"round {number + 1}: {who}: {shown}", file=sys.stderr)
    print(f"| {options.workers} workers | upstream | slipway | ratio | bar |\n|---|---|---|---|---|")
    for index, (what, (bar, sense)) in enumerate(BARS.items()):
        if all(found.values()):
            theirs, mine = (statistics.median(figures[index] for figures in found[who]) for who in ("upstream", "ours"))
            holds = mine >= bar * theirs if sense == "at least" else mine <= bar * theirs
            print(f"| {what} | {theirs:.1f} | {mine:.1f} | {mine / theirs:.2f} | {sense} {bar} | {'holds' if holds else 'MISSED'} |")


async def _measure(management: Plane, who: str, workers: int, flags: Sequence[str]) -> Figures:
    management.install_crds()
    async with AsyncClient(connection_of(management.kubeconfig)) as client:
        await _make(client, management, workers)
        running = _start(management, who, flags)
        began = time.monotonic()
        while (made := await _secrets(client)) < workers:
            if running.process.poll() is not None:
                sys.exit(f"{who} ended with {made} secrets: {running.log.read_text()[-3000:]}")
            if time.monotonic() - began > 900:
                sys.exit(f"{who} made {made} secrets in 15 minutes: {running.log.read_text()[-3000:]}")
            await asyncio.sleep(0.25)
        seconds = time.monotonic() - began
        cpu, memory = _usage(running.process.pid)
        running.stop()
    return Figures(workers / seconds, cpu, memory)


def _start(management: Plane, who: str, flags: Sequence[str]) -> Running:
    if who == "upstream":
        return management.start_upstream("bootstrap", *flags)
    return management.start_slipway("--controllers=bootstrap", "--webhook-port=0")


def _usage(pid: int) -> tuple[float, float]:
    """Processor seconds and the most memory that was resident, in MB."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    status = Path(f"/proc/{pid}/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return (int(fields[11]) + int(fields[12])) / _TICKS, int(peak.split()[1]) / 1024


async def _secrets(client: AsyncClient) -> int:
    return len(await client.list(SECRET, "default", fields="type=cluster.x-k8s.io/secret", labels="bench!=no"))


async def _make(client: AsyncClient, management: Plane, workers: int) -> None:
    """A cluster whose control plane is there, and machines that wait for their data."""
    pki = management.folder / "plane/etc/kubernetes/pki"
    ca = (pki / "ca.crt").read_bytes()
    for suffix, data in (
        ("ca", {"tls.crt": ca, "tls.key": (pki / "ca.key").read_bytes()}),
        ("kubeconfig", {"value": _kubeconfig(management)}),
    ):
        await client.create(
            SECRET,
            _object(
                SECRET,
                f"{NAME}-{suffix}",
                type="cluster.x-k8s.io/secret",
                data={key: base64.b64encode(value).decode() for key, value in data.items()},
            )
            | {
                "metadata": {
                    "name": f"{NAME}-{suffix}",
                    "namespace": "default",
                    "labels": {"cluster.x-k8s.io/cluster-name": NAME, "bench": "no"},
                }
            },
        )
    host, _, port = management.plane.server.removeprefix("https://").rpartition(":")
    made = await client.create(
        CLUSTER,
        _object(
            CLUSTER,
            NAME,
            spec={
                "controlPlaneEndpoint": {"host": host, "port": int(port)},
                "infrastructureRef": {"apiGroup": INFRASTRUCTURE, "kind": "LabCluster", "name": NAME},
            },
        ),
    )
    now = made["metadata"]["creationTimestamp"]
    initialized = {"type": "ControlPlaneInitialized", "status": "True", "reason": "Initialized", "message": "", "lastTransitionTime": now}
    await _status(
        client,
        CLUSTER,
        NAME,
        {"conditions": [initialized], "initialization": {"infrastructureProvisioned": True, "controlPlaneInitialized": True}},
    )
    limit = asyncio.Semaphore(20)

    async def machine(number: int) -> None:
        async with limit:
            name = f"{NAME}-{number:04}"
            spec = {
                "clusterName": NAME,
                "version": VERSION,
                "bootstrap": {"configRef": {"apiGroup": KUBEADM_CONFIG.group, "kind": KUBEADM_CONFIG.kind, "name": name}},
                "infrastructureRef": {"apiGroup": INFRASTRUCTURE, "kind": "LabMachine", "name": name},
            }
            labels = {"cluster.x-k8s.io/cluster-name": NAME}
            owner = await client.create(MACHINE, _object(MACHINE, name, labels, spec=spec))
            reference = {
                "apiVersion": MACHINE.api_version,
                "kind": MACHINE.kind,
                "name": name,
                "uid": owner["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
            config = _object(KUBEADM_CONFIG, name, labels, spec=_worker())
            config["metadata"]["ownerReferences"] = [reference]
            await client.create(KUBEADM_CONFIG, config)

    await asyncio.gather(*(machine(number) for number in range(workers)))


def _worker() -> Manifest:
    return {
        "joinConfiguration": {
            "nodeRegistration": {
                "name": "{{ ds.meta_data.local_hostname }}",
                "kubeletExtraArgs": [{"name": "node-labels", "value": "pool=bench"}],
            }
        },
        "files": [{"path": "/etc/motd", "content": "a worker of the bench\n", "permissions": "0644"}],
        "users": [{"name": "operator", "sshAuthorizedKeys": ["ssh-ed25519 AAAA bench"]}],
        "preKubeadmCommands": ["swapoff -a"],
    }


def _kubeconfig(management: Plane) -> bytes:
    """The management cluster's own, with the certificates inside."""
    return management.kubeconfig.read_bytes()


def _object(kind: Kind, name: str, labels: dict[str, str] | None = None, **fields: Any) -> Manifest:
    metadata: Manifest = {"name": name, "namespace": "default", **({"labels": labels} if labels else {})}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **fields}


async def _status(client: AsyncClient, kind: Kind, name: str, status: Manifest) -> None:
    await client.patch(kind, name, "default", {"status": status}, type=PatchType.MERGE, subresource="status")


if __name__ == "__main__":
    main()
