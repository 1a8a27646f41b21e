"""A real API server for the tests of a module: the lab's management plane, and nothing left of it afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import MappingProxyType

import pytest
from lab.recorded_progress import RecordedProgress

from slipway.api.machinery.yaml import goyaml
from slipway.kube.connection import Connection, from_kubeconfig
from slipway.lab.management import plan, plane
from slipway.lab.management.plane import ManagementPlane
from slipway.lab.programs import obtain

VERSION = "v1.35.4"
real_server = [
    pytest.mark.root,
    pytest.mark.skipif(os.environ.get("SLIPWAY_E2E") != "1", reason="runs real programs: run it with `make e2e`"),
]


@cache
def programs() -> dict[str, Path]:
    """The programs of the plane and kubectl, obtained where the cache lacks them."""
    found = obtain.obtain(VERSION, (*plan.PROGRAMS, "kubectl"), progress=RecordedProgress())
    return {name: program.path for name, program in found.items()}


def start(folder: Path, address: str | None = None, others: Mapping[str, Path] = MappingProxyType({})) -> ManagementPlane:
    """Start what does not run; ``others`` are programs that take the place of those of their names."""
    return plane.up(folder, VERSION, {**programs(), **others}, RecordedProgress(), address=address)


@contextmanager
def management_plane(folder: Path) -> Iterator[ManagementPlane]:
    try:
        yield start(folder)
    finally:
        plane.down(folder, RecordedProgress(), purge=True)


def connection_of(kubeconfig: Path) -> Connection:
    document = goyaml.load(kubeconfig.read_text())[0].value
    assert isinstance(document, dict)
    return from_kubeconfig(document, lambda path: Path(path).read_bytes(), source=str(kubeconfig))
