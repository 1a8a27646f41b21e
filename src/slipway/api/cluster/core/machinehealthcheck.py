"""``cluster.x-k8s.io/v1beta2``: MachineHealthCheck."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from slipway.api.cluster.meta import (
    CONDITION_TYPE,
    CONDITIONS,
    DNS_SUBDOMAIN,
    NOT_EMPTY,
    Condition,
    DeprecatedCondition,
    Int32,
    Int64,
    LabelSelector,
    ObjectMetadata,
    Type,
)
from slipway.api.machinery.openapi import REQUIRED, at_least, items, length, one_of, pattern, rule, rules


class UnhealthyNodeCondition(Type):
    """A condition of a Node that makes its Machine unhealthy."""

    type: Annotated[str, length(1, None), REQUIRED] = ""
    """The name of the condition."""
    status: Annotated[str, length(1, None), REQUIRED] = ""
    """The status of the condition that is bad."""
    timeout_seconds: Annotated[Int32 | None, at_least(0), REQUIRED] = None
    """How long the condition has that status before the Machine is unhealthy."""


class UnhealthyMachineCondition(Type):
    """A condition of a Machine that makes it unhealthy."""

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
    timeout_seconds: Annotated[Int32 | None, at_least(0), REQUIRED] = None
    """How long the condition has that status before the Machine is unhealthy."""


class MachineHealthCheckChecks(Type):
    """What makes a Machine unhealthy."""

    openapi = NOT_EMPTY

    node_startup_timeout_seconds: Annotated[Int32, at_least(0)] | None = None
    """How long a Machine may be without a Node before it is unhealthy; 600 without it, and 0 for ever."""
    unhealthy_node_conditions: Annotated[list[UnhealthyNodeCondition], items(1, 100, atomic=True)] = field(default_factory=list)
    """Conditions of a Node, any of which makes its Machine unhealthy."""
    unhealthy_machine_conditions: Annotated[list[UnhealthyMachineCondition], items(1, 100, atomic=True)] = field(default_factory=list)
    """Conditions of a Machine, any of which makes it unhealthy."""


class MachineHealthCheckRemediationTriggerIf(Type):
    """When unhealthy Machines are remediated."""

    openapi = NOT_EMPTY

    unhealthy_less_than_or_equal_to: int | str | None = None
    """Remediation only while at most so many Machines, a number or a share of all, are unhealthy."""
    unhealthy_in_range: Annotated[str, length(1, 32), pattern(r"^\[[0-9]+-[0-9]+\]$")] = ""
    """Remediation only while the number of unhealthy Machines is in this range, such as [3-5]."""


class MachineHealthCheckRemediationTemplateReference(Type):
    """A template that remediation requests are made from, in the namespace of the health check."""

    kind: Annotated[str, length(1, 63), pattern(r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$"), REQUIRED] = ""
    """The kind of the template."""
    name: Annotated[str, length(1, 253), pattern(DNS_SUBDOMAIN), REQUIRED] = ""
    """The name of the template."""
    api_version: Annotated[
        str,
        length(1, 317),
        pattern(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[a-z]([-a-z0-9]*[a-z0-9])?$"),
        REQUIRED,
    ] = ""
    """The group and version of the template."""


class MachineHealthCheckRemediation(Type):
    """When and how unhealthy Machines are remediated."""

    openapi = NOT_EMPTY

    trigger_if: MachineHealthCheckRemediationTriggerIf = field(default_factory=MachineHealthCheckRemediationTriggerIf)
    """When unhealthy Machines are remediated; without it, always."""
    template_ref: MachineHealthCheckRemediationTemplateReference = field(default_factory=MachineHealthCheckRemediationTemplateReference)
    """A template that remediation requests are made from, for a controller of their own; without it, the Machine's owner replaces it."""


class MachineHealthCheckSpec(Type):
    """What a MachineHealthCheck watches."""

    cluster_name: Annotated[str, length(1, 63), REQUIRED] = ""
    """The name of the Cluster that the object belongs to; it never changes."""
    selector: Annotated[LabelSelector, REQUIRED] = field(default_factory=LabelSelector)
    """Which Machines it watches."""
    checks: MachineHealthCheckChecks = field(default_factory=MachineHealthCheckChecks)
    """What makes a Machine unhealthy."""
    remediation: MachineHealthCheckRemediation = field(default_factory=MachineHealthCheckRemediation)
    """How unhealthy Machines are remediated."""


class MachineHealthCheckV1Beta1DeprecatedStatus(Type):
    """What v1beta1 had in a MachineHealthCheck's status."""

    conditions: list[DeprecatedCondition] = field(default_factory=list)
    """The state in its aspects."""


class MachineHealthCheckDeprecatedStatus(Type):
    """What earlier versions had in a MachineHealthCheck's status."""

    v1beta1: MachineHealthCheckV1Beta1DeprecatedStatus | None = None
    """What v1beta1 had in its status."""


class MachineHealthCheckStatus(Type):
    """What has been observed of the Machines."""

    openapi = NOT_EMPTY

    conditions: Annotated[list[Condition], CONDITIONS] = field(default_factory=list)
    """The state in its aspects."""
    expected_machines: Annotated[Int32, at_least(0)] | None = None
    """How many Machines it watches."""
    current_healthy: Annotated[Int32, at_least(0)] | None = None
    """How many of them are healthy."""
    remediations_allowed: Annotated[Int32, at_least(0)] | None = None
    """How many more may become unhealthy before remediation stops."""
    observed_generation: Annotated[Int64, at_least(1)] = 0
    """The generation that the controller has last worked on to the end."""
    targets: Annotated[list[Annotated[str, length(1, 253)]], items(None, 10000, atomic=True)] = field(default_factory=list)
    """The names of the Machines that it watches."""
    deprecated: MachineHealthCheckDeprecatedStatus | None = None
    """What earlier versions had in their status."""


class MachineHealthCheck(Type):
    """Watches Machines, and has those remediated that are unhealthy."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: ObjectMetadata = field(default_factory=dict)
    spec: Annotated[MachineHealthCheckSpec, REQUIRED] = field(default_factory=MachineHealthCheckSpec)
    """What the MachineHealthCheck watches."""
    status: MachineHealthCheckStatus = field(default_factory=MachineHealthCheckStatus)
    """What has been observed of the Machines."""
