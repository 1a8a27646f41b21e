"""The parts of a parsed template.  ``str()`` of a part is its text as errors show it, not always as it was written."""

from __future__ import annotations

from dataclasses import dataclass, field

from slipway.api.machinery.gotemplate.quoting import quote


@dataclass(slots=True)
class Node:
    """A part and where it starts, in characters of the text."""

    position: int


@dataclass(slots=True)
class List(Node):
    nodes: list[Node] = field(default_factory=list)

    def __str__(self) -> str:
        return "".join(map(str, self.nodes))


@dataclass(slots=True)
class Text(Node):
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(slots=True)
class Identifier(Node):
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(slots=True)
class Dot(Node):
    def __str__(self) -> str:
        return "."


@dataclass(slots=True)
class Nil(Node):
    def __str__(self) -> str:
        return "nil"


@dataclass(slots=True)
class Field(Node):
    names: list[str]

    def __str__(self) -> str:
        return "".join(f".{name}" for name in self.names)


@dataclass(slots=True)
class Variable(Node):
    """A variable with its dollar sign, and fields of it."""

    names: list[str]

    def __str__(self) -> str:
        return ".".join(self.names)


@dataclass(slots=True)
class Bool(Node):
    value: bool

    def __str__(self) -> str:
        return "true" if self.value else "false"


@dataclass(slots=True)
class Number(Node):
    """A number; ``value`` is an int, float or complex, or None for a whole number that Go's int cannot hold."""

    text: str
    value: int | float | complex | None

    def __str__(self) -> str:
        return self.text


@dataclass(slots=True)
class String(Node):
    quoted: str
    text: str

    def __str__(self) -> str:
        return self.quoted


@dataclass(slots=True)
class Command(Node):
    args: list[Node] = field(default_factory=list)

    def __str__(self) -> str:
        return " ".join(_parenthesised(arg) for arg in self.args)


@dataclass(slots=True)
class Pipe(Node):
    declared: list[Variable] = field(default_factory=list)
    is_assignment: bool = False
    commands: list[Command] = field(default_factory=list)

    def __str__(self) -> str:
        commands = " | ".join(map(str, self.commands))
        if not self.declared:
            return commands
        return f"{', '.join(map(str, self.declared))} {'=' if self.is_assignment else ':='} {commands}"


@dataclass(slots=True)
class Chain(Node):
    """Fields of something that is neither a field nor a variable: ``(index .list 0).name``."""

    node: Node
    names: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return _parenthesised(self.node) + "".join(f".{name}" for name in self.names)


@dataclass(slots=True)
class Action(Node):
    pipe: Pipe

    def __str__(self) -> str:
        return f"{{{{{self.pipe}}}}}"


@dataclass(slots=True)
class Branch(Node):
    """``if``, ``with`` or ``range``.  ``else if`` is an else with one Branch in it, marked by ``is_chained``."""

    keyword: str
    pipe: Pipe
    body: List
    otherwise: List | None = None
    is_chained: bool = False

    def __str__(self) -> str:
        otherwise = "" if self.otherwise is None else f"{{{{else}}}}{self.otherwise}"
        return f"{{{{{self.keyword} {self.pipe}}}}}{self.body}{otherwise}{{{{end}}}}"


@dataclass(slots=True)
class Invocation(Node):
    """``{{template "name" pipeline}}``, and what remains of a block where it stands."""

    name: str
    pipe: Pipe | None

    def __str__(self) -> str:
        return f"{{{{template {quote(self.name)}{'' if self.pipe is None else f' {self.pipe}'}}}}}"


@dataclass(slots=True)
class Break(Node):
    def __str__(self) -> str:
        return "{{break}}"


@dataclass(slots=True)
class Continue(Node):
    def __str__(self) -> str:
        return "{{continue}}"


@dataclass(slots=True)
class Else(Node):
    """Ends a list; never part of one."""

    def __str__(self) -> str:
        return "{{else}}"


@dataclass(slots=True)
class End(Node):
    """Ends a list; never part of one."""

    def __str__(self) -> str:
        return "{{end}}"


def _parenthesised(node: Node) -> str:
    return f"({node})" if isinstance(node, Pipe) else str(node)


def is_empty(tree: List) -> bool:
    """Whether a template is nothing but white space."""
    return all(isinstance(node, Text) and not node.text.strip() for node in tree.nodes)
