"""``cluster.x-k8s.io/v1beta1``: MachineHealthCheck before v1beta2; converted, never worked with."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from slipway.api.cluster.meta import (
    CONDITION_TYPE,
    CONDITIONS,
    Condition,
    DeprecatedCondition,
    Int32,
    Int64,
    LabelSelector,
    ObjectMetadata,
    ObjectReference,
    Type,
)
from slipway.api.machinery.openapi import REQUIRED, at_least, items, length, one_of, pattern, rule, rules


class UnhealthyCondition(Type):
    """A condition of a Node that makes its Machine unhealthy."""

    always_printed = frozenset({"type", "status", "timeout"})

    type: Annotated[str, length(1, None), REQUIRED] = ""
    """The name of the condition."""
    status: Annotated[str, length(1, None), REQUIRED] = ""
    """The status of the condition that is bad."""
    timeout: Annotated[str, REQUIRED] = "0s"
    """How long the condition has that status before the Machine is unhealthy, as a duration."""


class UnhealthyMachineCondition(Type):
    """A condition of a Machine that makes it unhealthy."""

    always_printed = frozenset({"timeout"})

    type: Annotated[
        str,
        length(1, 316),
        pattern(CONDITION_TYPE),
        rules(
            rule(
                "!(self in ['Ready','Available','HealthCheckSucceeded','OwnerRemediated','ExternallyRemediated'])",
                "type must not be one of: Ready, Available, HealthCheckSucceeded, OwnerRemediated, ExternallyRemediated",
            )
        ),
        REQUIRED,
    ] = ""
    """The name of the condition."""
    status: Annotated[str, one_of("True", "False", "Unknown"), REQUIRED] = ""
    """The status of the condition that is bad."""
    timeout: Annotated[str, REQUIRED] = "0s"
    """How long the condition has that status before the Machine is unhealthy, as a duration."""


class MachineHealthCheckSpec(Type):
    """What a MachineHealthCheck watches."""

    always_printed = frozenset({"cluster_name", "selector"})

    cluster_name: Annotated[str, length(1, 63), REQUIRED] = ""
    """The name of the Cluster that the object belongs to; it never changes."""
    selector: Annotated[LabelSelector, REQUIRED] = field(default_factory=LabelSelector)
    """Which Machines it watches."""
    unhealthy_conditions: Annotated[list[UnhealthyCondition], items(None, 100)] = field(default_factory=list)
    """Conditions of a Node, any of which makes its Machine unhealthy."""
    unhealthy_machine_conditions: Annotated[list[UnhealthyMachineCondition], items(1, 100, atomic=True)] = field(default_factory=list)
    """Conditions of a Machine, any of which makes it unhealthy."""
    max_unhealthy: int | str | None = None
    """Remediation only while at most so many Machines, a number or a share of all, are unhealthy."""
    unhealthy_range: Annotated[str, length(1, 32), pattern(r"^\[[0-9]+-[0-9]+\]$")] | None = None
    """Remediation only while the number of unhealthy Machines is in this range, such as [3-5]."""
    node_startup_timeout: str | None = None
    """How long a Machine may be without a Node before it is unhealthy, as a duration; 10m without it, and 0s for ever."""
    remediation_template: ObjectReference | None = None
    """A template that remediation requests are made from; without it, the Machine's owner replaces it."""


class MachineHealthCheckV1Beta2Status(Type):
    """What v1beta2 has in a MachineHealthCheck's status."""

    conditions: Annotated[list[Condition], CONDITIONS] = field(default_factory=list)
    """The state in its aspects."""


class MachineHealthCheckStatus(Type):
    """What has been observed of the Machines."""

    always_printed = frozenset({"expected_machines", "current_healthy", "remediations_allowed"})

    expected_machines: Annotated[Int32, at_least(0)] = 0
    """How many Machines it watches."""
    current_healthy: Annotated[Int32, at_least(0)] = 0
    """How many of them are healthy."""
    remediations_allowed: Annotated[Int32, at_least(0)] = 0
    """How many more may become unhealthy before remediation stops."""
    observed_generation: Int64 = 0
    """The generation that the controller has last worked on to the end."""
    targets: Annotated[list[Annotated[str, length(1, 253)]], items(None, 10000)] = field(default_factory=list)
    """The names of the Machines that it watches."""
    conditions: list[DeprecatedCondition] = field(default_factory=list)
    """The state in its aspects."""
    v1beta2: MachineHealthCheckV1Beta2Status | None = None
    """What v1beta2 has in its status."""


class MachineHealthCheck(Type):
    """Watches Machines, and has those remediated that are unhealthy."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: MachineHealthCheckSpec = field(default_factory=MachineHealthCheckSpec)
    """What the MachineHealthCheck watches."""
    status: MachineHealthCheckStatus = field(default_factory=MachineHealthCheckStatus)
    """What has been observed of the Machines."""
