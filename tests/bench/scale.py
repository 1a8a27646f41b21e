"""Measures a fleet of simulated hosts on a real API server with its own etcd: what a replaced node costs, and what rest costs.

Run it with ``make bench-scale`` as root.  The hosts run the production agent; they and the APIs of their clusters are processes of their
own, and their processor time is reported apart from the manager's, the API server's and etcd's.  What a part found is kept in the results
file at once: a run that was ended goes on with what is missing.

- ``rollout``: every node of every cluster is replaced, by all of ours, and by upstream's core and control-plane managers with our
  bootstrap and bare-metal providers.
- ``size``: the same by ours alone, of a fleet of another size, which is measured at rest before it is rolled; with ``--rolled`` only so
  many clusters of it are rolled.
- ``shards``: as ``rollout`` by ours, divided over two managers.
- ``rest``: nothing to do for some minutes, and no rollout after that.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.scalehosts import Said, Told
from bench.scalemeasure import MANAGER, Meter, Taken, asked, quiet
from bench.scaleobjects import FIRST, REGISTRATION, SECOND, ClusterOfHosts, catalog, clusters, registration
from e2e.planes import connection_of, programs
from e2e.upstream import Plane, Running, plane
from support.ports import free_port

from slipway.api.cluster import crds
from slipway.api.cluster.kinds import (
    CONFIG_MAP,
    ELEMENTAL_GROUP,
    INFRASTRUCTURE_GROUP,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_REGISTRATION,
    NAMESPACE,
    SECRET,
)
from slipway.kube.aio import AsyncClient, PatchType

Manifest = dict[str, Any]
HOME = "slipway-system"
CERTIFICATE = "slipway-registration-certificate"
_MEMORY = Path("/dev/shm")
_HOSTS_OF_A_PROCESS = 500
# So many hosts are switched on at a time, in all processes: most of what each does then is to wait.
_HOSTS_AT_ONCE = 500


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What one run took."""

    who: str
    hosts: int
    clusters: int
    replaced: int
    wall: float
    making: Taken
    """What it took until every node was there, from the registration of the hosts on."""
    cpu: dict[str, float]
    """Seconds of the rollout, by group."""
    requests: float
    start_memory: float
    """MB of the manager before there was a host."""
    memory: float
    """MB of the manager at most."""
    each: list[tuple[float, float]]
    """Seconds and MB of every manager."""
    reconciles: dict[str, float]
    """How often each controller looked at an object during the rollout."""
    asked: dict[str, float]
    """What the API server was asked for during the rollout, by managers, hosts and all others: how often."""
    load: float
    """What the machine had to do besides, as far as the load average told before."""

    @property
    def cpu_a_node(self) -> float:
        return self.cpu[MANAGER] * 1000 / max(self.replaced, 1)

    @property
    def requests_a_node(self) -> float:
        return self.requests / max(self.replaced, 1)

    @property
    def making_a_node(self) -> float:
        """Milliseconds of the manager."""
        return self.making.cpu[MANAGER] * 1000 / sum(cluster.nodes for cluster in clusters(self.hosts, self.clusters))

    @property
    def memory_a_host(self) -> float:
        """In kB."""
        return (self.memory - self.start_memory) * 1024 / self.hosts


class Rest(msgspec.Struct, frozen=True, kw_only=True):
    hosts: int
    minutes: float
    start_memory: float
    memory: float
    """MB, as in a run."""
    cpu: dict[str, float]
    requests: float
    reconciles: dict[str, float]

    @property
    def memory_a_host(self) -> float:
        """In kB."""
        return (self.memory - self.start_memory) * 1024 / self.hosts

    @property
    def of_a_core(self) -> float:
        """In per cent."""
        return self.cpu[MANAGER] / (self.minutes * 60) * 100


