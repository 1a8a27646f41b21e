"""Between documents and typed objects: strict decoding, with every problem and its place, and encoding as Go prints.

Decoding follows Kubernetes' JSON decoder: names match with their case, null leaves a field as it is, a string is only a string
and an integer only an integer.  Encoding has Go's rules for what is printed (see ``objects``).
"""

from __future__ import annotations

import sys
from types import GenericAlias, UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from slipway.api.machinery.duration import Duration
from slipway.api.machinery.errors import listed
from slipway.api.machinery.objects import Object

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.machinery.yaml.goyaml import Document, Path


AnyObject = TypeVar("AnyObject", bound=Object)

_NAMES: dict[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}
# Guessing what was meant takes a while: for so many fields, and names that are no longer than this.
_GUESSES, _LONGEST_NAME = 100, 100
_TYPE_META = ("apiVersion", "kind")
_fields: dict[type[Object], dict[str, tuple[str, Any]]] = {}


class Problem(NamedTuple):
    """One thing wrong: ``kind`` is "unknown", "duplicate" or "type"; ``path`` reads like ``etcd.local.extraArgs[2].name``."""

    kind: str
    path: str
    line: int
    message: str


def decode(cls: type[AnyObject], document: Document, path: Path = ()) -> tuple[AnyObject, list[Problem]]:
    """The object at ``path`` of the document, without what has a problem, and all problems in the order of the lines.

    The apiVersion and kind of a whole document are for the caller to judge.
    """
    value = document.value
    for step in path:
        value = value[step]
    decoder = _Decoder(document)
    decoded = decoder.read_object(cls, value, path)
    problems = decoder.problems + duplicates(document, path)
    return decoded if decoded is not None else cls(), sorted(problems, key=lambda problem: problem.line)


def duplicates(document: Document, path: Path = ()) -> list[Problem]:
    """The keys at or below ``path`` that are set twice, which is wrong in a document of any type."""
    return [
        Problem("duplicate", field_path(place), line, f'duplicate field "{field_path(place)}": key "{place[-1]}" already set in map')
        for place, line in document.duplicates
        if place[: len(path)] == path
    ]


def report(problems: Iterable[Problem], source: str = "") -> str:
    """All problems as one message, each with its file and line."""
    prefix = f"{source}:" if source else "line "
    sentences = listed(f"{prefix}{problem.line}: {problem.message}" for problem in problems)
    if len(sentences) == 1:
        return f"strict decoding error: {sentences[0]}"
    return "strict decoding error:\n" + "\n".join(f"  {sentence}" for sentence in sentences)


