"""The parts of an expression, as the parser makes them and the checker marks them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slipway.embedded.apiextensions.cel.functions import Overload
    from slipway.embedded.apiextensions.cel.types import Type


@dataclass(slots=True, eq=False)
class Node:
    """A part of an expression; ``type`` is what the checker found it to be."""

    position: int
    type: Type | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class Literal(Node):
    value: Any


@dataclass(slots=True, eq=False)
class Ident(Node):
    name: str


@dataclass(slots=True, eq=False)
class Select(Node):
    """``operand.name``; of ``has`` when it only tests, of ``.?`` when it is optional."""

    operand: Node
    name: str
    tests: bool = False
    optional: bool = False


@dataclass(slots=True, eq=False)
class Call(Node):
    """A function or an operator; ``overloads`` are those that the types of its arguments leave."""

    function: str
    target: Node | None
    arguments: list[Node]
    overloads: list[Overload] = field(default_factory=list, init=False)


@dataclass(slots=True, eq=False)
class ListNode(Node):
    elements: list[Node]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class MapNode(Node):
    """Its entries: key, value, and whether the value is an optional one."""

    entries: list[tuple[Node, Node, bool]]


@dataclass(slots=True, eq=False)
class Comprehension(Node):
    """A loop over a range, into which macros expand: ``result`` after ``step`` was made the accumulator's value once an element."""

    range: Node
    variable: str
    second: str
    accumulator: str
    initial: Node
    condition: Node
    step: Node
    result: Node
