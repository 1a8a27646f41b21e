"""What a reboot changes: the image that was staged is booted next, and state that was marked is cleared first.

It does what the boot loader and the initramfs of an immutable host do between two boots; nothing of the host runs meanwhile.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.lab.osimage import files as osfiles
from slipway.lab.record import ImageRecord
from slipway.lab.registry import layers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from slipway.lab.record import HostFolder

STAGED = "staged.json"
"""The file in the folder that a host sees as /var/lib/slipway-lab which its ``elemental`` writes."""
MARKER = "var/lib/slipway/clear-kubernetes-state"
"""The file of a host which says that it is to come up without the state of Kubernetes."""

_CLEARED = ("kubelet", "containerd", "etcd")
"""Of the persistent folders; /etc/kubernetes, in the host's own layer, is cleared too."""
_CARRIED_OVER = {"etc", "var", "root", "home", "opt", "srv", "oem"}
"""What of a host's own layer outlives a switch to another image; the rest belongs to the system that is replaced."""


class Staged(msgspec.Struct, frozen=True):
    """An OS image that is deployed in a host, beside the one that runs."""

    reference: str
    digest: str
    layers: tuple[str, ...]
    """By digest, the lowest first."""


class NextBoot(msgspec.Struct, frozen=True, kw_only=True):
    """What the next boot begins with."""

    image: ImageRecord
    switched: bool = False
    clear: bool = False
    message: str = ""


def decide(current: ImageRecord, staged: Staged | None, find: Callable[[Staged], ImageRecord], *, marked: bool) -> NextBoot:
    """The next boot.  A staged image that cannot be had leaves the old one; a mark is obeyed by whatever boots."""
    if staged is None:
        return NextBoot(image=current, clear=marked)
    try:
        image = find(staged)
    except OperatorError as error:
        return NextBoot(image=current, clear=marked, message=f"the staged image {staged.reference} was not applied: {error.message}")
    return NextBoot(image=image, switched=image != current, clear=marked)


def staged_image(folder: HostFolder) -> Staged | None:
    """What waits for the next reboot."""
    try:
        return msgspec.json.decode((folder.exchange / STAGED).read_bytes(), type=Staged)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise OperatorError(f"{folder.exchange / STAGED} is not the record of a staged image: {error}") from error


def image_of(folder: HostFolder, staged: Staged) -> ImageRecord:
    """The image that a host staged, with its layers as folders of this machine."""
    found = []
    for name in reversed(staged.layers):
        own = folder.exchange / "layers" / name
        layer = own if own.is_dir() else layers.shared_layer(name)
        if layer is None:
            raise OperatorError(f"its layer {name[:16]} is gone: stage it again")
        found.append(layer)
    return ImageRecord(digest=staged.digest, version=_version(found), layers=tuple(str(layer) for layer in found))


def is_marked(folder: HostFolder) -> bool:
    return (folder.upper / MARKER).exists()


def apply(folder: HostFolder, boot: NextBoot) -> None:
    """Clear and switch; the two files go last, so that a killed run does it again."""
    if boot.clear:
        for name in _CLEARED:
            _empty(folder.persistent / name)
        _empty(folder.upper / "etc" / "kubernetes")
    if boot.switched:
        drop_system(folder)


def drop_system(folder: HostFolder) -> None:
    """Remove what of a host's own layer belongs to the system that it boots no more."""
    for entry in folder.upper.iterdir():
        if entry.name not in _CARRIED_OVER:
            _remove(entry)


def forget(folder: HostFolder) -> None:
    """The request was met, or cannot be; either way it is not made twice."""
    (folder.exchange / STAGED).unlink(missing_ok=True)
    (folder.upper / MARKER).unlink(missing_ok=True)


def drop_layers(folder: HostFolder, *kept: ImageRecord | None) -> None:
    """Remove layers that a host pulled and boots no more."""
    wanted = {layer for image in kept if image is not None for layer in image.layers}
    own = folder.exchange / "layers"
    for layer in own.iterdir() if own.is_dir() else ():
        if str(layer) not in wanted:
            _remove(layer)


def _version(found: list[Path]) -> str:
    """The Kubernetes version that an image says it is of; images of strangers say nothing."""
    for layer in found:
        described = layer / osfiles.IMAGE_FILE
        if described.is_file():
            fields = dict(line.split("=", 1) for line in described.read_text().splitlines() if "=" in line)
            return fields.get("KUBERNETES_VERSION", "")
    return ""


def _empty(folder: Path) -> None:
    if folder.is_dir() and not folder.is_symlink():
        for entry in folder.iterdir():
            _remove(entry)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):  # whiteouts are device nodes
        path.unlink()
