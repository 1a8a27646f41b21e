"""YAML into the types of a Container Linux Config, with the rules of the transpiler's decoder, gopkg.in/yaml.v3.

A document becomes a tree that knows line and column of everything, and the tree a value of plain dicts, with Go's zero values for what
is not there.  Errors have that decoder's words.  Its limits are kept, and narrower ones: what is larger than they allow would fit into
no Secret.
"""

from __future__ import annotations

import base64
import binascii
import re
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

from slipway.api.machinery.fieldpath import quoted
from slipway.api.machinery.yaml import nodes as yamlnodes
from slipway.api.machinery.yaml.nodes import MAX_DEPTH, too_many_aliased
from slipway.api.machinery.yaml.scalar import is_timestamp
from slipway.fleet.bootstrap.ignition.clc.gostructs import Struct, element, is_pointer, is_slice

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PREFIX = "tag:yaml.org,2002:"
_TRUE = ("y", "Y", "yes", "Yes", "YES", "on", "On", "ON")
_FALSE = ("n", "N", "no", "No", "NO", "off", "Off", "OFF")
_KNOWN: dict[str, tuple[str, Any]] = {
    **dict.fromkeys(("true", "True", "TRUE"), ("!!bool", True)),
    **dict.fromkeys(("false", "False", "FALSE"), ("!!bool", False)),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), ("!!null", None)),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), ("!!float", float("nan"))),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), ("!!float", float("inf"))),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), ("!!float", float("-inf"))),
    "<<": ("!!merge", "<<"),
}
_INTEGER = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_RESOLVABLE = ("", "!!str", "!!bool", "!!int", "!!float", "!!null", "!!timestamp")
# A document of 32 kB, the longest that the API takes, has not a third of these; aliases can make more of it.
_MOST_VALUES, _MOST_CHARACTERS = 50_000, 2**20
# Types end, and with them all that is nested; merges do not.
_MERGES_WITHIN = 100
_LISTED = 100
_CONTROL = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class YAMLError(Exception):
    """A document that cannot be decoded; the text is the decoder's."""


class Tree:
    """A node of a document; lines and columns count from 1.  An alias has a target, and its anchor's name as the text."""

    __slots__ = ("column", "items", "line", "pairs", "tag", "target", "text")

    def __init__(self, line: int, column: int, tag: str = "", text: str = "") -> None:
        self.line, self.column = line, column
        self.tag, self.text = tag, text
        self.pairs: list[tuple[Tree, Tree]] | None = None
        self.items: list[Tree] | None = None
        self.target: Tree | None = None

    @property
    def is_scalar(self) -> bool:
        return self.pairs is None and self.items is None and self.target is None

    @property
    def identity(self) -> tuple[bool, bool, bool, str]:
        """What two keys of a mapping may not share: the kind of the node and its text."""
        return self.pairs is None, self.items is None, self.target is None, self.text


def parse(text: str) -> Tree | None:
    """The tree of the first document, or None where there is none."""
    unreadable = _CONTROL.search(text)
    if unreadable is not None:
        raise YAMLError("yaml: control characters are not allowed")
    parsing = yamlnodes.load()
    try:
        parser = parsing.parser(text)
        parser.get_event()
        if isinstance(parser.get_event(), parsing.events.StreamEndEvent):
            return None
        root = _tree(parser, parsing.events, {}, 0)
        parser.get_event()
    except parsing.error.MarkedYAMLError as error:
        raise _syntax_error(error) from None
    return root


def _syntax_error(error: Any) -> YAMLError:
    # The first line has no number in Go's messages, and only those of the scanner count from 1.
    line = (error.context_mark.line if error.context and error.context_mark else 0) or error.problem_mark.line
    if line and type(error).__name__ == "ScannerError":
        line += 1
    return YAMLError(f"yaml: line {line}: {error.problem}" if line else f"yaml: {error.problem}")


def _tree(parser: Any, events: Any, anchors: dict[str, Tree], depth: int, event: Any = None) -> Tree:
    event = event or parser.get_event()
    mark = event.start_mark
    node = Tree(mark.line + 1, mark.column + 1)
    if isinstance(event, events.AliasEvent):
        node.target, node.text = anchors.get(event.anchor), event.anchor
        if node.target is None:
            raise YAMLError(f"yaml: unknown anchor '{event.anchor}' referenced")
        return node
    tag = event.tag if event.tag and event.tag != "!" else ""
    node.tag = f"!!{tag.removeprefix(_PREFIX)}" if tag.startswith(_PREFIX) else tag
    if event.anchor is not None:
        anchors[event.anchor] = node
    if isinstance(event, events.ScalarEvent):
        node.text = event.value
        if not node.tag:
            node.tag = resolve("", event.value)[0] if event.implicit[0] else "!!str"
        return node
    if depth == MAX_DEPTH:
        raise YAMLError(f"yaml: line {node.line}: exceeded max depth of {MAX_DEPTH}")
    children = []
    while not isinstance(following := parser.get_event(), events.CollectionEndEvent):
        children.append(_tree(parser, events, anchors, depth + 1, following))
    if isinstance(event, events.MappingStartEvent):
        node.tag = node.tag or "!!map"
        node.pairs = list(zip(children[::2], children[1::2], strict=True))
    else:
        node.tag = node.tag or "!!seq"
        node.items = children
    return node


