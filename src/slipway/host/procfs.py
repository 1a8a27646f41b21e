"""What the kernel tells under /proc: what is mounted, and which process listens on a port."""

from __future__ import annotations

import os
import re
from pathlib import Path

_MOUNTS = Path("/proc/self/mounts")
_ESCAPED = re.compile(r"\\([0-7]{3})")
_SOCKETS = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTEN = "0A"


def mounts_below(folder: str) -> list[str]:
    """What is mounted below a folder, the deepest first, so that one can be unmounted after the other."""
    return listed_mounts(_MOUNTS.read_text(), folder)


def listed_mounts(table: str, folder: str) -> list[str]:
    """The same of a table in the kernel's format; a path that is mounted twice is there twice."""
    paths = [_ESCAPED.sub(lambda found: chr(int(found[1], 8)), line.split(" ")[1]) for line in table.splitlines() if line]
    inside = [path for path in paths if path.startswith(f"{folder.rstrip('/')}/")]
    # Later mounts lie over earlier ones.
    return sorted(inside, key=lambda path: path.count("/"))[::-1]


def listener(port: int) -> str:
    """The name of the process that listens (at most 15 characters, as the kernel keeps it); empty where none can be seen."""
    sockets = {f"socket:[{inode}]" for table in _SOCKETS for inode in listening_inodes(_lines(table), port)}
    for process in os.listdir("/proc") if sockets else ():
        if process.isdigit() and not sockets.isdisjoint(_open_files(process)):
            return "".join(_lines(f"/proc/{process}/comm"))
    return ""


def listening_inodes(lines: list[str], port: int) -> list[str]:
    """Those of the listening sockets of a port in a table such as /proc/net/tcp."""
    rows = (line.split() for line in lines[1:])
    return [row[9] for row in rows if row[3] == _LISTEN and int(row[1].rpartition(":")[2], 16) == port]


def _open_files(process: str) -> set[str]:
    folder = f"/proc/{process}/fd"
    found = set()
    try:
        for name in os.listdir(folder):
            found.add(os.readlink(f"{folder}/{name}"))
    except OSError:
        # The process ended or closed a file meanwhile, or belongs to another user.
        return found
    return found


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.read().splitlines()
    except OSError:
        return []
