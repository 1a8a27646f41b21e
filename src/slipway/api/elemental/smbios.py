"""SMBIOS data as dmidecode prints it, read into the tree that registrations take names and labels from.

It comes from firmware, so it may be anything: more than a sane amount of it, or text that is none, is refused.
"""

from __future__ import annotations

import re
from typing import Any

TYPES = (0, 1, 2, 3, 4, 11)
"""BIOS, system, base board, chassis, processors and OEM strings: what elemental-register asks dmidecode for with ``-t``."""

MAX_BYTES = 256 << 10
_MAX_DEPTH = 8
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SKIPPED = ("OEM-specific Type", "End Of Table")


class SmbiosError(ValueError):
    """Data that is no output of dmidecode, or too much of it."""


def parse(output: bytes) -> dict[str, Any]:
    """The structures by their titles: ``{"System Information": {"UUID": …}}``.

    A list of lines below a name is a list.  Where several structures have one title, as processors have, the last one stands,
    as elemental-register has it.
    """
    if len(output) > MAX_BYTES:
        raise SmbiosError(
            f"the SMBIOS data has {len(output)} bytes, more than the {MAX_BYTES} that are taken: look at what dmidecode prints"
        )
    # dmidecode prints strings of firmware as they are but for control characters, and old firmware knows no UTF-8.
    text = output.decode(errors="replace")
    if _CONTROL.search(text):
        raise SmbiosError("the SMBIOS data has control characters: it is no output of dmidecode")
    structures: dict[str, Any] = {}
    lines: list[str] | None = None
    for line in [*text.split("\n"), ""]:
        if line.startswith("Handle "):
            lines = []
        elif not line.strip():
            if lines and lines[0] not in _SKIPPED and not lines[0].startswith("\t"):
                structures[lines[0].strip()] = _structure(lines[1:])
            lines = None
        elif lines is not None:
            lines.append(line)
    if text.strip() and not structures:
        raise SmbiosError("the SMBIOS data has no structure in it: it is no output of dmidecode")
    return structures


def _structure(lines: list[str]) -> dict[str, Any]:
    """The indented lines below a title."""
    out: dict[str, Any] = {}
    # The mappings that a line of each depth belongs to, and in each the name that deeper lines go below.
    open_at: list[tuple[dict[str, Any], str]] = []
    for line in lines:
        depth = min(len(line) - len(line.lstrip("\t")), _MAX_DEPTH)
        name, separator, value = line.strip().partition(": ")
        if not separator and name.endswith(":"):
            name, separator = name[:-1], ":"
        del open_at[max(depth - 1, 0) :]
        if not separator and open_at:
            parent, above = open_at[-1]
            listed = parent[above]
            if isinstance(listed, list):
                listed.append(name)
            else:
                parent[above] = [name]
            continue
        owner = out
        if open_at:
            parent, above = open_at[-1]
            if not isinstance(parent[above], dict):
                parent[above] = {}
            owner = parent[above]
        owner[name.strip()] = value.strip()
        open_at.append((owner, name.strip()))
    return out
