"""The version contract in a ClusterClass: upstream's core with its topology gate on, our bootstrap provider, lab hosts as the machines.

A worker that stays on the older Kubernetes is added to a control plane that was upgraded, and joins with the kubeadm of the control
plane, which a templated file of the class fetches.  Then the workers follow.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from e2e import capiclasses, capiclusters, planes
from e2e.labcli import LabCommands
from e2e.movinglab import MovingLabProvider
from e2e.nodes import real_hosts
from e2e.test_cluster_api import VERSION_SCRIPT, downloads, role
from e2e.upstream import Plane, plane
from support.ports import free_port

pytestmark = real_hosts
Manifest = dict[str, Any]
OLD, NEW = "v1.34.10", "v1.35.4"
NAME, CLASS = "ketch", "lab-kubeadm-version"
VERSION_FILE = "/run/cluster-api/kubeadm-version/version"
DEPLOYMENT = "/spec/topology/workers/machineDeployments/0"
GATE = "--feature-gates=ClusterTopology=true"


class Topology:
    """A management plane with managed topologies, and a lab whose hosts are the machines of one Cluster."""

    def __init__(self, management: Plane, lab: LabCommands) -> None:
        self.plane = management
        self.lab = lab
        (network,) = json.loads(lab.run("network", "-o", "json").stdout)
        self.prefix = str(network["hosts"]).rpartition(".")[0]
        self.pods = str(network["pods"])
        # Hosts get their addresses from .11 on.
        self.provider = MovingLabProvider(management, lab, f"{self.prefix}.5")

    def until(self, said: str, probe: Callable[[], Any], patience: float = 900) -> Any:
        """Work as the infrastructure until something is so."""

        def stepped() -> Any:
            self.provider.step()
            return probe()

        return self.plane.until(said, stepped, patience)

    def settled(self, control_plane: str, worker_versions: list[str]) -> list[Manifest]:
        """The Machines, once they are those of these versions, all ready, and the control plane is up to date."""
        machines = self.plane.items("machines")
        found = sorted((role(machine), machine["spec"]["version"]) for machine in machines)
        wanted = [("control plane", control_plane), *(("worker", version) for version in sorted(worker_versions))]
        if found != wanted or not all(true(machine, "Ready") for machine in machines):
            return []
        (status,) = (each.get("status", {}) for each in self.plane.items("kubeadmcontrolplanes"))
        return machines if status.get("version") == control_plane and status.get("upToDateReplicas") == 1 else []

    def config(self, machine: Manifest) -> Manifest:
        found: Manifest = self.plane.get("kubeadmconfig", machine["spec"]["bootstrap"]["configRef"]["name"])
        return found

    def data(self, machine: Manifest) -> str:
        secret = self.plane.get("secret", machine["spec"]["bootstrap"]["dataSecretName"])
        return base64.b64decode(secret["data"]["value"]).decode()

    def host(self, machine: Manifest) -> str:
        return self.provider.hosts[machine["spec"]["infrastructureRef"]["name"]]

    def patch_cluster(self, *changes: Manifest) -> None:
        patch = [{"op": "replace", **change} for change in changes]
        self.plane.kubectl("patch", "cluster", NAME, "--type=json", "-p", json.dumps(patch))


@contextmanager
def topology(folder: Path) -> Iterator[Topology]:
    lab = LabCommands(f"class-{os.getpid() % 10000}")
    try:
        for version in (OLD, NEW):
            for tool in ("slipway", "kubeadm"):
                lab.run("image", "build", "--kubernetes-version", version, "--node-tool", tool, patience=3600)
        with plane(folder) as management:
            management.install_crds(bootstrap="slipway")
            port = free_port()
            install_slipway(management, port)
            management.start_slipway("--controllers=bootstrap", f"--webhook-port={port}")
            for manager in ("core", "control-plane"):
                management.start_upstream(manager, GATE)
            for running in management.running:
                running.await_health(180)
            for manager in ("core", "control-plane"):
                management.install_webhooks(manager)
            yield Topology(management, lab)
    finally:
        lab.run("down", check=False)


def install_slipway(management: Plane, port: int) -> None:
    """Our CRDs and webhooks, as users install them for a manager that runs outside of the cluster."""
    target = (f"--kubeconfig={management.kubeconfig}", f"--webhook-url=https://127.0.0.1:{port}")
    words = ("manager", "install", "--controllers=bootstrap", *target)
    done = subprocess.run([sys.executable, "-m", "slipway", *words], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def true(manifest: Manifest, condition: str) -> bool:
    rows = manifest.get("status", {}).get("conditions", [])
    return any(row["type"] == condition and row["status"] == "True" for row in rows)


def workers(machines: list[Manifest]) -> list[Manifest]:
    return [machine for machine in machines if role(machine) == "worker"]


def written_files(data: str) -> dict[str, str]:
    """The files of a cloud-config by path."""
    return {file["path"]: file["content"] for file in yaml.safe_load(data)["write_files"]}


def check_join(made: Topology, machine: Manifest, own: str, control_plane: str) -> None:
    """The data of a worker was made for the control plane, and its host joined with the kubeadm of that version."""
    files = written_files(made.data(machine))
    assert f"\nversion={control_plane}\n" in files[capiclasses.FETCH]
    assert files[VERSION_FILE].strip() == control_plane
    (told,) = (row for row in made.config(machine)["status"]["conditions"] if row["type"] == "ControlPlaneKubernetesVersionAvailable")
    assert (told["status"], told["reason"]) == ("True", "VersionFromControlPlane")
    assert control_plane in told["message"]
    host = made.host(machine)
    assert made.lab.on(host, f"cat {VERSION_FILE}").strip() == control_plane
    assert made.lab.on(host, "kubeadm version -o short").strip() == control_plane
    assert machine["spec"]["version"] == own
    assert machine["status"]["nodeInfo"]["kubeletVersion"] == own


def test_a_worker_that_stays_behind_joins_the_upgraded_control_plane_of_its_class(tmp_path: Path) -> None:
    with topology(tmp_path) as made, downloads(f"{made.prefix}.1", planes.programs()["kubectl"].parent.parent) as url:
        script = {
            "path": capiclasses.FETCH,
            "permissions": "0755",
            "contentFormat": "go-template",
            "content": VERSION_SCRIPT.format(version="{{ .KubernetesVersion }}", url=url),
        }
        made.plane.apply(*capiclasses.cluster_class(CLASS, capiclusters.worker_config([script], [capiclasses.FETCH])))
        made.until("the ClusterClass is known", lambda: true(made.plane.get("clusterclass", CLASS), "VariablesReady"))
        made.plane.apply(capiclasses.cluster(NAME, CLASS, OLD, made.pods, workers=1))
        (first,) = workers(made.until("a cluster of the class", lambda: made.settled(OLD, [OLD])))
        check_join(made, first, OLD, OLD)
        before = made.data(first)

        made.patch_cluster({"path": "/spec/topology/version", "value": NEW})
        machines = made.until("an upgraded control plane", lambda: made.settled(NEW, [OLD]), 1500)
        # The worker stays as it is: its upgrade is deferred, and its data was read.
        (same,) = workers(machines)
        assert same["metadata"]["uid"] == first["metadata"]["uid"]
        assert made.data(same) == before

        # Core leaves a deferred MachineDeployment alone, so its scale in the topology would wait for the upgrade.
        deployment = made.plane.items("machinedeployments")[0]["metadata"]["name"]
        made.plane.kubectl("scale", "machinedeployment", deployment, "--replicas=2")
        machines = made.until("a second worker", lambda: made.settled(NEW, [OLD, OLD]))
        (second,) = (each for each in workers(machines) if each["metadata"]["uid"] != first["metadata"]["uid"])
        check_join(made, second, OLD, NEW)

        made.patch_cluster({"path": f"{DEPLOYMENT}/metadata/annotations", "value": {}}, {"path": f"{DEPLOYMENT}/replicas", "value": 2})
        machines = made.until("workers of the new version", lambda: made.settled(NEW, [NEW, NEW]), 1500)
        for machine in workers(machines):
            check_join(made, machine, NEW, NEW)
        made.until("the Cluster is as its topology says", lambda: true(made.plane.get("cluster", NAME), "TopologyReconciled"))
        nodes = json.loads(made.lab.kubectl("get nodes -o json", host=made.provider.holder))["items"]
        assert [node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes] == [NEW] * 3
