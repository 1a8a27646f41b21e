"""OS images as OCI images: each layer of an image as a tar, and the documents that name them.

The layers of OS images are folders of the cache that never change, so the tar of one has one digest.  Under that digest the cache knows
the folder: a host that is told to boot a layer which the machine has need not have it sent.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.lab.osimage import cache
from slipway.lab.programs import catalog
from slipway.lab.programs.cache import appearing, space_needed

if TYPE_CHECKING:
    from pathlib import Path

    from slipway.lab.osimage.image import OSImage

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
SHARED = "layers"
"""The folder in the cache of OS images that has a link to each layer, by digest."""

_CHUNK = 1 << 20
# Nothing of the time, the user or the process that writes it, so that the same folder gives the same bytes.
_TAR = (
    *("tar", "--create", "--format=pax", "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime,delete=mtime"),
    *("--sort=name", "--mtime=@0", "--numeric-owner", "--xattrs", "--xattrs-include=security.capability"),
)
_SPACE = 2 << 30


class Blob(msgspec.Struct, frozen=True):
    """A part of an image: its digest (``sha256:…``), its size and, of a document, its bytes."""

    digest: str
    size: int
    content: bytes = b""

    @property
    def hex(self) -> str:
        return self.digest.removeprefix("sha256:")


class OCIImage(msgspec.Struct, frozen=True, kw_only=True):
    """What a registry has of an OS image."""

    manifest: Blob
    config: Blob
    layers: tuple[Blob, ...]
    """The lowest first."""


def write_layer(folder: Path, blobs: Path) -> Blob:
    """Write the tar of a folder into ``blobs``, under its digest, unless it is there; and make the folder known under it."""
    blobs.mkdir(parents=True, exist_ok=True)
    with space_needed(f"the layer {folder}", blobs, _SPACE), appearing(blobs / f"{folder.parent.name}-{folder.name}.tar") as partial:
        digest = hashlib.sha256()
        with partial.open("wb") as target, subprocess.Popen([*_TAR, f"--directory={folder}", "."], stdout=subprocess.PIPE) as tar:
            assert tar.stdout is not None
            while chunk := tar.stdout.read(_CHUNK):
                digest.update(chunk)
                target.write(chunk)
        if tar.returncode != 0:
            raise OperatorError(f"tar could not read the layer {folder}: it ended with {tar.returncode}")
    written = blobs / f"{folder.parent.name}-{folder.name}.tar"
    blob = Blob(f"sha256:{digest.hexdigest()}", written.stat().st_size)
    written.rename(blobs / blob.hex)
    share(folder, blob.hex)
    return blob


def share(folder: Path, name: str) -> None:
    """Make a folder of the cache known as a layer; the link is relative, as hosts see the cache at another place."""
    link = cache.folder() / SHARED / name
    link.parent.mkdir(mode=0o755, exist_ok=True)
    target = f"../{folder.relative_to(cache.folder())}"
    if link.is_symlink() and str(link.readlink()) == target:
        return
    link.unlink(missing_ok=True)
    link.symlink_to(target)


def shared_layer(name: str) -> Path | None:
    """The folder of a layer that the cache has; None where it has none, or no longer."""
    link = cache.folder() / SHARED / name
    return link.resolve() if link.is_dir() else None


def oci_image(image: OSImage, layers: tuple[Blob, ...]) -> OCIImage:
    """The documents of an OS image, a pure function of its layers."""
    config = _json(
        {
            "architecture": catalog.architecture(),
            "config": {"Labels": {"io.slipway.kubernetes-version": image.version}},
            "os": "linux",
            "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in layers]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": _descriptor(CONFIG, config),
            "layers": [_descriptor(LAYER, layer) for layer in layers],
        }
    )
    return OCIImage(manifest=manifest, config=config, layers=layers)


def _descriptor(media_type: str, blob: Blob) -> dict[str, object]:
    return {"mediaType": media_type, "digest": blob.digest, "size": blob.size}


def _json(value: object) -> Blob:
    content = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    return Blob(f"sha256:{hashlib.sha256(content).hexdigest()}", len(content), content)
