"""Strategic merge patches, as apimachinery applies them: lists merge by the keys that the Go types declare.

Containers and volumes merge by name, mounts by path, ports by number.  The directives are ``$patch`` (replace, delete),
``$retainKeys``, ``$deleteFromPrimitiveList/<field>`` and ``$setElementOrder/<field>``.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from slipway.api.machinery import gotypes
from slipway.api.machinery.goscalars import GoType, json_word
from slipway.api.machinery.patches.jsonpatch import PatchError

if TYPE_CHECKING:
    from collections.abc import Callable

JSONObject = dict[str, Any]

_PATCH = "$patch"
_RETAIN_KEYS = "$retainKeys"
_DELETE_FROM = "$deleteFromPrimitiveList"
_ORDER = "$setElementOrder"


def apply(document: JSONObject, patch: Any, kind: str, minor: int) -> JSONObject:
    """Apply a patch to an object of a kind; the arguments stay as they are."""
    return apply_to(document, patch, gotypes.struct(kind, minor))


def apply_to(document: JSONObject, patch: Any, schema: GoType) -> JSONObject:
    """Apply a patch to an object of a type; the arguments stay as they are."""
    if patch is None:
        return document
    if not isinstance(document, dict) or not isinstance(patch, dict):
        raise PatchError("invalid JSON document: a strategic merge patch is an object")
    return _merge_map(copy.deepcopy(document), copy.deepcopy(patch), schema)


class _FieldMeta:
    """What the Go types say of a field: the type inside it, and how its values merge."""

    __slots__ = ("merge_key", "strategy", "type")

    def __init__(self, type_: GoType, strategy: str, merge_key: str) -> None:
        self.type, self.strategy, self.merge_key = type_, strategy, merge_key


def _map_meta(schema: GoType, key: str) -> _FieldMeta:
    type_ = schema.element if isinstance(schema, gotypes.Pointer) else schema
    if not isinstance(type_, gotypes.Struct):
        raise PatchError(f"merging an object in json but data type is not struct, instead is: {type_.kind}")
    field = type_.fields.get(key) or next((field for name, field in type_.fields.items() if name.lower() == key.lower()), None)
    if field is None:
        raise PatchError(f'unable to find api field in struct {type_.name} for the json field "{key}"')
    strategies = [strategy for strategy in field.strategies if strategy != "retainKeys"]
    return _FieldMeta(field.type, strategies[0] if strategies else "", field.merge_key)


def _list_meta(schema: GoType, key: str) -> _FieldMeta:
    meta = _map_meta(schema, key)
    type_ = meta.type.element if isinstance(meta.type, gotypes.Pointer) else meta.type
    if not isinstance(type_, gotypes.Slice):
        raise PatchError(f'the field "{key}" is not a list')
    return _FieldMeta(type_.element, meta.strategy, meta.merge_key)


def _merge_map(original: JSONObject, patch: JSONObject, schema: GoType) -> JSONObject:
    if _PATCH in patch:
        return _directed(patch)
    _retain_keys(original, patch)
    _merge_ordered_lists(original, patch, schema)
    for key, value in patch.items():
        deletes = key.startswith(_DELETE_FROM)
        if deletes:
            key = _bare_key(key, "invalid patch format of primitive list")
        if value is None:
            original.pop(key, None)
        elif key not in original or json_word(original[key]) != json_word(value):
            if not deletes:
                _place(original, key, _without_nulls(value))
        elif isinstance(value, dict):
            meta = _map_meta(schema, key)
            original[key] = value if meta.strategy == "replace" else _merge_map(original[key], value, meta.type)
        elif isinstance(value, list):
            meta = _list_meta(schema, key)
            merges = meta.strategy == "merge" or deletes
            original[key] = _merge_list(original[key], value, meta, deletes=deletes) if merges else value
        else:
            original[key] = value
    return original


def _directed(patch: JSONObject) -> JSONObject:
    directive = patch.pop(_PATCH)
    if directive == "replace":
        return patch
    if directive == "delete":
        return {}
    raise PatchError(f"unknown patch type: {directive} in map: {patch}; a map takes replace or delete")


def _retain_keys(original: JSONObject, patch: JSONObject) -> None:
    if _RETAIN_KEYS not in patch:
        return
    retained = patch.pop(_RETAIN_KEYS)
    complaint = "invalid patch format of retainKeys: it lists every key that the patch sets"
    if not isinstance(retained, list):
        raise PatchError(complaint)
    for key, value in patch.items():
        if value is not None and not key.startswith((_DELETE_FROM, _ORDER)) and key not in retained:
            raise PatchError(complaint)
    for key in [key for key in original if key not in retained]:
        del original[key]


def _merge_ordered_lists(original: JSONObject, patch: JSONObject, schema: GoType) -> None:
    """Merge the lists that come with an order, and take them out of the patch."""
    for directive in [key for key in patch if key.startswith(_ORDER)]:
        order = patch.pop(directive)
        key = _bare_key(directive, "invalid patch format of setElementOrder list")
        ours, theirs = original.get(key), patch.get(key)
        for items in (order, *([ours] if key in original else []), *([theirs] if key in patch else [])):
            if not isinstance(items, list):
                raise PatchError(f"{directive}: expected a list, but received a {json_word(items)}")
        meta = _list_meta(schema, key)
        _check_order(theirs or [], order, meta.merge_key)
        if ours is None and theirs is None:
            continue
        if theirs is None:
            merged = ours or []
        elif ours is None:
            merged = _without_directives(theirs)
        elif meta.strategy == "merge":
            merged = _merge_list(ours, theirs, meta, deletes=False)
        else:
            merged = theirs
        _same_type(ours or [], theirs or [])
        original[key] = _in_order(merged, order, ours or [], meta.merge_key)
        patch.pop(key, None)


def _check_order(items: list[Any], order: list[Any], merge_key: str) -> None:
    """The patch's own items must occur in the order list, in the same order; deletions need not."""
    if not items or not order:
        return
    identity = _identity(merge_key)
    pending = [item for item in items if not (isinstance(item, dict) and item.get(_PATCH) == "delete")]
    places = list(order)
    while pending and places:
        directed = isinstance(pending[0], dict) and _PATCH in pending[0]
        if directed or _same(identity(pending[0]), identity(places.pop(0))):
            pending.pop(0)
    if pending:
        raise PatchError(f"The order in patch list: {items} doesn't match {_ORDER} list: {order}")


