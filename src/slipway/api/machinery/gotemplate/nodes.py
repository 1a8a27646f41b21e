"""The parts of a parsed template.  ``str()`` of a part is its text as errors show it, not always as it was written."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from slipway.api.machinery.gotemplate.errors import shortened
from slipway.api.machinery.gotemplate.quoting import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# More than any message shows.
_LONGEST = 2_000


@dataclass(slots=True)
class Node:
    """A part and where it starts, in characters of the text."""

    position: int

    def __str__(self) -> str:
        """Without recursion, as a row of else-ifs may be long, and no further than somebody would read."""
        pieces: list[str] = []
        length = 0
        rest: list[Piece] = [self]
        while rest and length < _LONGEST:
            piece = rest.pop()
            if isinstance(piece, Node):
                rest.extend(reversed(piece.pieces()))
            else:
                pieces.append(piece)
                length += len(piece)
        return shortened("".join(pieces))

    def pieces(self) -> Sequence[Piece]:
        """What its text is made of."""
        raise NotImplementedError


Piece = str | Node


@dataclass(slots=True)
class List(Node):
    nodes: list[Node] = field(default_factory=list)

    def pieces(self) -> Sequence[Piece]:
        return self.nodes


@dataclass(slots=True)
class Text(Node):
    text: str

    def pieces(self) -> Sequence[Piece]:
        return [self.text]


@dataclass(slots=True)
class Identifier(Node):
    name: str

    def pieces(self) -> Sequence[Piece]:
        return [self.name]


@dataclass(slots=True)
class Dot(Node):
    def pieces(self) -> Sequence[Piece]:
        return ["."]


@dataclass(slots=True)
class Nil(Node):
    def pieces(self) -> Sequence[Piece]:
        return ["nil"]


@dataclass(slots=True)
class Field(Node):
    names: list[str]

    def pieces(self) -> Sequence[Piece]:
        return [f".{name}" for name in self.names]


@dataclass(slots=True)
class Variable(Node):
    """A variable with its dollar sign, and fields of it."""

    names: list[str]

    def pieces(self) -> Sequence[Piece]:
        return [".".join(self.names)]


@dataclass(slots=True)
class Bool(Node):
    value: bool

    def pieces(self) -> Sequence[Piece]:
        return ["true" if self.value else "false"]


@dataclass(slots=True)
class Number(Node):
    """A number; ``value`` is an int, float or complex, or None for a whole number that Go's int cannot hold."""

    text: str
    value: int | float | complex | None

    def pieces(self) -> Sequence[Piece]:
        return [self.text]


@dataclass(slots=True)
class String(Node):
    quoted: str
    text: str

    def pieces(self) -> Sequence[Piece]:
        return [self.quoted]


@dataclass(slots=True)
class Command(Node):
    args: list[Node] = field(default_factory=list)

    def pieces(self) -> Sequence[Piece]:
        return _joined(" ", map(_parenthesised, self.args))


@dataclass(slots=True)
class Pipe(Node):
    declared: list[Variable] = field(default_factory=list)
    is_assignment: bool = False
    commands: list[Command] = field(default_factory=list)

    def pieces(self) -> Sequence[Piece]:
        commands = _joined(" | ", ([command] for command in self.commands))
        if not self.declared:
            return commands
        names = _joined(", ", ([variable] for variable in self.declared))
        return [*names, " = " if self.is_assignment else " := ", *commands]


@dataclass(slots=True)
class Chain(Node):
    """Fields of something that is neither a field nor a variable: ``(index .list 0).name``."""

    node: Node
    names: list[str] = field(default_factory=list)

    def pieces(self) -> Sequence[Piece]:
        return [*_parenthesised(self.node), *(f".{name}" for name in self.names)]


@dataclass(slots=True)
class Action(Node):
    pipe: Pipe

    def pieces(self) -> Sequence[Piece]:
        return ["{{", self.pipe, "}}"]


@dataclass(slots=True)
class Branch(Node):
    """``if``, ``with`` or ``range``.  ``else if`` is an else with one Branch in it, marked by ``is_chained``."""

    keyword: str
    pipe: Pipe
    body: List
    otherwise: List | None = None
    is_chained: bool = False

    def pieces(self) -> Sequence[Piece]:
        otherwise: list[Piece] = [] if self.otherwise is None else ["{{else}}", self.otherwise]
        return ["{{", self.keyword, " ", self.pipe, "}}", self.body, *otherwise, "{{end}}"]


@dataclass(slots=True)
class Invocation(Node):
    """``{{template "name" pipeline}}``, and what remains of a block where it stands."""

    name: str
    pipe: Pipe | None

    def pieces(self) -> Sequence[Piece]:
        data: list[Piece] = [] if self.pipe is None else [" ", self.pipe]
        return ["{{template ", quote(self.name), *data, "}}"]


@dataclass(slots=True)
class Break(Node):
    def pieces(self) -> Sequence[Piece]:
        return ["{{break}}"]


@dataclass(slots=True)
class Continue(Node):
    def pieces(self) -> Sequence[Piece]:
        return ["{{continue}}"]


@dataclass(slots=True)
class Else(Node):
    """Ends a list; never part of one."""

    def pieces(self) -> Sequence[Piece]:
        return ["{{else}}"]


@dataclass(slots=True)
class End(Node):
    """Ends a list; never part of one."""

    def pieces(self) -> Sequence[Piece]:
        return ["{{end}}"]


def _parenthesised(node: Node) -> list[Piece]:
    return ["(", node, ")"] if isinstance(node, Pipe) else [node]


def _joined(separator: str, groups: Iterable[list[Piece]]) -> list[Piece]:
    return list(chain.from_iterable([separator, *group] for group in groups))[1:]


def is_empty(tree: List) -> bool:
    """Whether a template is nothing but white space."""
    return all(isinstance(node, Text) and not node.text.strip() for node in tree.nodes)