def resolve(tag: str, text: str) -> tuple[str, Any]:
    """The tag and the value of a scalar."""
    if tag not in _RESOLVABLE:
        return tag, text
    found, value = ("!!str", text) if tag == "!!str" else _resolve_plain(tag, text)
    if tag == "!!float" and found == "!!int":
        return tag, float(value)
    if tag not in ("", "!!str", found):
        raise YAMLError(f"yaml: cannot decode {found} `{text}` as a {tag}")
    return found, value


def _resolve_plain(tag: str, text: str) -> tuple[str, Any]:
    if text in _KNOWN:
        return _KNOWN[text]
    if text[0] == "." and _FLOAT.match(text):
        return _finite(text, text)
    if text[0] not in "+-0123456789":
        return "!!str", text
    if tag in ("", "!!timestamp") and is_timestamp(text):
        return "!!timestamp", text
    plain = text.replace("_", "")
    integer = _INTEGER.match(plain)
    # A decimal of more than 20 digits fits no integer type, and int() refuses very long ones.
    if integer is not None and len(integer[5] or "") <= 20:
        sign, *digits = integer.groups()
        value = next(int(group, base) for group, base in zip(digits, (16, 2, 8, 10), strict=True) if group is not None)
        value = -value if sign == "-" else value
        if -(2**63) <= value < 2**64:
            return "!!int", value
    return _finite(plain, text) if _FLOAT.match(plain) else ("!!str", text)


def _finite(number: str, text: str) -> tuple[str, Any]:
    # Go's ParseFloat fails on what is too large for a float64, and the scalar stays a string.
    value = float(number)
    return ("!!str", text) if value in (float("inf"), float("-inf")) else ("!!float", value)


