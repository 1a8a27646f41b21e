"""The Secret with a host's bootstrap data: what it is, writing it, and whose it is."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.cluster.kinds import KUBEADM_CONFIG, SECRET
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.certificates import SECRET_TYPE
from slipway.fleet.contract.facts import CLUSTER_NAME_LABEL
from slipway.kube.aio import PatchType
from slipway.kube.errors import AlreadyExistsError
from slipway.runtime import owners

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient

VERSION_ANNOTATION = "bootstrap.slipway.io/control-plane-version"
TOKEN_ANNOTATION = "bootstrap.slipway.io/token-id"


class Rendering(NamedTuple):
    """What data was rendered with, as its Secret tells it: data that has other values than the cluster now is outdated."""

    control_plane_version: str = ""
    token_id: str = ""


def config_reference(config: Mapping[str, Any]) -> Manifest:
    """The owner reference of what a KubeadmConfig makes."""
    metadata = config["metadata"]
    return {
        "apiVersion": KUBEADM_CONFIG.api_version,
        "kind": KUBEADM_CONFIG.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }


def data_secret(config: Mapping[str, Any], cluster: str, value: bytes, data_format: str, rendering: Rendering) -> Manifest:
    metadata = config["metadata"]
    made: Manifest = {
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": {CLUSTER_NAME_LABEL: cluster},
            "ownerReferences": [config_reference(config)],
        },
        "type": SECRET_TYPE,
        "data": {"value": b64encode(value).decode(), "format": b64encode(data_format.encode()).decode()},
    }
    annotations = {VERSION_ANNOTATION: rendering.control_plane_version, TOKEN_ANNOTATION: rendering.token_id}
    if any(annotations.values()):
        made["metadata"]["annotations"] = {name: value for name, value in annotations.items() if value}
    return made


def rendering_of(secret: Mapping[str, Any]) -> Rendering:
    """What the Secret tells; empty where it does not."""
    annotations = secret["metadata"].get("annotations") or {}
    return Rendering(annotations.get(VERSION_ANNOTATION, ""), annotations.get(TOKEN_ANNOTATION, ""))


def owner_patch(secret: Mapping[str, Any], config: Mapping[str, Any]) -> Manifest | None:
    """The patch that makes the Secret the KubeadmConfig's; None where it is already.

    A Secret that another kind of object controls is an error: it was not made for this KubeadmConfig.
    """
    metadata, wanted = secret["metadata"], config_reference(config)
    references = metadata.get("ownerReferences") or []
    if any(all(reference.get(field) == value for field, value in wanted.items()) for reference in references):
        return None
    controller = owners.controller_of({"metadata": metadata})
    if controller is not None and controller.get("kind") != wanted["kind"]:
        raise OperatorError(
            f"could not add KubeadmConfig {wanted['name']} as ownerReference to bootstrap Secret {metadata['name']}, "
            f"it is already controlled by {controller.get('kind')} {controller.get('name')}"
        )
    return {"metadata": {"resourceVersion": metadata["resourceVersion"], "ownerReferences": owners.ensure(references, wanted)}}


async def store(client: AsyncClient, secret: Manifest, config: Mapping[str, Any]) -> bool:
    """Write the Secret; whether anything changed.  One that a killed reconcile left behind is brought up to date."""
    metadata = secret["metadata"]
    try:
        await client.create(SECRET, secret)
        return True
    except AlreadyExistsError:
        found = await client.get(SECRET, metadata["name"], metadata["namespace"])
    owner_patch(found, config)
    if _same(found, secret):
        return False
    found_metadata = found["metadata"]
    merged = {
        **found_metadata,
        "labels": {**(found_metadata.get("labels") or {}), **metadata["labels"]},
        "annotations": {**(found_metadata.get("annotations") or {}), **metadata.get("annotations", {})},
        "ownerReferences": owners.ensure(found_metadata.get("ownerReferences"), metadata["ownerReferences"][0]),
    }
    await client.update(SECRET, {**found, "metadata": merged, "data": secret["data"]})
    return True


async def fix_owner(client: AsyncClient, secret: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    patch = owner_patch(secret, config)
    if patch is not None:
        await client.patch(SECRET, secret["metadata"]["name"], secret["metadata"]["namespace"], patch, type=PatchType.MERGE)


def _same(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    have, want = found["metadata"], wanted["metadata"]
    return (
        found.get("data") == wanted["data"]
        and found.get("type") == wanted["type"]
        and want["labels"].items() <= (have.get("labels") or {}).items()
        and want.get("annotations", {}).items() <= (have.get("annotations") or {}).items()
        and want["ownerReferences"][0] in (have.get("ownerReferences") or ())
    )
