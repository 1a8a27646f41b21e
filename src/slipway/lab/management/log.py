"""The log of a program that did not start: its last lines, and what they mean to the operator."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_SEARCHED, _SHOWN = 100, 6
_WIDTH = 300
_TAIL_BYTES = 64 * 1024

# What a line says, and what it means to the operator; the first row that fits a line counts.
_CAUSES = (
    (r"bind: address already in use", "another program took its port in the meantime; run `up` again to have another one chosen"),
    (r"unknown flag: |flag provided but not defined", "the program is of another version than the one that was asked for"),
    (r"exec format error", "the program was built for another kind of processor"),
    (r"no space left on device", "the disk is full; free some space"),
    (r"permission denied", "it may not use one of its files; run as the user who made the folder, or as root"),
    (r"too many open files", "there are too many open files or inotify watches; raise fs.inotify.max_user_instances"),
    (r"cannot allocate memory", "the machine has too little memory left"),
    (r"certificate has expired or is not yet valid", "its certificates are too old or the clock is wrong; begin anew after `down --purge`"),
    (r"db file is flocked by another process", "another etcd has the data folder open"),
    (r"invalid downgrade; ", "the data was written by a newer etcd; use that version, or begin anew after `down --purge`"),
    (r"cannot use none as id|crc mismatch|failed to recover v3 backend", "its data is damaged; begin anew after `down --purge`"),
)  # fmt: skip


def tail(log: Path, lines: int = _SEARCHED) -> list[str]:
    """The last lines of a file, each at most of the width of a few lines on a terminal; none where there is no file."""
    try:
        with log.open("rb") as handle:
            handle.seek(0, os.SEEK_END)
            handle.seek(max(0, handle.tell() - _TAIL_BYTES))
            text = handle.read().decode(errors="replace")
    except FileNotFoundError:
        return []
    found = [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]
    return [line if len(line) <= _WIDTH else f"{line[:_WIDTH]}…" for line in found]


def shown(lines: list[str]) -> list[str]:
    """The lines that tell the most: the last ones, or those before the stacks that Go prints when a program panics."""
    stacks = next((number for number, line in enumerate(lines) if line.startswith("goroutine ")), len(lines))
    return lines[:stacks][-_SHOWN:]


def likely_cause(lines: Iterable[str]) -> str:
    """What the lines mean; empty where none of them is known."""
    text = "\n".join(lines)
    return next((meaning for pattern, meaning in _CAUSES if re.search(pattern, text, re.IGNORECASE)), "")
