"""One reconcile of one object: what was read, what is changed of it, and writing the changes.

They are written by one merge patch for metadata and spec and one for status, each only where there is something.

Every patch names the resourceVersion that it starts from.  Where somebody else was faster, what we changed is put onto what they wrote,
unless both changed the same thing; conditions are merged one by one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from slipway.fleet.contract import conditions, status
from slipway.kube.aio import PatchType
from slipway.kube.errors import ConflictError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from datetime import datetime

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.facts import ClusterFacts
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache

# The rest of the metadata belongs to the API server.
_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")
_DEPRECATED = ("deprecated", "v1beta1", "conditions")
_ATTEMPTS = 5
_PAUSE = 0.05


class Scope:
    """``manifest`` is a copy that the steps change; nothing is written before they say so.

    A provider's own scope adds what its steps need.
    """

    def __init__(
        self,
        client: AsyncClient,
        cache: Cache,
        kind: Kind,
        manifest: Manifest,
        cluster: ClusterFacts,
        now: datetime,
        *,
        owned_conditions: Collection[str],
        owned_deprecated_conditions: Collection[str] = (),
    ) -> None:
        self.manifest = manifest
        self.cluster = cluster
        self.now = now
        self._kind = kind
        self._cache = cache
        self._patcher = Patcher(
            client, kind, manifest, owned_conditions=owned_conditions, owned_deprecated_conditions=owned_deprecated_conditions
        )
        # Conditions are replaced, never changed in place, and so is everything else of the status.
        self._status_before = _copy(manifest.get("status") or {})
        self._version: str = manifest["metadata"]["resourceVersion"]

    @property
    def namespace(self) -> str:
        namespace: str = self.manifest["metadata"]["namespace"]
        return namespace

    @property
    def name(self) -> str:
        name: str = self.manifest["metadata"]["name"]
        return name

    @property
    def spec(self) -> Manifest:
        """Not to be changed in place: an empty one must not come to be."""
        spec: Manifest = self.manifest.get("spec") or {}
        return spec

    def section(self, name: str) -> Manifest:
        """A part of the spec, empty where there is none."""
        found: Manifest = self.spec.get(name) or {}
        return found

    def set_section(self, name: str, value: Manifest) -> None:
        self.manifest["spec"] = {**self.spec, name: value}

    async def save_spec(self) -> None:
        """Write what changed of the spec, without the status: what is made next belongs to the spec that the API server has."""
        written = await self._patcher.patch({**self.manifest, "status": self._status_before})
        self.manifest["metadata"], self.manifest["spec"] = written["metadata"], written.get("spec")
        self._status_before = _copy(written.get("status") or {})
        if (version := written["metadata"]["resourceVersion"]) != self._version:
            self._version = version
            self._cache.wrote(self._kind, written)

    async def save(self) -> None:
        """Write everything that changed."""
        await self._patcher.save(self.manifest, self._cache)


class Changes(NamedTuple):
    """What differs between two versions of an object, as merge patches; empty ones need no request."""

    main: Manifest
    status: Manifest


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> Manifest:
    """The merge patch (RFC 7386) that makes ``after`` of ``before``.  A None counts as absent: the patch cannot say anything else."""
    patch: Manifest = {key: None for key, value in before.items() if value is not None and after.get(key) is None}
    for key, wanted in after.items():
        current = before.get(key)
        # Python takes true for 1, deep inside too; but no field of Kubernetes is a boolean today and a number tomorrow.
        if wanted is None or (wanted == current and type(wanted) is type(current)):
            continue
        if isinstance(wanted, dict) and isinstance(current, dict):
            nested = merge_patch(current, wanted)
            if nested:
                patch[key] = nested
        else:
            patch[key] = wanted
    return patch


def changes(before: Manifest, after: Manifest) -> Changes:
    """What a reconcile changed; what belongs to the API server is left alone."""
    main = merge_patch(_main(before), _main(after))
    return Changes(main, merge_patch(before.get("status") or {}, after.get("status") or {}))


class Patcher:
    """Takes an object before it is changed, and writes the difference.

    Of the conditions in ``owned_conditions`` nobody else has a say: they become what we say, whatever somebody else wrote.
    """

    def __init__(
        self,
        client: AsyncClient,
        kind: Kind,
        before: Manifest,
        *,
        owned_conditions: Collection[str],
        owned_deprecated_conditions: Collection[str] = (),
    ) -> None:
        self._client = client
        self._kind = kind
        # The caller goes on with the same object, and may change it in place.
        self._before: Manifest = msgspec.json.decode(msgspec.json.encode(before))
        self._owned = frozenset(owned_conditions)
        self._owned_deprecated = frozenset(owned_deprecated_conditions)

    async def patch(self, after: Manifest) -> Manifest:
        """The object as it is now; ConflictError where somebody else changed what we changed.  Without a change there is no request."""
        current = await self._patched(after)
        # The caller has what is given back for itself.
        self._before = msgspec.json.decode(msgspec.json.encode(current))
        return current

    async def _patched(self, after: Manifest) -> Manifest:
        main, status = changes(self._before, after)
        current = self._before
        if main:
            current = await self._write(main, current, subresource="")
            if _gone(after):
                # With its last finalizer the object went; there is no status left to write.
                return current
        if status:
            current = await self._write(status, current, subresource="status", after=after)
        return current

    async def save(self, after: Manifest, cache: Cache) -> None:
        """Write it; the cache is told what to wait for."""
        version = self._before["metadata"]["resourceVersion"]
        self._before = await self._patched(after)
        if self._before["metadata"]["resourceVersion"] != version:
            cache.wrote(self._kind, self._before)

    async def _write(self, patch: Manifest, current: Manifest, *, subresource: str, after: Manifest | None = None) -> Manifest:
        metadata = self._before["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace", "")
        for attempt in range(_ATTEMPTS):
            body = {"status": patch} if subresource else patch
            # Without it the last one to write would win.
            version = {"resourceVersion": current["metadata"]["resourceVersion"]}
            body = {**body, "metadata": {**body.get("metadata", {}), **version}}
            try:
                return await self._client.patch(self._kind, name, namespace, body, type=PatchType.MERGE, subresource=subresource)
            except ConflictError:
                if attempt == _ATTEMPTS - 1:
                    raise
            await asyncio.sleep(_PAUSE * attempt)
            current = await self._client.get(self._kind, name, namespace)
            patch = self._onto(patch, current, after, subresource)
            if not patch:
                return current
        raise AssertionError("unreachable")

    def _onto(self, patch: Manifest, latest: Manifest, after: Manifest | None, subresource: str) -> Manifest:
        """The patch for what is there now."""
        metadata = self._before["metadata"]
        if latest["metadata"].get("uid") != metadata.get("uid"):
            raise _conflict(self._kind, metadata, "it was deleted and another one was made in its place")
        if not subresource:
            _refuse_disputed(self._kind, metadata, patch, _main(self._before), _main(latest))
            return patch
        before, wanted, now = self._before.get("status") or {}, (after or {}).get("status") or {}, latest.get("status") or {}
        rest = merge_patch(_without_conditions(before), _without_conditions(wanted))
        _refuse_disputed(self._kind, metadata, rest, before, now)
        return self._with_conditions(rest, before, wanted, now)

    def _with_conditions(self, rest: Manifest, before: Manifest, wanted: Manifest, now: Manifest) -> Manifest:
        try:
            merged = conditions.merge_changes(_list(before), _list(wanted), _list(now), owned=self._owned)
            deprecated = conditions.merge_changes(
                _deprecated(before),
                _deprecated(wanted),
                _deprecated(now),
                owned=self._owned_deprecated,
                same=status.same_deprecated,
                order=status.ordered_deprecated,
            )
        except conditions.ConditionConflictError as error:
            raise _conflict(self._kind, self._before["metadata"], error.message) from None
        if merged != _list(now):
            rest["conditions"] = merged
        if deprecated != _deprecated(now):
            others = rest.get("deprecated") or {}
            rest["deprecated"] = {**others, "v1beta1": {**(others.get("v1beta1") or {}), "conditions": deprecated}}
        return rest


def _main(manifest: Manifest) -> Manifest:
    metadata = manifest.get("metadata") or {}
    found = {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    return {**found, "metadata": {key: metadata[key] for key in _METADATA if metadata.get(key)}}


def _gone(after: Manifest) -> bool:
    metadata = after.get("metadata") or {}
    return bool(metadata.get("deletionTimestamp")) and not metadata.get("finalizers")


def _refuse_disputed(kind: Kind, metadata: Manifest, patch: Manifest, before: Manifest, latest: Manifest) -> None:
    """What we change must be as we knew it, or already as we want it."""
    for path, wanted in _leaves(patch):
        was, now = _at(before, path), _at(latest, path)
        if now not in (was, wanted):
            raise _conflict(kind, metadata, f"{'.'.join(path)} was changed by somebody else in the meantime")


def _leaves(patch: Manifest, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in patch.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key), value


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _without_conditions(status: Manifest) -> Manifest:
    rest = {key: value for key, value in status.items() if key not in ("conditions", "deprecated")}
    deprecated = status.get("deprecated") or {}
    older = {key: value for key, value in (deprecated.get("v1beta1") or {}).items() if key != "conditions"}
    others = {key: value for key, value in deprecated.items() if key != "v1beta1"}
    if older:
        others["v1beta1"] = older
    return {**rest, "deprecated": others} if others else rest


def _list(status: Manifest) -> list[Manifest]:
    return status.get("conditions") or []


def _deprecated(status: Manifest) -> list[Manifest]:
    return _at(status, _DEPRECATED) or []


def _conflict(kind: Kind, metadata: Manifest, why: str) -> ConflictError:
    where = f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata["name"]
    return ConflictError(f"the {kind.kind} {where} cannot be changed: {why}", code=409, reason="Conflict")


def _copy(status: Manifest) -> Manifest:
    return {name: _copy(value) if isinstance(value, dict) else value for name, value in status.items()}
