"""MachineDrainRules: what they say of the Pods of a Machine.

The first rule by name that matches a Pod decides.  Upstream refuses every drain of a namespace while one of its rules is invalid; here such
a rule is told, and holds only the Pods that it may be about: those that a valid rule before it decides, and those that what is valid of it
leaves out, are drained.  To evict a Pod that it may be about could do the very thing that its author forbids, to skip it could keep a host
for nothing; so it is held until the rule is mended or the time for the drain is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.fleet.machines.machine.drain import selectors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from slipway.api.cluster.core.machinedrainrule import MachineDrainRule
    from slipway.fleet.machines.machine.drain.selectors import Selector

DRAIN, SKIP, WAIT = "Drain", "Skip", "WaitCompleted"
_BEHAVIORS = (DRAIN, SKIP, WAIT)


class Pair(NamedTuple):
    """A term of a rule: both selectors must match."""

    of_object: Selector
    of_parent: Selector

    def matches(self, labels: Mapping[str, str], labels_of_parent: Mapping[str, str]) -> bool | None:
        return selectors.both(self.of_object.matches(labels), self.of_parent.matches(labels_of_parent))


class Rule(NamedTuple):
    name: str
    behavior: str
    order: int
    machines: tuple[Pair, ...] = ()
    pods: tuple[Pair, ...] = ()
    problems: tuple[str, ...] = ()
    doubtful: bool = False
    """It cannot be said whether it is for the Machine."""

    @property
    def needs_namespaces(self) -> bool:
        return any(term.of_parent != selectors.Selector() for term in self.pods)

    @property
    def problem(self) -> str:
        return f'the MachineDrainRule "{self.name}" is invalid: {"; ".join(self.problems)}' if self.problems else ""

    def is_for_pod(self, labels: Mapping[str, str], labels_of_namespace: Mapping[str, str]) -> bool | None:
        matches = selectors.either([term.matches(labels, labels_of_namespace) for term in self.pods]) if self.pods else True
        if matches and (self.doubtful or self.behavior not in _BEHAVIORS):
            return None
        return matches


def parse(manifest: MachineDrainRule) -> Rule:
    spec = manifest.spec
    machines = tuple(Pair(selectors.parse(term.selector), selectors.parse(term.cluster_selector)) for term in spec.machines)
    pods = tuple(Pair(selectors.parse(term.selector), selectors.parse(term.namespace_selector)) for term in spec.pods)
    problems = [
        f"spec.{field}[{index}].{name}: {selector.problem}"
        for field, pairs, parent in (("machines", machines, "clusterSelector"), ("pods", pods, "namespaceSelector"))
        for index, pair in enumerate(pairs)
        for name, selector in (("selector", pair.of_object), (parent, pair.of_parent))
        if selector.problem
    ]
    behavior = spec.drain.behavior
    if behavior not in _BEHAVIORS:
        problems.append(f'spec.drain.behavior: "{behavior}" is not one of {", ".join(_BEHAVIORS)}')
    return Rule(manifest.metadata["name"], behavior, spec.drain.order or 0, machines, pods, tuple(problems))


def unreadable(name: str, why: str) -> Rule:
    """A rule of which nothing is known: it may be about every Pod."""
    return Rule(name, "", 0, problems=(why,))


def for_machine(rules: Iterable[Rule], labels: Mapping[str, str], labels_of_cluster: Mapping[str, str]) -> list[Rule]:
    """The rules that are or may be for a Machine, in the order in which they decide."""
    found = []
    for rule in sorted(rules, key=lambda rule: rule.name):
        matches = selectors.either([term.matches(labels, labels_of_cluster) for term in rule.machines]) if rule.machines else True
        if matches is not False:
            found.append(rule._replace(doubtful=matches is None))
    return found
