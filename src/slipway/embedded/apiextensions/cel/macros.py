"""The macros of CEL: calls that the parser writes out, as cel-go does, so that they cost what they cost there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.embedded.apiextensions.cel.nodes import Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select
from slipway.embedded.apiextensions.cel.tokens import MalformedError

if TYPE_CHECKING:
    from collections.abc import Callable

    Macro = Callable[[int, Node, list[Node]], Node]

ACCUMULATOR = "@result"
UNUSED = "#unused"


def expanded(position: int, name: str, target: Node | None, arguments: list[Node]) -> Node:
    """A call, or what the macro of this name makes of it."""
    if target is None and name == "has" and len(arguments) == 1:
        return _has(arguments[0], position)
    macro = _MACROS.get((name, len(arguments))) if target is not None else None
    if macro is None or target is None:
        return Call(position, name, target, arguments)
    return macro(position, target, arguments)


def _has(argument: Node, position: int) -> Node:
    if not isinstance(argument, Select) or argument.optional:
        raise MalformedError(argument.position, "invalid argument to has() macro")
    return Select(position, argument.operand, argument.name, tests=True)


def _all(position: int, target: Node, arguments: list[Node]) -> Node:
    step = Call(position, "_&&_", None, [_result(position), arguments[-1]])
    condition = Call(position, "@not_strictly_false", None, [_result(position)])
    return _loop(position, target, arguments[:-1], Literal(position, True), condition, step, _result(position))


def _exists(position: int, target: Node, arguments: list[Node]) -> Node:
    step = Call(position, "_||_", None, [_result(position), arguments[-1]])
    condition = Call(position, "@not_strictly_false", None, [Call(position, "!_", None, [_result(position)])])
    return _loop(position, target, arguments[:-1], Literal(position, False), condition, step, _result(position))


def _exists_one(position: int, target: Node, arguments: list[Node]) -> Node:
    counted = Call(position, "_+_", None, [_result(position), Literal(position, 1)])
    step = Call(position, "_?_:_", None, [arguments[-1], counted, _result(position)])
    result = Call(position, "_==_", None, [_result(position), Literal(position, 1)])
    return _loop(position, target, arguments[:-1], Literal(position, 0), Literal(position, True), step, result)


def _map(position: int, target: Node, arguments: list[Node]) -> Node:
    """``map(x, transform)`` and ``map(x, filter, transform)``."""
    return _collect(position, target, arguments[:1], arguments[1:-1], ListNode(position, [arguments[-1]]))


def _filter(position: int, target: Node, arguments: list[Node]) -> Node:
    return _collect(position, target, arguments[:1], arguments[1:], ListNode(position, [arguments[0]]))


def _transform_list(position: int, target: Node, arguments: list[Node]) -> Node:
    return _collect(position, target, arguments[:2], arguments[2:-1], ListNode(position, [arguments[-1]]))


def _transform_map(position: int, target: Node, arguments: list[Node]) -> Node:
    """``transformMap(key, value, [filter,] transform)``: the keys stay."""
    key = Ident(position, _names(arguments[:2])[0])
    step: Node = Call(position, "cel.@mapInsert", None, [_result(position), key, arguments[-1]])
    return _insert(position, target, arguments, step)


def _transform_map_entry(position: int, target: Node, arguments: list[Node]) -> Node:
    step: Node = Call(position, "cel.@mapInsert", None, [_result(position), arguments[-1]])
    return _insert(position, target, arguments, step)


def _insert(position: int, target: Node, arguments: list[Node], step: Node) -> Node:
    if len(arguments) == 4:
        step = Call(position, "_?_:_", None, [arguments[2], step, _result(position)])
    return _loop(position, target, arguments[:2], MapNode(position, []), Literal(position, True), step, _result(position))


def _collect(position: int, target: Node, variables: list[Node], filters: list[Node], element: Node) -> Node:
    _names(variables, "argument is not an identifier")
    step: Node = Call(position, "_+_", None, [_result(position), element])
    for condition in filters:
        step = Call(position, "_?_:_", None, [condition, step, _result(position)])
    return _loop(position, target, variables, ListNode(position, []), Literal(position, True), step, _result(position))


def _opt_map(position: int, target: Node, arguments: list[Node]) -> Node:
    mapped = Call(position, "optional.of", None, [_bound(position, target, arguments)])
    return _if_there(position, target, mapped)


def _opt_flat_map(position: int, target: Node, arguments: list[Node]) -> Node:
    return _if_there(position, target, _bound(position, target, arguments))


def _if_there(position: int, target: Node, mapped: Node) -> Node:
    return Call(position, "_?_:_", None, [Call(position, "hasValue", target, []), mapped, Call(position, "optional.none", None, [])])


def _bound(position: int, target: Node, arguments: list[Node]) -> Node:
    """An expression with the value of an optional one under a name: a loop over nothing, whose accumulator has that name."""
    (name,) = _names(arguments[:1])
    value = Call(position, "value", target, [])
    nothing, never = ListNode(position, []), Literal(position, False)
    return Comprehension(position, nothing, UNUSED, "", name, value, never, Ident(position, name), arguments[1])


def _loop(position: int, target: Node, variables: list[Node], initial: Node, condition: Node, step: Node, result: Node) -> Node:
    names = _names(variables)
    return Comprehension(position, target, names[0], names[1] if len(names) > 1 else "", ACCUMULATOR, initial, condition, step, result)


def _result(position: int) -> Node:
    return Ident(position, ACCUMULATOR)


def _names(variables: list[Node], wrong: str = "argument must be a simple name") -> list[str]:
    names: list[str] = []
    for variable in variables:
        if not isinstance(variable, Ident):
            raise MalformedError(variable.position, wrong)
        if variable.name == "__result__":
            raise MalformedError(variable.position, "iteration variable overwrites accumulator variable")
        if variable.name in names:
            raise MalformedError(variable.position, f"duplicate variable name: {variable.name}")
        names.append(variable.name)
    return names


_MACROS: dict[tuple[str, int], Macro] = {
    ("all", 2): _all,
    ("all", 3): _all,
    ("exists", 2): _exists,
    ("exists", 3): _exists,
    ("exists_one", 2): _exists_one,
    ("existsOne", 2): _exists_one,
    ("existsOne", 3): _exists_one,
    ("map", 2): _map,
    ("map", 3): _map,
    ("filter", 2): _filter,
    ("transformList", 3): _transform_list,
    ("transformList", 4): _transform_list,
    ("transformMap", 3): _transform_map,
    ("transformMap", 4): _transform_map,
    ("transformMapEntry", 3): _transform_map_entry,
    ("transformMapEntry", 4): _transform_map_entry,
    ("optMap", 2): _opt_map,
    ("optFlatMap", 2): _opt_flat_map,
}
