"""Functions that expressions call: each name has overloads, by the types of arguments, and each of them costs."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.embedded.apiextensions.cel import values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from slipway.embedded.apiextensions.cel.types import Type

    Cost = Callable[[Sequence[Any], Any], int]


class Overload(NamedTuple):
    """One way to call a function."""

    arguments: tuple[Type, ...]
    """With the target first, of a member function."""
    result: Type
    call: Callable[..., Any]
    is_member: bool
    cost: Cost | None
    """None for one unit."""
    open: frozenset[str]
    """The names of its type parameters."""


class Functions:
    """The functions of one library, as it declares them."""

    def __init__(self) -> None:
        self.overloads: defaultdict[str, list[Overload]] = defaultdict(list)

    def add(self, name: str, arguments: Sequence[Type], result: Type, call: Callable[..., Any], cost: Cost | None = None) -> None:
        """A function: ``name(…)``."""
        self._add(name, arguments, result, call, cost, is_member=False)

    def member(self, name: str, arguments: Sequence[Type], result: Type, call: Callable[..., Any], cost: Cost | None = None) -> None:
        """A function of a target: ``target.name(…)``."""
        self._add(name, arguments, result, call, cost, is_member=True)

    def _add(
        self, name: str, arguments: Sequence[Type], result: Type, call: Callable[..., Any], cost: Cost | None, *, is_member: bool
    ) -> None:
        opened = frozenset[str]().union(*(_parameters(each) for each in (*arguments, result)))
        self.overloads[name].append(Overload(tuple(arguments), result, call, is_member, cost, opened))


def _parameters(type_: Type) -> frozenset[str]:
    if type_.kind == "param":
        return frozenset((type_.name,))
    return frozenset[str]().union(*(_parameters(each) for each in type_.parameters))


# The costs of cel-go and of Kubernetes' libraries: a tenth of a unit for a character, a quarter for one of a pattern.


def traversal(length: float, factor: float = 0.1) -> int:
    return math.ceil(length * factor)


def of_first(arguments: Sequence[Any], result: Any) -> int:
    """One look at every character of the first argument."""
    return traversal(values.size(arguments[0]))


def twice_first(arguments: Sequence[Any], result: Any) -> int:
    return traversal(values.size(arguments[0]), 0.2)


def of_smaller(arguments: Sequence[Any], result: Any) -> int:
    return traversal(min(values.size(arguments[0]), values.size(arguments[1])))


def of_both(arguments: Sequence[Any], result: Any) -> int:
    return traversal(values.size(arguments[0]) + values.size(arguments[1]))


def of_product(arguments: Sequence[Any], result: Any) -> int:
    return traversal(values.size(arguments[0])) * traversal(values.size(arguments[1]))


def of_pattern(arguments: Sequence[Any], result: Any) -> int:
    return traversal(1 + values.size(arguments[0])) * traversal(values.size(arguments[1]), 0.25)


def of_elements(arguments: Sequence[Any], result: Any) -> int:
    """One look at everything inside the first argument."""
    return inside(arguments[0])


def inside(value: Any) -> int:
    if isinstance(value, (str, bytes)):
        return int(len(value.encode() if isinstance(value, str) else value) * 0.1)
    if isinstance(value, values.LISTS):
        return sum(map(inside, value))
    if isinstance(value, values.MAPS):
        return sum(inside(key) + inside(value.find(key).value) for key in value)
    return 1
