"""Values looked at through their type: which fields they set, how two differ, and how one merges over the other.

The rules are those of structured-merge-diff v6, on plain JSON values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from slipway.embedded.fieldmanager.sets import FieldSet, Path, element_step, path_text

if TYPE_CHECKING:
    from slipway.embedded.fieldmanager.types import ListType, MapType, Type


class _Absent:
    """No value, as null is one."""


ABSENT = _Absent()


class TypeMismatchError(Exception):
    """A value that its type does not allow; the text has the path and the reason."""


class Comparison(NamedTuple):
    """How a new object differs from an old one."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet

    def without(self, steps: tuple[str, ...]) -> Comparison:
        return Comparison(*(fields.without(steps) for fields in self)) if steps else self


def check(value: Any, type_: Type) -> None:
    """Every field declared, every list element identifiable: what apply asks of a configuration."""
    if errors := list(_errors(value, type_, "")):
        raise TypeMismatchError(errors[0] if len(errors) == 1 else "errors:\n" + "\n".join(f"  {error}" for error in errors))


def _errors(value: Any, type_: Type, path: str) -> list[str]:
    if value is None:
        return []
    kind = _kind(value, type_)
    found: list[str] = []
    if kind == "map" and type_.map is not None:
        if not isinstance(value, dict):
            return [f"{path}: expected map, got &{{{_go_text(value)}}}"]
        for name, item in value.items():
            if not type_.map.knows(name):
                found.append(f"{path}.{name}: field not declared in schema")
            else:
                found += _errors(item, type_.map.field(name), f"{path}.{name}")
    elif kind == "list" and type_.list is not None:
        if not isinstance(value, list):
            return [f"{path}: expected list, got &{{{_go_text(value)}}}"]
        seen = set()
        for index, item in enumerate(value):
            if type_.list.is_atomic:
                continue
            try:
                step = element_step(type_.list, item)
            except ValueError as error:
                found.append(f"{path}: element {index}: {error}")
                continue
            if step in seen:
                found.append(f"{path}: duplicate entries for key {path_text((step,))}")
            seen.add(step)
            if isinstance(item, (dict, list)):
                found += _errors(item, type_.list.element, f"{path}[{index}]")
    elif isinstance(value, (dict, list)):
        found.append(f"{path}: expected scalar, got &{{{_go_text(value)}}}")
    return found


def _go_text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _kind(value: Any, type_: Type) -> str:
    """Which of its forms a value takes; where it takes none that is allowed, the first that is."""
    if isinstance(value, dict):
        if type_.map is not None:
            return "map"
    elif isinstance(value, list):
        if type_.list is not None:
            return "list"
    elif value is not None and value is not ABSENT and type_.scalar:
        return "scalar"
    return "map" if type_.map is not None else "scalar" if type_.scalar else "list"


def field_set(value: Any, type_: Type) -> FieldSet:
    """Every field that a value sets."""
    found = FieldSet()
    _collect(value, type_, (), found)
    return found


def _collect(value: Any, type_: Type, path: Path, found: FieldSet) -> None:
    kind = _kind(value, type_)
    if kind == "map" and type_.map is not None:
        if type_.map.is_atomic:
            found.insert(path)
        elif isinstance(value, dict):
            for name, item in value.items():
                below = (*path, f"f:{name}")
                _collect(item, type_.map.field(name), below, found)
                if item is None or item == {} or name not in type_.map.fields:
                    found.insert(below)
    elif kind == "list" and type_.list is not None:
        if type_.list.is_atomic:
            found.insert(path)
        elif isinstance(value, list):
            for step, items in _by_step(type_.list, value).items():
                if len(items) == 1:
                    _collect(items[0], type_.list.element, (*path, step), found)
                found.insert((*path, step))
    else:
        found.insert(path)


def _by_step(list_type: ListType, items: list[Any]) -> dict[str, list[Any]]:
    grouped: dict[str, list[Any]] = {}
    for item in items:
        try:
            step = element_step(list_type, item)
        except ValueError:
            # What is stored already is not refused here; it has no identity, so nobody owns it.
            continue
        grouped.setdefault(step, []).append(item)
    return grouped


def compare(old: Any, new: Any, type_: Type) -> Comparison:
    """Which fields a change removes, modifies and adds."""
    comparison = Comparison(FieldSet(), FieldSet(), FieldSet())
    _compare(old, new, type_, (), comparison)
    return comparison


def _compare(old: Any, new: Any, type_: Type, path: Path, found: Comparison) -> None:
    if old is new or (type(old) is type(new) and old == new and not isinstance(old, (dict, list))):
        return
    old_kind, new_kind = _kind(old, type_), _kind(new, type_)
    kinds = [old_kind] if new is ABSENT else [new_kind] if old is ABSENT or old_kind == new_kind else [old_kind, new_kind]
    is_leaf = False
    for kind in kinds:
        is_leaf = _compare_as(kind, old, new, type_, path, found)
    if not is_leaf:
        _note_presence(old, new, path, found)