def _merge_list(original: list[Any], patch: list[Any], meta: _FieldMeta, *, deletes: bool) -> list[Any]:
    if not original and not patch:
        return original
    if _same_type(original, patch) != "object":
        if deletes:
            return [item for item in original if not any(_same(item, gone) for gone in patch)]
        merged = _distinct(original + patch)
        return _in_order(merged, patch, original, "")
    key = meta.merge_key
    if not key:
        raise PatchError(f"cannot merge lists without merge key for {meta.type.kind}")
    original, patch = _apply_item_directives(original, patch, key)
    merged = list(original)
    for item in patch:
        if key not in item:
            raise PatchError(f"map: {item} does not contain declared merge key: {key}")
        position = next((index for index, other in enumerate(merged) if key in other and _same(other[key], item[key])), None)
        if position is None:
            merged.append(item)
        else:
            merged[position] = _merge_map(merged[position], item, meta.type)
    return _in_order(merged, patch, original, key)


def _apply_item_directives(original: list[JSONObject], patch: list[JSONObject], key: str) -> tuple[list[JSONObject], list[JSONObject]]:
    """Items with ``$patch`` delete their namesakes, or make the patch replace the list."""
    plain, replace = [], False
    for item in patch:
        directive = item.get(_PATCH)
        if _PATCH not in item:
            plain.append(item)
        elif directive == "delete":
            if key not in item:
                raise PatchError(f"map: {item} does not contain declared merge key: {key}")
            original = [other for other in original if not (key in other and _same(other[key], item[key]))]
        elif directive == "replace":
            replace = True
        elif directive == "merge":
            raise PatchError("merging lists cannot yet be specified in the patch")
        else:
            raise PatchError(f"unknown patch type: {directive} in map: {item}")
    return (plain, []) if replace else (original, plain)


def _in_order(merged: list[Any], order: list[Any], live: list[Any], merge_key: str) -> list[Any]:
    """The items that the order names, in that order; the others keep their places between them as they were live."""
    identity = _identity(merge_key)
    named = [identity(item) for item in order]
    lived = [identity(item) for item in live]

    def rank(items: list[Any]) -> Callable[[Any], int]:
        return lambda item: _position(items, identity(item))

    ours = sorted((item for item in merged if _position(named, identity(item)) >= 0), key=rank(named))
    others = sorted((item for item in merged if _position(named, identity(item)) < 0), key=rank(lived))
    result: list[Any] = []
    while ours and others:
        # One that is not named goes first only where it stood before the named one.
        goes_first = 0 <= _position(lived, identity(others[0])) < _position(lived, identity(ours[0]))
        result.append((others if goes_first else ours).pop(0))
    return result + ours + others


def _identity(merge_key: str) -> Callable[[Any], Any]:
    if not merge_key:
        return lambda item: item

    def of(item: Any) -> Any:
        if not isinstance(item, dict) or merge_key not in item:
            raise PatchError(f"map: {item} does not contain declared merge key: {merge_key}")
        return item[merge_key]

    return of


def _position(items: list[Any], wanted: Any) -> int:
    return next((index for index, item in enumerate(items) if _same(item, wanted)), -1)


def _same(left: Any, right: Any) -> bool:
    """Go compares values with their types: true is not 1."""
    return type(left) is type(right) and bool(left == right)


def _same_type(*lists: list[Any]) -> str:
    words = {json_word(item) for items in lists for item in items}
    if not words:
        raise PatchError("no elements in any of the given slices")
    if "array" in words:
        raise PatchError("lists of lists are not supported")
    if len(words) > 1:
        raise PatchError(f"list element types are not identical: {list(lists)}")
    return words.pop()


def _distinct(items: list[Any]) -> list[Any]:
    """Without repetitions, by apimachinery's method: a repeated item is overwritten with the last one."""
    items = list(items)
    first = 0
    while first < len(items) - 1:
        other = first + 1
        while other < len(items):
            if _same(items[first], items[other]):
                items[other] = items[-1]
                items.pop()
            else:
                other += 1
        first += 1
    return items


def _bare_key(key: str, complaint: str) -> str:
    prefix, separator, field = key.partition("/")
    if not separator or prefix not in (_DELETE_FROM, _ORDER):
        raise PatchError(complaint)
    return field


def _place(original: JSONObject, key: str, value: Any) -> None:
    if isinstance(value, dict) and _PATCH in value:
        original.pop(key, None)
    else:
        original[key] = _without_directives(value)


def _without_directives(value: Any) -> Any:
    """Objects with a ``$patch`` have nothing to apply to where there is no original, and go."""
    if isinstance(value, dict):
        return {key: _without_directives(item) for key, item in value.items() if not (isinstance(item, dict) and _PATCH in item)}
    if isinstance(value, list):
        return [_without_directives(item) for item in value if not (isinstance(item, dict) and _PATCH in item)]
    return value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
