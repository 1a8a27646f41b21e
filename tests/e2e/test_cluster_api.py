"""Our bootstrap provider under upstream's core and control-plane managers, with lab hosts as the machines.

Everything is real: upstream's managers of Cluster API, kube-apiserver, and hosts that cloud-init brings up with the data that the
provider made.
"""

from __future__ import annotations

import http.server
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from e2e import capiclusters, planes
from e2e.labcli import LabCommands
from e2e.nodes import real_hosts
from e2e.upstream import LabProvider, Plane, plane

pytestmark = real_hosts
Manifest = dict[str, Any]
OLD, NEW = "v1.34.10", "v1.35.4"
NAME = "sloop"


class Fleet:
    """A management plane, the managers on it and a lab."""

    def __init__(self, management: Plane, lab: LabCommands) -> None:
        self.plane = management
        self.lab = lab
        self.provider = LabProvider(management, lab)
        (network,) = json.loads(lab.run("network", "-o", "json").stdout)
        self.prefix = str(network["hosts"]).rpartition(".")[0]
        self.pods = str(network["pods"])

    def until_running(self, machines: int, patience: float = 420) -> list[Manifest]:
        """Work as the infrastructure until that many Machines have Nodes."""

        def running() -> list[Manifest]:
            self.provider.step()
            found = [each for each in self.plane.items("machines") if each.get("status", {}).get("nodeRef")]
            return found if len(found) >= machines else []

        found: list[Manifest] = self.plane.until(f"{machines} Machines with Nodes", running, patience)
        return found

    def kubectl(self, words: str, host: str = "host-1") -> str:
        return self.lab.kubectl(words, host=host)


@contextmanager
def fleet(folder: Path, name: str, bootstrap: str = "slipway", *gates: str) -> Iterator[Fleet]:
    lab = LabCommands(f"{name}-{os.getpid() % 10000}")
    try:
        for version in (OLD, NEW):
            lab.run("image", "build", "--kubernetes-version", version, patience=3600)
        with plane(folder) as management:
            management.install_crds(bootstrap=bootstrap)
            for manager in ("core", "control-plane"):
                management.start_upstream(manager, *gates)
            if bootstrap == "slipway":
                management.start_slipway("--controllers=bootstrap", "--webhook-port=0")
            else:
                management.start_upstream("bootstrap", *gates)
            for running in management.running:
                running.await_health()
            yield Fleet(management, lab)
    finally:
        lab.run("down", check=False)


def conditions(machine: Manifest) -> dict[str, tuple[str, str]]:
    """What a Machine's conditions say, but for those of the Node's health, which come and go with the kubelet."""
    passing = ("NodeHealthy", "Ready", "Available", "NodeReady")
    return {row["type"]: (row["status"], row["reason"]) for row in machine["status"]["conditions"] if row["type"] not in passing}


def role(machine: Manifest) -> str:
    return "control plane" if "cluster.x-k8s.io/control-plane" in machine["metadata"]["labels"] else "worker"


def made_by(folder: Path, bootstrap: str) -> dict[str, dict[str, tuple[str, str]]]:
    """The conditions of the Machines of a cluster of one control plane and one worker, by role."""
    with fleet(folder, f"capi-{bootstrap[:2]}", bootstrap) as made:
        made.plane.apply(
            *capiclusters.cluster(NAME, f"{made.prefix}.11", made.pods),
            *capiclusters.control_plane(NAME, NEW),
            *capiclusters.workers(NAME, NEW, capiclusters.worker_config()),
        )
        made.until_running(2)

        def settled() -> list[Manifest]:
            plane_ = made.plane.get("kubeadmcontrolplane", f"{NAME}-cp")["status"]
            deployment = made.plane.get("machinedeployment", f"{NAME}-md")["status"]
            up_to_date = plane_.get("upToDateReplicas") == 1 and deployment.get("upToDateReplicas") == 1
            machines = made.plane.items("machines")
            ready = all(_true(machine, "Ready") for machine in machines)
            return machines if up_to_date and ready else []

        machines = made.plane.until("every Machine ready and up to date", settled, 180)
        # What the bootstrap provider writes must not look like a change of what users asked for.
        assert len(machines) == 2, [machine["metadata"]["name"] for machine in machines]
        assert all(_true(machine, "UpToDate") for machine in machines)
        _check_secrets(made.plane, machines)
        return {role(machine): conditions(machine) for machine in machines}