class Decoder:
    """Decodes one document; what does not fit is collected, as a decoder of Go collects it."""

    def __init__(self) -> None:
        self._mismatches: list[str] = []
        self._unlisted = 0
        self._open_aliases: set[int] = set()
        self._decoded = self._from_aliases = self._characters = self._merges = 0

    def document(self, root: Tree | None, struct: Struct) -> dict[str, Any]:
        value = struct.zero()
        if root is not None:
            self._value(root, struct.name, struct, value)
        if self._mismatches:
            more = [f"and {self._unlisted} more"] if self._unlisted else []
            raise YAMLError("yaml: unmarshal errors:\n  " + "\n  ".join([*self._mismatches, *more]))
        return value

    def _value(self, node: Tree, type_: str, struct: Struct, old: Any) -> tuple[Any, bool]:
        """The value of a node in the place of ``old``, and whether there is one."""
        self._count(node)
        if node.target is not None:
            with self._inside(node):
                return self._value(node.target, type_, struct, old)
        if node.is_scalar and resolve(node.tag, node.text)[1] is None:
            return (None, True) if is_pointer(type_) or is_slice(type_) else (old, False)
        if is_pointer(type_):
            type_ = type_[1:]
            old = struct.zero_of(type_)
        if is_slice(type_):
            return self._slice(node, type_, struct, old)
        inner = struct.table.get(type_)
        if inner is not None:
            return old, self._struct(node, inner, old)
        return self._scalar(node, type_, old)

    def _slice(self, node: Tree, type_: str, struct: Struct, old: Any) -> tuple[Any, bool]:
        if node.items is None:
            self._mismatch(node, f"[]{_name(element(type_))}")
            return old, False
        kind = element(type_)
        decoded = (self._value(item, kind, struct, struct.zero_of(kind)) for item in node.items)
        return [value for value, good in decoded if good], True

    def _struct(self, node: Tree, struct: Struct, into: dict[str, Any], merged: set[str] | None = None) -> bool:
        if node.pairs is None:
            self._mismatch(node, _name(struct.name))
            return False
        if self._has_duplicates(node.pairs):
            return False
        merging: Tree | None = None
        for key, value in node.pairs:
            if key.is_scalar and key.text == "<<" and key.tag == "!!merge":
                merging = value
                continue
            name, good = self._value(key, "string", struct, "")
            if not good or (merged is not None and name in merged):
                continue
            if merged is not None:
                merged.add(name)
            field = struct.by_key.get(name)
            if field is not None:
                into[name] = self._value(value, field.type, struct, into[name])[0]
        if merging is not None:
            self._merge(merging, struct, into, {(key.target or key).text for key, _ in node.pairs} if merged is None else merged)
        return True

    def _merge(self, node: Tree, struct: Struct, into: dict[str, Any], merged: set[str]) -> None:
        self._merges += 1
        if self._merges > _MERGES_WITHIN:
            raise YAMLError(f"yaml: line {node.line}: more than {_MERGES_WITHIN} merges within each other")
        for source in node.items if node.items is not None else [node]:
            mapping = source.target or source
            if mapping.pairs is None:
                raise YAMLError("yaml: map merge requires map or sequence of maps as the value")
            self._count(source)
            with self._inside(source):
                self._count(mapping)
                self._struct(mapping, struct, into, merged)
        self._merges -= 1

    @contextmanager
    def _inside(self, node: Tree) -> Iterator[None]:
        """Reading what an alias stands for; other nodes are read as they are."""
        if node.target is None:
            yield
            return
        if id(node) in self._open_aliases:
            raise YAMLError(f"yaml: anchor '{node.text}' value contains itself")
        self._open_aliases.add(id(node))
        yield
        self._open_aliases.discard(id(node))

    def _count(self, node: Tree) -> None:
        self._decoded += 1
        self._from_aliases += bool(self._open_aliases)
        self._characters += len(node.text)
        if too_many_aliased(self._decoded, self._from_aliases):
            raise YAMLError("yaml: document contains excessive aliasing")
        if self._decoded > _MOST_VALUES or self._characters > _MOST_CHARACTERS:
            most = f"{_MOST_VALUES} values or {_MOST_CHARACTERS} characters"
            raise YAMLError(f"yaml: line {node.line}: with its aliases the document has more than {most}")

    def _has_duplicates(self, pairs: list[tuple[Tree, Tree]]) -> bool:
        """Whether a key stands twice.  Every pair of equal keys is an error, as in Go; those past the listed ones are only counted."""
        places: dict[object, list[int]] = {}
        for key, _ in pairs:
            places.setdefault(key.identity, []).append(key.line)
        if len(places) == len(pairs):
            return False
        found = [
            f"line {line}: mapping key {quoted(key.text)} already defined at line {first}"
            for key, first, line in islice(_equal_keys(pairs, places), _LISTED - len(self._mismatches))
        ]
        self._mismatches += found
        self._unlisted += sum(len(lines) * (len(lines) - 1) // 2 for lines in places.values()) - len(found)
        return True

    def _scalar(self, node: Tree, type_: str, old: Any) -> tuple[Any, bool]:
        if not node.is_scalar:
            self._mismatch(node, _name(type_))
            return old, False
        tag, value = resolve(node.tag, node.text)
        if tag == "!!binary":
            value = _from_base64(node.text)
        if type_ not in ("bool", "int", "uint"):
            return (value if tag == "!!binary" else node.text), True
        if type_ == "bool":
            if isinstance(value, bool):
                return value, True
            if tag == "!!str" and value in (*_TRUE, *_FALSE):
                return value in _TRUE, True
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and _fits(value, type_):
            return int(value), True
        self._mismatch(node, type_)
        return old, False

    def _mismatch(self, node: Tree, type_: str) -> None:
        value = ""
        if node.tag not in ("!!seq", "!!map"):
            value = f" `{_first_bytes(node.text)}`"
        if len(self._mismatches) < _LISTED:
            self._mismatches.append(f"line {node.line}: cannot unmarshal {node.tag}{value} into {type_}")
        else:
            self._unlisted += 1


def _equal_keys(pairs: list[tuple[Tree, Tree]], places: Mapping[object, list[int]]) -> Iterator[tuple[Tree, int, int]]:
    """Each key that stands again further on, its line, and the line of the other one."""
    passed = dict.fromkeys(places, 0)
    for key, _ in pairs:
        passed[key.identity] += 1
        for line in islice(places[key.identity], passed[key.identity], None):
            yield key, key.line, line


def _name(type_: str) -> str:
    """A type's name with its package, for those that are not Go's own."""
    return f"types.{type_}" if type_[0].isupper() else type_


def _fits(value: int | float, type_: str) -> bool:
    if value != value or value in (float("inf"), float("-inf")):
        return False
    return 0 <= value < 2**64 if type_ == "uint" else -(2**63) <= value < 2**63


def _first_bytes(text: str) -> str:
    """What Go shows of a value: of a long one the first seven bytes."""
    data = text.encode()
    return text if len(data) <= 10 else data[:7].decode(errors="surrogateescape") + "..."


def _from_base64(text: str) -> str:
    """Decoded data as text; bytes that are no UTF-8 stay, in Python's way of carrying them."""
    try:
        return base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True).decode(errors="surrogateescape")
    except (binascii.Error, ValueError):
        raise YAMLError("yaml: !!binary value contains invalid base64 data") from None
