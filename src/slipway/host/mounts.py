"""The mounts of this machine, as the kernel lists them, and umount2(2), which Python does not have."""

from __future__ import annotations

import os
import re
from pathlib import Path

_LIST = Path("/proc/self/mounts")
_ESCAPED = re.compile(r"\\([0-7]{3})")
# From <sys/mount.h>, by the names that a ResetConfiguration has for them.
FLAGS = {"MNT_FORCE": 1, "MNT_DETACH": 2, "MNT_EXPIRE": 4, "UMOUNT_NOFOLLOW": 8}


def below(folder: str) -> list[str]:
    """What is mounted below a folder, the deepest first, so that one can be unmounted after the other."""
    return listed(_LIST.read_text(), folder)


def listed(table: str, folder: str) -> list[str]:
    """The same of a table in the kernel's format; a path that is mounted twice is there twice."""
    paths = [_ESCAPED.sub(lambda found: chr(int(found[1], 8)), line.split(" ")[1]) for line in table.splitlines() if line]
    inside = [path for path in paths if path.startswith(f"{folder.rstrip('/')}/")]
    # Later mounts lie over earlier ones.
    return sorted(inside, key=lambda path: path.count("/"))[::-1]


def unmount(path: str, flags: int) -> None:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.umount2(os.fsencode(path), flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
