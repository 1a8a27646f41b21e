"""The checker: finds the type of every part of an expression, and what is wrong with it, in cel-go's words."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from slipway.embedded.apiextensions import formats
from slipway.embedded.apiextensions.cel import library, nodes, times, types
from slipway.embedded.apiextensions.cel.library import formatting
from slipway.embedded.apiextensions.cel.types import BOOL, DYN, ERROR, INT, Type
from slipway.embedded.apiextensions.cel.values import EvaluationError, type_of_literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from slipway.embedded.apiextensions.cel.nodes import Node

    Fields = Mapping[str, Mapping[str, Type]]


class Fault(NamedTuple):
    """One thing wrong, and where in the expression."""

    position: int
    message: str


class Checked(NamedTuple):
    """What was found of an expression."""

    type: Type
    faults: list[Fault]
    names: frozenset[str]
    """The variables that it reads, without those of its own loops."""


def checked(node: Node, variables: Mapping[str, Type], fields: Fields) -> Checked:
    """Mark a tree with its types; ``fields`` are those of each object type."""
    checker = _Checker(variables, fields)
    checker.check(node)
    return Checked(types.substituted(_type(node), checker.known, closed=True), checker.all_faults(), frozenset(checker.names))


def _is_duration(text: str) -> bool:
    try:
        times.duration(text)
    except ValueError:
        return False
    return True


def _is_moment(text: str) -> bool:
    try:
        times.timestamp(text)
    except (ValueError, EvaluationError):
        return False
    return "T" in text


_LITERALS: dict[str, Callable[[str], bool]] = {"matches": formats.is_pattern, "duration": _is_duration, "timestamp": _is_moment}


def _type(node: Node) -> Type:
    assert node.type is not None
    return node.type


class _Checker:
    def __init__(self, variables: Mapping[str, Type], fields: Fields) -> None:
        self._scopes: list[dict[str, Type]] = [dict(variables)]
        self._fields = fields
        self._count = 0
        self.known: types.Substitutions = {}
        self.faults: list[Fault] = []
        self.names: set[str] = set()
        self._mixed = 0
        """How many calls of ``format`` are around: lists in them may have elements of several types."""
        self._literals: list[Fault] = []
        self._aggregates: list[nodes.ListNode | nodes.MapNode] = []

    def all_faults(self) -> list[Fault]:
        """Literals, and whether lists and maps are of one type, are looked at where everything else is right."""
        return self.faults or [*self._literals, *(fault for each in self._aggregates for fault in self._mixtures(each))]

    def _mixtures(self, node: nodes.ListNode | nodes.MapNode) -> Iterator[Fault]:
        if isinstance(node, nodes.ListNode):
            yield from itertools.islice(self._strays((each, index in node.optional) for index, each in enumerate(node.elements)), 1)
        else:
            yield from self._strays((key, False) for key, _, _ in node.entries)
            yield from self._strays((value, optional) for _, value, optional in node.entries)

    def _strays(self, parts: Iterable[tuple[Node, bool]]) -> Iterator[Fault]:
        """The parts that are not of the first one's type."""
        first: Type | None = None
        for node, optional in parts:
            found = types.substituted(_type(node), self.known, closed=True)
            found = types.unwrapped(found)[0] if optional else found
            first = first or found
            if found != first:
                yield Fault(node.position, f"expected type '{first}' but found '{found}'")

    def check(self, node: Node) -> Type:
        node.type = self._of(node)
        return node.type

    def _of(self, node: Node) -> Type:
        match node:
            case nodes.Literal():
                return type_of_literal(node.value)
            case nodes.Ident():
                return self._ident(node)
            case nodes.Select():
                return self._select(node)
            case nodes.Call():
                return self._call(node)
            case nodes.ListNode():
                return self._list(node)
            case nodes.MapNode():
                return self._map(node)
            case nodes.Comprehension():
                return self._comprehension(node)
        raise AssertionError(node)

    def _fault(self, node: Node, message: str) -> None:
        self.faults.append(Fault(node.position, message))

    def _fresh(self) -> Type:
        self._count += 1
        return Type("param", name=f"_var{self._count - 1}")

    def _fits(self, actual: Type, wanted: Type) -> bool:
        tried = types.assignable(self.known, [actual], [wanted])
        if tried is None:
            return False
        self.known = tried
        return True

    def _ident(self, node: nodes.Ident) -> Type:
        name = node.name.removeprefix(".")
        scopes = self._scopes if name == node.name else self._scopes[:1]
        for depth, scope in enumerate(reversed(scopes)):
            if name in scope:
                if depth == len(scopes) - 1:
                    self.names.add(name)
                return scope[name]
        found = library.TYPES.get(name)
        if found is not None:
            return types.type_of(found)
        self._fault(node, f"undeclared reference to '{node.name}' (in container '')")
        return ERROR

    def _select(self, node: nodes.Select) -> Type:
        name = qualified(node)
        if name in library.TYPES and not any(name.partition(".")[0] in scope for scope in self._scopes):
            return types.type_of(library.TYPES[name])
        if name in self._scopes[0] and not any(name.partition(".")[0] in scope for scope in self._scopes[1:]):
            # A variable whose name has a dot in it.
            self.names.add(name)
            return self._scopes[0][name]
        operand = types.substituted(self.check(node.operand), self.known)
        target, was_optional = types.unwrapped(operand)
        result = ERROR
        if target.kind == "map":
            result = target.parameters[1]
        elif target.kind == "object":
            field = self._fields.get(target.name, {}).get(node.name)
            if field is None:
                self._fault(node, f"undefined field '{node.name}'")
            else:
                result = field
        else:
            if target.kind == "param":
                self._fits(DYN, target)
            elif not types.is_open(target):
                unresolved = f"unexpected failed resolution of '{target}'"
                self._fault(node, unresolved if target.kind in types.FIELDLESS else f"type '{target}' does not support field selection")
            result = DYN
        if node.tests:
            return BOOL
        result = types.optional_of(result) if was_optional or node.optional else result
        return types.substituted(result, self.known)

    def _call(self, node: nodes.Call) -> Type:
        self._mixed += node.function == "format"
        for argument in node.arguments:
            self.check(argument)
        self._mixed -= node.function == "format"
        self._check_literal(node)
        if node.target is None:
            return self._resolved(node, node.function, None)
        prefix = qualified(node.target)
        name = f"{prefix}.{node.function}" if prefix else ""
        if name in library.OVERLOADS:
            # What looks like a target is the first half of the function's name.
            node.function, node.target = name, None
            return self._resolved(node, name, None)
        self.check(node.target)
        return self._resolved(node, node.function, node.target)

    def _check_literal(self, node: nodes.Call) -> None:
        """Patterns, durations and moments that are written out are read now."""
        reads = _LITERALS.get(node.function)
        if node.function == "format":
            self._check_format(node)
        if reads is None or not node.arguments or not isinstance(node.arguments[-1], nodes.Literal):
            return
        written = node.arguments[-1].value
        if isinstance(written, str) and not reads(written):
            self._literals.append(Fault(node.arguments[-1].position, f"invalid {node.function} argument"))

    def _check_format(self, node: nodes.Call) -> None:
        """A template that is written out is held against the types of its arguments, where these are listed."""
        if not isinstance(node.target, nodes.Literal) or not isinstance(node.target.value, str):
            return
        arguments = node.arguments[0] if len(node.arguments) == 1 else None
        if not isinstance(arguments, nodes.ListNode) or arguments.optional:
            return
        elements = arguments.elements
        kinds = [types.substituted(_type(each), self.known, closed=True) for each in elements]
        fault = formatting.problem(node.target.value, kinds)
        if fault is not None:
            position = node.position if fault.argument is None else elements[fault.argument].position
            self._literals.append(Fault(position, fault.message))

    def _resolved(self, node: nodes.Call, name: str, target: Node | None) -> Type:
        overloads = library.OVERLOADS.get(name.removeprefix("."))
        if overloads is None:
            self._fault(node, f"undeclared reference to '{name}' (in container '')")
            return ERROR
        if name in ("_&&_", "_||_"):
            return self._logical(node)
        actual = [_type(each) for each in ([target, *node.arguments] if target is not None else node.arguments)]
        result: Type | None = None
        for overload in overloads:
            if overload.is_member != (target is not None):
                continue
            renamed = {parameter: self._fresh() for parameter in overload.open}
            wanted = [types.substituted(each, renamed) for each in overload.arguments]
            tried = types.assignable(self.known, actual, wanted)
            if tried is None:
                continue
            self.known = tried
            node.overloads.append(overload)
            given = types.substituted(types.substituted(overload.result, renamed), self.known)
            result = given if result is None or result == given else DYN
        if result is None:
            closed = [types.substituted(each, self.known, closed=True) for each in actual]
            applied = types.signature(closed, is_member=target is not None)
            self._fault(node, f"found no matching overload for '{name}' applied to '{applied}'")
            return ERROR
        return result

    def _logical(self, node: nodes.Call) -> Type:
        wrong = [argument for argument in node.arguments if not self._fits(_type(argument), BOOL)]
        for argument in wrong:
            self._fault(argument, f"expected type 'bool' but found '{_type(argument)}'")
        return ERROR if wrong else BOOL

    def _joined(self, before: Type | None, now: Type) -> Type:
        if before is None:
            return now
        return types.general(before, now) if self._fits(before, now) else DYN

    def _value(self, node: Node, *, optional: bool) -> Type:
        found = self.check(node)
        if not optional:
            return found
        inner, was_optional = types.unwrapped(found)
        if not was_optional and found.kind != "dyn":
            self._fault(node, f"expected type '{types.optional_of(inner)}' but found '{inner}'")
        return inner

    def _list(self, node: nodes.ListNode) -> Type:
        element: Type | None = None
        for index, each in enumerate(node.elements):
            element = self._joined(element, self._value(each, optional=index in node.optional))
        self._note(node)
        return types.list_of(self._fresh() if element is None else element)

    def _map(self, node: nodes.MapNode) -> Type:
        key: Type | None = None
        value: Type | None = None
        for name, each, optional in node.entries:
            key = self._joined(key, self.check(name))
            value = self._joined(value, self._value(each, optional=optional))
        self._note(node)
        return types.map_of(self._fresh() if key is None else key, self._fresh() if value is None else value)

    def _note(self, node: nodes.ListNode | nodes.MapNode) -> None:
        if not self._mixed:
            self._aggregates.append(node)

    def _comprehension(self, node: nodes.Comprehension) -> Type:
        range_ = types.substituted(self.check(node.range), self.known)
        initial = self.check(node.initial)
        first, second = self._variables(node, range_)
        self._scopes.append({node.accumulator: initial})
        self._scopes.append({node.variable: first, **({node.second: second} if node.second else {})})
        for part, wanted in ((node.condition, BOOL), (node.step, initial)):
            found = self.check(part)
            if not self._fits(wanted, found):
                self._fault(part, f"expected type '{wanted}' but found '{found}'")
        self._scopes.pop()
        result = self.check(node.result)
        self._scopes.pop()
        return types.substituted(result, self.known)

    def _variables(self, node: nodes.Comprehension, range_: Type) -> tuple[Type, Type]:
        if range_.kind == "list":
            return (INT, range_.parameters[0]) if node.second else (range_.parameters[0], DYN)
        if range_.kind == "map":
            return range_.parameters[0], range_.parameters[1]
        if types.is_open(range_) or range_.kind == "param":
            self._fits(DYN, range_)
            return DYN, DYN
        text = f"expression of type '{range_}' cannot be range of a comprehension (must be list, map, or dynamic)"
        self._fault(node.range, text)
        return ERROR, ERROR


def qualified(node: Node) -> str:
    """A chain of names, as one name; nothing where the node is something else."""
    if isinstance(node, nodes.Ident):
        return node.name
    if isinstance(node, nodes.Select) and not node.tests and not node.optional:
        prefix = qualified(node.operand)
        return f"{prefix}.{node.name}" if prefix else ""
    return ""
