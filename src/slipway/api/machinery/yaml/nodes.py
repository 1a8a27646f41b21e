"""The node tree of a YAML document, built from the events of PyYAML's C parser, without the rest of PyYAML.

``import yaml`` also brings the Python scanner, emitter, constructors and their regular expressions: a quarter of the time that
``config validate`` may take.  The extension module wants only the classes of events, nodes, tokens and errors.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

MAX_DEPTH = 300
"""Collections within collections: deeper than any API goes.  Go stops at 10000."""

_ALIASES_FREE, _NODES_FREE = 100, 1_000
_NODES_LOW, _NODES_HIGH = 400_000, 4_000_000


class YAMLProblem(Exception):  # noqa: N818 - it becomes a ConfigurationError once the file is known
    """What is wrong with a document, and the line, counted from 0 in the document.

    ``within`` says what was being read ("while scanning a quoted scalar"), if that began on another line, ``start``.
    """

    def __init__(self, message: str, line: int, within: str = "", start: int = 0) -> None:
        super().__init__(message)
        self.line = line
        self.within = within
        self.start = start


class Node:
    """A scalar with its text, a mapping, a sequence, or an alias with its target."""

    __slots__ = ("implicit", "line", "mapping", "sequence", "tag", "target", "text")

    def __init__(
        self,
        line: int,
        text: str = "",
        tag: str = "",
        implicit: bool = False,
        mapping: list[tuple[Node, Node]] | None = None,
        sequence: list[Node] | None = None,
        target: Node | None = None,
    ) -> None:
        self.line = line
        self.text = text
        self.tag = tag
        self.implicit = implicit
        self.mapping = mapping
        self.sequence = sequence
        self.target = target


def compose(text: str) -> Node | None:
    """The root of the first document in ``text``, or None where there is none; what follows that document is not read."""
    _refuse_control_characters(text)
    parsing = load()
    try:
        parser = parsing.parser(text)
        parser.get_event()
        if isinstance(parser.get_event(), parsing.events.StreamEndEvent):
            return None
        root = _tree(parser, parsing.events)
        parser.get_event()
    except parsing.error.MarkedYAMLError as error:
        raise _problem(error, last_line=text.count("\n", 0, -1)) from None
    return root


def _problem(error: Any, last_line: int) -> YAMLProblem:
    # At the end of the text the mark is one line too far.
    line = min(error.problem_mark.line, last_line)
    if error.context and error.context_mark and error.context_mark.line != line:
        return YAMLProblem(error.problem, line, error.context, error.context_mark.line)
    return YAMLProblem(error.problem, line)


def _refuse_control_characters(text: str) -> None:
    # A regular expression over all of Unicode takes longer to compile than the rest of a load.
    for character in set(text):
        if not (" " <= character <= "~" or character in "\t\n\r\x85" or _is_text(character)):
            raise YAMLProblem("control characters are not allowed", text.count("\n", 0, text.index(character)))


def _is_text(character: str) -> bool:
    return "\xa0" <= character <= "\ud7ff" or "\ue000" <= character <= "\ufffd" or character >= "\U00010000"


def _tree(parser: Any, events: Any) -> Node:
    anchors: dict[str, Node] = {}
    # The collections that are open, with their children so far.
    stack: list[tuple[Node, list[Node]]] = []
    while True:
        event = parser.get_event()
        kind = type(event)
        line = event.start_mark.line
        if kind is events.ScalarEvent:
            node = Node(line, event.value, event.tag or "", event.implicit[0])
        elif kind is events.MappingStartEvent:
            node = Node(line, mapping=[])
        elif kind is events.SequenceStartEvent:
            node = Node(line, sequence=[])
        elif kind is events.AliasEvent:
            target = anchors.get(event.anchor)
            if target is None:
                raise YAMLProblem(f"unknown anchor '{event.anchor}' referenced", line)
            node = Node(line, event.anchor, target=target)
        else:
            node, children = stack.pop()
            if node.mapping is not None:
                node.mapping = list(zip(children[::2], children[1::2], strict=True))
            else:
                node.sequence = children
            if not stack:
                return node
            continue
        if node.target is None and event.anchor is not None:
            anchors[event.anchor] = node
        if stack:
            stack[-1][1].append(node)
        if node.mapping is not None or node.sequence is not None:
            if len(stack) == MAX_DEPTH:
                raise YAMLProblem(f"exceeded max depth of {MAX_DEPTH}", line)
            stack.append((node, []))
        elif not stack:
            return node


_ERRORS = ("reader", "scanner", "parser", "composer", "constructor", "emitter", "serializer", "representer")


class Parsing(NamedTuple):
    """A class that makes a parser of events from a text, and the modules of the events and of the errors that it raises."""

    parser: Any
    events: Any
    error: Any


def load() -> Parsing:
    """libyaml's parser, or PyYAML's own where that was built without libyaml."""
    try:
        parser = _extension().CParser
    except ImportError:
        parser = import_module("yaml").SafeLoader
    return Parsing(parser, sys.modules["yaml.events"], sys.modules["yaml.error"])


def _extension() -> Any:
    loaded = sys.modules.get("yaml._yaml")
    if loaded is not None:
        return loaded
    found = PathFinder.find_spec("yaml")
    if "yaml" in sys.modules or found is None:
        return import_module("yaml._yaml")
    package: Any = ModuleType("yaml")
    package.__path__ = found.submodule_search_locations
    sys.modules["yaml"] = package
    try:
        for name in ("error", "tokens", "events", "nodes"):
            setattr(package, name, import_module(f"yaml.{name}"))
        for name in _ERRORS:
            error = f"{name.capitalize()}Error"
            setattr(package, name, SimpleNamespace(**{error: type(error, (package.error.MarkedYAMLError,), {})}))
        return import_module("yaml._yaml")
    finally:
        # Whoever imports yaml after us gets the whole package.
        del sys.modules["yaml"]


def too_many_aliased(decoded: int, from_aliases: int) -> bool:
    """Whether aliases blow a document up: of the nodes decoded, these many were reached through an alias."""
    if from_aliases <= _ALIASES_FREE or decoded <= _NODES_FREE:
        return False
    share = min(max((decoded - _NODES_LOW) / (_NODES_HIGH - _NODES_LOW), 0), 1)
    return from_aliases / decoded > 0.99 - 0.89 * share