class Results(msgspec.Struct):
    """What is kept between runs, by part and side."""

    runs: dict[str, Figures] = {}
    rest: dict[str, Rest] = {}

    def has(self, key: str, part: str) -> bool:
        return key in (self.rest if part == "rest" else self.runs)

    def keep(self, key: str, found: Figures | Rest, *, path: Path) -> None:
        """At once: the next part of a run may fail."""
        if isinstance(found, Rest):
            self.rest[key] = found
        else:
            self.runs[key] = found
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("rollout", "size", "shards", "rest"), default="rollout")
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--namespaces", type=int, default=1, help="over how many the clusters are divided")
    parser.add_argument("--rolled", type=int, default=0, help="how many of the clusters are rolled; 0 for all")
    parser.add_argument("--minutes", type=float, default=10, help="how long the rest lasts")
    parser.add_argument("--pace", type=float, default=0.1, help="how long a second of a host takes")
    parser.add_argument("--heartbeat", type=float, default=60, help="seconds between two signs of life of a kubelet")
    parser.add_argument("--wave", type=int, default=20, help="how many clusters are made, or rolled, at the same time")
    parser.add_argument("--limit", type=float, default=60, help="minutes after which a run is given up")
    parser.add_argument("--only", choices=("ours", "upstream"))
    parser.add_argument("--results", type=Path, default=Path("scale-results.json"))
    parser.add_argument("--again", action="store_true", help="measure what the results have already, too")
    parser.add_argument("--flag", action="append", default=[], help="one more flag for our manager")
    parser.add_argument("--profile", type=Path, help="where our manager's profile goes: everything is slower then")
    options = parser.parse_args()
    # Whoever ends it wants everything that it started ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("it was ended before it was done"))
    if options.hosts // options.clusters < 5:
        parser.error(f"a cluster needs 5 hosts at least, and {options.hosts} hosts in {options.clusters} clusters are fewer")
    if not 1 <= options.namespaces <= options.clusters:
        parser.error(f"{options.clusters} clusters are divided over at least 1 and at most {options.clusters} namespaces")
    results = Results()
    if options.results.exists():
        results = msgspec.json.decode(options.results.read_bytes(), type=Results)
    for who in _sides(options):
        # What two managers share is held against a rollout by one.
        part = "rollout" if (options.part, who) == ("shards", "ours") else options.part
        key = f"{part} {who} {options.hosts}/{options.clusters}"
        if not options.again and results.has(key, part):
            _say(f"{key}: is in {options.results}")
            continue
        _run(options, who, partial(results.keep, key, path=options.results))
    print(report(results))


def _sides(options: argparse.Namespace) -> Sequence[str]:
    if options.only:
        return [options.only]
    return {"rollout": ["ours", "upstream"], "shards": ["ours", "sharded"]}.get(options.part, ["ours"])


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


# The processes.


