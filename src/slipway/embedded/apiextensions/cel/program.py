"""Expressions that can be evaluated: a tree that was checked becomes Python functions, one a node.

Each counts what it costs, in the units of cel-go; an evaluation that costs more than its limit ends there, whatever it was about to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.embedded.apiextensions.cel import library, nodes, values
from slipway.embedded.apiextensions.cel.checker import Fault, checked, qualified
from slipway.embedded.apiextensions.cel.library.operators import find, missing
from slipway.embedded.apiextensions.cel.library.strings import expression
from slipway.embedded.apiextensions.cel.steps import (
    Run,
    called,
    conditional,
    field,
    fitting,
    logical,
    not_strictly_false,
    otherwise,
    told,
    tried,
)
from slipway.embedded.apiextensions.cel.syntax import DEEPEST, parsed
from slipway.embedded.apiextensions.cel.tokens import MalformedError
from slipway.embedded.apiextensions.cel.values import ABSENT, NONE, EvaluationError, MapData, Maybe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.embedded.apiextensions.cel.checker import Fields
    from slipway.embedded.apiextensions.cel.nodes import Node
    from slipway.embedded.apiextensions.cel.steps import Step
    from slipway.embedded.apiextensions.cel.types import Type

LIST_COST, MAP_COST = 10, 30
_LONGEST_LINE = 16384
_ITERABLE = (*values.LISTS, *values.MAPS)


class ExpressionError(Exception):
    """An expression that does not compile; the text is that of cel-go's issues."""


class Program(NamedTuple):
    """An expression, ready to be evaluated."""

    step: Step
    type: Type
    names: frozenset[str]
    """The variables that it reads."""
    inputs: tuple[str, ...]
    slots: int

    def start(self, variables: Mapping[str, Any], limit: int) -> Run:
        given = [variables.get(name) for name in self.inputs]
        return Run([*given, *[None] * (self.slots - len(given))], limit)


def compiled(text: str, variables: Mapping[str, Type], fields: Fields) -> Program:
    """An expression that may read the variables, of the types given; EvaluationError where a constant of it has no value."""
    try:
        return _compiled(text, variables, fields)
    except MalformedError as fault:
        raise ExpressionError(_issue(text, Fault(fault.position, fault.message))) from None
    except RecursionError:
        raise ExpressionError(_issue(text, Fault(0, f"expression recursion limit exceeded: {DEEPEST}"))) from None


def _compiled(text: str, variables: Mapping[str, Type], fields: Fields) -> Program:
    node = parsed(text)
    found = checked(node, variables, fields)
    if found.faults:
        raise ExpressionError("\n".join(_issue(text, fault) for fault in sorted(found.faults, key=lambda fault: fault.position)))
    compiler = _Compiler(list(variables))
    step = compiler.step(node)
    return Program(step, found.type, found.names, tuple(variables), compiler.slots)


def _issue(text: str, fault: Fault) -> str:
    """A fault with the line that has it."""
    before = text[: fault.position]
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1)
    shown = text.split("\n")[line - 1].replace("\t", " ")
    if len(shown) > _LONGEST_LINE:
        return f"ERROR: <input>:{line}:{column + 1}: {fault.message}"
    marker = "".join("." if ord(character) < 128 else "\uff0e" for character in shown[:column]) + "^"
    return f"ERROR: <input>:{line}:{column + 1}: {fault.message}\n | {shown}\n | {marker}"


