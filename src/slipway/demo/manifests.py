"""The objects of the demonstration, as an operator would write them; the names are those of the upgrade guide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.demo.options import CLUSTER as NAME
from slipway.demo.options import NAMESPACE
from slipway.simulation import manifests
from slipway.simulation.manifests import Layout, Names, control_plane_edit, workers_patch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.demo.options import Options

REGISTRY = "registry.demo:5000"
REPOSITORY = "tkestack/baremetal-base-image"
REGISTRATION = "demo-hosts"
_ROUTER = 51


def tag(version: str) -> str:
    """The tag of the OS image of a version, as the guide's examples have it."""
    return f"v0.0.0-{version.removeprefix('v')}"


def image(version: str) -> str:
    return f"{REGISTRY}/{REPOSITORY}:{tag(version)}"


def registration() -> Manifest:
    return manifests.registration(REGISTRATION, NAMESPACE)


def catalog(versions: Iterable[str]) -> Manifest:
    return manifests.catalog(NAMESPACE, {version: image(version) for version in versions})


def cluster(options: Options, hosts: Sequence[str], vip: str, port: int) -> list[tuple[Kind, Manifest]]:
    """All of a cluster; the first hosts are the control plane's, those that follow are the workers'."""
    planes = options.control_planes + options.surge
    return manifests.cluster(
        Layout(
            names=Names(NAME, NAMESPACE),
            version=options.start,
            registry=REGISTRY,
            vip=vip,
            port=port,
            router=_ROUTER,
            control_planes=options.control_planes,
            workers=options.workers,
            plane_hosts=hosts[:planes],
            worker_hosts=hosts[planes : planes + options.workers],
            surge=options.surge,
            node_labels="pool=workers",
        )
    )


def catalog_patch(version: str) -> list[Manifest]:
    """The guide's option B: one more version, word for word."""
    return [{"op": "add", "path": f"/data/{version}", "value": image(version)}]


__all__ = ["catalog", "catalog_patch", "cluster", "control_plane_edit", "image", "registration", "tag", "workers_patch"]
