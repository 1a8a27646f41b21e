"""What is known of a machine and of the node on it: values, gathered once, from which all findings follow.

The defaults are those of a machine that never was a node and on which nothing is wrong.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.host.interface import Space
    from slipway.node.health.observation import Found, Unit
    from slipway.workload.alive.values import Values
    from slipway.workload.etcdapi import EtcdAlarm, EtcdMember, EtcdStatus

Role = Literal["control plane", "worker", "none"]


class Unseen(msgspec.Struct, frozen=True):
    """What could not be looked at, and why."""

    what: str
    why: str


class CertificateFact(msgspec.Struct, frozen=True, kw_only=True):
    """A certificate in a file, or in a kubeconfig."""

    name: str
    """As ``certs renew`` knows it; else its path."""
    path: str
    not_before: datetime = datetime.min.replace(tzinfo=UTC)
    not_after: datetime = datetime.max.replace(tzinfo=UTC)
    names: tuple[str, ...] = ()
    """The DNS names and addresses that it is valid for."""
    authority: bool = False
    rotates: bool = False
    """Whether the kubelet renews it by itself."""
    problem: str = ""
    """Why the file cannot be used at all."""
    distrust: str = ""
    """Why its authority does not vouch for it."""
    key_problem: str = ""


class KubeconfigFact(msgspec.Struct, frozen=True, kw_only=True):
    """A kubeconfig of this node."""

    path: str
    server: str = ""
    problem: str = ""
    foreign_ca: bool = False
    """Whether it trusts another CA than the one in the certificate folder."""


class ContainerSpec(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    image: str = ""
    command: tuple[str, ...] = ()


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A file in the kubelet's folder of static Pods."""

    path: str
    pod: str = ""
    """Namespace and name."""
    containers: tuple[ContainerSpec, ...] = ()
    problem: str = ""


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """A container of a static Pod: what it should be, what the runtime knows of it, and how it answers."""

    name: str
    image: str = ""
    image_missing: bool = False
    found: Found | None = None
    answer: str = ""
    """What is wrong with its answer; empty where it is well, or was not asked."""


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    socket: str = ""
    service: str = "containerd"
    unit: Unit | None = None
    problem: str = ""
    """Why it does not answer."""
    permitted: bool = True
    """Whether this user may talk to it."""
    version: str = ""
    not_ready: tuple[str, ...] = ()
    network_not_ready: tuple[str, ...] = ()
    cgroup_driver: str = ""
    components: tuple[Component, ...] | None = ()
    """None where they could not be looked at."""
    left: int = 0
    """How many containers of Pods there are."""


class Kubelet(msgspec.Struct, frozen=True, kw_only=True):
    unit: Unit | None = None
    version: str = ""
    config: Mapping[str, Any] = {}
    config_problem: str = ""
    health: str = ""
    """What is wrong with its answer."""
    rotating_file: str = ""
    """The file of its client certificate that kubelet.conf names and that is not there."""


class EtcdEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    status: EtcdStatus | None = None
    problem: str = ""


class Etcd(msgspec.Struct, frozen=True, kw_only=True):
    external: bool = False
    data_dir: str = ""
    data_missing: bool = False
    owner_problem: str = ""
    """Why the data folder does not tell whose it is."""
    own: EtcdEndpoint | None = None
    others: tuple[EtcdEndpoint, ...] = ()
    members: tuple[EtcdMember, ...] = ()
    alarms: tuple[EtcdAlarm, ...] = ()
    quota: int = 2 << 30
    """etcd's own default, where its manifest names none."""
    drift: str = ""
    """The line in which etcd tells of clocks that differ."""


class Api(msgspec.Struct, frozen=True, kw_only=True):
    """The API server as the kubelet of this node knows it."""

    server: str = ""
    trouble: Literal["", "name", "unreachable", "untrusted", "refused", "failing"] = ""
    problem: str = ""
    version: str = ""
    asked_for_node: bool = False
    node: Mapping[str, Any] | None = None
    ahead: float | None = None
    """Seconds by which this machine's clock is ahead of the server's; None where it was not told."""


class Disk(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    """The first of the paths on this file system."""
    purpose: str
    space: Space


class Clock(msgspec.Struct, frozen=True, kw_only=True):
    synchronized: bool | None = None
    """None where nobody tells: no systemd, or a container, whose clock is that of its host."""


class Port(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    component: str
    owner: str
    """Which program listens; empty where none does, or it cannot be seen."""


class Vip(msgspec.Struct, frozen=True, kw_only=True):
    values: Values | None = None
    problem: str = ""
    holds: bool = False
    answer: str = ""
    """What is wrong with the API at the address."""
    interface_missing: bool = False
    configured: bool = True
    """Whether keepalived.conf is there and has the address."""


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    unit: Unit | None = None
    service: str = ""
    status: Mapping[str, Any] = {}


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    now: datetime
    role: Role = "none"
    node: str = ""
    unseen: tuple[Unseen, ...] = ()
    left: tuple[str, ...] = ()
    """The paths of a node that are on this machine."""
    kubelet: Kubelet = Kubelet()
    runtime: Runtime = Runtime()
    manifests: tuple[Manifest, ...] = ()
    certificates: tuple[CertificateFact, ...] = ()
    missing_certificates: tuple[str, ...] = ()
    kubeconfigs: tuple[KubeconfigFact, ...] = ()
    etcd: Etcd | None = None
    api: Api | None = None
    addresses: tuple[str, ...] = ()
    claimed_addresses: tuple[tuple[str, str], ...] = ()
    """What says that this machine has an address, and the address."""
    swaps: tuple[str, ...] = ()
    swap_in_fstab: tuple[str, ...] = ()
    clock: Clock = Clock()
    disks: tuple[Disk, ...] = ()
    unified: bool | None = True
    """Whether the machine has cgroup v2; None where it has no cgroups."""
    controllers: tuple[str, ...] = ("cpu", "cpuset", "memory", "pids")
    ports: tuple[Port, ...] = ()
    nameservers: tuple[str, ...] = ()
    resolv_conf: str = ""
    """The file that Pods get their name servers from."""
    resolv_conf_problem: str = ""
    forwarding_off: tuple[str, ...] = ()
    """The settings of the kernel that keep it from passing packets on."""
    vip: Vip | None = None
    agent: Agent | None = None

    @property
    def is_node(self) -> bool:
        return self.role != "none"

    def manifest_of(self, component: str) -> ContainerSpec | None:
        return next((each for manifest in self.manifests for each in manifest.containers if each.name == component), None)