class _Compiler:
    """Gives every variable, those of loops too, a place of its own."""

    def __init__(self, names: list[str]) -> None:
        self._scopes = [{name: slot for slot, name in enumerate(names)}]
        self.slots = len(names)

    def step(self, node: Node, *, inside: bool = False) -> Step:
        """What a node does; ``inside`` another attribute a variable is looked up on the way, at no cost."""
        constant = _constant(node)
        if constant.is_there:
            return lambda run: constant.value
        match node:
            case nodes.Ident():
                return self._ident(node, cost=0 if inside else 1)
            case nodes.Select():
                return self._select(node, inside=inside)
            case nodes.Call():
                return self._call(node, inside=inside)
            case nodes.ListNode():
                return self._list(node)
            case nodes.MapNode():
                return self._map(node)
            case nodes.Comprehension():
                return self._comprehension(node)
        raise AssertionError(node)

    def _slot(self, name: str) -> int:
        self.slots += 1
        self._scopes[-1][name] = self.slots - 1
        return self.slots - 1

    def _ident(self, node: nodes.Ident, cost: int) -> Step:
        name = node.name.removeprefix(".")
        scopes = self._scopes if name == node.name else self._scopes[:1]
        slot = next((scope[name] for scope in reversed(scopes) if name in scope), None)
        if slot is None:
            type_ = library.TYPES[name]
            return lambda run: type_

        def step(run: Run) -> Any:
            run.cost += cost
            return run.variables[slot]

        return step

    def _select(self, node: nodes.Select, *, inside: bool) -> Step:
        whole = qualified(node)
        if whole in self._scopes[0] and not any(whole.partition(".")[0] in scope for scope in self._scopes[1:]):
            return self._ident(nodes.Ident(node.position, whole), cost=0 if inside else 1)
        operand, name = self.step(node.operand, inside=inside and not node.tests), node.name
        # An attribute that begins with something computed costs as much as one that begins with a variable.
        begin = 0 if inside or node.tests or _is_attribute(node.operand) else 1
        if node.tests:
            return lambda run: field(told(operand(run)), name).is_there

        def step(run: Run) -> Any:
            of = told(operand(run))
            if type(of) is MapData and not node.optional:
                value = of.field(name)
                run.cost += begin + 1
                if value is not ABSENT:
                    return value
                raise EvaluationError(f"no such key: {name}")
            found = field(of, name)
            if node.optional or isinstance(of, Maybe):
                run.cost += begin + found.is_there
                return found
            run.cost += begin + 1
            if not found.is_there:
                raise EvaluationError(f"no such key: {name}")
            return found.value

        return step

    def _call(self, node: nodes.Call, *, inside: bool) -> Step:
        if node.function == "_?_:_":
            condition, yes, no = node.arguments
            return conditional(self.step(condition), self.step(yes, inside=True), self.step(no, inside=True))
        if node.function in ("_[_]", "_[?_]"):
            return self._index(node, inside=inside)
        arguments = [self.step(each) for each in ([node.target, *node.arguments] if node.target is not None else node.arguments)]
        if node.function in ("_&&_", "_||_"):
            return logical(arguments, decisive=node.function == "_||_")
        if node.function == "@not_strictly_false":
            return not_strictly_false(arguments[0])
        if node.function in ("or", "orValue"):
            return otherwise(*arguments, unwraps=node.function == "orValue")
        if node.function in ("find", "findAll") and isinstance(node.arguments[0], nodes.Literal):
            expression(str(node.arguments[0].value))
        if node.function == "@in" and _constant(node.arguments[1]).is_there:
            # A look into a list that is written out is free.
            return called(node, arguments, free=True)
        return called(node, arguments)

    def _index(self, node: nodes.Call, *, inside: bool) -> Step:
        of, key = node.arguments
        begin = 0 if inside or _is_attribute(of) else 1
        operand, index = self.step(of, inside=inside), self.step(key, inside=_is_attribute(key))

        def step(run: Run) -> Any:
            target, at = told(operand(run)), told(index(run))
            found = find(target, at)
            if node.function == "_[?_]" or isinstance(target, Maybe):
                run.cost += begin + found.is_there
                return found
            run.cost += begin + 1
            return found.value if found.is_there else missing(target, at)

        return step

    def _list(self, node: nodes.ListNode) -> Step:
        elements = [self.step(each) for each in node.elements]
        optional = node.optional

        def step(run: Run) -> Any:
            found = []
            for index, element in enumerate(elements):
                value = told(element(run))
                if index not in optional:
                    found.append(value)
                elif value.is_there:
                    found.append(value.value)
            run.charge(LIST_COST)
            return found

        return step

    def _map(self, node: nodes.MapNode) -> Step:
        entries = [(self.step(key), self.step(value), optional) for key, value, optional in node.entries]

        def step(run: Run) -> Any:
            made = values.Map()
            for key, value, optional in entries:
                name, found = told(key(run)), told(value(run))
                if not optional:
                    made.put(name, found)
                elif found.is_there:
                    made.put(name, found.value)
            run.charge(MAP_COST)
            return made

        return step

    def _comprehension(self, node: nodes.Comprehension) -> Step:
        range_, initial = self.step(node.range), self.step(node.initial)
        self._scopes.append({})
        accumulator = self._slot(node.accumulator)
        self._scopes.append({})
        first = self._slot(node.variable)
        second = self._slot(node.second) if node.second else None
        condition, each = self.step(node.condition), self.step(node.step)
        self._scopes.pop()
        result = self.step(node.result)
        self._scopes.pop()

        def step(run: Run) -> Any:
            of = range_(run)
            variables = run.variables
            variables[accumulator] = tried(initial, run)
            if not isinstance(of, _ITERABLE):
                kind = f"types.{values.type_of(of).kind.title()}"
                message = f"got '{kind}', expected iterable type" if second is None else f"unsupported comprehension range type: {kind}"
                raise EvaluationError(message)
            for index, item in enumerate(of):
                if second is None:
                    variables[first] = item
                else:
                    variables[first], variables[second] = (index, item) if isinstance(of, values.LISTS) else (item, of.find(item).value)
                if not condition(run):
                    break
                variables[accumulator] = tried(each, run)
                run.charge(0)
            return told(result(run))

        return step


def _is_attribute(node: Node) -> bool:
    """Whether a node is a variable, or a part of one."""
    match node:
        case nodes.Ident():
            return True
        case nodes.Select():
            return not node.tests
        case nodes.Call():
            return node.function in ("_[_]", "_[?_]", "_?_:_")
    return False


def _constant(node: Node) -> Maybe:
    """The value of a node that is always the same: it is made once, and costs nothing."""
    match node:
        case nodes.Literal():
            return Maybe(node.value, True)
        case nodes.ListNode() if not node.optional:
            elements = [_constant(each) for each in node.elements]
            return Maybe([each.value for each in elements], True) if all(each.is_there for each in elements) else NONE
        case nodes.MapNode():
            made = values.Map()
            for key, value, optional in node.entries:
                name, found = _constant(key), _constant(value)
                if optional or not name.is_there or not found.is_there:
                    return NONE
                made.put(name.value, found.value)
            return Maybe(made, True)
        case nodes.Select() if node.type is not None and node.type.kind == "type" and qualified(node) in library.TYPES:
            return Maybe(library.TYPES[qualified(node)], True)
        case nodes.Call() if node.function in _CONVERSIONS and len(node.arguments) == 1:
            argument = _constant(node.arguments[0])
            if argument.is_there:
                return Maybe(fitting(node.overloads, [argument.value], node.function).call(argument.value), True)
    return NONE


_CONVERSIONS = frozenset(("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"))
