"""What a reboot changes: the image that was staged is booted next, and state that was marked is cleared first.

It does what the initramfs of an immutable host does between two boots; nothing of the host runs meanwhile.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from slipway.lab.record import HostFolder, ImageRecord

STAGED_IMAGE = "staged-image"
CLEAR_STATE = "clear-state"
"""Files in the folder that a host sees as /var/lib/slipway-lab."""

_CLEARED = ("kubelet", "containerd", "etcd")
"""Of the persistent folders; /etc/kubernetes, in the host's own layer, goes too."""
_CARRIED_OVER = {"etc", "var", "root", "home", "opt", "srv"}
"""What of a host's own layer outlives a switch to another image; the rest belongs to the system that is replaced."""


class NextBoot(msgspec.Struct, frozen=True, kw_only=True):
    """What the next boot begins with."""

    image: ImageRecord
    switched: bool = False
    clear: bool = False
    message: str = ""


def decide(current: ImageRecord, staged: str | None, find: Callable[[str], ImageRecord], *, marked: bool) -> NextBoot:
    """The next boot.  A staged image that cannot be had changes nothing: state is not cleared for a switch that is not made."""
    if staged is None:
        return NextBoot(image=current, clear=marked)
    try:
        image = find(staged)
    except OperatorError as error:
        return NextBoot(image=current, message=f"the staged image {staged} was not applied: {error.message}")
    return NextBoot(image=image, switched=image != current, clear=marked)


def staged_image(folder: HostFolder) -> str | None:
    """The reference that waits for the next reboot."""
    try:
        return (folder.exchange / STAGED_IMAGE).read_text().strip() or None
    except FileNotFoundError:
        return None


def is_marked(folder: HostFolder) -> bool:
    return (folder.exchange / CLEAR_STATE).exists()


def apply(folder: HostFolder, boot: NextBoot) -> None:
    """Clear and switch; the two files go last, so that a killed run does it again."""
    if boot.clear:
        for name in _CLEARED:
            _empty(folder.persistent / name)
        _remove(folder.upper / "etc" / "kubernetes")
    if boot.switched:
        for entry in folder.upper.iterdir():
            if entry.name not in _CARRIED_OVER:
                _remove(entry)


def forget(folder: HostFolder) -> None:
    """The request was met, or cannot be; either way it is not made twice."""
    for name in (STAGED_IMAGE, CLEAR_STATE):
        (folder.exchange / name).unlink(missing_ok=True)


def _empty(folder: Path) -> None:
    if folder.is_dir():
        for entry in folder.iterdir():
            _remove(entry)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):  # whiteouts are device nodes
        path.unlink()
