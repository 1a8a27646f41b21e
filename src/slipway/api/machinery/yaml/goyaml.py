"""YAML as Kubernetes reads and writes it: the dialect of sigs.k8s.io/yaml, with the line of every value.

``load`` splits a file into documents as apimachinery's reader does and gives each as a JSON value; ``dump`` writes one.
"""

from __future__ import annotations

from typing import Any

from slipway.api.machinery.errors import ConfigurationError
from slipway.api.machinery.yaml.nodes import MAX_DEPTH, Node, YAMLProblem, compose, too_many_aliased
from slipway.api.machinery.yaml.scalar import MERGE, STR, Scalar, TagError, format_float, json_number, resolve, resolve_tagged
from slipway.api.machinery.yaml.write import dump

__all__ = ["Document", "Path", "dump", "load"]

Path = tuple[str | int, ...]

_SEPARATOR = "---"
# Nobody reads more of them, and each has its whole path.
_MOST_DUPLICATES = 1_000


class Place:
    """The line of a value and, for a mapping or a list, the places of its parts."""

    __slots__ = ("line", "parts")

    def __init__(self, line: int, parts: dict[str, Place] | list[Place] | None = None) -> None:
        self.line = line
        self.parts = parts


class Document:
    """One document of a file: its JSON value, and where each part of it stands.

    ``duplicates`` holds keys that are set twice in one mapping, with the line of the second; the last value counts.
    A document with nothing in it has the value None.
    """

    __slots__ = ("duplicates", "place", "source", "text", "value")

    def __init__(self, value: Any, place: Place, duplicates: list[tuple[Path, int]], source: str, text: str) -> None:
        self.value = value
        self.place = place
        self.duplicates = duplicates
        self.source = source
        self.text = text

    def line(self, path: Path = ()) -> int:
        """The line, counted from 1 in the whole file, of the key or list item at ``path``, or of its nearest parent that exists."""
        place = self.place
        for step in path:
            parts: Any = place.parts
            exists = step in parts if isinstance(parts, dict) else isinstance(parts, list) and step in range(len(parts))
            if not exists:
                break
            place = parts[step]
        return place.line


def load(text: str, source: str = "") -> list[Document]:
    """The documents of a file.  Text that is not YAML raises ConfigurationError with the line."""
    documents = []
    line = 1
    try:
        for line, chunk in _split(text):
            node = compose(chunk)
            if node is None:
                documents.append(Document(None, Place(line), [], source, chunk))
                continue
            constructor = _Constructor(line)
            value, place = constructor.construct(node)
            documents.append(Document(value, place, constructor.duplicates, source, chunk))
    except YAMLProblem as problem:
        where = f"{source}:{line + problem.line}" if source else f"line {line + problem.line}"
        within = f" {problem.within} that starts on line {line + problem.start}" if problem.within else ""
        raise ConfigurationError(f"{where}: this is not valid YAML: {problem}{within}") from None
    return documents


def _split(text: str) -> list[tuple[int, str]]:
    """The documents' texts with the lines that they start at, cut where apimachinery's YAMLReader cuts."""
    chunks: list[tuple[int, str]] = []
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    start = 0
    for number, line in enumerate(lines):
        if not line.startswith(_SEPARATOR):
            continue
        rest = line[len(_SEPARATOR) :].strip()
        if rest and rest[0] != "#":
            raise YAMLProblem(f"invalid document separator: a comment may follow it on its line, but not {rest!r}", number)
        # A separator that nothing stands before belongs to the document after it.
        if number > start:
            chunks.append((start + 1, "\n".join(lines[start:number]) + "\n"))
            start = number + 1
    if start < len(lines):
        chunks.append((start + 1, "\n".join(lines[start:]) + "\n"))
    return chunks


