"""Expressions that can be evaluated: a tree that was checked becomes Python functions, one a node.

Each counts what it costs, in the units of cel-go; an evaluation that costs more than its limit ends there, whatever it was about to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.embedded.apiextensions.cel import library, nodes, values
from slipway.embedded.apiextensions.cel.checker import Fault, checked, qualified
from slipway.embedded.apiextensions.cel.library.operators import find, missing
from slipway.embedded.apiextensions.cel.library.strings import expression
from slipway.embedded.apiextensions.cel.syntax import DEEPEST, parsed
from slipway.embedded.apiextensions.cel.tokens import MalformedError
from slipway.embedded.apiextensions.cel.values import ABSENT, NONE, CostError, EvaluationError, MapData, Maybe, no_such_overload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from slipway.embedded.apiextensions.cel.checker import Fields
    from slipway.embedded.apiextensions.cel.functions import Overload
    from slipway.embedded.apiextensions.cel.nodes import Node
    from slipway.embedded.apiextensions.cel.types import Type

    Step = Callable[["Run"], Any]

LIST_COST, MAP_COST = 10, 30
_LONGEST_LINE = 16384
_ITERABLE = (*values.LISTS, *values.MAPS)


class ExpressionError(Exception):
    """An expression that does not compile; the text is that of cel-go's issues."""


class Run:
    """One evaluation: the values of variables, and what it has cost."""

    __slots__ = ("cost", "limit", "variables")

    def __init__(self, variables: list[Any], limit: int) -> None:
        self.variables, self.limit, self.cost = variables, limit, 0

    def charge(self, cost: int) -> None:
        self.cost += cost
        if self.cost > self.limit:
            raise CostError


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
        operand, name = self.step(node.operand, inside=inside and not node.tests), node.name
        # An attribute that begins with something computed costs as much as one that begins with a variable.
        begin = 0 if inside or node.tests or _is_attribute(node.operand) else 1
        if node.tests:
            return lambda run: _field(_told(operand(run)), name).is_there

        def step(run: Run) -> Any:
            of = _told(operand(run))
            if type(of) is MapData and not node.optional:
                value = of.field(name)
                run.cost += begin + 1
                if value is not ABSENT:
                    return value
                raise EvaluationError(f"no such key: {name}")
            found = _field(of, name)
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
            return _conditional(self.step(condition), self.step(yes, inside=True), self.step(no, inside=True))
        if node.function in ("_[_]", "_[?_]"):
            return self._index(node, inside=inside)
        arguments = [self.step(each) for each in ([node.target, *node.arguments] if node.target is not None else node.arguments)]
        if node.function in ("_&&_", "_||_"):
            return _logical(arguments, decisive=node.function == "_||_")
        if node.function == "@not_strictly_false":
            return _not_strictly_false(arguments[0])
        if node.function in ("or", "orValue"):
            return _otherwise(*arguments, unwraps=node.function == "orValue")
        if node.function in ("find", "findAll") and isinstance(node.arguments[0], nodes.Literal):
            expression(str(node.arguments[0].value))
        if node.function == "@in" and _constant(node.arguments[1]).is_there:
            # A look into a list that is written out is free.
            return _called(node, arguments, free=True)
        return _called(node, arguments)

    def _index(self, node: nodes.Call, *, inside: bool) -> Step:
        of, key = node.arguments
        begin = 0 if inside or _is_attribute(of) else 1
        operand, index = self.step(of, inside=inside), self.step(key, inside=_is_attribute(key))

        def step(run: Run) -> Any:
            target, at = _told(operand(run)), _told(index(run))
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
                value = _told(element(run))
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
                name, found = _told(key(run)), _told(value(run))
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
            variables[accumulator] = _tried(initial, run)
            if not isinstance(of, _ITERABLE):
                kind = f"types.{values.type_of(of).kind.title()}"
                told = f"got '{kind}', expected iterable type" if second is None else f"unsupported comprehension range type: {kind}"
                raise EvaluationError(told)
            for index, item in enumerate(of):
                if second is None:
                    variables[first] = item
                else:
                    variables[first], variables[second] = (index, item) if isinstance(of, values.LISTS) else (item, of.find(item).value)
                if not condition(run):
                    break
                variables[accumulator] = _tried(each, run)
                run.charge(0)
            return _told(result(run))

        return step


def _tried(step: Step, run: Run) -> Any:
    """A value, or the error instead of one: a later element may make up for it."""
    try:
        return step(run)
    except EvaluationError as error:
        return error


def _told(value: Any) -> Any:
    if isinstance(value, EvaluationError):
        raise value
    return value


def _field(of: Any, name: str) -> Maybe:
    if isinstance(of, values.MapData):
        return of.find(name)
    if isinstance(of, Maybe):
        return _field(of.value, name) if of.is_there else NONE
    return find(of, name)


def _logical(terms: list[Step], *, decisive: bool) -> Step:
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


def _conditional(condition: Step, yes: Step, no: Step) -> Step:
    def step(run: Run) -> Any:
        value = condition(run)
        if value is True:
            return yes(run)
        if value is False:
            return no(run)
        raise no_such_overload()

    return step


def _not_strictly_false(term: Step) -> Step:
    def step(run: Run) -> bool:
        run.charge(1)
        return _tried(term, run) is not False

    return step


def _called(node: nodes.Call, arguments: list[Step], *, free: bool = False) -> Step:
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
            overload = overloads[0] if is_static else _fitting(overloads, found, function)
            result = overload.call(*found)
        except EvaluationError:
            run.charge(1)
            raise
        if not free:
            run.charge(1 if overload.cost is None else overload.cost(found, result))
        return result

    return step


def _fitting(overloads: list[Overload], given: list[Any], function: str) -> Overload:
    for overload in overloads:
        if all(map(values.accepts, overload.arguments, given)):
            return overload
    raise EvaluationError(f"no such overload{_signature(function, given)}")


def _signature(function: str, given: list[Any]) -> str:
    """What cel-go tells of a call that values do not fit: nothing of operators and of some functions that it takes for such."""
    if function[0] in "_!-@" or function in _UNTOLD:
        return ""
    if function == "size":
        return f": {function}"
    return f": {function}({', '.join(values.type_name(each) for each in given)})"


_UNTOLD = frozenset(("matches", "find", "findAll", "startsWith", "endsWith", "contains"))


def _otherwise(optional: Step, other: Step, *, unwraps: bool) -> Step:
    """``or`` and ``orValue``, which look at their argument only where they need it."""

    def step(run: Run) -> Any:
        found = _told(optional(run))
        if not isinstance(found, Maybe):
            return found
        if found.is_there:
            return found.value if unwraps else found
        return _told(other(run))

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
                return Maybe(_fitting(node.overloads, [argument.value], node.function).call(argument.value), True)
    return NONE


_CONVERSIONS = frozenset(("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"))
