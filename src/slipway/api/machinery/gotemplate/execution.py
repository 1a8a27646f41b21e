"""Executing a parsed template on data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from slipway.api.machinery.gotemplate import limits
from slipway.api.machinery.gotemplate.errors import CallError, ExhaustedError, NoValueError, TemplateError, shortened
from slipway.api.machinery.gotemplate.formatting import shown
from slipway.api.machinery.gotemplate.functions import FUNCTIONS, NO_VALUE, Function
from slipway.api.machinery.gotemplate.nodes import (
    Action,
    Bool,
    Branch,
    Break,
    Chain,
    Command,
    Dot,
    Field,
    Identifier,
    Invocation,
    List,
    Nil,
    Node,
    Number,
    Pipe,
    String,
    Text,
    Variable,
)
from slipway.api.machinery.gotemplate.quoting import byte_length, quote
from slipway.api.machinery.gotemplate.values import INVALID, NIL, Boxed, Int, Value, is_true, type_name, unboxed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.api.machinery.gotemplate.budget import Budget


class _Break(Exception):  # noqa: N818 - no error: ``break`` on its way to its range
    pass


class _Continue(Exception):  # noqa: N818 - no error: ``continue`` on its way to its range
    pass


class _Absent:
    """No value came down the pipeline, which is not the same as a value that is missing."""


_ABSENT: Final = _Absent()
# What is shown of the part where a limit was met, which may be a whole loop.
_SHORT = 60
# Variables that are looked through in the time of a step.
_VARIABLES_PER_STEP = 16


class Output:
    """The text so far, up to a limit in bytes; 0 is no limit."""

    def __init__(self, limit: int, budget: Budget) -> None:
        self._limit, self._length, self._budget = limit, 0, budget
        self.pieces: list[str] = []

    def write(self, text: str) -> None:
        self._budget.copy(len(text))
        self._budget.keep(text)
        self._length += len(text) if text.isascii() else byte_length(text)
        if self._limit and self._length > self._limit:
            raise TemplateError(f"rendered output exceeds the {self._limit} byte limit")
        self.pieces.append(text)


class Execution:
    """One run of a template.  ``_node`` is the part that errors name: the one that was looked at last, as in Go."""

    def __init__(
        self,
        name: str,
        text: str,
        trees: dict[str, List],
        output: Output,
        budget: Budget,
        *,
        missing_key: str,
        refuses_no_value: bool,
    ) -> None:
        self._source, self._text, self._trees, self._output = name, text, trees, output
        self._budget, self._step = budget, budget.step
        self._missing_key, self._refuses_no_value = missing_key, refuses_no_value
        self._template = name
        self._node: Node = trees[name]
        self._variables: list[tuple[str, Value]] = []
        self._depth = 0
        self._absent_key = ""

    def run(self, data: Value) -> None:
        self._variables = [("$", data)]
        try:
            self._walk(data, self._trees[self._template])
        except ExhaustedError as limit:
            raise self._failure(str(limit), _SHORT) from None

    def _failure(self, message: str, longest: int | None = None) -> TemplateError:
        line, place = self._place(longest)
        return TemplateError(f"{place}: {shortened(message)}", line)

    def _place(self, longest: int | None = None) -> tuple[int, str]:
        before = self._text[: self._node.position]
        line, column = before.count("\n") + 1, byte_length(before[before.rfind("\n") + 1 :])
        context = str(self._node)[:longest]
        return line, f"template: {self._source}:{line}:{column}: executing {shortened(quote(self._template))} at <{context}>"

    def _enter(self) -> None:
        if self._depth >= limits.DEPTH:
            raise self._failure(f"exceeded maximum template depth ({limits.DEPTH})", _SHORT)
        self._depth += 1

    # Control structures.

    def _walk(self, dot: Value, tree: List) -> None:
        self._enter()
        self._node = tree
        for node in tree.nodes:
            self._node = node
            self._step()
            if isinstance(node, Text):
                self._output.write(node.text)
            elif isinstance(node, Action):
                self._action(dot, node)
            elif isinstance(node, Branch):
                mark = len(self._variables)
                (self._range if node.keyword == "range" else self._if_or_with)(dot, node)
                del self._variables[mark:]
            elif isinstance(node, Invocation):
                self._invoke(dot, node)
            else:
                raise _Break if isinstance(node, Break) else _Continue
        self._depth -= 1

    def _action(self, dot: Value, node: Action) -> None:
        self._absent_key = ""
        value = self._pipeline(dot, node.pipe)
        if node.pipe.declared:
            return
        if value is INVALID and self._refuses_no_value:
            raise self._no_value(str(node.pipe))
        self._node = node
        self._output.write(NO_VALUE if value is INVALID else self._shown(value))

    def _shown(self, value: Value) -> str:
        return value if isinstance(value, str) else shown(value, self._budget)

    def _no_value(self, expression: str) -> NoValueError:
        line, place = self._place()
        why = f": the data has no {quote(self._absent_key)}" if self._absent_key else ""
        return NoValueError(f"{place}: no value for {expression}{why}", line, expression)

    def _if_or_with(self, dot: Value, node: Branch) -> None:
        while True:
            value = self._pipeline(dot, node.pipe)
            if is_true(value):
                self._walk(value if node.keyword == "with" else dot, node.body)
            elif node.otherwise is not None and node.is_chained:
                # One of a row of else-ifs, which may be longer than the depth that is allowed.
                self._node = node.otherwise
                [following] = node.otherwise.nodes
                assert isinstance(following, Branch)
                node = following
                self._node = node
                continue
            elif node.otherwise is not None:
                self._walk(dot, node.otherwise)
            return

    def _range(self, dot: Value, node: Branch) -> None:
        value = self._pipeline(dot, node.pipe)
        mark, depth = len(self._variables), self._depth
        ran = False
        try:
            for index, element in self._elements(value, node.pipe):
                ran = True
                self._node = node.pipe
                self._step()
                self._declare_element(node.pipe, index, element)
                try:
                    self._walk(element, node.body)
                except _Continue:
                    self._depth = depth
                del self._variables[mark:]
        except _Break:
            self._depth = depth
        if not ran and node.otherwise is not None:
            self._walk(dot, node.otherwise)

    def _elements(self, value: Value, pipe: Pipe) -> Iterator[tuple[Value, Value]]:
        """Positions or keys, and elements."""
        if isinstance(value, list):
            for position, element in enumerate(value):
                yield Int(position), Boxed(element)
        elif isinstance(value, dict):
            self._step(len(value))
            for key in sorted(value):
                yield key, Boxed(value[key])
        elif isinstance(value, int) and not isinstance(value, bool):
            if len(pipe.declared) > 1:
                raise self._failure(f"can't use {self._shown(value)} to iterate over more than one variable")
            kind = type(value)
            for number in range(value):
                yield INVALID, kind(number)
        elif value is not INVALID:
            raise self._failure(f"range can't iterate over {self._shown(value)}")

    def _declare_element(self, pipe: Pipe, index: Value, element: Value) -> None:
        values = [index, element] if len(pipe.declared) > 1 else [element]
        for offset, (variable, value) in enumerate(zip(pipe.declared, values, strict=False)):
            if pipe.is_assignment:
                self._assign(variable.names[0], value)
            else:
                # The pipeline declared them, just before.
                self._variables[offset - len(pipe.declared)] = (variable.names[0], value)

    def _invoke(self, dot: Value, node: Invocation) -> None:
        tree = self._trees.get(node.name)
        if tree is None:
            raise self._failure(f"template {quote(node.name)} not defined")
        if self._depth >= limits.DEPTH:
            raise self._failure(f"exceeded maximum template depth ({limits.DEPTH})")
        data = INVALID if node.pipe is None else self._pipeline(dot, node.pipe)
        outer = self._template, self._variables, self._node
        self._template, self._variables = node.name, [("$", data)]
        self._walk(data, tree)
        self._template, self._variables, self._node = outer

    # Variables.

    def _assign(self, name: str, value: Value) -> None:
        self._variables[self._position(name)] = (name, value)

    def _variable(self, name: str) -> Value:
        return self._variables[self._position(name)][1]

    def _position(self, name: str) -> int:
        """Of the newest variable of a name."""
        variables = self._variables
        for position in range(len(variables) - 1, -1, -1):
            if variables[position][0] == name:
                distance = len(variables) - position
                if distance > _VARIABLES_PER_STEP:
                    self._step(distance // _VARIABLES_PER_STEP)
                return position
        raise self._failure(f"undefined variable: {name}")

    # Pipelines.

    def _pipeline(self, dot: Value, pipe: Pipe) -> Value:
        """Never a boxed value."""
        self._node = pipe
        self._step(len(pipe.commands))
        self._enter()
        value: Value = _ABSENT
        for command in pipe.commands:
            value = unboxed(self._command(dot, command, value))
        for variable in pipe.declared:
            if pipe.is_assignment:
                self._assign(variable.names[0], value)
            else:
                self._variables.append((variable.names[0], value))
        self._depth -= 1
        return value

    def _command(self, dot: Value, command: Command, final: Value) -> Value:
        first = command.args[0]
        if isinstance(first, (Field, Chain, Variable)):
            return self._fields(dot, first, command.args, final)
        if isinstance(first, Identifier):
            return self._call(dot, first, command, command.args[1:], final)
        if isinstance(first, Pipe):
            self._refuse_arguments(command.args, final)
            return self._pipeline(dot, first)
        self._node = first
        self._refuse_arguments(command.args, final)
        if isinstance(first, Nil):
            raise self._failure("nil is not a command")
        return self._literal(dot, first)

    def _refuse_arguments(self, arguments: list[Node], final: Value) -> None:
        if len(arguments) > 1 or final is not _ABSENT:
            raise self._failure(f"can't give argument to non-function {arguments[0]}")

    def _literal(self, dot: Value, node: Node) -> Value:
        self._node = node
        if isinstance(node, Dot):
            return dot
        if isinstance(node, Bool):
            return node.value
        if isinstance(node, String):
            return node.text
        assert isinstance(node, Number)
        if node.value is None:
            raise self._failure(f"{node.text} overflows int")
        return Int(node.value) if isinstance(node.value, int) else node.value

    # Fields.

    def _fields(self, dot: Value, node: Field | Chain | Variable, arguments: list[Node], final: Value) -> Value:
        self._node = node
        if isinstance(node, Field):
            receiver, names = dot, node.names
        elif isinstance(node, Variable):
            receiver, names = self._variable(node.names[0]), node.names[1:]
            if not names:
                if arguments:
                    self._refuse_arguments(arguments, final)
                return receiver
        else:
            receiver, names = self._argument(dot, "", node.node), node.names
        if len(names) > 1:
            self._step(len(names))
            for name in names[:-1]:
                receiver = self._field(receiver, name, has_arguments=False)
        return self._field(receiver, names[-1], has_arguments=len(arguments) > 1 or final is not _ABSENT)

    def _field(self, receiver: Value, name: str, *, has_arguments: bool) -> Value:
        if receiver is INVALID:
            if self._missing_key == "error":
                raise self._failure(f"nil data; no entry for key {quote(name)}")
            return INVALID
        content = unboxed(receiver)
        if content is INVALID:
            raise self._failure(f"nil pointer evaluating interface {{}}.{name}")
        if not isinstance(content, dict):
            raise self._failure(f"can't evaluate field {name} in type {type_name(receiver)}")
        if has_arguments:
            raise self._failure(f"{name} is not a method but has arguments")
        if name in content:
            self._absent_key = ""
            return Boxed(content[name])
        self._absent_key = name
        if self._missing_key == "error":
            raise self._failure(f"map has no entry for key {quote(name)}")
        return NIL if self._missing_key == "zero" else INVALID

    # Functions.

    def _call(self, dot: Value, node: Identifier, whole: Node, arguments: list[Node], final: Value) -> Value:
        self._node = node
        self._step(2)
        name, function = node.name, FUNCTIONS[node.name]
        self._check_count(name, function, len(arguments), final)
        if name in ("and", "or"):
            return self._and_or(dot, arguments, final, stops_at=name == "or")
        types = function.parameters
        values = [
            self._argument(dot, types[position] if position < len(types) else function.rest, argument)
            for position, argument in enumerate(arguments)
        ]
        if final is not _ABSENT:
            values.append(self._checked(final, types[len(arguments)] if len(arguments) < len(types) else function.rest))
        if self._refuses_no_value and function.prints and any(unboxed(value) is INVALID for value in values):
            raise self._no_value(str(whole))
        try:
            if name == "call":
                raise _not_callable(str(arguments[0]) if arguments else _reflected(final), unboxed(values[0]))
            for value in values:
                content = value.value if isinstance(value, Boxed) else value
                if isinstance(content, str):
                    self._budget.read(content)
            result = function.call(values, self._budget)
        except CallError as error:
            self._node = whole
            raise self._failure(f"error calling {name}: {error}") from None
        return result

    def _check_count(self, name: str, function: Function, written: int, final: Value) -> None:
        wanted, given = len(function.parameters), written + (final is not _ABSENT)
        if function.rest and given < wanted:
            raise self._failure(f"wrong number of args for {name}: want at least {wanted} got {written}")
        if not function.rest and given != wanted:
            raise self._failure(f"wrong number of args for {name}: want {wanted} got {given}")

    def _and_or(self, dot: Value, arguments: list[Node], final: Value, *, stops_at: bool) -> Value:
        value: Value = INVALID
        for argument in arguments:
            value = self._argument(dot, "value", argument)
            if is_true(value) is stops_at:
                return value
        return value if final is _ABSENT else final

    def _argument(self, dot: Value, wanted: str, node: Node) -> Value:
        """The value of an argument for a parameter of a type, ``""`` for whatever it is."""
        self._node = node
        self._step()
        if isinstance(node, (Field, Variable, Chain)):
            return self._checked(self._fields(dot, node, [], _ABSENT), wanted)
        if isinstance(node, Nil):
            if wanted == "string":
                raise self._failure("cannot assign nil to string")
            return INVALID
        if isinstance(node, Dot):
            return self._checked(dot, wanted)
        if isinstance(node, Pipe):
            return self._checked(self._pipeline(dot, node), wanted)
        if isinstance(node, Identifier):
            return self._checked(self._call(dot, node, node, [], _ABSENT), wanted)
        if wanted == "string" and not isinstance(node, String):
            raise self._failure(f"expected string; found {node}")
        return self._literal(dot, node)

    def _checked(self, value: Value, wanted: str) -> Value:
        if wanted != "string":
            return value
        if value is INVALID:
            raise self._failure("invalid value; expected string")
        content = unboxed(value)
        if not isinstance(content, str):
            raise self._failure(f"wrong type for value; expected string; got {type_name(value if content is INVALID else content)}")
        return content


def _not_callable(name: str, callee: Value) -> CallError:
    """``call`` is for functions, and data has none."""
    return CallError("call of nil" if callee is INVALID else f"non-function {name} of type {type_name(callee)}")


def _reflected(value: Value) -> str:
    """How Go's reflection calls a value in text."""
    if isinstance(value, str):
        return value
    return "<invalid Value>" if value is INVALID else f"<{type_name(value)} Value>"
