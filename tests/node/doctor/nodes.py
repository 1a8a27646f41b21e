"""Facts of machines on which nothing is wrong, to be changed by a test in what it is about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from slipway.host.cri.client import Container, ContainerStatus
from slipway.host.interface import Space
from slipway.node.doctor.facts import (
    Api,
    CertificateFact,
    Clock,
    Component,
    ContainerSpec,
    Disk,
    Etcd,
    EtcdEndpoint,
    Facts,
    KubeconfigFact,
    Kubelet,
    Manifest,
    Port,
    Runtime,
)
from slipway.node.health.observation import Found, Unit
from slipway.workload.etcdapi import EtcdMember, EtcdStatus

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
ADDRESS = "192.0.2.11"
RUNNING = Unit(loaded=True, active="active", sub="running", exit_code=0, restarts=0, journal=(), enabled="enabled")
CONFIG: dict[str, Any] = {"cgroupDriver": "systemd", "rotateCertificates": True, "staticPodPath": "/etc/kubernetes/manifests"}
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
OWN_MEMBER = EtcdMember(1, "cp-1", (f"https://{ADDRESS}:2380",), (f"https://{ADDRESS}:2379",), False)
STATUS = EtcdStatus("3.6.6", 20 << 20, 1, 1, 1000, False, ())
GIB = 1 << 30


def unit(active: str, sub: str, *journal: str, **more: Any) -> Unit:
    return RUNNING._replace(active=active, sub=sub, journal=journal, **more)


def container(name: str, *log: str, state: str = "running", code: int = 0, again: bool = False, exits: int = 0, ago: float = 60.0) -> Found:
    status = ContainerStatus("", code, "Error" if code else "", "", NOW.timestamp() - 3600, NOW.timestamp() - ago, exits)
    made = Container("0123456789abcdef", name, f"{name}-cp-1", "kube-system", "s", state, NOW.timestamp() - 3600, "")
    return Found(made, status, log, again)


def component(name: str, found: Found | None = None, **more: Any) -> Component:
    return Component(name=name, image=f"registry.k8s.io/{name}:v1.35.4", found=found, **more)


def manifest(name: str, *flags: str) -> Manifest:
    spec = ContainerSpec(name=name, image=f"registry.k8s.io/{name}:v1.35.4", command=(name, *flags))
    return Manifest(path=f"/etc/kubernetes/manifests/{name}.yaml", pod=f"kube-system/{name}", containers=(spec,))


def certificate(
    name: str, *, begin: timedelta = timedelta(days=-100), end: timedelta = timedelta(days=265), **more: Any
) -> CertificateFact:
    path = more.pop("path", f"/etc/kubernetes/pki/{name}.crt")
    return CertificateFact(name=name, path=path, not_before=NOW + begin, not_after=NOW + end, **more)


def disk(path: str, purpose: str, free: float, total: int = 100 * GIB, inodes_free: float = 0.9) -> Disk:
    return Disk(path=path, purpose=purpose, space=Space(1, total, int(total * free), 1_000_000, int(1_000_000 * inodes_free)))


def node(**conditions: str) -> dict[str, Any]:
    told = {"Ready": "True", "DiskPressure": "False", **conditions}
    return {
        "metadata": {"name": "cp-1"},
        "spec": {},
        "status": {
            "conditions": [{"type": kind, "status": status, "reason": f"{kind}{status}", "message": "m"} for kind, status in told.items()],
            "addresses": [{"type": "InternalIP", "address": ADDRESS}],
        },
    }


WORKER = Facts(
    now=NOW,
    role="worker",
    node="w-1",
    left=("/etc/kubernetes/kubelet.conf",),
    kubelet=Kubelet(unit=RUNNING, version="v1.35.4", config=CONFIG),
    runtime=Runtime(socket="unix:///run/containerd/containerd.sock", unit=RUNNING, version="containerd 2.3.7", cgroup_driver="systemd"),
    certificates=(certificate("kubelet.conf", path="/var/lib/kubelet/pki/kubelet-client-current.pem", rotates=True),),
    kubeconfigs=(KubeconfigFact(path="/etc/kubernetes/kubelet.conf", server="https://192.0.2.100:6443"),),
    api=Api(server="https://192.0.2.100:6443", version="v1.35.4", asked_for_node=True, node=node(), ahead=0.4),
    addresses=("127.0.0.1", ADDRESS),
    clock=Clock(synchronized=True),
    disks=(disk("/var/lib/kubelet", "the kubelet and the volumes of Pods", 0.5),),
    ports=(Port(number=10250, component="kubelet", owner="kubelet"),),
    nameservers=("192.0.2.53",),
    resolv_conf="/etc/resolv.conf",
)
CONTROL_PLANE = msgspec.structs.replace(
    WORKER,
    role="control plane",
    node="cp-1",
    manifests=(
        manifest("etcd", f"--listen-client-urls=https://127.0.0.1:2379,https://{ADDRESS}:2379"),
        manifest("kube-apiserver", f"--advertise-address={ADDRESS}", "--tls-cert-file=/etc/kubernetes/pki/apiserver.crt"),
        manifest("kube-controller-manager"),
        manifest("kube-scheduler"),
    ),
    runtime=msgspec.structs.replace(WORKER.runtime, components=tuple(component(name, container(name)) for name in COMPONENTS)),
    certificates=(
        *WORKER.certificates,
        certificate("ca", end=timedelta(days=3550), authority=True),
        certificate("apiserver", names=("kubernetes", "10.96.0.1", ADDRESS)),
    ),
    etcd=Etcd(
        data_dir="/var/lib/etcd",
        own=EtcdEndpoint(url="https://127.0.0.1:2379", status=STATUS),
        members=(OWN_MEMBER,),
    ),
    claimed_addresses=(("--advertise-address in /etc/kubernetes/manifests/kube-apiserver.yaml", ADDRESS),),
    ports=(*WORKER.ports, Port(number=10257, component="kube-controller-manager", owner="kube-controller")),
)
NO_NODE = Facts(now=NOW, node="spare", resolv_conf="/etc/resolv.conf", nameservers=("192.0.2.53",), addresses=("127.0.0.1", ADDRESS))


def but(facts: Facts, **changes: Any) -> Facts:
    """Facts with changes; those of a part are given as ``part__field``."""
    for name, value in changes.items():
        part, _, field = name.partition("__")
        facts = msgspec.structs.replace(
            facts, **{part: msgspec.structs.replace(getattr(facts, part), **{field: value}) if field else value}
        )
    return facts
