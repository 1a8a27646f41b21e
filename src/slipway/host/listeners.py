"""Which process listens on a TCP port, by what the kernel tells in /proc."""

from __future__ import annotations

import os

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTEN = "0A"


def owner(port: int) -> str:
    """The name of the process (at most 15 characters, as the kernel keeps it); empty where none can be seen."""
    sockets = {f"socket:[{inode}]" for table in _TABLES for inode in inodes(_lines(table), port)}
    for process in os.listdir("/proc") if sockets else ():
        if process.isdigit() and not sockets.isdisjoint(_open_files(process)):
            return "".join(_lines(f"/proc/{process}/comm"))
    return ""


def inodes(lines: list[str], port: int) -> list[str]:
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
