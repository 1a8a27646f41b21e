"""Objects made from a provider's template: the infrastructure and the bootstrap configuration of each Machine."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from slipway.api.cluster.names import CLONED_FROM_GROUP_KIND_ANNOTATION, CLONED_FROM_NAME_ANNOTATION, CLUSTER_NAME_LABEL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slipway.api.machinery.objects import Manifest

_SUFFIX = "Template"


def kind_from(template_kind: str) -> str:
    """The kind of what a kind of templates makes."""
    return template_kind.removesuffix(_SUFFIX)


def group_kind(api_version: str, kind: str) -> str:
    """A group and a kind as the annotation about the origin has them."""
    group = api_version.rpartition("/")[0]
    return f"{kind}.{group}" if group else kind


def clone(
    template: Manifest,
    *,
    name: str,
    namespace: str,
    cluster: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    owners: Sequence[Manifest] = (),
) -> Manifest:
    """What the template makes; a template without ``spec.template`` makes an empty object, as in Cluster API."""
    made: Manifest = deepcopy((template.get("spec") or {}).get("template") or {})
    metadata = made.get("metadata") or {}
    origin = {
        CLONED_FROM_NAME_ANNOTATION: template["metadata"]["name"],
        CLONED_FROM_GROUP_KIND_ANNOTATION: group_kind(template["apiVersion"], template["kind"]),
    }
    made["metadata"] = {
        "name": name,
        "namespace": namespace,
        "labels": {**(metadata.get("labels") or {}), **labels, CLUSTER_NAME_LABEL: cluster},
        "annotations": {**(metadata.get("annotations") or {}), **annotations, **origin},
    }
    if owners:
        made["metadata"]["ownerReferences"] = list(owners)
    made["apiVersion"] = made.get("apiVersion") or template["apiVersion"]
    made["kind"] = made.get("kind") or kind_from(template["kind"])
    return made