def _true(machine: Manifest, condition: str) -> bool:
    return any(row["type"] == condition and row["status"] == "True" for row in machine["status"].get("conditions", []))


def _check_secrets(management: Plane, machines: list[Manifest]) -> None:
    for machine in machines:
        config = management.get("kubeadmconfig", machine["spec"]["bootstrap"]["configRef"]["name"])
        secret = management.get("secret", machine["spec"]["bootstrap"]["dataSecretName"])
        owner = secret["metadata"]["ownerReferences"][0]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("KubeadmConfig", config["metadata"]["uid"], True)
        assert secret["type"] == "cluster.x-k8s.io/secret"
        assert config["status"]["initialization"]["dataSecretCreated"] is True


def test_a_cluster_of_upstream_managers_gets_its_data_from_us_and_looks_the_same(tmp_path: Path) -> None:
    ours = made_by(tmp_path / "ours", "slipway")
    theirs = made_by(tmp_path / "upstream", "upstream")
    assert ours == theirs


VERSION_SCRIPT = """#!/bin/sh
# Puts the kubeadm of the control plane in the place of the older one that came with the image.
set -eu
version={version}
python3 -c 'import sys, urllib.request; urllib.request.urlretrieve(sys.argv[1], sys.argv[2])' "{url}/$version/kubeadm" /usr/bin/kubeadm.new
chmod 0755 /usr/bin/kubeadm.new
mv /usr/bin/kubeadm.new /usr/bin/kubeadm
"""


@contextmanager
def downloads(address: str, folder: Path) -> Iterator[str]:
    """A web server for hosts of a lab: the folder with the programs of each version."""
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    server = http.server.ThreadingHTTPServer((address, 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{address}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def skewed(made: Fleet, deployment: str, image: str, config: Manifest) -> list[Manifest]:
    """Workers of the older version beside a newer control plane; upstream holds them back unless told otherwise."""
    manifests = capiclusters.workers(NAME, OLD, config, deployment=deployment)
    manifests[0]["spec"]["template"]["spec"]["image"] = image
    skip = {"machineset.cluster.x-k8s.io/skip-preflight-checks": "KubeadmVersionSkew"}
    manifests[-1]["metadata"]["annotations"] = skip
    return manifests


@pytest.mark.parametrize("form", ["go-template", "Template"])
def test_an_older_host_joins_a_newer_control_plane(tmp_path: Path, form: str) -> None:
    """Once with Slipway as the node tool of the image, once with the real kubeadm that a templated file fetches."""
    with fleet(tmp_path, "skew") as made:
        made.lab.run("image", "build", "--kubernetes-version", OLD, "--node-tool", "kubeadm", patience=3600)
        made.plane.apply(*capiclusters.cluster(NAME, f"{made.prefix}.11", made.pods), *capiclusters.control_plane(NAME, NEW))
        made.until_running(1)
        with downloads(f"{made.prefix}.1", planes.programs()["kubectl"].parent.parent) as url:
            value = "{{ .KubernetesVersion }}" if form == "go-template" else "{{ .controlPlane.version }}"
            script = {
                "path": "/usr/local/bin/fetch-kubeadm",
                "permissions": "0755",
                "contentFormat": form,
                "content": VERSION_SCRIPT.format(version=value, url=url),
            }
            made.plane.apply(
                *skewed(made, "ours", OLD, capiclusters.worker_config()),
                *skewed(made, "real", f"{OLD}-kubeadm", capiclusters.worker_config([script], ["/usr/local/bin/fetch-kubeadm"])),
            )
            machines = made.until_running(3)
        versions = {
            row["metadata"]["name"]: row["status"]["nodeInfo"]["kubeletVersion"]
            for row in json.loads(made.kubectl("get nodes -o json"))["items"]
        }
        assert sorted(versions.values()) == [OLD, OLD, NEW]
        for machine in machines:
            if role(machine) == "worker":
                config = made.plane.get("kubeadmconfig", machine["spec"]["bootstrap"]["configRef"]["name"])
                told = next(row for row in config["status"]["conditions"] if row["type"] == "ControlPlaneKubernetesVersionAvailable")
                assert told["status"] == "True"
                assert NEW in told["message"]
                host = made.provider.hosts[machine["spec"]["infrastructureRef"]["name"]]
                assert made.lab.on(host, "cat /run/cluster-api/kubeadm-version/version").strip() == NEW
