"""ClusterResourceSet and ClusterResourceSetBinding between v1beta1 and v1beta2 (see ``versions``): only the status is another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster.addons import clusterresourceset, v1beta1
from slipway.api.cluster.core.moved import status_down, status_up
from slipway.api.cluster.kinds import CLUSTER_RESOURCE_SET, CLUSTER_RESOURCE_SET_BINDING
from slipway.api.cluster.versions import Conversion, Part

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest


def _unchanged_down(out: Manifest, _: str) -> Manifest:
    return out


def _unchanged_up(out: Manifest, _: Manifest) -> Manifest:
    return out


def _status_down(out: Manifest, _: str) -> Manifest:
    return status_down(out)


def _status_up(out: Manifest, _: Manifest) -> Manifest:
    return status_up(out)


CONVERSIONS = {
    CLUSTER_RESOURCE_SET.kind: Conversion(
        {
            "spec": Part(clusterresourceset.ClusterResourceSetSpec, v1beta1.ClusterResourceSetSpec, _unchanged_down, _unchanged_up),
            "status": Part(clusterresourceset.ClusterResourceSetStatus, v1beta1.ClusterResourceSetStatus, _status_down, _status_up),
        },
        data=False,
    ),
    CLUSTER_RESOURCE_SET_BINDING.kind: Conversion(
        {
            "spec": Part(
                clusterresourceset.ClusterResourceSetBindingSpec, v1beta1.ClusterResourceSetBindingSpec, _unchanged_down, _unchanged_up
            )
        },
        data=False,
    ),
}
