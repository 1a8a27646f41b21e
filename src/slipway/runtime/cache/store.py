"""The objects that an informer keeps: by namespace and name, by whatever indices were asked for, and what is read from them."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, TypeVar

from slipway.runtime.logs import fields

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Collection, Iterable

    from slipway.runtime.objects import Object

    Keys = Callable[[Object], Iterable[str]]

T = TypeVar("T")
_log = logging.getLogger("slipway.runtime.informer")


class Store:
    """The objects of an informer, by namespace and name and by whatever indices were asked for."""

    def __init__(self) -> None:
        self._namespaces: dict[str, dict[str, Object]] = {}
        self._count = 0
        self._indices: dict[str, _Index] = {}

    def __len__(self) -> int:
        return self._count

    def get(self, name: str, namespace: str = "") -> Object | None:
        found = self._namespaces.get(namespace)
        return found.get(name) if found is not None else None

    def indexed(self, index: str, key: str) -> list[Object]:
        found = self._indices.get(index)
        if found is None:
            raise KeyError(f'there is no index "{index}": it must be added before it is asked')
        return found.get(key)

    def add_index(self, name: str, keys: Keys) -> None:
        if name in self._indices:
            if self._indices[name].keys_of is keys:
                return
            raise ValueError(f'there is an index "{name}" already, by another function')
        index = self._indices[name] = _Index(keys)
        for known in self.list():
            index.put(known)

    def put(self, new: Object) -> Object | None:
        """Keep the object; what it takes the place of."""
        metadata = new.metadata
        objects = self._namespaces.get(metadata.namespace)
        if objects is None:
            objects = self._namespaces[metadata.namespace] = {}
        old = objects.get(metadata.name)
        objects[metadata.name] = new
        if old is None:
            self._count += 1
        for index in self._indices.values():
            if old is not None:
                index.remove(old)
            index.put(new)
        return old

    def remove(self, last: Object) -> Object | None:
        """Forget the object of that namespace and name; what was there."""
        objects = self._namespaces.get(last.metadata.namespace)
        old = objects.pop(last.metadata.name, None) if objects is not None else None
        if old is None:
            return None
        if not objects:
            del self._namespaces[last.metadata.namespace]
        self._count -= 1
        for index in self._indices.values():
            index.remove(old)
        return old

    def facts(self, of: Callable[[Object], T], namespace: str = "") -> builtins.list[T]:
        """What a function says of every object, which it is asked once for each state of one."""
        return [each.known(of) for each in self.list(namespace)]

    def missing(self, seen: Collection[tuple[str, str]]) -> list[Object]:
        """What is here and not among ``seen``."""
        return [known for known in self.list() if (known.metadata.namespace, known.metadata.name) not in seen]

    def list(self, namespace: str = "") -> list[Object]:
        """What is there of a namespace, or of all of them; the list is the caller's."""
        if namespace:
            return list(self._namespaces.get(namespace, {}).values())
        return [known for objects in self._namespaces.values() for known in objects.values()]


class _Index:
    """Most keys are of one object, and most objects have one key: what would hold several is made when there are several."""

    def __init__(self, keys: Keys) -> None:
        self.keys_of = keys
        self._objects: dict[str, Object | dict[Object, None]] = {}
        # The keys that an object was put under: asking for them again might give others.
        self._put: dict[Object, str | tuple[str, ...]] = {}

    def get(self, key: str) -> list[Object]:
        found = self._objects.get(key)
        if found is None:
            return []
        return list(found) if isinstance(found, dict) else [found]

    def put(self, new: Object) -> None:
        try:
            keys = tuple(dict.fromkeys(self.keys_of(new)))
        except Exception:
            # One object that a reconciler's function does not understand must not stop the others.
            _log.exception("An object is left out of an index", extra=fields(object=repr(new)))
            return
        if keys:
            # Many have the same, each made anew.
            keys = tuple(map(sys.intern, keys))
            self._put[new] = keys if len(keys) > 1 else keys[0]
        for key in keys:
            found = self._objects.get(key)
            if found is None:
                self._objects[key] = new
            elif isinstance(found, dict):
                found[new] = None
            else:
                self._objects[key] = {found: None, new: None}

    def remove(self, old: Object) -> None:
        keys = self._put.pop(old, ())
        for key in (keys,) if isinstance(keys, str) else keys:
            found = self._objects[key]
            if isinstance(found, dict):
                del found[old]
            if not isinstance(found, dict) or not found:
                del self._objects[key]
