"""What a machine must have before it can run virtual hosts; asked before anything is made."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PACKAGES = {
    "systemd-nspawn": "systemd-container",
    "ip": "iproute2",
    "mount": "mount",
    "nsenter": "util-linux",
    "unshare": "util-linux",
}
"""Programs that virtual hosts need, and the Debian packages that have them."""

_GIBIBYTE = 1 << 30
_SPACE_OF_A_HOST = 1.0


def check_machine(*, user_id: int | None = None, which: Callable[[str], str | None] = shutil.which) -> None:
    """Refuse a machine, or a user, that cannot run virtual hosts."""
    if (os.geteuid() if user_id is None else user_id) != 0:
        raise OperatorError("virtual hosts need root: run the command again with sudo")
    missing = [program for program in PACKAGES if which(program) is None]
    if missing:
        packages = " ".join(dict.fromkeys(PACKAGES[program] for program in missing))
        raise OperatorError(
            f"{', '.join(missing)} not found on this machine: install with `apt install {packages}`, or your system's packages of that name"
        )


def check_space(folder: Path, gibibytes: float = _SPACE_OF_A_HOST) -> None:
    """Refuse a disk on which a host could not write; the nearest folder that exists is asked."""
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < gibibytes * _GIBIBYTE:
        raise OperatorError(
            f"only {free / _GIBIBYTE:.1f} GiB are free at {folder} and a host needs {gibibytes:g} GiB: "
            "free some space, or use another folder"
        )