def field_path(path: Path) -> str:
    """A path in the notation of field errors."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def fields(cls: type[Object]) -> dict[str, tuple[str, Any]]:
    """The attribute and the type behind each name on the wire."""
    found = _fields.get(cls)
    if found is None:
        types: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            namespace = vars(sys.modules[base.__module__])
            for name, annotation in vars(base).get("__annotations__", {}).items():
                if name in cls.__struct_fields__:
                    types[name] = eval(annotation, namespace) if isinstance(annotation, str) else annotation
        pairs = zip(cls.__struct_encode_fields__, cls.__struct_fields__, strict=True)
        found = _fields[cls] = {wire: (name, types[name]) for wire, name in pairs}
    return found


class _Decoder:
    """Collects problems while it reads.  A value that cannot be read is None, and its field keeps its default."""

    def __init__(self, document: Document) -> None:
        self.problems: list[Problem] = []
        self._document = document

    def read_object(self, cls: type[AnyObject], value: Any, path: Path) -> AnyObject | None:
        if value is None:
            return cls()
        if not isinstance(value, dict):
            self._mismatch(value, path, "object")
            return None
        known = fields(cls)
        arguments: dict[str, Any] = {}
        for wire, item in value.items():
            place = (*path, wire)
            if wire not in known:
                if path or wire not in _TYPE_META:
                    self._unknown(known, wire, place)
                continue
            if item is not None:
                name, wanted = known[wire]
                decoded = self.read(wanted, item, place)
                if decoded is not None:
                    arguments[name] = decoded
        return cls(**arguments)

    def read(self, wanted: Any, value: Any, path: Path) -> Any:
        if isinstance(wanted, UnionType):
            wanted = next(option for option in wanted.__args__ if option is not type(None))
        if wanted is Any:
            return value
        if isinstance(wanted, GenericAlias):
            return self._read_generic(wanted, value, path)
        if issubclass(wanted, Object):
            return self.read_object(wanted, value, path)
        if issubclass(wanted, Duration):
            return self._read_duration(value, path)
        return self._read_scalar(wanted, value, path)

    def _read_generic(self, wanted: GenericAlias, value: Any, path: Path) -> Any:
        arguments = wanted.__args__
        if wanted.__origin__ is list:
            if not isinstance(value, list):
                self._mismatch(value, path, "list")
                return None
            return [self._read_part(arguments[0], item, (*path, index)) for index, item in enumerate(value)]
        if not isinstance(value, dict):
            self._mismatch(value, path, "map")
            return None
        return {key: self._read_part(arguments[1], item, (*path, key)) for key, item in value.items()}

    def _read_part(self, wanted: Any, value: Any, path: Path) -> Any:
        """An item of a list or map: null, or one with a problem, is the zero value there, as in Go."""
        part = self.read(wanted, value, path) if value is not None else None
        if part is not None or wanted is Any or isinstance(wanted, UnionType):
            return part
        make: Any = wanted.__origin__ if isinstance(wanted, GenericAlias) else wanted
        return make()

    def _read_duration(self, value: Any, path: Path) -> Duration | None:
        if not isinstance(value, str):
            self._mismatch(value, path, "duration")
            return None
        try:
            return Duration.parse(value)
        except ValueError as error:
            self._problem("type", path, f'cannot unmarshal "{value}" into field "{field_path(path)}" of type duration: {error}')
            return None

    def _read_scalar(self, wanted: type, value: Any, path: Path) -> Any:
        if wanted is bool or isinstance(value, bool):
            fits = wanted is bool and isinstance(value, bool)
        elif wanted is int:
            fits = isinstance(value, int) and -(2**63) <= value < 2**63
        elif wanted is float:
            fits = isinstance(value, (int, float))
        else:
            fits = isinstance(value, str)
        if not fits:
            self._mismatch(value, path, _NAMES[wanted])
            return None
        return value

    def _mismatch(self, value: Any, path: Path, wanted: str) -> None:
        place = f'field "{field_path(path)}" of type {wanted}' if path else f"an {wanted}"
        self._problem("type", path, f"cannot unmarshal {_kind_of(value)} into {place}")

    def _unknown(self, known: dict[str, tuple[str, Any]], wire: str, path: Path) -> None:
        from difflib import get_close_matches

        message = f'unknown field "{field_path(path)}"'
        if len(self.problems) < _GUESSES and len(wire) <= _LONGEST_NAME:
            same = [name for name in known if name.lower() == wire.lower()] or get_close_matches(wire, known, n=1, cutoff=0.75)
            message += f' (did you mean "{same[0]}"?)' if same else ""
        self._problem("unknown", path, message)

    def _problem(self, kind: str, path: Path, message: str) -> None:
        self.problems.append(Problem(kind, field_path(path), self._document.line(path), message))


def _kind_of(value: Any) -> str:
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return f"number {value}"
    if value is None:
        return "null"
    return "list" if isinstance(value, list) else "object"


# Attribute, name on the wire, default, and whether it is printed even then.
_plans: dict[type[Object], list[tuple[str, str, Any, bool]]] = {}


def encode(value: Object) -> dict[str, Any]:
    """The object as a plain dict with the names of the wire, in the order of its fields."""
    out: dict[str, Any] = {}
    for name, wire, default, always in _plan(type(value)):
        item = getattr(value, name)
        # Go leaves out no struct, and Go's Duration is one.
        if always or isinstance(item, (Object, Duration)) or item != default:
            out[wire] = _encode(item)
    return out


def _encode(value: Any) -> Any:
    if isinstance(value, Object):
        return encode(value)
    if isinstance(value, list):
        return [_encode(item) for item in value]
    if isinstance(value, dict):
        return {key: _encode(item) for key, item in value.items()}
    return str(value) if isinstance(value, Duration) else value


def _plan(cls: type[Object]) -> list[tuple[str, str, Any, bool]]:
    plan = _plans.get(cls)
    if plan is None:
        names = cls.__struct_fields__
        defaults = (msgspec.NODEFAULT,) * (len(names) - len(cls.__struct_defaults__)) + cls.__struct_defaults__
        plan = _plans[cls] = [
            (name, wire, default.factory() if hasattr(default, "factory") else default, name in cls.always_printed)
            for name, wire, default in zip(names, cls.__struct_encode_fields__, defaults, strict=True)
        ]
    return plan