class _Constructor:
    """Turns the nodes of one document into a JSON value, as goyaml decodes into an empty interface."""

    def __init__(self, first_line: int) -> None:
        self.duplicates: list[tuple[Path, int]] = []
        self._first_line = first_line
        self._path: list[str | int] = []
        self._open_aliases: set[int] = set()
        self._decoded = 1
        self._from_aliases = 0
        self._depth = 0

    def construct(self, node: Node) -> tuple[Any, Place]:
        self._count(node)
        content = node
        if node.target is not None:
            self._enter_alias(node)
            content = node.target
            self._count(content)
        value: Any
        parts: dict[str, Place] | list[Place] | None = None
        if content.mapping is not None:
            value, parts = {}, {}
            self._fill(content, value, parts)
        elif content.sequence is not None:
            value, parts = [], []
            self._enter(content)
            self._path.append(0)
            for index, child in enumerate(content.sequence):
                self._path[-1] = index
                item, place = self.construct(child)
                value.append(item)
                parts.append(place)
            self._path.pop()
            self._depth -= 1
        else:
            value = self._json_scalar(content)
        self._open_aliases.discard(id(node))
        return value, Place(self._first_line + node.line, parts)

    def _json_scalar(self, node: Node) -> Scalar:
        """A scalar as JSON has it."""
        value = self._scalar(node)
        if isinstance(value, float):
            value = json_number(value)
            if value in (float("inf"), float("-inf")) or value != value:
                raise YAMLProblem(f"{node.text} is not a number that JSON has", node.line)
        return value

    def _enter(self, node: Node) -> None:
        """Aliases can join two trees to one that is deeper than either, so the depth of what they lead to counts too."""
        if self._depth == MAX_DEPTH:
            raise YAMLProblem(f"exceeded max depth of {MAX_DEPTH}", node.line)
        self._depth += 1

    def _fill(self, node: Node, values: dict[str, Any], places: dict[str, Place]) -> None:
        assert node.mapping is not None
        self._enter(node)
        for key_node, value_node in node.mapping:
            if key_node.text == "<<" and (key_node.implicit or key_node.tag == MERGE):
                self._merge(value_node, values, places)
                continue
            key = self._key(key_node)
            self._path.append(key)
            line = self._first_line + key_node.line
            # As in goyaml, a key that a merge has set already counts too.
            if key in values and len(self.duplicates) < _MOST_DUPLICATES:
                self.duplicates.append((tuple(self._path), line))
            values[key], place = self.construct(value_node)
            places[key] = Place(line, place.parts)
            self._path.pop()
        self._depth -= 1

    def _merge(self, node: Node, values: dict[str, Any], places: dict[str, Place]) -> None:
        # Earlier mappings of a list take precedence.
        for source in reversed(node.sequence) if node.sequence is not None else [node]:
            mapping = source.target or source
            if mapping.mapping is None:
                raise YAMLProblem("map merge requires map or sequence of maps as the value", source.line)
            self._count(source)
            if source.target is None:
                self._fill(mapping, values, places)
            else:
                self._enter_alias(source)
                self._count(mapping)
                self._fill(mapping, values, places)
                self._open_aliases.discard(id(source))

    def _key(self, node: Node) -> str:
        self._count(node)
        scalar = node
        if node.target is not None:
            scalar = node.target
            self._count(scalar)
        if scalar.mapping is not None or scalar.sequence is not None:
            raise YAMLProblem("a map or a list cannot be a key", node.line)
        key = self._scalar(scalar)
        if isinstance(key, str):
            return key
        if isinstance(key, bool):
            return "true" if key else "false"
        if isinstance(key, float):
            return format_float(key, single=True)
        if key is None or key >= 2**63:
            raise YAMLProblem(f"{scalar.text or 'nothing'} cannot be a key: quote it if it is meant as text", node.line)
        return str(key)

    def _scalar(self, node: Node) -> Scalar:
        if not node.tag:
            return resolve(node.text) if node.implicit else node.text
        try:
            return resolve_tagged(node.tag, node.text) if node.tag != STR else node.text
        except TagError as error:
            raise YAMLProblem(str(error), node.line) from None

    def _enter_alias(self, node: Node) -> None:
        if id(node) in self._open_aliases:
            raise YAMLProblem(f"anchor '{node.text}' value contains itself", node.line)
        self._open_aliases.add(id(node))

    def _count(self, node: Node) -> None:
        self._decoded += 1
        if not self._open_aliases:
            return
        self._from_aliases += 1
        if too_many_aliased(self._decoded, self._from_aliases):
            raise YAMLProblem("document contains excessive aliasing", node.line)
