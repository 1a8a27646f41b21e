"""Hosts by their identity: indices of the cache, so that finding one costs the same with ten hosts and with ten thousand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.api.cluster.kinds import MACHINE_INVENTORY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object, Request

TPM_HASH, MACHINE_HASH = "tpmHash", "machineHash"


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    tpm_hash: str = ""
    machine_hash: str = ""


class _Hashes(msgspec.Struct):
    """Of an inventory only what it is found by."""

    spec: _Spec = _Spec()


def tpm_hashes(found: Object) -> Iterable[str]:
    hashed = _hashes(found).tpm_hash
    return (hashed,) if hashed else ()


def machine_hashes(found: Object) -> Iterable[str]:
    hashed = _hashes(found).machine_hash
    return (hashed,) if hashed else ()


def _hashes(found: Object) -> _Spec:
    try:
        return found.decode(_Hashes).spec
    except msgspec.ValidationError:
        # An index must not fail for one object that somebody wrote by hand: nobody registers as that host.
        return _Spec()


def add_indices(cache: Cache) -> None:
    cache.add_index(MACHINE_INVENTORY, TPM_HASH, tpm_hashes)
    cache.add_index(MACHINE_INVENTORY, MACHINE_HASH, machine_hashes)


async def by_identity(cache: Cache, index: str, hashed: str) -> list[Object]:
    """The inventories of an identity, the oldest first; more than one are a mistake."""
    return sorted(await cache.list(MACHINE_INVENTORY, index=(index, hashed)), key=age)


async def elder_twins(cache: Cache, found: Object) -> list[str]:
    """The inventories that have the identity of this one and are older than it."""
    return [f"{each.namespace}/{each.name}" for each in await _twins(found, cache) if age(each) < age(found)]


async def twins(found: Object, cache: Cache) -> Iterable[Request]:
    """The other inventories of an identity: when one goes, another may be the oldest."""
    return [each.request for each in await _twins(found, cache)]


async def _twins(found: Object, cache: Cache) -> list[Object]:
    hashes = _hashes(found)
    known = [
        each
        for index, hashed in ((TPM_HASH, hashes.tpm_hash), (MACHINE_HASH, hashes.machine_hash))
        if hashed
        for each in await by_identity(cache, index, hashed)
    ]
    return [each for each in known if each.metadata.uid != found.metadata.uid]


def identity_changed(old: Object | None, new: Object | None) -> bool:
    """Counts what comes, goes, or is somebody else now."""
    return old is None or new is None or _hashes(old) != _hashes(new)


def age(found: Object) -> tuple[str, str, str]:
    """Orders objects by when they came to be, alike for everybody who looks."""
    return found.metadata.creation_timestamp or "", found.namespace, found.name