class Fleet:
    """A management plane with the managers of one side."""

    def __init__(self, management: Plane, who: str, folder: Path, options: argparse.Namespace) -> None:
        self.management, self.who, self._folder, self._options = management, who, folder, options
        self.managers: list[Running] = []
        self.hosts: list[subprocess.Popen[bytes]] = []
        self.metrics: list[str] = []

    def install(self) -> None:
        """The same kinds for either side: upstream's of the core and of the control plane, and ours of our providers."""
        self.management.install_crds(bootstrap="slipway")
        ours = [crd for crd in crds.crds() if crd["spec"]["group"] in (INFRASTRUCTURE_GROUP, ELEMENTAL_GROUP)]
        self.management.apply(*ours)
        self.management.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")

    def start_managers(self) -> None:
        if self.who == "upstream":
            for name in ("core", "control-plane"):
                port = free_port()
                # With its own limits of requests, as elsewhere: without them it is slower, not faster.
                self.managers.append(self.management.start_upstream(name, f"--diagnostics-address=127.0.0.1:{port}"))
                self.metrics.append(f"http://127.0.0.1:{port}/metrics")
            self._start_ours("bootstrap,baremetal,inventory")
        elif self.who == "sharded":
            for number in range(2):
                self._start_ours("all", "--leader-elect", "--shards=2", name=f"slipway-{number}")
        else:
            self._start_ours("all")
        for running in self.managers:
            running.await_health()

    def _start_ours(self, controllers: str, *flags: str, name: str = "slipway") -> None:
        metrics, address = free_port(), f"127.0.0.1:{free_port()}"
        self.metrics.append(f"http://127.0.0.1:{metrics}/metrics")
        given = [
            *(f"--controllers={controllers}", "--webhook-port=0", f"--metrics-bind-address=127.0.0.1:{metrics}"),
            *(f"--leader-elect-namespace={HOME}", f"--registration-bind-address={address}", f"--registration-url=https://{address}"),
            *flags,
        ]
        profile = self._options.profile
        profiled = str(Path(__file__).with_name("profiled.py"))
        program = ("-m", "slipway") if profile is None else (profiled, str(profile.absolute()))
        self.managers.append(self.management.start_slipway(*given, *self._options.flag, name=name, program=program))

    def start_hosts(self, urls: Mapping[str, str], authority: str, wanted: Sequence[ClusterOfHosts]) -> None:
        """The hosts of a cluster are all in one process: that is where the API of the cluster is.  ``urls`` are by namespace."""
        parts: list[tuple[str, list[str]]] = []
        for cluster in wanted:
            if not parts or parts[-1][0] != cluster.namespace or len(parts[-1][1]) + cluster.hosts > _HOSTS_OF_A_PROCESS:
                parts.append((cluster.namespace, []))
            parts[-1][1].extend(cluster.host_names)
        first = 0
        # A thousand threads would have sixteen heaps, each with room for what the others need.
        environment = {**os.environ, "MALLOC_ARENA_MAX": "2"}
        for number, (namespace, names) in enumerate(parts):
            told = self._folder / f"hosts-{number}.json"
            hosts = Told(
                url=urls[namespace],
                authority=authority,
                names=names,
                first=first,
                pace=self._options.pace,
                heartbeat=self._options.heartbeat,
                at_once=max(1, _HOSTS_AT_ONCE // len(parts)),
                grpc=self.who == "upstream",
            )
            told.write_bytes(msgspec.json.encode(hosts))
            first += len(names)
            with (self._folder / f"hosts-{number}.log").open("wb") as log:
                command = [sys.executable, str(Path(__file__).with_name("scalehosts.py")), str(told)]
                self.hosts.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, env=environment))
        # Hosts boot at the same time: most of that is waiting.
        for number, (_, names) in enumerate(parts):
            self._await_registration(number, len(names))

    def _await_registration(self, number: int, hosts: int) -> None:
        output = self.hosts[number].stdout
        assert output is not None
        for line in output:
            said = msgspec.json.decode(line, type=Said)
            if said.registered == said.of:
                _say(f"{hosts} hosts of process {number + 1} have registered")
                return
        sys.exit(f"the hosts ended: {(self._folder / f'hosts-{number}.log').read_text()[-3000:]}")

    def meter(self) -> Meter:
        known = self.management.plane.processes
        groups = {
            MANAGER: [running.process.pid for running in self.managers],
            "hosts": [process.pid for process in self.hosts],
            "apiserver": [known["kube-apiserver"].pid],
            "etcd": [known["etcd"].pid],
            "controller-manager": [known["kube-controller-manager"].pid],
        }
        return Meter(groups, self.metrics)

    def check(self) -> None:
        for running in self.managers:
            if running.process.poll() is not None:
                sys.exit(f"{running.name} ended: {running.log.read_text()[-3000:]}")
        for number, process in enumerate(self.hosts):
            if process.poll() is not None:
                sys.exit(f"the hosts ended: {(self._folder / f'hosts-{number}.log').read_text()[-3000:]}")

    def stop(self) -> None:
        for process in self.hosts:
            process.terminate()
        for process in self.hosts:
            process.wait(60)


def _run(options: argparse.Namespace, who: str, keep: Callable[[Figures | Rest], None]) -> None:
    load = os.getloadavg()[0]
    with _folder() as folder, plane(folder, others={"kube-apiserver": _api_server(folder)}) as management:
        fleet = Fleet(management, who, folder, options)
        fleet.install()
        try:
            asyncio.run(Course(fleet, options, load).run(keep))
        finally:
            for running in fleet.managers:
                running.stop()
            fleet.stop()


