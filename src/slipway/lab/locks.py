"""A lock on a file that may be removed together with what it protects."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock ``path`` in a folder that is there; the file stays, unless the holder removes it."""
    while True:
        with path.open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            # A holder that removed the file let go of something that nobody else will lock.
            if path.exists() and os.path.samestat(os.fstat(handle.fileno()), path.stat()):
                yield
                return
