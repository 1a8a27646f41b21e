"""Objects, their versions, their history and who watches them.  It knows nothing of kinds, rules or HTTP.

One counter gives every write its resourceVersion, as etcd's revision does.  Objects are kept encoded, so that lists and watches
hand out bytes that were made once; what every request needs of them is kept beside.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.api.machinery.objects import Manifest


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class Stored:
    """One version of an object.  It never changes: a write makes a new one."""

    __slots__ = ("api_version", "deleting", "fields", "key", "labels", "name", "namespace", "others", "owners", "raw", "uid", "version")

    def __init__(self, manifest: Manifest, version: int, raw: bytes | None = None) -> None:
        metadata = manifest["metadata"]
        if raw is None:
            # Lists of built-in kinds leave these two out of their items, which is easy where they come first.
            manifest = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], **manifest}
        self.api_version: str = manifest.get("apiVersion") or ""
        self.namespace: str = metadata.get("namespace") or ""
        self.name: str = metadata["name"]
        self.key = key(self.namespace, self.name)
        self.uid: str = metadata.get("uid") or ""
        self.version = version
        self.labels: dict[str, str] = metadata.get("labels") or {}
        self.owners: tuple[str, ...] = tuple(reference.get("uid") or "" for reference in metadata.get("ownerReferences") or ())
        self.deleting = "deletionTimestamp" in metadata
        self.raw = _encode(manifest) if raw is None else raw
        self.fields: dict[str, str] | None = None
        """What field selectors may ask for, once one has asked."""
        self.others: dict[str, bytes] = {}
        """The object in other API versions, once somebody has asked for them."""

    def encoded(self, api_version: str) -> bytes | None:
        """The object in an API version, where it is kept in that one or was converted to it before."""
        return self.raw if api_version == self.api_version else self.others.get(api_version)

    def manifest(self) -> Manifest:
        """A copy that the caller may change."""
        return _decode(self.raw)  # type: ignore[no-any-return]


class Change:
    """What a write did to one object."""

    __slots__ = ("current", "frames", "is_of_life", "previous", "type", "version")

    def __init__(self, type_: str, version: int, current: Stored, previous: Stored | None) -> None:
        self.type, self.version = type_, version
        self.current = current
        """The new state; of a deleted object the last one, at the version of its deletion."""
        self.previous = previous
        self.is_of_life = bool(current.owners or current.deleting or type_ == DELETED or (previous is not None and previous.owners))
        self.frames: dict[tuple[str, str], bytes] = {}
        """The lines that watches send, by type and API version, once one has sent them."""


class Bucket:
    """The objects of one resource, in the order of their keys, and their latest changes."""

    __slots__ = ("compacted", "history", "keys", "objects", "watchers")

    def __init__(self, compacted: int) -> None:
        self.objects: dict[str, Stored] = {}
        self.keys: list[str] = []
        self.history: deque[Change] = deque()
        self.compacted = compacted
        """Changes up to this version are forgotten."""
        self.watchers: set[Callable[[Change], None]] = set()

    def within(self, namespace: str, start: str = "") -> Iterator[Stored]:
        """The objects of a namespace, or of all of them, from a key on."""
        first, last = (f"{namespace}/", f"{namespace}0") if namespace else ("", "")
        keys, objects = self.keys, self.objects
        end = bisect_left(keys, last) if last else len(keys)
        return (objects[name] for name in keys[bisect_left(keys, max(first, start)) : end])


Listener = Callable[[str, Change], None]
"""Is told the resource and what happened."""


class Journal(Protocol):
    """Where writes are kept beyond the process."""

    def write(self, resource: str, key: str, version: int, raw: bytes | None) -> None: ...


class ConflictError(Exception):
    """The object is not at the version that the writer has seen; ``found`` is 0 where there is none."""

    def __init__(self, found: int) -> None:
        super().__init__(f"found version {found}")
        self.found = found


class ForgottenError(Exception):
    """The history does not go back so far; ``oldest`` is the first version from which it does."""

    def __init__(self, oldest: int) -> None:
        super().__init__(f"the history starts after version {oldest}")
        self.oldest = oldest


def key(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


class Store:
    """All buckets.  ``history`` is how many changes of each resource are remembered."""

    def __init__(self, *, history: int = 10_000, journal: Journal | None = None) -> None:
        self.version = 1
        self._listeners: dict[str, list[Listener]] = {}
        """Who is told of the changes of a resource, in order."""
        self._followers: list[Listener] = []
        """Who is told of the life of all objects."""
        self._history = history
        self._floor = 0
        """Changes up to this version are forgotten, in every bucket."""
        self._journal = journal
        self._buckets: dict[str, Bucket] = {}
        self._places: dict[str, tuple[Bucket, str, str]] = {}
        """Where each object is, by its uid."""

    def listen(self, listener: Listener, *resources: str) -> None:
        """Tell of all changes of some resources."""
        for resource in resources:
            self._listeners.setdefault(resource, []).append(listener)

    def follow(self, follower: Listener) -> None:
        """Tell of what changes the life of an object of any resource: it is owned, or no longer; it is to be deleted, or is gone."""
        self._followers.append(follower)

    def bucket(self, resource: str) -> Bucket:
        found = self._buckets.get(resource)
        if found is None:
            found = self._buckets[resource] = Bucket(self._floor)
        return found

    def resources(self) -> list[str]:
        return [name for name, bucket in self._buckets.items() if bucket.objects]

    def get(self, resource: str, namespace: str, name: str) -> Stored | None:
        return self.bucket(resource).objects.get(key(namespace, name))

    def by_uid(self, uid: str) -> tuple[str, Stored] | None:
        """An object and the resource that it is one of."""
        place = self._places.get(uid)
        return (place[1], place[0].objects[place[2]]) if place is not None else None

    def restore(self, resource: str, raw: bytes, version: int) -> None:
        """Put back what a journal kept; the history starts after it."""
        stored = Stored(_decode(raw), version, raw)
        bucket = self.bucket(resource)
        insort(bucket.keys, stored.key)
        bucket.objects[stored.key] = stored
        self._places[stored.uid] = (bucket, resource, stored.key)

    def resume(self, version: int) -> None:
        """Go on after the last version of a former life."""
        self.version = max(self.version, version)
        self.compact()

    def put(self, resource: str, manifest: Manifest, expected: int) -> Stored:
        """Write an object; ``expected`` is the version that it replaces, 0 for a new one."""
        metadata = manifest["metadata"]
        bucket = self.bucket(resource)
        name = key(metadata.get("namespace") or "", metadata["name"])
        previous = bucket.objects.get(name)
        found = previous.version if previous is not None else 0
        if found != expected:
            raise ConflictError(found)
        self.version += 1
        metadata["resourceVersion"] = str(self.version)
        stored = Stored(manifest, self.version)
        if previous is None:
            insort(bucket.keys, name)
            self._places[stored.uid] = (bucket, resource, name)
        bucket.objects[name] = stored
        self._record(resource, bucket, Change(MODIFIED if previous else ADDED, self.version, stored, previous), stored.raw)
        return stored

    def delete(self, resource: str, manifest: Manifest, expected: int) -> Stored:
        """Remove an object; ``manifest`` is its last state, which watchers are told."""
        metadata = manifest["metadata"]
        bucket = self.bucket(resource)
        name = key(metadata.get("namespace") or "", metadata["name"])
        previous = bucket.objects.get(name)
        if previous is None or previous.version != expected:
            raise ConflictError(previous.version if previous is not None else 0)
        self.version += 1
        metadata["resourceVersion"] = str(self.version)
        stored = Stored(manifest, self.version)
        del bucket.objects[name]
        self._places.pop(previous.uid, None)
        del bucket.keys[bisect_left(bucket.keys, name)]
        self._record(resource, bucket, Change(DELETED, self.version, stored, previous), None)
        return stored

    def since(self, resource: str, version: int) -> list[Change]:
        """The changes after a version, oldest first."""
        bucket = self.bucket(resource)
        if version < bucket.compacted:
            raise ForgottenError(bucket.compacted)
        found: list[Change] = []
        for change in reversed(bucket.history):
            if change.version <= version:
                break
            found.append(change)
        found.reverse()
        return found

    def at(self, resource: str, version: int) -> Bucket:
        """The objects as they were at a version."""
        changes = self.since(resource, version)
        bucket = self.bucket(resource)
        if not changes:
            return bucket
        objects = dict(bucket.objects)
        for change in reversed(changes):
            if change.previous is None:
                objects.pop(change.current.key, None)
            else:
                objects[change.previous.key] = change.previous
        past = Bucket(version)
        past.objects, past.keys = objects, sorted(objects)
        return past

    def compact(self) -> None:
        """Forget all changes so far: who asks for them has to list anew."""
        self._floor = self.version
        for bucket in self._buckets.values():
            bucket.history.clear()
            bucket.compacted = self.version

    def _record(self, resource: str, bucket: Bucket, change: Change, raw: bytes | None) -> None:
        if self._journal is not None:
            self._journal.write(resource, change.current.key, change.version, raw)
        bucket.history.append(change)
        if len(bucket.history) > self._history:
            bucket.compacted = bucket.history.popleft().version
        for watcher in tuple(bucket.watchers):
            watcher(change)
        for listener in self._listeners.get(resource, ()):
            listener(resource, change)
        if change.is_of_life:
            for follower in self._followers:
                follower(resource, change)