def _api_server(folder: Path) -> Path:
    """The real one, which collects its garbage less often while it is small: that is a third of its work, and no part of a manager's.

    Beside the hosts of a large fleet there has to be room for it.
    """
    path = folder / "kube-apiserver"
    path.write_text(f'#!/bin/sh\nGOGC=300 GOMEMLIMIT=11GiB exec {programs()["kube-apiserver"]} "$@"\n')
    path.chmod(0o755)
    return path


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    # In memory where there is room for it: how long the disk takes to write for etcd says nothing of a manager.
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as name:
        yield Path(name)


# What happens.


class Course:
    """One run, from an empty management plane to the figures."""

    def __init__(self, fleet: Fleet, options: argparse.Namespace, load: float) -> None:
        self._fleet, self._options, self._load = fleet, options, load
        self._clusters = clusters(options.hosts, options.clusters, options.namespaces)
        self._deadline = time.monotonic() + options.limit * 60

    async def run(self, keep: Callable[[Figures | Rest], None]) -> None:
        fleet, options = self._fleet, self._options
        async with AsyncClient(connection_of(fleet.management.kubeconfig)) as self._client:
            spaces = dict.fromkeys(cluster.namespace for cluster in self._clusters)
            for name in (*spaces, HOME):
                await self._client.create(NAMESPACE, {"metadata": {"name": name}})
            fleet.start_managers()
            for name in spaces:
                await self._client.create(CONFIG_MAP, catalog(name))
                await self._client.create(MACHINE_REGISTRATION, registration(name))
            authority, urls = await self._authority(), {name: await self._registration(name) for name in spaces}
            start_memory = fleet.meter().memory("VmRSS")
            _say(f"{fleet.who}: {options.hosts} hosts register")
            await asyncio.to_thread(fleet.start_hosts, urls, authority, self._clusters)
            meter = fleet.meter()
            began = meter.taken(time.monotonic(), begin=True)
            await self._waves(self._clusters, self._make, FIRST, "made")
            await quiet(lambda: meter.cpu()[MANAGER])
            making = meter.taken(time.monotonic()).since(began)
            if options.part in ("rest", "size"):
                keep(await self._rest(meter, start_memory))
            if options.part == "rest":
                return
            rolled = self._clusters[: options.rolled or len(self._clusters)]
            before, each, asked_before = meter.taken(time.monotonic(), begin=True), meter.each(), self._asked()
            await self._waves(rolled, self._roll, SECOND, "rolled")
            await quiet(lambda: meter.cpu()[MANAGER])
            taken = meter.taken(time.monotonic()).since(before)
            figures = self._figures(meter, taken, sum(cluster.nodes for cluster in rolled), making, start_memory)
            apart = [(cpu - cpu_before, memory) for (cpu, memory), (cpu_before, _) in zip(figures.each, each, strict=True)]
            times = {what: count - asked_before.get(what, 0.0) for what, count in self._asked().items()}
            often = dict(sorted(((what, count) for what, count in times.items() if count), key=lambda each: -each[1]))
            keep(msgspec.structs.replace(figures, each=apart, asked=often))

    def _asked(self) -> dict[str, float]:
        return asked(self._fleet.management.kubectl("get", "--raw", "/metrics"))

    def _figures(self, meter: Meter, taken: Taken, replaced: int, making: Taken, start_memory: float) -> Figures:
        figures = Figures(
            who=self._fleet.who,
            hosts=self._options.hosts,
            clusters=self._options.clusters,
            replaced=replaced,
            wall=taken.at,
            making=making,
            cpu=taken.cpu,
            requests=taken.requests,
            start_memory=start_memory,
            memory=meter.memory("VmHWM"),
            each=meter.each(),
            reconciles=taken.reconciles,
            asked={},
            load=self._load,
        )
        _say(f"{figures.who}: {figures.cpu_a_node:.0f} ms and {figures.requests_a_node:.1f} requests a node, {figures.wall:.0f} s")
        return figures

    async def _registration(self, namespace: str) -> str:
        """The URL where hosts register for a namespace."""
        while True:
            found = await self._client.find(MACHINE_REGISTRATION, REGISTRATION, namespace)
            if url := ((found or {}).get("status") or {}).get("registrationURL"):
                return str(url)
            await self._until_hosts_can_register()

    async def _authority(self) -> str:
        """Who has signed the certificate of that server."""
        while True:
            secret = await self._client.find(SECRET, CERTIFICATE, HOME)
            if secret is not None and (data := secret.get("data")):
                return b64decode(data.get("ca.crt") or data["tls.crt"]).decode()
            await self._until_hosts_can_register()

    async def _until_hosts_can_register(self) -> None:
        self._check("hosts cannot register")
        await asyncio.sleep(0.2)

    async def _make(self, cluster: ClusterOfHosts) -> None:
        for kind, manifest in cluster.manifests():
            await self._client.create(kind, manifest)

    async def _roll(self, cluster: ClusterOfHosts) -> None:
        """The control plane first; its workers follow when it is done, see :meth:`_waves`."""
        body = {"spec": {"version": SECOND}}
        await self._client.patch(KUBEADM_CONTROL_PLANE, f"{cluster.name}-planes", cluster.namespace, body, type=PatchType.MERGE)

    async def _waves(self, wanted: Sequence[ClusterOfHosts], begin: Callable[[ClusterOfHosts], Any], version: str, said: str) -> None:
        """Begin with some clusters, and with another one whenever one is done."""
        waiting, busy, following = list(wanted), dict[str, ClusterOfHosts](), set[str]()
        done, told = 0, 0.0
        while waiting or busy:
            while waiting and len(busy) < self._options.wave:
                cluster = waiting.pop(0)
                busy[cluster.name] = cluster
                await begin(cluster)
            planes, workers = [
                {each["metadata"]["name"]: each for each in await self._client.list(kind)}
                for kind in (KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT)
            ]
            there = done
            for name, cluster in list(busy.items()):
                plane_done = is_at(planes.get(f"{name}-planes"), cluster.nodes - cluster.workers, version)
                if plane_done and version == SECOND and name not in following:
                    following.add(name)
                    body = {"spec": {"template": {"spec": {"version": SECOND}}}}
                    await self._client.patch(MACHINE_DEPLOYMENT, f"{name}-workers", cluster.namespace, body, type=PatchType.MERGE)
                    continue
                there += well(planes.get(f"{name}-planes"))
                if version == FIRST or name in following:
                    there += well(workers.get(f"{name}-workers"))
                if plane_done and is_at(workers.get(f"{name}-workers"), cluster.workers, version):
                    del busy[name]
                    done += cluster.nodes
            self._check(f"{there} of {sum(cluster.nodes for cluster in wanted)} nodes are {said}")
            if time.monotonic() - told > 10:
                told = time.monotonic()
                held = self._fleet.meter().memory()
                _say(f"{self._fleet.who}: {there} of {sum(cluster.nodes for cluster in wanted)} nodes are {said}, {held:.0f} MB")
            # A look at every cluster is work for the API server that is no part of what is measured.
            await asyncio.sleep(max(1.0, len(self._clusters) / 50))

    async def _rest(self, meter: Meter, start_memory: float) -> Rest:
        # What was just made is looked at for some time yet.
        await asyncio.sleep(60)
        before = meter.taken(time.monotonic(), begin=True)
        ends = time.monotonic() + self._options.minutes * 60
        while (left := ends - time.monotonic()) > 0:
            self._fleet.check()
            _say(f"at rest for {left:.0f} more seconds")
            await asyncio.sleep(min(left, 30))
        taken = meter.taken(time.monotonic()).since(before)
        return Rest(
            hosts=self._options.hosts,
            minutes=taken.at / 60,
            start_memory=start_memory,
            memory=meter.memory("VmHWM"),
            cpu=taken.cpu,
            requests=taken.requests,
            reconciles=taken.reconciles,
        )

    def _check(self, so_far: str) -> None:
        self._fleet.check()
        if time.monotonic() > self._deadline:
            sys.exit(f"{self._fleet.who}: {so_far} after {self._options.limit:g} minutes")


