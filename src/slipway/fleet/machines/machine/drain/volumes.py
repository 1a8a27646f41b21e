"""The volumes that a Node still has, and which of them its host must wait for.

A volume is attached by what the Node says of itself, or by a VolumeAttachment.  Those of Pods that the drain skips stay; those of which
nobody knows what they are block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.machines.machine.values import listed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.machinery.objects import Manifest

_SHOWN = 5


class Attached(NamedTuple):
    """The names under which volumes are attached to a Node."""

    by_node: frozenset[str]
    """As the kubelet names them."""
    by_attachment: frozenset[str]
    """PersistentVolumes."""

    def __bool__(self) -> bool:
        return bool(self.by_node or self.by_attachment)


class Blocking(NamedTuple):
    """What is waited for, each by name."""

    claims: list[str]
    without_claim: list[str]
    unknown_to_node: list[str]
    unknown_attachments: list[str]

    def __bool__(self) -> bool:
        return any((self.claims, self.without_claim, self.unknown_to_node, self.unknown_attachments))


def attached(node: Manifest, attachments: Iterable[Manifest]) -> Attached:
    name, volumes = node["metadata"]["name"], set()
    for attachment in attachments:
        spec = attachment.get("spec") or {}
        if not (attachment.get("status") or {}).get("attached") or spec.get("nodeName") != name:
            continue
        volume = (spec.get("source") or {}).get("persistentVolumeName")
        if not volume:
            raise OperatorError(f"spec.source.persistentVolumeName for VolumeAttachment {attachment['metadata']['name']} is not set")
        volumes.add(volume)
    listed_by_node = (node.get("status") or {}).get("volumesAttached") or ()
    return Attached(frozenset(volume["name"] for volume in listed_by_node), frozenset(volumes))


def claims_of(pods: Iterable[Manifest]) -> set[str]:
    return {
        f"{pod['metadata'].get('namespace', '')}/{volume['persistentVolumeClaim']['claimName']}"
        for pod in pods
        for volume in (pod.get("spec") or {}).get("volumes") or ()
        if volume.get("persistentVolumeClaim")
    }


def blocking(found: Attached, volumes: Iterable[Manifest], ignored: set[str]) -> Blocking:
    """``ignored`` are the claims of Pods that stay."""
    claims: set[str] = set()
    without_claim, on_node, attachments = [], set(), set()
    for volume in volumes:
        name, spec = volume["metadata"]["name"], volume.get("spec") or {}
        csi = spec.get("csi")
        known = f"kubernetes.io/csi/{csi['driver']}^{csi['volumeHandle']}" if csi else ""
        if known in found.by_node:
            on_node.add(known)
        if name in found.by_attachment:
            attachments.add(name)
        if known not in found.by_node and name not in found.by_attachment:
            continue
        claim = spec.get("claimRef") or {}
        if claim.get("kind") != "PersistentVolumeClaim":
            without_claim.append(name)
        else:
            claims.add(f"{claim.get('namespace', '')}/{claim.get('name', '')}")
    return Blocking(
        sorted(claims - ignored), sorted(without_claim), sorted(found.by_node - on_node), sorted(found.by_attachment - attachments)
    )


def message(waiting: Blocking, started: str) -> str:
    """What the Deleting condition says; the texts are Cluster API's."""
    if not waiting:
        return ""
    lines = [f"Waiting for Node volumes to be detached (started at {started})"]
    for text, found in (
        ("PersistentVolumeClaims", waiting.claims),
        ("PersistentVolumes without a .spec.claimRef to a PersistentVolumeClaim", waiting.without_claim),
        ("Node with .status.volumesAttached entries not matching a PersistentVolume", waiting.unknown_to_node),
        ("VolumeAttachment with .spec.source.persistentVolumeName not matching a PersistentVolume", waiting.unknown_attachments),
    ):
        if found:
            lines.append(f"* {text}: {listed(found, _SHOWN)}")
    return "\n".join(lines)
