"""``cluster.x-k8s.io/v1beta1``: MachineDrainRule before v1beta2; converted, never worked with."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from slipway.api.cluster.core.machinedrainrule import MachineDrainRuleMachineSelector, MachineDrainRulePodSelector
from slipway.api.cluster.meta import Int32, ObjectMetadata, Type
from slipway.api.machinery.openapi import REQUIRED, items, one_of, rule, rules


class MachineDrainRuleDrainConfig(Type):
    """How Pods are drained."""

    always_printed = frozenset({"behavior"})

    behavior: Annotated[str, one_of("Drain", "Skip", "WaitCompleted"), REQUIRED] = ""
    """Drain: evicted. Skip: left alone. WaitCompleted: waited for."""
    order: Int32 | None = None
    """Only for Drain: Pods of a lower order are evicted, and gone, before those of a higher one; 0 without it."""


class MachineDrainRuleSpec(Type):
    """How which Pods are drained on which Machines."""

    always_printed = frozenset({"drain"})

    drain: Annotated[MachineDrainRuleDrainConfig, REQUIRED] = field(default_factory=MachineDrainRuleDrainConfig)
    """How the Pods are drained."""
    machines: Annotated[
        list[MachineDrainRuleMachineSelector],
        items(1, 32, atomic=True),
        rules(rule("self.all(x, self.exists_one(y, x == y))", "entries in machines must be unique")),
    ] = field(default_factory=list)
    """Which Machines it is for; all of the namespace without it."""
    pods: Annotated[
        list[MachineDrainRulePodSelector],
        items(1, 32, atomic=True),
        rules(rule("self.all(x, self.exists_one(y, x == y))", "entries in pods must be unique")),
    ] = field(default_factory=list)
    """Which Pods it is for; all without it."""


class MachineDrainRule(Type):
    """How Pods are drained from the Nodes of Machines in its namespace; the first rule by name that fits a Pod counts."""

    always_printed = frozenset({"spec"})

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    metadata: Annotated[ObjectMetadata, REQUIRED] = field(default_factory=dict)
    spec: Annotated[MachineDrainRuleSpec, REQUIRED] = field(default_factory=MachineDrainRuleSpec)
    """How which Pods are drained on which Machines."""