def well(found: Manifest | None) -> int:
    """How many machines are as is asked for now, and work: at most, as the counters tell, and none where nobody has looked at that yet."""
    if found is None or not _is_observed(found):
        return 0
    return min(int(found["status"].get(counter) or 0) for counter in ("upToDateReplicas", "availableReplicas"))


def _is_observed(found: Manifest) -> bool:
    return bool((found.get("status") or {}).get("observedGeneration") == found["metadata"].get("generation"))


def is_at(found: Manifest | None, replicas: int, version: str) -> bool:
    """A control plane or a deployment with that many machines, all of them well, up to date and at the version."""
    if found is None or not _is_observed(found):
        return False
    status = found["status"]
    counters = {status.get(key) for key in ("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas")}
    at = {status["version"]} if "version" in status else {each["version"] for each in status.get("versions") or ()}
    return counters == {replicas} and at == {version}


# What is told.


COLUMNS: dict[str, Callable[[Figures], str]] = {
    "manager, ms a node made": lambda run: f"{run.making_a_node:.0f}",
    "nodes replaced": lambda run: str(run.replaced),
    "manager, ms a node replaced": lambda run: f"{run.cpu_a_node:.0f}",
    "requests a node replaced": lambda run: f"{run.requests_a_node:.1f}",
    "wall, s": lambda run: f"{run.wall:.0f}",
    "MB at most": lambda run: f"{run.memory:.0f}",
    "kB a host over the start": lambda run: f"{run.memory_a_host:.0f}",
    "hosts, s": lambda run: f"{run.cpu['hosts']:.0f}",
    "API server, s": lambda run: f"{run.cpu['apiserver']:.0f}",
    "etcd, s": lambda run: f"{run.cpu['etcd']:.0f}",
    "load before": lambda run: f"{run.load:.1f}",
}


