"""Label selectors, of which one that is invalid is known to be: it neither matches nor not, and who asks decides what to do then."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.labels import key_problems, value_problems

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.cluster.meta import LabelSelector

_LISTED = ("In", "NotIn")
_UNLISTED = ("Exists", "DoesNotExist")


class Requirement(NamedTuple):
    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def holds(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
        return value is None


class Selector(NamedTuple):
    """All requirements must hold; without any, everything matches."""

    requirements: tuple[Requirement, ...] = ()
    problem: str = ""

    def matches(self, labels: Mapping[str, str]) -> bool | None:
        """None where the selector is invalid and what is valid of it does not decide."""
        if not all(requirement.holds(labels) for requirement in self.requirements):
            return False
        return None if self.problem else True


def parse(selector: LabelSelector | None) -> Selector:
    """One that is missing selects everything."""
    if selector is None:
        return Selector()
    found: list[Requirement] = []
    problems: list[str] = []
    terms = [(key, "In", [value]) for key, value in sorted(selector.match_labels.items())]
    terms += [(term.key, term.operator, term.values) for term in selector.match_expressions]
    for key, operator, values in terms:
        problem = _problem(key, operator, values)
        if problem:
            problems.append(problem)
        else:
            found.append(Requirement(key, operator, frozenset(values)))
    return Selector(tuple(found), "; ".join(problems))


def both(one: bool | None, other: bool | None) -> bool | None:
    """Whether both hold, as far as that can be said."""
    if one is False or other is False:
        return False
    return True if one and other else None


def either(answers: list[bool | None]) -> bool | None:
    """Whether one of them holds, as far as that can be said."""
    if any(answers):
        return True
    return None if None in answers else False


def _problem(key: str, operator: str, values: list[str]) -> str:
    if operator not in _LISTED + _UNLISTED:
        return f'"{operator}" is not a valid label selector operator'
    if operator in _LISTED and not values:
        return f"{key}: for 'in', 'notin' operators, values set can't be empty"
    if operator in _UNLISTED and values:
        return f"{key}: values set must be empty for exists and does not exist"
    wrong = key_problems(key) + [problem for value in values for problem in value_problems(value)]
    return f"{key}: {'; '.join(wrong)}" if wrong else ""
