"""Fetches an image into a folder, whole and checked; run by the agent as a program of its own, which can be ended at any time.

While the host serves, others come first: it runs with the lowest priority, and leaves the disk as much room as the image will need once
more when it is deployed, beside what the kubelet begins to evict Pods at.
"""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.agent.staging import registry
from slipway.agent.staging.unpack import UnpackError, unpack
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from slipway.agent.staging.registry import Layer

KUBELET_CONFIG = "/var/lib/kubelet/config.yaml"
# The kubelet's own, where its configuration says nothing.
_EVICTION = {"nodefs.available": "10%", "imagefs.available": "15%"}
_LEAST_FREE = 1 << 30
# How often the room is looked at, in bytes that were unpacked.
_LOOK = 16 << 20
_LOWEST_PRIORITY = 19
_GZIP = 31
# As much as is in memory at a time, however well it was compressed.
_PIECE = 1 << 20
_UNITS = {"": 1, **{f"{letter}i": 1 << 10 * power for power, letter in enumerate("KMGT", 1)}}
_UNITS |= {letter: 1000**power for power, letter in enumerate("kMGT", 1)}


class Fetched(msgspec.Struct, frozen=True):
    """An image in its folder."""

    digest: str
    bytes: int = 0
    """How much of it there is, unpacked."""
    same: bool = False
    """It has the digest that was named, and nothing was fetched."""


class Room(NamedTuple):
    """The space of a file system."""

    total: int
    free: int


def fetch(image: str, folder: str, unless: str = "", kubelet_config: str = KUBELET_CONFIG) -> Fetched:
    """Fetch an image into an empty folder, unless its digest is the one that is named; an OperatorError says why it cannot be had."""
    try:
        reference = registry.parse(image)
        source = registry.Registry(reference.registry)
        manifest = source.manifest(reference)
        if manifest.digest == unless:
            return Fetched(manifest.digest, same=True)
        if os.geteuid() != 0:
            raise OperatorError("an image has files of many owners: fetching one needs root")
        os.makedirs(folder, 0o755)
        kept = reserved(_room(folder).total, _thresholds(kubelet_config))
        check_room(_room(folder), sum(layer.size for layer in manifest.layers), kept, image)
        unpacked = 0

        def grown(count: int) -> None:
            nonlocal unpacked
            if unpacked // _LOOK != (unpacked + count) // _LOOK:
                check_room(_room(folder), unpacked + count, kept, image)
            unpacked += count

        for layer in manifest.layers:
            unpack(_content(source.blob(reference, layer.digest), layer, grown), folder)
    except (registry.PullError, UnpackError, ValueError) as error:
        raise OperatorError(str(error)) from error
    except OSError as error:
        raise OperatorError(f"{image} cannot be kept in {folder}: {error.strerror or error}") from error
    return Fetched(manifest.digest, unpacked)


def give_way() -> None:
    """Have this process, and what it starts, run when nothing else wants to."""
    os.nice(_LOWEST_PRIORITY)


def check_room(room: Room, needed: int, kept: int, image: str) -> None:
    """The image is deployed from here, which takes as much as it has once more."""
    if room.free < needed + kept:
        raise OperatorError(
            f"there is no room to fetch {image} ahead: {room.free >> 20} MiB are free, of which {needed >> 20} MiB are for the image and "
            f"{kept >> 20} MiB are left alone; it is pulled when it is needed"
        )


def reserved(total: int, thresholds: dict[str, str]) -> int:
    """What is left alone: the kubelet evicts Pods where less than so much is free."""
    return max([_LEAST_FREE, *(_amount(text, total) for text in thresholds.values())])


def _amount(text: str, total: int) -> int:
    if found := re.fullmatch(r"(\d+(?:\.\d+)?)%", text):
        return int(total * float(found[1]) / 100)
    if (found := re.fullmatch(r"(\d+)([kKMGT]?i?)", text)) and found[2] in _UNITS:
        return int(found[1]) * _UNITS[found[2]]
    return 0


def _thresholds(path: str) -> dict[str, str]:
    """When the kubelet of this host evicts; one that does not serve has none."""
    try:
        with open(path, encoding="utf-8") as handle:
            documents = goyaml.load(handle.read())
    except FileNotFoundError:
        return {}
    except (OSError, OperatorError, UnicodeDecodeError):
        return _EVICTION
    found = documents[0].value if documents else None
    told = found.get("evictionHard") if isinstance(found, dict) else None
    own = {str(key): str(value) for key, value in told.items()} if isinstance(told, dict) else {}
    return {key: own.get(key, default) for key, default in _EVICTION.items()}


def _room(folder: str) -> Room:
    found = os.statvfs(folder)
    return Room(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)


def _content(chunks: Iterator[bytes], layer: Layer, grown: Callable[[int], None]) -> Iterator[bytes]:
    """A layer without its compression, checked at its end against the digest of its content."""
    if not layer.media_type.endswith((".tar", "gzip")):
        raise registry.PullError(f"the layer {layer.digest} is {layer.media_type}, which is not fetched ahead: only tar and gzip are")
    digest = hashlib.sha256()
    try:
        for plain in _inflated(chunks) if layer.media_type.endswith("gzip") else chunks:
            grown(len(plain))
            digest.update(plain)
            yield plain
    except zlib.error as error:
        raise registry.PullError(f"the layer {layer.digest} is not compressed as it says: {error}") from error
    registry.check(layer.content, f"sha256:{digest.hexdigest()}", f"the content of {layer.digest}")


def _inflated(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The content of gzip in pieces of a bounded size, of all its members: builders that compress in parallel, or for random access,
    write many."""
    inflate = zlib.decompressobj(_GZIP)
    for chunk in chunks:
        left = chunk
        while left:
            if inflate.eof:
                inflate = zlib.decompressobj(_GZIP)
            yield inflate.decompress(left, _PIECE)
            left = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
    while not inflate.eof and (rest := inflate.decompress(inflate.unconsumed_tail, _PIECE)):
        yield rest
