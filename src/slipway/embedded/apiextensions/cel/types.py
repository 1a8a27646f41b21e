"""The types of CEL, and how they fit each other: the rules of cel-go's checker, which infers the types that functions leave open."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Substitutions = dict[str, "Type"]


class Type(NamedTuple):
    """``kind`` is the name of a simple type, "list", "map", "type", "object", "param" for an open one, or an opaque one's name."""

    kind: str
    parameters: tuple[Type, ...] = ()
    name: str = ""
    """Of an object or a parameter."""

    def __str__(self) -> str:
        if self.kind in ("object", "param"):
            return self.name
        if self.kind == "null_type":
            return "null"
        return f"{self.kind}({', '.join(map(str, self.parameters))})" if self.parameters else self.kind


BOOL, INT, UINT, DOUBLE, STRING, BYTES, NULL = map(Type, ("bool", "int", "uint", "double", "string", "bytes", "null_type"))
TIMESTAMP, DURATION, DYN, ERROR, TYPE = map(Type, ("timestamp", "duration", "dyn", "!error!", "type"))
URL, QUANTITY, IP, CIDR = Type("kubernetes.URL"), Type("kubernetes.Quantity"), Type("net.IP"), Type("net.CIDR")
FORMAT, SEMVER = Type("kubernetes.NamedFormat"), Type("kubernetes.Semver")
AUTHORIZER, PATH_CHECK, GROUP_CHECK, RESOURCE_CHECK, DECISION = (
    Type(f"kubernetes.authorization.{name}") for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
)
FIELDLESS = frozenset(each.kind for each in (AUTHORIZER, PATH_CHECK, GROUP_CHECK, RESOURCE_CHECK, DECISION))
"""Types that cel-go takes for objects, and finds no fields of."""
A, B = Type("param", name="A"), Type("param", name="B")
_NULLABLE = frozenset(
    (
        *("object", "duration", "timestamp", "optional_type", URL.kind, QUANTITY.kind, IP.kind, CIDR.kind, FORMAT.kind, SEMVER.kind),
        *FIELDLESS,
    )
)
_COMPOUND = frozenset(("list", "map", "optional_type"))


def list_of(element: Type) -> Type:
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    return Type("optional_type", (value,))


def type_of(itself: Type) -> Type:
    return Type("type", (itself,))


def unwrapped(type_: Type) -> tuple[Type, bool]:
    """The type inside an optional one, and whether it was one."""
    return (type_.parameters[0], True) if type_.kind == "optional_type" else (type_, False)


def is_open(type_: Type) -> bool:
    """Whether a value of the type has to be looked at to know what it is."""
    return type_.kind in ("dyn", "!error!")


def signature(types: Sequence[Type], *, is_member: bool) -> str:
    """Types of arguments as a message has them."""
    if is_member:
        return f"{types[0]}.({', '.join(map(str, types[1:]))})"
    return f"({', '.join(map(str, types))})"


def substituted(type_: Type, known: Mapping[str, Type], *, closed: bool = False) -> Type:
    """A type with its parameters replaced; with ``closed``, those that nothing is known of become ``dyn``."""
    if type_.kind == "param":
        found = known.get(type_.name)
        if found is not None:
            return substituted(found, known, closed=closed)
        return DYN if closed else type_
    if not type_.parameters:
        return type_
    return type_._replace(parameters=tuple(substituted(each, known, closed=closed) for each in type_.parameters))


def assignable(known: Substitutions, actual: Sequence[Type], wanted: Sequence[Type]) -> Substitutions | None:
    """What has to be known of parameters for all types to fit, or None where they do not."""
    if len(actual) != len(wanted):
        return None
    tried = dict(known)
    return tried if all(_fits(tried, mine, yours) for mine, yours in zip(actual, wanted, strict=True)) else None


def general(one: Type, other: Type) -> Type:
    """The less specific of two types that fit."""
    return one if _covers(one, other) else other


def _covers(one: Type, other: Type) -> bool:
    if one.kind in ("dyn", "param"):
        return True
    if other.kind in ("dyn", "param") or one.kind != other.kind or len(one.parameters) != len(other.parameters):
        return False
    if one.kind == "type":
        return True
    return one.name == other.name and all(_covers(mine, yours) for mine, yours in zip(one.parameters, other.parameters, strict=True))


def _fits(known: Substitutions, one: Type, other: Type) -> bool:
    if other.kind == "param":
        valid, had = _substitutable(known, one, other)
        if valid or had:
            return valid
    if one.kind == "param":
        return _substitutable(known, other, one)[0]
    if is_open(one) or is_open(other):
        return True
    if one.kind == "null_type" or other.kind == "null_type":
        return (other if one.kind == "null_type" else one).kind in {*_NULLABLE, "null_type"}
    if one.kind != other.kind:
        return False
    if one.kind in _COMPOUND:
        return all(_fits(known, mine, yours) for mine, yours in zip(one.parameters, other.parameters, strict=True))
    return one.name == other.name


def _substitutable(known: Substitutions, one: Type, parameter: Type) -> tuple[bool, bool]:
    """Whether a parameter may stand for a type, and whether something was known of it."""
    if one == parameter:
        return True, True
    found = known.get(parameter.name)
    if found is not None:
        if one == found:
            return True, True
        if not _fits(known, one, found):
            return False, True
        wider = general(one, found)
        if not _mentions(known, wider, parameter):
            known[parameter.name] = wider
        return True, True
    if _mentions(known, one, parameter):
        return False, False
    known[parameter.name] = one
    return True, False


def _mentions(known: Substitutions, within: Type, parameter: Type) -> bool:
    if within == parameter:
        return True
    if within.kind == "param":
        found = known.get(within.name)
        return found is not None and _mentions(known, found, parameter)
    return any(_mentions(known, each, parameter) for each in within.parameters)
