"""The cache of OS images: ``os/`` in Slipway's cache folder, where a folder has its final name only when it is whole."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.lab.programs.cache import cache_root, locked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def folder() -> Path:
    """Where bases and version layers are kept."""
    return cache_root() / "os"


@contextmanager
def building(name: str) -> Iterator[Path]:
    """An empty folder in which to make ``name``, for one process at a time; the maker renames the result out of it.

    What remains in it afterwards goes, and what a killed maker left behind is removed by the next one.
    """
    partial = folder() / f".{name}.partial"
    with locked(folder() / f".{name}.lock"):
        if partial.exists():
            shutil.rmtree(partial)
        partial.mkdir(mode=0o700)
        try:
            yield partial
        finally:
            shutil.rmtree(partial)


def require_root(purpose: str) -> None:
    """Root file systems have files of many owners."""
    if os.geteuid() != 0:
        raise OperatorError(f"{purpose} needs root: run the command again with sudo")
