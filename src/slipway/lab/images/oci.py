"""Writes container images as OCI archives, without a registry or a container engine.

An archive is a tar of ``oci-layout``, ``index.json`` and ``blobs/sha256/*``.  It is a pure function of the files and
the configuration that go in: entries are sorted, times and owners are zero and the layer is not compressed, so the
same input has the same digest everywhere.  Contents are streamed, as programs are large.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import tarfile
from typing import TYPE_CHECKING, Protocol

import msgspec

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_INDEX = "application/vnd.oci.image.index.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"
# containerd names an imported image by this one.
_NAME_ANNOTATION = "io.containerd.image.name"

_CHUNK = 1 << 20
_FOLDER_MODE = 0o755


class Content(Protocol):
    """Bytes that can be read any number of times."""

    @property
    def size(self) -> int:
        """How many bytes there are."""

    def chunks(self) -> Iterator[bytes]:
        """The bytes, from the beginning."""


class Text(msgspec.Struct, frozen=True):
    """Bytes in memory."""

    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    def chunks(self) -> Iterator[bytes]:
        yield self.data


class FileOnDisk(msgspec.Struct, frozen=True):
    """The bytes of a file that stays as it is while the archive is written."""

    path: Path
    size: int

    @classmethod
    def at(cls, path: Path) -> FileOnDisk:
        return cls(path, path.stat().st_size)

    def chunks(self) -> Iterator[bytes]:
        read = 0
        with self.path.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                read += len(chunk)
                yield chunk
        if read != self.size:
            raise OperatorError(f"{self.path} changed while it was read: make the image again when nothing writes to it")


class File(msgspec.Struct, frozen=True):
    """A file of an image."""

    content: Content
    mode: int = 0o644


class Link(msgspec.Struct, frozen=True):
    """A symbolic link of an image."""

    target: str


class Folder(msgspec.Struct, frozen=True):
    """A folder of an image; the ones that files lie in need not be named."""

    mode: int = _FOLDER_MODE


Entry = File | Link | Folder


class Tar(msgspec.Struct, frozen=True):
    """A tar archive of entries in the order given, as bytes that are made when they are read."""

    entries: tuple[tuple[str, Entry], ...]

    @property
    def size(self) -> int:
        sizes = (
            len(_header(path, entry)) + (_padded(entry.content.size) if isinstance(entry, File) else 0) for path, entry in self.entries
        )
        return sum(sizes) + 2 * tarfile.BLOCKSIZE

    def chunks(self) -> Iterator[bytes]:
        for path, entry in self.entries:
            yield _header(path, entry)
            if isinstance(entry, File):
                yield from entry.content.chunks()
                yield b"\0" * (_padded(entry.content.size) - entry.content.size)
        yield b"\0" * (2 * tarfile.BLOCKSIZE)


class ImageConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What the image says about how it is run."""

    architecture: str
    entrypoint: tuple[str, ...] = ()
    environment: tuple[str, ...] = ("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",)
    user: str = ""


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """A whole image with the digest by which it is known, ready to be written."""

    name: str
    digest: str
    archive: Tar


def image(name: str, files: Mapping[str, Entry], config: ImageConfig) -> Image:
    """The image ``name`` with ``files`` (by absolute path) in its only layer."""
    layer = _layer(files)
    layer_digest = digest(layer)
    config_blob = _json(
        {
            "architecture": config.architecture,
            "config": {
                "Entrypoint": list(config.entrypoint) or None,
                "Env": list(config.environment),
                "User": config.user,
                "WorkingDir": "/",
            },
            "created": "1970-01-01T00:00:00Z",
            "os": "linux",
            "rootfs": {"diff_ids": [layer_digest], "type": "layers"},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, config_blob, digest(config_blob)),
            "layers": [_descriptor(_LAYER, layer, layer_digest)],
        }
    )
    manifest_digest = digest(manifest)
    entry = _descriptor(_MANIFEST, manifest, manifest_digest)
    entry["annotations"] = {_NAME_ANNOTATION: name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]}
    entry["platform"] = {"architecture": config.architecture, "os": "linux"}
    blobs: dict[str, Content] = {digest(config_blob): config_blob, manifest_digest: manifest, layer_digest: layer}
    contents: dict[str, Content] = {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json({"schemaVersion": 2, "mediaType": _INDEX, "manifests": [entry]}),
        **{f"blobs/{name_of.replace(':', '/')}": content for name_of, content in blobs.items()},
    }
    return Image(name=name, digest=manifest_digest, archive=Tar(tuple((path, File(content)) for path, content in contents.items())))


def write(made: Image, path: Path) -> None:
    """Write the archive of an image."""
    with path.open("wb") as stream:
        for chunk in made.archive.chunks():
            stream.write(chunk)


def digest(content: Content) -> str:
    """The name of a blob."""
    sha256 = hashlib.sha256()
    for chunk in content.chunks():
        sha256.update(chunk)
    return f"sha256:{sha256.hexdigest()}"


def _layer(files: Mapping[str, Entry]) -> Tar:
    """The files and the folders on the way to them, each folder before what is in it."""
    entries: dict[str, Entry] = {parent: Folder() for path in files for parent in _parents(path)}
    for path, entry in files.items():
        if isinstance(entries.get(path), Folder) and not isinstance(entry, Folder):
            raise ValueError(f"{path} is a folder for other files of the image, so it cannot be a file too")
        entries[path] = entry
    return Tar(tuple((path.removeprefix("/"), entries[path]) for path in sorted(entries, key=lambda path: path.split("/"))))


def _parents(path: str) -> Iterable[str]:
    if not path.startswith("/") or path != posixpath.normpath(path):
        raise ValueError(f"{path} is not the absolute path of a file in an image")
    parent = posixpath.dirname(path)
    while parent != "/":
        yield parent
        parent = posixpath.dirname(parent)


def _header(path: str, entry: Entry) -> bytes:
    info = tarfile.TarInfo(path)
    match entry:
        case File(content, mode):
            info.size, info.mode = content.size, mode
        case Link(target):
            info.type, info.linkname, info.mode = tarfile.SYMTYPE, target, 0o777
        case Folder(mode):
            info.type, info.mode = tarfile.DIRTYPE, mode
    return info.tobuf(tarfile.PAX_FORMAT)


def _padded(size: int) -> int:
    return -(-size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE


def _descriptor(media_type: str, content: Content, blob_digest: str) -> dict[str, object]:
    return {"mediaType": media_type, "digest": blob_digest, "size": content.size}


def _json(value: object) -> Text:
    return Text(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())
