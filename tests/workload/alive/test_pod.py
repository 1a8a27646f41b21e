"""The static Pod of the virtual address, and the files of a host."""

from __future__ import annotations

from slipway.api.machinery.yaml import goyaml
from slipway.workload import alive

VALUES = alive.host_values(vip="192.0.2.100", interface="eth0", address="192.0.2.11", peers=["192.0.2.12"], vrid=51)


def test_the_manifest_is_the_same_on_every_host() -> None:
    other = alive.host_values(vip="192.0.2.100", interface="eth1", address="192.0.2.12", peers=["192.0.2.11"], vrid=51)
    assert alive.files(VALUES)[-1] == alive.files(other)[-1]


def test_files_are_where_the_pod_and_the_kubelet_look_for_them() -> None:
    made = {file.path: file for file in alive.files(VALUES, "registry.example/alive:1")}
    assert list(made) == ["/etc/keepalived/alive.json", "/etc/keepalived/keepalived.conf", "/etc/kubernetes/manifests/alive.yaml"]
    (document,) = goyaml.load(made["/etc/kubernetes/manifests/alive.yaml"].content, "alive.yaml")
    assert document.value == alive.manifest("registry.example/alive:1")


def test_the_pod_can_do_what_vrrp_needs_and_nothing_more() -> None:
    pod = alive.manifest()
    keepalived, side_car = pod["spec"]["containers"]
    assert keepalived["securityContext"]["capabilities"] == {
        "add": ["NET_ADMIN", "NET_RAW", "NET_BROADCAST", "SETGID", "SYS_NICE"],
        "drop": ["ALL"],
    }
    assert side_car["securityContext"]["capabilities"] == {"add": ["NET_ADMIN"], "drop": ["ALL"]}
    assert pod["spec"]["hostNetwork"]
    assert pod["spec"]["shareProcessNamespace"]
    assert pod["spec"]["priorityClassName"] == "system-node-critical"
    assert pod["metadata"]["labels"]["app"] == "alive"


def test_every_mount_has_its_volume() -> None:
    spec = alive.manifest()["spec"]
    volumes = {volume["name"] for volume in spec["volumes"]}
    assert {mount["name"] for container in spec["containers"] for mount in container["volumeMounts"]} == volumes
