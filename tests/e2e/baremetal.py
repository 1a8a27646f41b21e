"""A bare-metal fleet in the lab: hosts that register by themselves, pools, a cluster behind a virtual address, and upgrades of it.

Everything is done as the guide for operators has it: manifests of Cluster API's v1beta1, ``kubectl patch``, and a look at the result.
"""

from __future__ import annotations

import base64
import json
import os
import random
import ssl
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from e2e import baremetalmanifests as manifests
from e2e.baremetalmanifests import NAMESPACE, Manifest
from e2e.labcli import LabCommands
from e2e.upstream import Plane, plane
from support.ports import free_port

NAME = "keel"
REGISTRATION = "rack"
STATE = ("/var/lib/kubelet", "/var/lib/containerd", "/var/lib/etcd", "/etc/kubernetes")
COUNTERS = ("available", "allocated", "preparing", "reprovisioning", "unavailable")
PLAN_TYPE = "baremetal.alauda.io/plan.type"


class Shape(msgspec.Struct, frozen=True):
    """How large a cluster is, and how many hosts wait in each of its pools."""

    control_planes: int
    workers: int
    control_plane_hosts: int
    worker_hosts: int
    other_hosts: int = 0
    """Registered, and in neither pool."""

    @property
    def hosts(self) -> int:
        return self.control_plane_hosts + self.worker_hosts + self.other_hosts


