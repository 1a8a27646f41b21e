"""Structural OpenAPI v3 schemas, as CustomResourceDefinitions have them, from msgspec types.

What Python's types do not say is said by markers in ``Annotated``: ``REQUIRED``, ``length``, ``items`` and so on.  What
concerns an object as a whole is in the class attribute ``openapi`` (``{"minProperties": 1}``).  Descriptions are the
docstring of the class and the strings that stand below its attributes.
"""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import inspect as types

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Schema = dict[str, Any]

# The pattern of a resource.Quantity in the CRDs that controller-gen makes.
QUANTITY_PATTERN = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"

REQUIRED = msgspec.Meta(extra={"required": True})
_KEYWORDS = {types.StrType: "string", types.BoolType: "boolean", types.IntType: "integer", types.FloatType: "number"}


def schema(**keywords: Any) -> msgspec.Meta:
    """Keywords of the schema, as they are."""
    return msgspec.Meta(extra_json_schema=keywords)


def length(least: int | None, most: int | None) -> msgspec.Meta:
    return schema(**_given(minLength=least, maxLength=most))


def pattern(expression: str) -> msgspec.Meta:
    return schema(pattern=expression)


def one_of(*values: str) -> msgspec.Meta:
    return schema(enum=list(values))


def at_least(number: int) -> msgspec.Meta:
    return schema(minimum=number)


def between(least: int, most: int) -> msgspec.Meta:
    return schema(minimum=least, maximum=most)


def default(value: Any) -> msgspec.Meta:
    """The server writes this value where there is none."""
    return schema(default=value)


def items(least: int | None, most: int | None, *, atomic: bool = False, keys: Sequence[str] = ()) -> msgspec.Meta:
    """How many items a list has, and how server-side apply merges it: whole (atomic), by keys, or without a word as whole."""
    keywords = _given(minItems=least, maxItems=most)
    if atomic:
        keywords["x-kubernetes-list-type"] = "atomic"
    if keys:
        keywords |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return schema(**keywords)


def rule(expression: str, message: str) -> Schema:
    """One CEL rule, an element of x-kubernetes-validations."""
    return {"rule": expression, "message": message}


def rules(*validations: Schema) -> msgspec.Meta:
    return schema(**{"x-kubernetes-validations": list(validations)})


def _given(**keywords: int | None) -> Schema:
    return {name: value for name, value in keywords.items() if value is not None}


def schema_of(kind: type[msgspec.Struct]) -> Schema:
    """The schema of objects of a type."""
    return _of(types.type_info(kind))


def schemas_of(kinds: Iterable[type[msgspec.Struct]]) -> list[Schema]:
    """The schemas of several types; what they share is looked at once."""
    return [_of(info) for info in types.multi_type_info(list(kinds))]


def _of(info: types.Type) -> Schema:
    if isinstance(info, types.Metadata):
        whole = (info.extra or {}).get("schema")
        if whole is not None:
            return dict(whole)
        return _of(info.type) | (info.extra_json_schema or {})
    if isinstance(info, types.UnionType):
        return _of_union([each for each in info.types if not isinstance(each, types.NoneType)])
    if isinstance(info, types.StructType):
        return _of_struct(info)
    if isinstance(info, types.ListType):
        return {"type": "array", "items": _of(info.item_type)}
    if isinstance(info, types.DictType):
        return {"type": "object", "additionalProperties": _of(info.value_type)}
    if isinstance(info, types.AnyType):
        return {"x-kubernetes-preserve-unknown-fields": True}
    keyword = _KEYWORDS.get(type(info))
    if keyword is None:
        raise TypeError(f"{info!r} has no form in the schema of a CRD: use str, bool, int, float, list, dict or a Struct")
    return {"type": keyword}


def _of_union(members: list[types.Type]) -> Schema:
    if len(members) == 1:
        return _of(members[0])
    if {type(each) for each in members} == {types.IntType, types.StrType}:
        return {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    raise TypeError(f"a union of {members!r} has no form in the schema of a CRD: only int | str and X | None have")


def _of_struct(info: types.StructType) -> Schema:
    texts = descriptions(info.cls)
    properties: dict[str, Schema] = {}
    required = []
    for field in info.fields:
        of_field = _of(field.type)
        text = texts.get(field.name, "")
        # The field's own words go before those of its type.
        properties[field.encode_name] = ({"description": text} if text else {}) | {
            key: value for key, value in of_field.items() if key != "description" or not text
        }
        if isinstance(field.type, types.Metadata) and (field.type.extra or {}).get("required"):
            required.append(field.encode_name)
    out: Schema = {"type": "object", "properties": dict(sorted(properties.items()))}
    if required:
        out["required"] = sorted(required)
    about = inspect.cleandoc(info.cls.__doc__ or "")
    extra: Mapping[str, Any] = getattr(info.cls, "openapi", {})
    return ({"description": about} if about else {}) | out | dict(extra)


@cache
def descriptions(cls: type) -> dict[str, str]:
    """The words below each attribute of a class and of those that it comes from, by the attribute's name."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if issubclass(base, msgspec.Struct) and base is not msgspec.Struct:
            texts |= _of_module(base.__module__).get(base.__qualname__, {})
    return texts


@cache
def _of_module(name: str) -> dict[str, dict[str, str]]:
    tree = ast.parse(inspect.getsource(sys.modules[name]))
    return {node.name: _of_class(node) for node in tree.body if isinstance(node, ast.ClassDef)}


def _of_class(node: ast.ClassDef) -> dict[str, str]:
    texts = {}
    for statement, after in pairwise(node.body):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        ):
            texts[statement.target.id] = inspect.cleandoc(after.value.value)
    return texts
