"""What the functions do that an expression is made of: each takes the run of an evaluation and gives a value, and counts what it costs.

An error is raised, or handed on as a value by a variable of a loop: a later element may make up for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.embedded.apiextensions.cel import values
from slipway.embedded.apiextensions.cel.library.operators import find
from slipway.embedded.apiextensions.cel.values import NONE, CostError, EvaluationError, Maybe, no_such_overload

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.embedded.apiextensions.cel import nodes
    from slipway.embedded.apiextensions.cel.functions import Overload

    Step = Callable[["Run"], Any]


class Run:
    """One evaluation: the values of variables, and what it has cost."""

    __slots__ = ("cost", "limit", "variables")

    def __init__(self, variables: list[Any], limit: int) -> None:
        self.variables, self.limit, self.cost = variables, limit, 0

    def charge(self, cost: int) -> None:
        self.cost += cost
        if self.cost > self.limit:
            raise CostError


def tried(step: Step, run: Run) -> Any:
    """A value, or the error instead of one: a later element may make up for it."""
    try:
        return step(run)
    except EvaluationError as error:
        return error


def told(value: Any) -> Any:
    if isinstance(value, EvaluationError):
        raise value
    return value


def field(of: Any, name: str) -> Maybe:
    if isinstance(of, values.MapData):
        return of.find(name)
    if isinstance(of, Maybe):
        return field(of.value, name) if of.is_there else NONE
    return find(of, name)


def logical(terms: list[Step], *, decisive: bool) -> Step:
    """``&&`` and ``||``: one value decides, whatever errors the other terms are."""

    def step(run: Run) -> Any:
        failure: EvaluationError | None = None
        for term in terms:
            try:
                value = term(run)
            except EvaluationError as error:
                value = error
            if value is decisive:
                return decisive
            if value is not (not decisive) and failure is None:
                failure = value if isinstance(value, EvaluationError) else no_such_overload()
        if failure is not None:
            raise failure
        return not decisive

    return step


def conditional(condition: Step, yes: Step, no: Step) -> Step:
    def step(run: Run) -> Any:
        value = told(condition(run))
        if value is True:
            return yes(run)
        if value is False:
            return no(run)
        raise no_such_overload()

    return step


def not_strictly_false(term: Step) -> Step:
    def step(run: Run) -> bool:
        run.charge(1)
        return tried(term, run) is not False

    return step


def called(node: nodes.Call, arguments: list[Step], *, free: bool = False) -> Step:
    """A call; where the types of its arguments leave more than one overload, the values decide on it."""
    overloads = node.overloads
    given = [*([node.target] if node.target is not None else []), *node.arguments]
    is_static = len(overloads) == 1 and not any(each.type is None or each.type.kind in ("dyn", "param") for each in given)
    function = node.function.removeprefix(".")

    def step(run: Run) -> Any:
        # All arguments are evaluated, and cost, before the first error is told.
        found, failure = [], None
        for argument in arguments:
            try:
                value = argument(run)
            except EvaluationError as error:
                value = error
            if isinstance(value, EvaluationError):
                failure = failure or value
            found.append(value)
        try:
            if failure is not None:
                raise failure
            overload = overloads[0] if is_static else fitting(overloads, found, function)
            result = overload.call(*found)
        except EvaluationError:
            run.charge(1)
            raise
        if not free:
            run.charge(1 if overload.cost is None else overload.cost(found, result))
        return result

    return step


def fitting(overloads: list[Overload], given: list[Any], function: str) -> Overload:
    for overload in overloads:
        if all(map(values.accepts, overload.arguments, given)):
            return overload
    raise EvaluationError(f"no such overload{_signature(function, given)}")


def _signature(function: str, given: list[Any]) -> str:
    """What cel-go tells of a call that values do not fit: of operators only where the first value is of a type that never has them."""
    if function[0] in "_!-@" or function in _UNTOLD:
        able = _ABLE.get(function)
        return "" if able is None or values.type_of(given[0]).kind in able else f": {function}"
    if function == "size":
        return f": {function}"
    return f": {function}({', '.join(values.type_name(each) for each in given)})"


# Strings, moments and durations take any call, and then say themselves that they cannot answer it.
_NUMBERS, _TAKERS = ("int", "uint", "double"), ("string", "timestamp", "duration")
_ABLE: dict[str, frozenset[str]] = {
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), frozenset((*_NUMBERS, *_TAKERS, "bool", "bytes"))),
    "_+_": frozenset((*_NUMBERS, *_TAKERS, "bytes", "list")),
    **dict.fromkeys(("_-_", "_*_", "_/_"), frozenset((*_NUMBERS, *_TAKERS))),
    "_%_": frozenset(("int", "uint", *_TAKERS)),
    "-_": frozenset((*_NUMBERS, *_TAKERS, "bool")),
}
_UNTOLD = frozenset(("matches", "find", "findAll", "startsWith", "endsWith", "contains"))


def otherwise(optional: Step, other: Step, *, unwraps: bool) -> Step:
    """``or`` and ``orValue``, which look at their argument only where they need it."""

    def step(run: Run) -> Any:
        found = told(optional(run))
        if not isinstance(found, Maybe):
            return found
        if found.is_there:
            return found.value if unwraps else found
        return told(other(run))

    return step