class Baremetal:
    """The lab, the management plane and the cluster, and what an operator does with them."""

    def __init__(self, lab: LabCommands, management: Plane, network: Manifest, shape: Shape) -> None:
        self.lab, self.plane, self.shape = lab, management, shape
        self.prefix = str(network["hosts"]).rpartition(".")[0]
        self.pods, self.bridge = str(network["pods"]), str(network["bridge"])
        self.vip = f"{self.prefix}.5"
        self.registry = ""
        self.hosts: dict[str, str] = {}
        """The host of each inventory."""
        self.pools: dict[str, list[str]] = {}

    # What is there before the first cluster.

    def serve_images(self, *versions: str) -> None:
        # As with images, a machine that has not run one yet builds its program first.
        self.registry = self.lab.run("registry", "up", patience=3600).stdout.strip()
        for version in versions:
            self.lab.run("registry", "push", f"{manifests.REPOSITORY}:{manifests.tag(version)}", "--image", version)

    def start_upstream(self) -> None:
        """Upstream's core and control-plane managers, with their webhooks."""
        self.plane.install_crds(bootstrap="ours")
        for name in ("core", "control-plane"):
            self.plane.start_upstream(name).await_health()
            self.plane.install_conversion(name)
            self.plane.install_webhooks(name)

    def start_manager(self, controllers: str = "all") -> None:
        """Our controllers on this machine: the API server calls their webhooks, hosts their registration."""
        hooks, registration = free_port(), free_port()
        where = f"https://{self.prefix}.1:{registration}"
        installed = subprocess.run(
            [
                *(sys.executable, "-m", "slipway", "manager", "install", f"--kubeconfig={self.plane.kubeconfig}"),
                *(f"--controllers={controllers}", f"--webhook-url=https://127.0.0.1:{hooks}"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert installed.returncode == 0, installed.stderr
        self._flags = (
            *(f"--controllers={controllers}", f"--webhook-port={hooks}", f"--registration-url={where}"),
            f"--registration-bind-address={self.prefix}.1:{registration}",
        )
        self.plane.start_slipway(*self._flags).await_health()
        self.plane.kubectl("create", "namespace", NAMESPACE)

    def kill_manager(self, times: int, seed: int) -> None:
        """Each is gone at a moment of its life that nobody chose, some before they have begun to work; the next one starts at once."""
        chance, pause = random.Random(seed), threading.Event()
        for _ in range(times):
            pause.wait(chance.uniform(1, 9))
            self.plane.running.pop().kill()
            self.plane.start_slipway(*self._flags)
        self.plane.running[-1].await_health()

    def add_to_catalog(self, version: str) -> None:
        """Option B of the guide, literally."""
        value = f"{self.registry}/{manifests.REPOSITORY}:{manifests.tag(version)}"
        patch = f'[{{"op":"add","path":"/data/{version}","value":"{value}"}}]'
        self.kubectl("patch", "configmap", "elemental-image-catalog", "--type=json", f"-p={patch}")

    def preflight(self, version: str) -> tuple[int, dict[str, Manifest]]:
        """The exit code of ``slipway fleet preflight``, and its rows by what each is about."""
        words = ("fleet", "preflight", NAME, f"--namespace={NAMESPACE}", f"--to={version}", f"--kubeconfig={self.plane.kubeconfig}")
        done = subprocess.run([sys.executable, "-m", "slipway", *words, "-o", "json"], capture_output=True, text=True, check=False)
        assert done.stdout, done.stderr
        return done.returncode, {row["check"]: row for row in json.loads(done.stdout)["checks"]}

    def register_hosts(self, image: str) -> None:
        """New hosts that find their registration at their first boot and need nobody after that."""
        self.plane.apply(manifests.registration(REGISTRATION))
        url = self.until("the registration has an address", lambda: self.object("machineregistration", REGISTRATION), "registrationURL")
        # What a registration image carries; the authority of the endpoint is in it.
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with urllib.request.urlopen(url, context=context, timeout=10) as answer:
            (self.plane.folder / "registration.yaml").write_bytes(answer.read())
        registration = str(self.plane.folder / "registration.yaml")
        self.lab.run("up", "--image", image, "--hosts", str(self.shape.hosts), "--registration", registration)
        self.plane.until("every host has an inventory that is ready", self._all_ready, 300)
        names = {row["uuid"]: name for name, row in self.lab.hosts().items()}
        for inventory in self.items("machineinventories"):
            name = inventory["metadata"]["name"]
            self.hosts[name] = names[name.removeprefix("m-")]

    def _all_ready(self) -> bool:
        found = self.items("machineinventories")
        return len(found) == self.shape.hosts and all(condition(each, "Ready") == "True" for each in found)

    def make_pools(self) -> None:
        """Hosts stay where they are; new ones fill the pools up, that of the control plane first."""
        ordered = sorted(self.hosts, key=lambda inventory: int(self.hosts[inventory].rpartition("-")[2]))
        for pool, size in (("control-plane-pool", self.shape.control_plane_hosts), ("worker-pool", self.shape.worker_hosts)):
            members = self.pools.setdefault(pool, [])
            assigned = {name for each in self.pools.values() for name in each}
            members += [name for name in ordered if name not in assigned][: size - len(members)]
            prefix = "cp" if pool == "control-plane-pool" else "worker"
            named = {name: f"{prefix}-{number}" for number, name in enumerate(members, 1)}
            self.plane.apply(manifests.pool(NAME, f"{NAME}-{pool}", named))

    # The cluster.

    def make_cluster(self, control_plane: str, workers: str) -> None:
        self.plane.apply(
            *manifests.cluster(NAME, self.vip, self.pods, self.registry, vrid=57),
            *manifests.control_plane(NAME, control_plane, self.shape.control_planes),
            *manifests.workers(NAME, workers, self.shape.workers),
        )

    def wait_for_cluster(self, control_plane: str, workers: str, patience: float = 1800) -> None:
        """Until every machine is a Node of its version, and the pools are at rest."""

        def is_settled() -> bool:
            # What ends last is looked at first: each look is a program that runs, on a machine that has other things to do.
            phases = [machine.get("status", {}).get("phase") for machine in self.items("baremetalmachines.infrastructure.cluster.x-k8s.io")]
            return set(phases) == {"Running"} and not self.unsettled(control_plane, workers)

        self.plane.until(f"a cluster at {control_plane} and {workers}", is_settled, patience)

    def wait_until_gone(self, machines: Collection[str]) -> None:
        """Where versions stay the same, nothing else says that a rollout is under way."""

        def is_gone() -> bool:
            return not {each["metadata"]["name"] for each in self.items("machines.cluster.x-k8s.io")} & set(machines)

        self.plane.until(f"{', '.join(machines)} to be gone", is_gone, 900)

    def unsettled(self, control_plane: str, workers: str) -> list[str]:
        """What the guide's section on verification would find wrong, line by line."""
        wrong = []
        baremetal = self.items("baremetalmachines.infrastructure.cluster.x-k8s.io")
        machines = self.items("machines.cluster.x-k8s.io")
        expected = sorted([control_plane] * self.shape.control_planes + [workers] * self.shape.workers)
        phases = [machine.get("status", {}).get("phase") for machine in baremetal]
        if phases != ["Running"] * len(expected):
            wrong.append(f"BaremetalMachines are {phases}")
        versions = sorted(machine["spec"]["version"] for machine in machines)
        if versions != expected:
            wrong.append(f"Machines are {versions}")
        wrong += self._nodes_wrong(expected)
        wrong += self._plans_wrong(baremetal)
        for pool in self.items("machineinventorypools.infrastructure.cluster.x-k8s.io"):
            status = pool.get("status", {})
            counted = [status.get(key, 0) for key in COUNTERS]
            if sum(counted) != status.get("total") or status.get("preparing") or status.get("reprovisioning"):
                wrong.append(f"{pool['metadata']['name']} counts {status}")
        return wrong

    def _nodes_wrong(self, expected: list[str]) -> list[str]:
        nodes = self.nodes()
        if nodes is None:
            return ["the API server does not answer"]
        kubelets = sorted(node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes)
        unready = [node["metadata"]["name"] for node in nodes if condition(node, "Ready") != "True"]
        foreign = [node["metadata"]["name"] for node in nodes if not node["spec"].get("providerID", "").startswith("baremetal:///m-")]
        return [
            *([f"kubelets are {kubelets}"] if kubelets != expected else []),
            *([f"Nodes are not ready: {unready}"] if unready else []),
            *([f"Nodes have a foreign providerID: {foreign}"] if foreign else []),
        ]

    def _plans_wrong(self, baremetal: list[Manifest]) -> list[str]:
        """The most recent plan of every host in use is a reprovision."""
        found = []
        for machine in baremetal:
            host = machine.get("status", {}).get("machineInventoryRef", {}).get("name")
            secret = self.plane.find("secret", host, NAMESPACE) if host else None
            kind = ((secret or {}).get("metadata", {}).get("annotations") or {}).get(PLAN_TYPE)
            if kind != "reprovision":
                found.append(f"the last plan of {host} is {kind}")
        return found

    def upgrade_control_plane(self, version: str) -> None:
        """Version and tags in one edit."""
        dns, etcd = manifests.TAGS[version]
        config = {"dns": {"imageTag": dns}, "etcd": {"local": {"imageTag": etcd}}}
        patch = json.dumps({"spec": {"version": version, "kubeadmConfigSpec": {"clusterConfiguration": config}}})
        self.kubectl(
            "patch", "kubeadmcontrolplane.v1beta1.controlplane.cluster.x-k8s.io", f"{NAME}-control-plane", "--type=merge", f"-p={patch}"
        )

    def upgrade_workers(self, version: str) -> None:
        """The guide's command, literally."""
        self._patch_workers(f'{{"spec":{{"template":{{"spec":{{"version":"{version}"}}}}}}}}')

    def move_workers(self, template: str) -> None:
        """The guide's command for another pool, literally."""
        self._patch_workers(f'{{"spec":{{"template":{{"spec":{{"infrastructureRef":{{"name":"{template}"}}}}}}}}}}')

    def bootstrap_workers(self, template: str) -> None:
        """The guide's command for another bootstrap template, literally."""
        self._patch_workers(f'{{"spec":{{"template":{{"spec":{{"bootstrap":{{"configRef":{{"name":"{template}"}}}}}}}}}}}}')

    def _patch_workers(self, patch: str) -> None:
        self.kubectl("patch", "machinedeployment", f"{NAME}-workers", "--type=merge", f"-p={patch}")

    # What there is to see.

    def kubectl(self, *words: str, check: bool = True) -> str:
        return self.plane.kubectl("-n", NAMESPACE, *words, check=check)

    def items(self, what: str) -> list[Manifest]:
        return self.plane.items(what, NAMESPACE)

    def object(self, what: str, name: str) -> Manifest:
        return self.plane.find(what, name, NAMESPACE) or {}

    def until(self, said: str, probe: Callable[[], Manifest], field: str, patience: float = 120) -> str:
        """The field of a status once it is there."""
        return str(self.plane.until(said, lambda: probe().get("status", {}).get(field), patience))

    def kubeconfig(self) -> Path | None:
        secret = self.plane.find("secret", f"{NAME}-kubeconfig", NAMESPACE)
        if secret is None:
            return None
        path = self.plane.folder / "workload.kubeconfig"
        path.write_bytes(base64.b64decode(secret["data"]["value"]))
        return path

    def workload(self, *words: str) -> str:
        """kubectl on the workload cluster; empty where its API server does not answer."""
        kubeconfig = self.kubeconfig()
        if kubeconfig is None:
            return ""
        return self.plane.kubectl("--kubeconfig", str(kubeconfig), "--request-timeout=10s", *words, check=False)

    def image_tags(self, what: str, *words: str) -> set[str]:
        """The tags of the images that something in kube-system is made of."""
        found = json.loads(self.workload("-n", "kube-system", "get", what, *words, "-o", "json"))
        specs = [each["spec"].get("template", each)["spec"] for each in found.get("items", [found])]
        return {container["image"].rpartition(":")[2] for spec in specs for container in spec["containers"]}

    def nodes(self) -> list[Manifest] | None:
        text = self.workload("get", "nodes", "-o", "json")
        return list(json.loads(text)["items"]) if text else None

    def in_use(self) -> dict[str, str]:
        """The host of every BaremetalMachine."""
        found = self.items("baremetalmachines.infrastructure.cluster.x-k8s.io")
        return {each["metadata"]["name"]: self.hosts[each["status"]["machineInventoryRef"]["name"]] for each in found}

    def workers(self) -> dict[str, str]:
        """Those of the workers."""
        return {name: host for name, host in self.in_use().items() if "workers" in name}

    def control_planes(self) -> dict[str, str]:
        return {name: host for name, host in self.in_use().items() if "workers" not in name}

    def made_workers(self) -> set[str]:
        """Every worker that there ever was, by what is told of its making."""
        told = [event for event in self.items("events") if event["reason"] == "SuccessfulCreate"]
        return {event["message"] for event in told if event["involvedObject"]["kind"] == "MachineSet"}

    def worker_version(self) -> str:
        return str(self.object("machinedeployment", f"{NAME}-workers")["spec"]["template"]["spec"]["version"])

    def node(self, host: str) -> Manifest:
        """The Node that a host is."""
        inventory = next(name for name, found in self.hosts.items() if found == host)
        return next(node for node in self.nodes() or () if node["spec"].get("providerID") == f"baremetal:///{inventory}")

    def holders(self) -> list[str]:
        """The hosts that have the virtual address on their link."""
        return [host for host in self.lab.hosts() if self.vip in self.lab.on(host, "ip -brief address show host0", check=False)]

    def leave_sentinels(self) -> None:
        """A file in each of the four folders, and some elsewhere, on every host in use."""
        for host in self.in_use().values():
            self.lab.on(host, f"for folder in {' '.join(STATE)}; do touch $folder/sentinel; done; touch /srv/kept /etc/kept /var/lib/kept")

    def check_sentinels(self) -> None:
        left = [f"{folder}/sentinel" for folder in STATE]
        for host in self.in_use().values():
            assert self.lab.on(host, f"ls {' '.join(left)} 2>/dev/null", check=False) == "", host

    def columns(self, what: str) -> list[str]:
        """The printer columns of a kind, as kubectl shows them."""
        return self.kubectl("get", what).splitlines()[0].split()


def condition(manifest: Manifest, kind: str) -> str:
    rows = manifest.get("status", {}).get("conditions") or ()
    return next((str(row["status"]) for row in rows if row["type"] == kind), "")


@contextmanager
def baremetal(folder: Path, name: str, shape: Shape, *versions: str, upstream: bool = False) -> Iterator[Baremetal]:
    """A fleet whose hosts have registered and wait in their pools; the first version is what they boot.

    ``upstream``: machines and control planes are those of upstream's managers, and ours are beside them.
    """
    lab = LabCommands(f"{name}-{os.getpid() % 10000}")
    try:
        for version in versions:
            lab.run("image", "build", "--kubernetes-version", version, patience=3600)
        (network,) = json.loads(lab.run("network", "-o", "json").stdout)
        gateway = f"{str(network['hosts']).rpartition('.')[0]}.1"
        with plane(folder, gateway) as management:
            fleet = Baremetal(lab, management, network, shape)
            fleet.serve_images(*versions)
            if upstream:
                fleet.start_upstream()
            fleet.start_manager("bootstrap,inventory,baremetal" if upstream else "all")
            management.apply(manifests.catalog(fleet.registry, versions[0]))
            fleet.register_hosts(versions[0])
            fleet.make_pools()
            yield fleet
    finally:
        lab.run("down", check=False)
