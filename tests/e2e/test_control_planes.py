"""Control planes of three on lab hosts: real kubelets, real etcd members, replaced one by one by our managers.

Once by ours alone, with the API asked all along; once begun by upstream's managers, and taken over in the middle of the rollout.
"""

from __future__ import annotations

import base64
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from e2e import capiclusters
from e2e.balancer import Balancer, balancer
from e2e.labcli import LabCommands
from e2e.nodes import real_hosts
from e2e.upstream import LabProvider, Plane, Running, plane

pytestmark = real_hosts
Manifest = dict[str, Any]
OLD, NEW = "v1.34.10", "v1.35.4"
NAME = "brig"
FINALIZER = "labmachine.infrastructure.cluster.x-k8s.io"
# Long enough for each of upstream's controllers to look at everything.
HANDED_BACK_FOR = 45.0
UPSTREAM = ("core", "control-plane", "bootstrap")
# The same of ours: what the lab makes of machines is the test's own infrastructure.
OURS = "bootstrap,machines,controlplane"
_ETCD = "/etc/kubernetes/pki/etcd"
_ETCD_CREDENTIALS = f"--endpoints=https://127.0.0.1:2379 --cacert={_ETCD}/ca.crt --cert={_ETCD}/server.crt --key={_ETCD}/server.key"


class RollingProvider(LabProvider):
    """Hosts that come with the image of their Machine's version, and go with their LabMachine."""

    def __init__(self, management: Plane, lab: LabCommands, relay: Balancer, prefix: str) -> None:
        super().__init__(management, lab)
        self._relay, self._prefix = relay, prefix
        self._made = 0

    def step(self) -> None:
        for lab_machine in self.plane.items("labmachines", self.namespace):
            if lab_machine["metadata"].get("deletionTimestamp"):
                self._take_down(lab_machine["metadata"]["name"])
        super().step()

    def _provision(self, name: str, image: str, machine: Manifest) -> None:
        if machine["metadata"].get("deletionTimestamp") or not machine["spec"]["bootstrap"].get("dataSecretName"):
            return
        patch = json.dumps({"metadata": {"finalizers": [FINALIZER]}})
        self.plane.kubectl("-n", self.namespace, "patch", "labmachine", name, "--type=merge", "-p", patch)
        if name not in self.hosts:
            self._made += 1
            self.hosts[name] = f"host-{self._made}"
        if "cluster.x-k8s.io/control-plane" in machine["metadata"]["labels"]:
            self._relay.backends.append(f"{self._prefix}.{10 + self._made}")
        super()._provision(name, machine["spec"]["version"], machine)

    def _take_down(self, name: str) -> None:
        host = self.hosts.pop(name, "")
        if host:
            address = f"{self._prefix}.{10 + int(host.removeprefix('host-'))}"
            self._relay.backends = [each for each in self._relay.backends if each != address]
            self.lab.run("host", "delete", host)
        patch = json.dumps({"metadata": {"finalizers": None}})
        self.plane.kubectl("-n", self.namespace, "patch", "labmachine", name, "--type=merge", "-p", patch, check=False)


class Fleet:
    def __init__(self, management: Plane, lab: LabCommands, relay: Balancer, prefix: str, pods: str) -> None:
        self.plane, self.lab, self.prefix, self.pods = management, lab, prefix, pods
        self.relay = relay
        self.provider = RollingProvider(management, lab, relay, prefix)

    def until(self, said: str, done: Any, patience: float = 900) -> Any:
        """Work as the infrastructure until something is so."""

        def probe() -> Any:
            self.provider.step()
            return done()

        return self.plane.until(said, probe, patience)

    def make(self, replicas: int) -> None:
        self.plane.apply(
            *capiclusters.cluster(NAME, self.relay.address, self.pods),
            *capiclusters.control_plane(NAME, OLD, replicas),
            *capiclusters.workers(NAME, OLD, capiclusters.worker_config()),
        )

    def control_plane(self) -> Manifest:
        found: Manifest = self.plane.get("kubeadmcontrolplane", f"{NAME}-cp")
        return found

    def is_at(self, version: str, replicas: int) -> bool:
        status = self.control_plane().get("status") or {}
        counters = [status.get(key) for key in ("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas")]
        return counters == [replicas] * 4 and [each["version"] for each in status.get("versions") or ()] == [version]

    def upgrade(self) -> None:
        body = json.dumps({"spec": {"version": NEW}})
        self.plane.kubectl("patch", "kubeadmcontrolplane", f"{NAME}-cp", "--type=merge", "-p", body)

    def roll_workers(self, replicas: int) -> None:
        body = json.dumps({"spec": {"replicas": replicas, "template": {"spec": {"version": NEW}}}})
        self.plane.kubectl("patch", "machinedeployment", f"{NAME}-md", "--type=merge", "-p", body)

    def workers_are_at(self, version: str, replicas: int) -> bool:
        status = self.plane.get("machinedeployment", f"{NAME}-md").get("status") or {}
        counters = [status.get(key) for key in ("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas")]
        return counters == [replicas] * 4 and [each["version"] for each in status.get("versions") or ()] == [version]

    def handed_back(self, seconds: float) -> None:
        """Work as the infrastructure while whoever manages now looks at everything."""
        deadline = time.monotonic() + seconds
        self.until("it has been looked at", lambda: time.monotonic() > deadline, seconds + 60)

    def machines(self) -> dict[str, str]:
        """The versions of the control-plane Machines, by name."""
        found = [each for each in self.plane.items("machines") if "cluster.x-k8s.io/control-plane" in each["metadata"]["labels"]]
        return {each["metadata"]["name"]: each["spec"]["version"] for each in found}

    def workload(self) -> str:
        """A kubeconfig of the workload cluster."""
        path = self.plane.folder / "workload.kubeconfig"
        secret = self.plane.get("secret", f"{NAME}-kubeconfig")
        path.write_bytes(base64.b64decode(secret["data"]["value"]))
        return str(path)

    def check(self, version: str, replicas: int) -> None:
        """What the cluster itself says at the end: its Nodes, and as many members of etcd as machines, all well."""
        nodes = json.loads(self.plane.kubectl("--kubeconfig", self.workload(), "get", "nodes", "-o", "json"))["items"]
        planes = [node for node in nodes if "node-role.kubernetes.io/control-plane" in node["metadata"]["labels"]]
        assert sorted(node["status"]["nodeInfo"]["kubeletVersion"] for node in planes) == [version] * replicas
        host = min(self.provider.hosts[name] for name in self.machines())
        members = json.loads(self.lab.on(host, f"etcdctl {_ETCD_CREDENTIALS} member list -w json"))["members"]
        assert len(members) == replicas
        assert [member for member in members if member.get("isLearner")] == []
        # A machine that has just gone may have taken a request with it.
        self.until("the control plane says that it is well", self._is_well, 120)

    def _is_well(self) -> bool:
        conditions = {row["type"]: row["status"] for row in self.control_plane()["status"]["conditions"]}
        wanted = ("Available", "EtcdClusterHealthy", "ControlPlaneComponentsHealthy", "MachinesReady", "MachinesUpToDate")
        return all(conditions[name] == "True" for name in wanted)


