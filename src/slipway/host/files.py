"""Files that are written only where they say something new: who watches them, or looks at their age, learns nothing from a repetition."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slipway.host.interface import Host


def keep(host: Host, path: str, content: bytes, mode: int) -> bool:
    """Write a file unless it has that content; whether it was written."""
    try:
        if host.read(path) == content:
            host.include(path, mode)
            return False
    except FileNotFoundError:
        pass
    host.write(path, content, mode)
    return True
