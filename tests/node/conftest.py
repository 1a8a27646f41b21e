"""A node to work on: a context over a host whose files are under a temporary root."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from slipway.api import releases
from slipway.api.kubeadm.internal import APIEndpoint, ClusterConfiguration, InitConfiguration
from slipway.api.machinery.version import Version
from slipway.host.real import RealHost
from slipway.node.context import NodeContext

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from slipway.host.progress import PhaseEvent

VERSIONS = ("v1.33.13", "v1.34.10", "v1.35.4", "v1.36.3")


class Lines:
    """A Progress that keeps what it was told."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.warned: list[str] = []
        self.shown: list[str] = []
        self.events: list[PhaseEvent] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def warn(self, text: str) -> None:
        self.warned.append(text)

    def show(self, text: str) -> None:
        self.shown.append(text)

    def phase(self, event: PhaseEvent) -> None:
        self.events.append(event)


class MakeContext(Protocol):
    """Makes a context of a release over an empty host."""

    def __call__(
        self,
        cluster: ClusterConfiguration | None = None,
        *,
        endpoint: APIEndpoint | None = None,
        version: str = ...,
        environment: Mapping[str, str] | None = None,
    ) -> NodeContext: ...


@pytest.fixture
def lines() -> Lines:
    return Lines()


@pytest.fixture
def make_context(tmp_path: Path, lines: Lines) -> MakeContext:
    def make(
        cluster: ClusterConfiguration | None = None,
        *,
        endpoint: APIEndpoint | None = None,
        version: str = VERSIONS[-1],
        environment: Mapping[str, str] | None = None,
    ) -> NodeContext:
        config = InitConfiguration(cluster=cluster or ClusterConfiguration(), local_api_endpoint=endpoint or APIEndpoint())
        release = releases.release_for(Version.parse(version))
        return NodeContext(config=config, release=release, host=RealHost(str(tmp_path), environment or {}), progress=lines)

    return make