def _compare_as(kind: str, old: Any, new: Any, type_: Type, path: Path, found: Comparison) -> bool:
    """Compare as one kind; whether the value is a leaf."""
    if kind == "map" and type_.map is not None:
        before, after = _dict(old), _dict(new)
        if not type_.map.is_atomic and (before or after):
            for name in before.keys() | after.keys():
                _compare(before.get(name, ABSENT), after.get(name, ABSENT), type_.map.field(name), (*path, f"f:{name}"), found)
            return False
    elif kind == "list" and type_.list is not None:
        earlier, later = _list(old), _list(new)
        if not type_.list.is_atomic and (earlier or later):
            _compare_lists(earlier, later, type_.list, path, found)
            return False
    if not _note_presence(old, new, path, found) and not _equal(old, new):
        found.modified.insert(path)
    return True


def _note_presence(old: Any, new: Any, path: Path, found: Comparison) -> bool:
    if old is ABSENT:
        found.added.insert(path)
    elif new is ABSENT:
        found.removed.insert(path)
    return old is ABSENT or new is ABSENT


def _compare_lists(old: list[Any], new: list[Any], list_type: ListType, path: Path, found: Comparison) -> None:
    before, after = _by_step(list_type, old), _by_step(list_type, new)
    for step in {**before, **after}:
        earlier, later, below = before.get(step, []), after.get(step, []), (*path, step)
        if len(earlier) <= 1 and len(later) <= 1:
            _compare((earlier or [ABSENT])[0], (later or [ABSENT])[0], list_type.element, below, found)
        elif len(earlier) > 1 and len(later) > 1:
            if not _equal(earlier, later):
                found.modified.insert(below)
        elif len(earlier) > 1:
            if later:
                _compare(ABSENT, later[0], list_type.element, below, found)
            found.removed.insert(below)
        else:
            if earlier:
                _compare(earlier[0], ABSENT, list_type.element, below, found)
            found.added.insert(below)


def merge(old: Any, new: Any, type_: Type) -> Any:
    """The new value over the old one: what the new one does not speak of stays."""
    if new is ABSENT or old is ABSENT:
        return old if new is ABSENT else new
    old_kind, new_kind = _kind(old, type_), _kind(new, type_)
    if new is not None and old is not None and old_kind != new_kind:
        return new
    kind = new_kind if new is not None else old_kind
    if kind == "map" and type_.map is not None:
        before, after = _dict(old), _dict(new)
        if not type_.map.is_atomic and (before or after):
            return _merge_maps(before, after, type_.map)
    elif kind == "list" and type_.list is not None:
        earlier, later = _list(old), _list(new)
        if not type_.list.is_atomic and (earlier or later):
            return _merge_lists(earlier, later, type_.list)
    return new


def _merge_maps(old: dict[str, Any], new: dict[str, Any], map_type: MapType) -> dict[str, Any]:
    names = {**old, **new}
    return {name: merge(old.get(name, ABSENT), new.get(name, ABSENT), map_type.field(name)) for name in names}


def _merge_lists(old: list[Any], new: list[Any], list_type: ListType) -> list[Any]:
    """Elements that both have stand in the new order; those of the old one alone keep their place between them."""
    old_steps = [element_step(list_type, item) for item in old]
    new_steps = [element_step(list_type, item) for item in new]
    # Twice the same key has no one value to merge with.
    before = {step: item if old_steps.count(step) == 1 else None for step, item in zip(old_steps, old, strict=True)}
    after = dict(zip(new_steps, new, strict=True))
    shared = [step for step in new_steps if step in before]
    merged: list[Any] = []
    done: set[str] = set()
    left = right = 0
    while left < len(old) or right < len(new):
        if left < len(old):
            step = old_steps[left]
            if right < len(new):
                if step == new_steps[right]:
                    done.add(step)
                    merged.append(merge(before[step], after[step], list_type.element))
                    left, right = left + 1, right + 1
                    shared = shared[1:]
                    continue
                if step in after and shared and shared[0] != step:
                    left += 1
                    continue
            if step not in after:
                merged.append(old[left])
                left += 1
                continue
            if step in done:
                left += 1
        if right < len(new):
            step = new_steps[right]
            done.add(step)
            merged.append(merge(before.get(step, ABSENT), after[step], list_type.element))
            right += 1
            if shared and shared[0] == step:
                shared = shared[1:]
    return merged


def remove(value: Any, fields: FieldSet, type_: Type) -> Any:
    """The value without a set of fields; None where nothing of a list or map is left."""
    kind = _kind(value, type_)
    if kind == "map" and isinstance(value, dict) and type_.map is not None:
        if type_.map.is_atomic:
            return None
        left = {}
        for name, item in value.items():
            step = f"f:{name}"
            if step not in fields.members:
                below = fields.children.get(step)
                left[name] = remove(item, below, type_.map.field(name)) if below is not None and not below.is_empty() else item
        return left or None
    if kind == "list" and isinstance(value, list) and type_.list is not None:
        if type_.list.is_atomic:
            return None
        kept = []
        for item in value:
            step = element_step(type_.list, item)
            if step not in fields.members:
                below = fields.children.get(step)
                kept.append(remove(item, below, type_.list.element) if below is not None and not below.is_empty() else item)
        return kept or None
    return value


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _equal(one: Any, other: Any) -> bool:
    # Python calls 1 and True equal; their JSON is not.
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    return bool(one == other) and (
        not isinstance(one, (dict, list)) or msgspec.json.encode(one, order="sorted") == msgspec.json.encode(other, order="sorted")
    )