def report(results: Results) -> str:
    """What was found, as the table of the docs; seconds are those of processor time during the rollout."""
    lines = ["| run | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    lines += [f"| {key} | " + " | ".join(shown(run) for shown in COLUMNS.values()) + " |" for key, run in results.runs.items()]
    return "\n".join([*lines, *(f"\n{line}" for line in verdicts(results))])


def verdicts(results: Results) -> list[str]:
    """What the bars say, of the runs that are there."""
    found = []
    for key, mine in results.runs.items():
        part, who, size = key.split(" ")
        theirs = results.runs.get(f"rollout upstream {size}")
        if part == "rollout" and who == "ours" and theirs is not None:
            found.append(_verdict(f"{size}: processor time a node, of upstream's", mine.cpu_a_node / theirs.cpu_a_node, 1.0))
            found.append(_verdict(f"{size}: requests a node, of upstream's", mine.requests_a_node / theirs.requests_a_node, 1.0))
        small = next((run for other, run in results.runs.items() if other.startswith("rollout ours ")), None)
        if part == "size" and small is not None:
            found.append(_verdict(f"{size}: processor time a node, of that with {small.hosts}", mine.cpu_a_node / small.cpu_a_node, 1.3))
            ratio = mine.requests_a_node / small.requests_a_node
            found.append(_verdict(f"{size}: requests a node, of those with {small.hosts}", ratio, 1.3))
            found.append(_verdict(f"{size}: kB a host over the start", mine.memory_a_host, 60))
        one = results.runs.get(f"rollout ours {size}")
        if part == "shards" and who == "sharded" and one is not None:
            (cpu, memory), start = one.each[0], mine.start_memory / len(mine.each)
            for number, (its_cpu, its_memory) in enumerate(mine.each):
                found.append(_verdict(f"{size}: processor time of shard {number + 1}, of one's", its_cpu / cpu, 0.6))
                # What a process has before there is a host cannot be divided: it is told, and not judged.
                over = (its_memory - start) / (memory - one.start_memory)
                whole = f"{its_memory:.0f} MB of {memory:.0f} MB in all"
                found.append(_verdict(f"{size}: memory of shard {number + 1} over the start, of one's ({whole})", over, 0.6))
    for key, rest in results.rest.items():
        found.append(_verdict(f"{key}: per cent of a core at rest for {rest.minutes:.0f} minutes", rest.of_a_core, 5))
        found.append(_verdict(f"{key}: kB a host over the start", rest.memory_a_host, 60))
    return found


def _verdict(what: str, figure: float, bar: float) -> str:
    return f"{what}: {figure:.2f}, at most {bar:g}: {'holds' if figure <= bar else 'MISSED'}"


if __name__ == "__main__":
    main()
