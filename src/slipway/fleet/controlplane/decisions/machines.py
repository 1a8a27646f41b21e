"""A control plane as values: its machines, the members of its etcd, and what is wanted of them.

Nothing here knows how these were read.  The names of health checks are those of the conditions on Machines.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.runtime.objects import timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.fleet.snapshots.request import Restore

API_SERVER = "APIServerPodHealthy"
CONTROLLER_MANAGER = "ControllerManagerPodHealthy"
SCHEDULER = "SchedulerPodHealthy"
ETCD_POD = "EtcdPodHealthy"
ETCD_MEMBER = "EtcdMemberHealthy"
LABELS_AND_TAINTS = "NodeKubeadmLabelsAndTaintsSet"

KUBERNETES_CHECKS = (API_SERVER, CONTROLLER_MANAGER, SCHEDULER)
ETCD_CHECKS = (ETCD_POD, ETCD_MEMBER)

DEFAULT_MIN_HEALTHY_SECONDS = 3600


class Check(NamedTuple):
    """What a health check says: True, False or Unknown, and why."""

    status: str
    message: str = ""


class Remediation(NamedTuple):
    """A machine that was given up, when, and how often one in its place had been given up before."""

    machine: str
    time: datetime | None
    retries: int = 0

    def text(self) -> str:
        """As annotations have it, in Go's order of fields."""
        time = None if self.time is None else timestamp(self.time)
        return msgspec.json.encode({"machine": self.machine, "timestamp": time, "retryCount": self.retries}).decode()


class _Written(msgspec.Struct, rename="camel"):
    machine: str = ""
    timestamp: datetime | None = None
    retry_count: int = 0


def remediation_from(text: str) -> Remediation:
    try:
        written = msgspec.json.decode(text, type=_Written)
    except msgspec.DecodeError as error:
        raise OperatorError(f'the annotation that tells of a remediation cannot be read: {error}: "{text}"') from None
    time = written.timestamp
    return Remediation(written.machine, time.replace(tzinfo=time.tzinfo or UTC) if time else None, written.retry_count)


class Machine(NamedTuple):
    name: str
    created: datetime
    version: str = ""
    up_to_date: bool = True
    failure_domain: str = ""
    node: str = ""
    """The name of its Node, which is its etcd member's as well; empty while it has none."""
    member: str = ""
    """The name of its etcd member where the Node is known by its provider ID alone; empty if that is not known either."""
    checks: Mapping[str, Check] = {}
    deleted: datetime | None = None
    """When it was told to go."""
    has_hook: bool = True
    """Our own pre-terminate hook holds it until its etcd member is removed."""
    other_hooks: bool = False
    """Somebody else's pre-terminate hook holds it as well."""
    waits_for_hook: bool = False
    """Drained, and held by nothing but hooks."""
    delete_asked: bool = False
    """A person wants this one to go first."""
    remediate_asked: bool = False
    unhealthy: bool = False
    """A health check found it so."""
    ours_to_remediate: bool = False
    """And leaves it to its owner."""
    health_checked: bool = False
    """A health check found it well."""
    replaces: Remediation | None = None
    updating_in_place: bool = False

    @property
    def deleting(self) -> bool:
        return self.deleted is not None

    @property
    def etcd_name(self) -> str:
        return self.node or self.member

    def is_well(self, check: str) -> bool:
        found = self.checks.get(check)
        return found is not None and found.status == "True"

    def is_ill(self, check: str) -> bool:
        """Said to be; not merely unknown."""
        found = self.checks.get(check)
        return found is not None and found.status == "False"


class Member(NamedTuple):
    """A member of etcd: one without a name has been added and has not started."""

    id: int
    name: str
    learner: bool = False
    alarms: bool = False
    leader: bool = False


class RemediationRules(NamedTuple):
    max_retry: int | None = None
    retry_period: int = 0
    min_healthy_period: int = DEFAULT_MIN_HEALTHY_SECONDS


class ControlPlane(NamedTuple):
    """Everything that a decision depends on."""

    replicas: int
    machines: tuple[Machine, ...]
    now: datetime
    max_surge: int = 1
    version: str = "v1.35.0"
    failure_domains: tuple[str, ...] = ()
    """Those that take control planes."""
    manages_etcd: bool = True
    members: tuple[Member, ...] = ()
    """Empty where etcd could not be asked, or is somebody else's."""
    members_healthy: bool = True
    """Whether the members are known to be well, and to be those of the machines."""
    nodes_known: bool = True
    young_nodes: frozenset[str] = frozenset()
    """Nodes that are so new that their etcd member need not have its name yet."""
    initialized: bool = True
    """A first machine has made the cluster."""
    cluster_initialized: bool = True
    """The Cluster knows that, so machines are told to join."""
    certificates: bool = True
    in_progress: Remediation | None = None
    """A machine was given up, and its replacement is not there yet."""
    remediation: RemediationRules = RemediationRules()
    remediate_single: bool = False
    """The only machine may be given up, and with it what its etcd holds."""
    restore: Restore | None = None
    """A person wants it to be made anew, from a snapshot."""

    @property
    def checks(self) -> tuple[str, ...]:
        return KUBERNETES_CHECKS + (ETCD_CHECKS if self.manages_etcd else ())

    @property
    def deleting(self) -> list[Machine]:
        return [machine for machine in self.machines if machine.deleting]

    @property
    def outdated(self) -> list[Machine]:
        """Those to roll; one that goes already is replaced anyhow."""
        return [machine for machine in self.machines if not machine.up_to_date and not machine.deleting]

    @property
    def most(self) -> int:
        """How many there may be at a time."""
        return self.replicas + (self.max_surge if self.outdated else 0)

    @property
    def leader(self) -> Member | None:
        return next((member for member in self.members if member.leader), None)

    def machine(self, name: str) -> Machine:
        return next(machine for machine in self.machines if machine.name == name)
