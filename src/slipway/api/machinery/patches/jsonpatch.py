"""JSON patches (RFC 6902) and merge patches (RFC 7386) as kubeadm's library, evanphx/json-patch v4, applies them.

Where the library is laxer than the RFC (a ``replace`` of a missing key adds it, negative indices count from the end), so is this.
Where it panics (a path through an explicit null) or keeps silent (replacing the document by a scalar), this is an error.
"""

from __future__ import annotations

import copy
import re
from typing import Any

from slipway.api.machinery.errors import OperatorError

_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
_ABSENT = object()


class PatchError(OperatorError):
    """A patch that does not apply; the sentence says why."""


def merge(document: Any, patch: Any) -> Any:
    """Apply a merge patch; the arguments stay as they are."""
    if isinstance(patch, list):
        # The library takes a list for the new document.
        return _without_nulls(patch)
    if not isinstance(patch, dict):
        raise PatchError("Invalid JSON Patch: a merge patch is an object")
    if not isinstance(document, dict):
        return _without_nulls(patch)
    return _merged(document, patch)


def _merged(document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    result = dict(document)
    for key, value in patch.items():
        current = result.get(key)
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(current, dict):
            result[key] = _merged(current, value)
        elif isinstance(current, dict):
            # The library prunes nulls only where the patch does not meet an object.
            result[key] = copy.deepcopy(value)
        else:
            result[key] = _without_nulls(value)
    return result


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def apply(document: Any, operations: Any) -> Any:
    """Apply the operations of a JSON patch in order; the arguments stay as they are."""
    if operations is None:
        return document
    if not isinstance(operations, list) or not all(isinstance(operation, dict) for operation in operations):
        raise PatchError("a JSON patch is a list of operations, each an object with op, path and value or from")
    if not isinstance(document, (dict, list)):
        raise PatchError("a JSON patch applies to an object or a list")
    document = copy.deepcopy(document)
    for operation in copy.deepcopy(operations):
        document = _operate(document, operation)
    return document


def _operate(document: Any, operation: dict[str, Any]) -> Any:
    name = operation.get("op")
    if name == "add":
        _add(document, _path(operation, "add"), operation.get("value"), "add operation does not apply: doc is missing path")
    elif name == "remove":
        path = _path(operation, "remove")
        container, key = _parent(document, path, "remove operation does not apply: doc is missing path")
        _remove(container, key, path)
    elif name == "replace":
        return _replace(document, _path(operation, "replace"), operation.get("value"))
    elif name == "move":
        origin = _path(operation, "move", "from")
        container, key = _parent(document, origin, "move operation does not apply: doc is missing from path")
        value = _get(container, key, origin)
        _remove(container, key, origin)
        destination = _path(operation, "move")
        _add(document, destination, value, "move operation does not apply: doc is missing destination path")
    elif name == "copy":
        origin = _path(operation, "copy", "from")
        container, key = _parent(document, origin, "copy operation does not apply: doc is missing from path")
        value = copy.deepcopy(_get(container, key, origin))
        _add(document, _path(operation, "copy"), value, "copy operation does not apply: doc is missing destination path")
    elif name == "test":
        _test(document, _path(operation, "test"), operation.get("value", _ABSENT))
    else:
        shown = name if isinstance(name, str) else "unknown"
        raise PatchError(f"Unexpected kind: {shown}; an op is add, remove, replace, move, copy or test")
    return document


def _path(operation: dict[str, Any], name: str, key: str = "path") -> str:
    path = operation.get(key)
    if not isinstance(path, str):
        raise PatchError(f"{name} operation failed to decode {key}: missing value")
    return path


def _parent(document: Any, path: str, complaint: str) -> tuple[dict[str, Any] | list[Any], str]:
    """The object or list that holds the path's last step, and that step."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")]
    container = document
    if len(steps) < 2:
        raise PatchError(f'{complaint}: "{path}": missing value')
    for step in steps[1:-1]:
        try:
            container = _get(container, step, path)
        except PatchError:
            container = None
        if not isinstance(container, (dict, list)):
            raise PatchError(f'{complaint}: "{path}": missing value')
    return container, steps[-1]


def _get(container: dict[str, Any] | list[Any], key: str, path: str) -> Any:
    if isinstance(container, dict):
        return container.get(key)
    return container[_index(container, key, path)]


def _index(items: list[Any], key: str, path: str, *, room: int = 0) -> int:
    """A position in a list, negative ones from its end; ``room`` is 1 where the position after the last is one, too."""
    if not _INTEGER.match(key):
        raise PatchError(f"error for path '{path}': value was not a proper array index: '{key}'")
    index, size = int(key), len(items) + room
    if not -size <= index < size:
        raise PatchError(f"error for path '{path}': Unable to access invalid index: {index}: invalid index referenced")
    return index + size if index < 0 else index


def _add(document: Any, path: str, value: Any, complaint: str) -> None:
    container, key = _parent(document, path, complaint)
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        container.insert(_index(container, key, path, room=1), value)


def _remove(container: dict[str, Any] | list[Any], key: str, path: str) -> None:
    if isinstance(container, list):
        del container[_index(container, key, path)]
    elif key in container:
        del container[key]
    else:
        raise PatchError(f"error in remove for path: '{path}': Unable to remove nonexistent key: {key}: missing value")


def _replace(document: Any, path: str, value: Any) -> Any:
    if path == "":
        if not isinstance(value, (dict, list)):
            raise PatchError("replace operation value must be object or array")
        return value
    container, key = _parent(document, path, "replace operation does not apply: doc is missing path")
    if isinstance(container, dict):
        container[key] = value
    else:
        try:
            container[_index(container, key, path)] = value
        except PatchError as error:
            raise PatchError(f"replace operation does not apply: doc is missing key: {path}: {error.message}") from None
    return document


def _test(document: Any, path: str, expected: Any) -> None:
    if path == "":
        found = document
    else:
        container, key = _parent(document, path, "test operation does not apply: is missing path")
        found = _get(container, key, path)
    if expected is _ABSENT:
        expected = None
    if not equal(found, expected):
        raise PatchError(f"testing value {path} failed: test failed")


def equal(left: Any, right: Any) -> bool:
    """Equality of JSON values; unlike Python's, it tells true from 1 and 1 from 1.0."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(item, right[key]) for key, item in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    return type(left) is type(right) and bool(left == right)