@contextmanager
def fleet(folder: Path, name: str) -> Iterator[Fleet]:
    lab = LabCommands(f"{name}-{os.getpid() % 10000}")
    try:
        for version in (OLD, NEW):
            lab.run("image", "build", "--kubernetes-version", version, patience=3600)
        (network,) = json.loads(lab.run("network", "-o", "json").stdout)
        prefix = str(network["hosts"]).rpartition(".")[0]
        with plane(folder) as management, balancer(f"{prefix}.1") as relay:
            management.install_crds()
            yield Fleet(management, lab, relay, prefix, str(network["pods"]))
    finally:
        lab.run("down", check=False)


class Watchman:
    """Asks the API of the workload cluster again and again, and keeps how long it was away."""

    def __init__(self, made: Fleet) -> None:
        self._made, self._kubeconfig = made, made.workload()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.asked = self.failed = 0
        self.longest = 0.0
        self._thread.start()

    def _watch(self) -> None:
        since = 0.0
        while not self._stop.wait(1.0):
            self.asked += 1
            words = ("--kubeconfig", self._kubeconfig, "--request-timeout=5s", "get", "--raw", "/api/v1/namespaces/default")
            if self._made.plane.kubectl(*words, check=False):
                since = 0.0
                continue
            self.failed += 1
            since = since or time.monotonic()
            self.longest = max(self.longest, time.monotonic() - since)

    def end(self) -> None:
        self._stop.set()
        self._thread.join(30)
        print(f"the API was asked {self.asked} times, {self.failed} times in vain, for {self.longest:.1f} s at a stretch")


def test_a_control_plane_of_three_is_made_and_rolled_by_ours_alone(tmp_path: Path) -> None:
    with fleet(tmp_path, "roll") as made:
        made.plane.start_slipway(f"--controllers={OURS}", "--webhook-port=0").await_health()
        made.make(3)
        made.until("three control planes are there", lambda: made.is_at(OLD, 3))
        before = made.machines()
        watchman = Watchman(made)
        made.upgrade()
        made.until("all are at the new version", lambda: made.is_at(NEW, 3), 1500)
        watchman.end()
        after = made.machines()
        assert not before.keys() & after.keys()
        made.check(NEW, 3)
        # One connection in three goes to the member that is on its way out; the next one does not.
        assert watchman.longest < 10


def test_a_cluster_of_upstreams_is_taken_over_in_the_middle_of_its_rollout_scaled_and_handed_back(tmp_path: Path) -> None:
    """No machine is replaced but those that have to be, and upstream finds nothing to do afterwards."""
    with fleet(tmp_path, "take") as made:
        theirs = _upstream(made.plane)
        made.make(3)
        made.until("three control planes are there", lambda: made.is_at(OLD, 3))
        made.upgrade()
        # The next one may be on its way by then: a host is made between two looks.
        made.until("the first one is replaced", lambda: list(made.machines().values()).count(OLD) == 2, 900)
        before = made.machines()
        for running in theirs:
            running.stop()
        ours = made.plane.start_slipway(f"--controllers={OURS}", "--webhook-port=0")
        ours.await_health()
        made.until("all are at the new version", lambda: made.is_at(NEW, 3), 1500)
        kept = {name for name, version in before.items() if version == NEW}
        assert kept <= made.machines().keys()
        made.check(NEW, 3)
        made.roll_workers(2)
        made.until("two workers are at the new version", lambda: made.workers_are_at(NEW, 2), 900)
        machines = {machine["metadata"]["name"] for machine in made.plane.items("machines")}
        assert ours.stop() == 0
        _upstream(made.plane)
        made.handed_back(HANDED_BACK_FOR)
        assert {machine["metadata"]["name"] for machine in made.plane.items("machines")} == machines
        assert made.is_at(NEW, 3)
        assert made.workers_are_at(NEW, 2)
        made.check(NEW, 3)


def _upstream(management: Plane) -> list[Running]:
    started = [management.start_upstream(name) for name in UPSTREAM]
    for running in started:
        running.await_health()
    return started
