"""Measures our machine and control-plane controllers against upstream's, on the same real API server with simulated infrastructure.

Run it with ``make bench-machines`` as root.  Each round makes a management plane anew for either side, with the same objects in it; the
management cluster is its own workload cluster.  Machines are ready at once.  The figures are medians.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import re
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.scalemeasure import cpu_seconds, memory, quiet
from e2e.planes import connection_of
from e2e.upstream import Plane, Running, plane
from fleet import infrastructure
from fleet.infrastructure import TEST_CLUSTER, TEST_CONFIG_TEMPLATE, TEST_MACHINE_TEMPLATE, Infrastructure
from support.ports import free_port

from slipway.api.cluster.kinds import CLUSTER, CUSTOM_RESOURCE_DEFINITION, MACHINE, MACHINE_DEPLOYMENT, SECRET, Kind
from slipway.kube.aio import AsyncClient, PatchType
from slipway.runtime.manager import Manager, ManagerOptions

Manifest = dict[str, Any]
NAMESPACE = "default"
NAME = "bench"
FIRST, SECOND = "v1.34.10", "v1.35.4"
_MEMORY = Path("/dev/shm")
_REQUESTS = re.compile(r"^rest_client_requests_total\{.*\} (\S+)$", re.MULTILINE)
# The name of a figure, the ratio to upstream's that it may have at most.
BARS = {"CPU a replaced machine, ms": 1.0, "API requests a replaced machine": 0.8, "wall of the rollout, s": 0.8, "peak memory, MB": 1.0}

REST_BAR = 0.7


class Figures(NamedTuple):
    """What the managers of one side needed for a rollout."""

    cpu: float
    requests: float
    wall: float
    memory: float


class Side:
    """The managers of one side, as processes."""

    def __init__(self, management: Plane, who: str) -> None:
        self.who = who
        self._metrics: list[str] = []
        self.running: list[Running] = []
        if who == "upstream":
            for name in ("core", "control-plane"):
                port = free_port()
                # With its own limits of requests: without them its hundred workers meet conflicts that they cause themselves, and a
                # rollout takes several times as long.
                self.running.append(management.start_upstream(name, f"--diagnostics-address=127.0.0.1:{port}"))
                self._metrics.append(f"http://127.0.0.1:{port}/metrics")
        else:
            port = free_port()
            flags = ("--controllers=machines,controlplane", "--webhook-port=0", f"--metrics-bind-address=127.0.0.1:{port}")
            self.running.append(management.start_slipway(*flags))
            self._metrics.append(f"http://127.0.0.1:{port}/metrics")
        for running in self.running:
            running.await_health()

    def cpu(self) -> float:
        """Processor seconds until now."""
        return sum(cpu_seconds(running.process.pid) for running in self.running)

    def memory(self) -> float:
        """The most that was resident, in MB."""
        return sum(memory(running.process.pid, "VmHWM") for running in self.running)

    def requests(self) -> float:
        return sum(float(count) for url in self._metrics for count in _REQUESTS.findall(urlopen(url, timeout=30).read().decode()))

    def check(self) -> None:
        for running in self.running:
            if running.process.poll() is not None:
                sys.exit(f"{running.name} ended: {running.log.read_text()[-3000:]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=("rollout", "growth", "rest"), default="rollout")
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--deployments", type=int, default=10)
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=(100, 1000, 5000), help="the numbers of workers of the growth")
    parser.add_argument(
        "--replaced", type=int, default=1000, help="about how many of many workers the growth replaces, in whole deployments"
    )
    parser.add_argument("--only", choices=("ours", "upstream"))
    options = parser.parse_args()
    # Whoever ends it wants everything that it started ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("it was ended before it was done"))
    sides = ("upstream", "ours") if options.only is None else (options.only,)
    if options.part == "rollout":
        found: dict[str, list[Figures]] = {who: [] for who in sides}
        for number in range(options.rounds):
            for who in sides:
                found[who].append(_round(who, options.workers, options.deployments, number))
        _report(options.workers, found)
    elif options.part == "growth":
        for workers in options.sizes:
            figures = _round("ours", workers, options.deployments, 0, options.replaced)
            print(f"{workers} workers: {figures.cpu:.1f} ms of CPU a replaced machine, {figures.requests:.1f} requests")
    else:
        _rest(sides, options.clusters, options.minutes)


def _round(who: str, workers: int, deployments: int, number: int, replaced: int | None = None) -> Figures:
    rolled = deployments if replaced is None else min(deployments, max(1, replaced * deployments // workers))
    figures: Figures = _run(who, lambda management, side: _rollout(management, side, workers, deployments, rolled))
    shown = f"{figures.cpu:.1f} ms, {figures.requests:.1f} requests, {figures.wall:.1f} s, {figures.memory:.0f} MB"
    print(f"round {number + 1}: {who}: {workers} workers: {shown}", file=sys.stderr)
    return figures


def _rest(sides: Sequence[str], clusters: int, minutes: float) -> None:
    """Both sides at the same time, each with a plane of its own: what else this machine does disturbs them alike."""
    together = threading.Barrier(len(sides), timeout=3600)

    def measured(who: str) -> float:
        try:
            seconds: float = _run(who, lambda management, side: _at_rest(management, side, clusters, minutes, together))
        finally:
            # Who fails is not waited for.
            together.abort()
        print(f"{who}: {clusters} clusters at rest for {minutes:g} minutes: {seconds:.2f} s of CPU")
        return seconds

    with ThreadPoolExecutor(len(sides)) as threads:
        found = list(threads.map(measured, sides))
    if len(found) == 2 and found[0]:
        ratio = found[1] / found[0]
        print(f"ours is {ratio:.2f} x upstream's: the bar of {REST_BAR} {'holds' if ratio <= REST_BAR else 'is MISSED'}")


def _run(who: str, measure: Callable[[Plane, Side], Awaitable[Any]]) -> Any:
    # In memory where there is room for it: how long the disk takes to write for etcd says nothing of a manager.
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder, plane(Path(folder)) as management:
        management.install_crds()

        async def work() -> Any:
            async with _infrastructure(management):
                return await measure(management, Side(management, who))

        return asyncio.run(work())


def _report(workers: int, found: Mapping[str, Sequence[Figures]]) -> None:
    if len(found) < 2:
        return
    print(f"| {workers} workers | upstream | slipway | ratio | bar |\n|---|---|---|---|---|")
    for index, (what, bar) in enumerate(BARS.items()):
        theirs, mine = (statistics.median(figures[index] for figures in found[who]) for who in ("upstream", "ours"))
        ratio = mine / theirs
        print(f"| {what} | {theirs:.1f} | {mine:.1f} | {ratio:.2f} | at most {bar} | {'holds' if ratio <= bar else 'MISSED'} |")


@asynccontextmanager
async def _infrastructure(management: Plane) -> AsyncIterator[None]:
    connection = connection_of(management.kubeconfig)
    async with AsyncClient(connection) as client:
        for crd in infrastructure.crds():
            await client.create(CUSTOM_RESOURCE_DEFINITION, crd)
    management.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    manager = Manager(connection, ManagerOptions(name="simulated-infrastructure", concurrency=20))
    Infrastructure(connection).add_to(manager)
    stop = asyncio.Event()
    task = asyncio.create_task(manager.run(stop))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait_for(task, 120)


async def _rollout(management: Plane, side: Side, workers: int, deployments: int, rolled: int) -> Figures:
    """Make the workers, and replace those of the first deployments."""
    async with AsyncClient(connection_of(management.kubeconfig)) as client:
        await _cluster(client, management, NAME)
        each = workers // deployments
        for number in range(deployments):
            await _deployment(client, NAME, f"{NAME}-{number}", each)
        await _until(client, side, deployments, each, FIRST, "made")
        # What was just made is looked at once more, which is no part of a rollout.
        await quiet(side.cpu)
        print(f"{side.who}: {workers} workers are made, and those of {rolled} deployments are replaced", file=sys.stderr)
        cpu, requests, began = side.cpu(), side.requests(), time.monotonic()
        for number in range(rolled):
            body = {"spec": {"template": {"spec": {"version": SECOND}}}}
            await client.patch(MACHINE_DEPLOYMENT, f"{NAME}-{number}", NAMESPACE, body, type=PatchType.MERGE)
        await _until(client, side, rolled, each, SECOND, "replaced")
        wall, replaced = time.monotonic() - began, each * rolled
        return Figures((side.cpu() - cpu) * 1000 / replaced, (side.requests() - requests) / replaced, wall, side.memory())


async def _at_rest(management: Plane, side: Side, clusters: int, minutes: float, together: threading.Barrier) -> float:
    """Clusters whose three control planes are machines of their own, and nothing to do."""
    async with AsyncClient(connection_of(management.kubeconfig)) as client:
        for number in range(clusters):
            await _cluster(client, management, f"{NAME}-{number}", control_planes=3)
        deadline = time.monotonic() + 1800
        while True:
            machines = await client.list(MACHINE, NAMESPACE)
            running = sum((machine.get("status") or {}).get("phase") == "Running" for machine in machines)
            if running == clusters * 3:
                break
            side.check()
            if time.monotonic() > deadline:
                sys.exit(f"{side.who}: {running} of {clusters * 3} machines run after half an hour")
            await asyncio.sleep(2)
        # What was just made is looked at for some time yet.
        await asyncio.sleep(60)
        await asyncio.to_thread(together.wait)
        began = side.cpu()
        await asyncio.sleep(minutes * 60)
        return side.cpu() - began


async def _until(client: AsyncClient, side: Side, deployments: int, replicas: int, version: str, said: str) -> None:
    """The first of the deployments have that many machines, all at the version."""
    wanted = {f"{NAME}-{number}" for number in range(deployments)}
    deadline = time.monotonic() + 3600
    while True:
        found = [one for one in await client.list(MACHINE_DEPLOYMENT, NAMESPACE) if one["metadata"]["name"] in wanted]
        if len(found) == deployments and all(_is_at(one, replicas, version) for one in found):
            return
        side.check()
        if time.monotonic() > deadline:
            sys.exit(f"{side.who}: the workers were not {said} within an hour: {[one.get('status') for one in found][:2]}")
        await asyncio.sleep(0.5)


def _is_at(deployment: Manifest, replicas: int, version: str) -> bool:
    status = deployment.get("status") or {}
    counters = {status.get(key) for key in ("replicas", "availableReplicas", "upToDateReplicas")}
    versions = [each["version"] for each in status.get("versions") or ()]
    return counters == {replicas} and versions == [version]


async def _cluster(client: AsyncClient, management: Plane, name: str, *, control_planes: int = 1) -> None:
    host, _, port = management.plane.server.removeprefix("https://").rpartition(":")
    kubeconfig = base64.b64encode(management.kubeconfig.read_bytes()).decode()
    labels = {"cluster.x-k8s.io/cluster-name": name}
    await _create(client, SECRET, f"{name}-kubeconfig", labels, type="cluster.x-k8s.io/secret", data={"value": kubeconfig})
    await _create(client, TEST_CLUSTER, name, spec={"controlPlaneEndpoint": {"host": host, "port": int(port)}})
    await _create(client, CLUSTER, name, spec={"infrastructureRef": infrastructure.reference(TEST_CLUSTER, name)})
    for number in range(control_planes):
        await _control_plane(client, name, f"{name}-cp-{number}")


async def _control_plane(client: AsyncClient, cluster: str, name: str) -> None:
    """A machine without an owner, whose bootstrap data is given."""
    labels = {"cluster.x-k8s.io/cluster-name": cluster, "cluster.x-k8s.io/control-plane": ""}
    await _create(client, infrastructure.TEST_MACHINE, name, labels)
    spec = {
        "clusterName": cluster,
        "version": SECOND,
        "bootstrap": {"dataSecretName": f"{cluster}-kubeconfig"},
        "infrastructureRef": infrastructure.reference(infrastructure.TEST_MACHINE, name),
    }
    await _create(client, MACHINE, name, labels, spec=spec)


async def _deployment(client: AsyncClient, cluster: str, name: str, replicas: int) -> None:
    for kind in (TEST_MACHINE_TEMPLATE, TEST_CONFIG_TEMPLATE):
        await client.create(kind, infrastructure.template(kind, name, NAMESPACE))
    labels = {"cluster.x-k8s.io/cluster-name": cluster, "cluster.x-k8s.io/deployment-name": name}
    machine = {
        "clusterName": cluster,
        "version": FIRST,
        "bootstrap": {"configRef": infrastructure.reference(TEST_CONFIG_TEMPLATE, name)},
        "infrastructureRef": infrastructure.reference(TEST_MACHINE_TEMPLATE, name),
    }
    spec = {
        "clusterName": cluster,
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "10%"}}},
        "template": {"metadata": {"labels": labels}, "spec": machine},
    }
    await _create(client, MACHINE_DEPLOYMENT, name, {"cluster.x-k8s.io/cluster-name": cluster}, spec=spec)


async def _create(client: AsyncClient, kind: Kind, name: str, labels: dict[str, str] | None = None, **fields: Any) -> None:
    metadata: Manifest = {"name": name, "namespace": NAMESPACE, **({"labels": labels} if labels else {})}
    await client.create(kind, {"metadata": metadata, **fields})


if __name__ == "__main__":
    main()
