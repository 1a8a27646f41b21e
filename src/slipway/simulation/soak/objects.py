"""The objects of a soak: its hosts' registration, its catalog, and its clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.simulation import manifests
from slipway.simulation.manifests import Layout, Names
from slipway.simulation.soak.options import NAMESPACE, PLANES, WORKERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest

REGISTRY, REPOSITORY = "registry.soak:5000", "os"
REGISTRATION = "soak-hosts"
PORT = 6443


class Place(NamedTuple):
    """Where a cluster is to be."""

    vip: str
    router: int
    planes: Sequence[str]
    """The hosts of the pool of its control planes."""
    workers: Sequence[str]


def registration() -> Manifest:
    return manifests.registration(REGISTRATION, NAMESPACE)


def catalog(versions: Iterable[str]) -> Manifest:
    return manifests.catalog(NAMESPACE, {version: image(version) for version in versions})


def image(version: str) -> str:
    return f"{REGISTRY}/{REPOSITORY}:{version}"


def cluster(names: Names, place: Place, version: str) -> list[tuple[Kind, Manifest]]:
    return manifests.cluster(
        Layout(
            names=names,
            version=version,
            registry=REGISTRY,
            vip=place.vip,
            port=PORT,
            router=place.router,
            control_planes=PLANES,
            workers=WORKERS,
            plane_hosts=place.planes,
            worker_hosts=place.workers,
            template=template(names, 0),
            node_labels=_labels(0),
        )
    )


def template(names: Names, generation: int) -> str:
    """The name of what workers are made of: another one for each rollout of templates."""
    return f"{names.workers}-{generation}"


def templates(names: Names, generation: int) -> list[tuple[Kind, Manifest]]:
    return manifests.worker_templates(names, template(names, generation), _labels(generation))


def _labels(generation: int) -> str:
    return f"generation={generation}"
