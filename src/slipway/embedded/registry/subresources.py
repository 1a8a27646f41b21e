"""Sub-resources that are not the object itself: scale, eviction, binding and the tokens of ServiceAccounts."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.embedded import errors
from slipway.embedded.errors import FieldError
from slipway.embedded.fieldmanager import patches
from slipway.embedded.registry import evictions, types
from slipway.embedded.registry.metadata import timestamp
from slipway.embedded.registry.resources import SUBRESOURCES, Resource
from slipway.embedded.registry.write import Edit

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.access.authentication import Authenticator
    from slipway.embedded.call import Call
    from slipway.embedded.registry.write import Registry


CREATED = frozenset({"binding", "eviction", "token"})
"""Those that requests create."""
SCALE = Resource(
    group="autoscaling", version="v1", plural="scales", kind="Scale", namespaced=True, bucket="", storage_version="autoscaling/v1"
)
_HOUR, _LONGEST = 3600, 1 << 32


def scale_of(resource: Resource, manifest: Manifest, *, lax: bool = False) -> Manifest:
    """The Scale of an object; ``lax`` takes replicas that are not set for 0."""
    paths = (resource.custom.scale if resource.custom is not None else None) or {}
    metadata = manifest["metadata"]
    replicas = _at(manifest, paths.get("specReplicasPath") or ".spec.replicas")
    if replicas is None and resource.custom is not None and not lax:
        raise errors.internal(f'the spec replicas field "{paths.get("specReplicasPath")}" does not exist')
    status: Manifest = {"replicas": _at(manifest, paths.get("statusReplicasPath") or ".status.replicas") or 0}
    if resource.custom is None:
        selector = (manifest.get("spec") or {}).get("selector") or {}
        text = _selector_text(selector)
    else:
        text = _at(manifest, paths["labelSelectorPath"]) if paths.get("labelSelectorPath") else ""
    if text:
        status["selector"] = text
    kept = {key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp") if metadata.get(key)}
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": kept,
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def scaled(resource: Resource, manifest: Manifest, scale: Manifest) -> Manifest:
    """An object with the replicas that a Scale asks for."""
    if not all(isinstance(scale.get(field) or {}, dict) for field in ("metadata", "spec")):
        raise errors.bad_request('Scale in version "v1" cannot be handled as a Scale: metadata and spec are objects')
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or replicas < 0:
        name = manifest["metadata"]["name"]
        if resource.custom is not None:
            wrong = FieldError.invalid(".spec.replicas", replicas, "should be a non-negative integer")
            raise errors.invalid(resource.group, resource.kind, name, [wrong])
        wrong = FieldError.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise errors.invalid("autoscaling", "Scale", name, [wrong])
    paths = (resource.custom.scale if resource.custom is not None else None) or {}
    result = copy.deepcopy(manifest)
    *parents, field = (paths.get("specReplicasPath") or ".spec.replicas").lstrip(".").split(".")
    target = result
    for parent in parents:
        target = target.setdefault(parent, {})
    target[field] = replicas
    version = (scale.get("metadata") or {}).get("resourceVersion")
    if version:
        result["metadata"]["resourceVersion"] = version
    return result


def _at(manifest: Manifest, path: str) -> Any:
    value: Any = manifest
    for step in path.lstrip(".").split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _selector_text(selector: Manifest) -> str:
    labels = selector.get("matchLabels") or {}
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


class Scaled(Edit):
    """An object with the replicas that a Scale, or a patch of its Scale, asks for; the Scale is all that webhooks see."""

    endpoint = "scale"

    def __init__(self, resource: Resource, content: Any, media_type: str = "") -> None:
        self._resource, self._content, self._media_type = resource, content, media_type
        # The real server does not say who owns the replicas of a custom resource that were set by its scale.
        self.tracked = resource.custom is not None

    def of(self, live: Manifest | None) -> Manifest:
        live, scale = live or {}, self._content
        if self._media_type:
            scale = patches.apply(SCALE, self._media_type, scale, scale_of(self._resource, live, lax=True))
        return scaled(self._resource, live, scale)

    def shown(self, manifest: Manifest) -> Manifest:
        return scale_of(self._resource, manifest, lax=True)

    def taken(self, manifest: Manifest, shown: Manifest) -> Manifest:
        return scaled(self._resource, manifest, shown)


class _Bound(Edit):
    """A Pod on its node."""

    def __init__(self, node: str) -> None:
        self._node = node

    def of(self, live: Manifest | None) -> Manifest:
        pod = live or {}
        name, spec = pod["metadata"]["name"], pod.setdefault("spec", {})
        if spec.get("nodeName"):
            raise errors.conflict("", "pods/binding", name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
        spec["nodeName"] = self._node
        return pod


async def create(registry: Registry, authenticator: Authenticator, call: Call, manifest: Manifest) -> tuple[Manifest, int]:
    """Carry out a request that creates a sub-resource; the answer and its code."""
    resource = call.resource
    stored = registry.store.get(resource.bucket, call.namespace, call.name)
    if stored is None:
        raise errors.not_found(resource.group, resource.plural, call.name)
    kind = SUBRESOURCES[call.subresource]
    version = kind.version or resource.version
    if mismatch := types.mismatch_of_kind(kind.group, version, kind.kind, manifest):
        raise errors.bad_request(f'{kind.kind} in version "{version}" cannot be handled as a {kind.kind}: {mismatch}')
    if call.subresource == "token":
        return _token(authenticator, call, stored.uid, manifest), 201
    # What follows is a write of the object itself.
    itself = msgspec.structs.replace(call, subresource="")
    if call.subresource == "eviction":
        await evictions.evict(registry, itself, stored, manifest)
    else:
        await registry.update(itself, _Bound((manifest.get("target") or {}).get("name") or ""))
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201


def _token(authenticator: Authenticator, call: Call, uid: str, manifest: Manifest) -> Manifest:
    spec = manifest.get("spec") or {}
    seconds = min(spec.get("expirationSeconds") or _HOUR, _LONGEST)
    token, ends = authenticator.issue(call.namespace, call.name, uid, seconds)
    status = {"token": token, "expirationTimestamp": timestamp(ends)}
    document = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": manifest.get("metadata") or {}}
    return {**document, "spec": {**spec, "expirationSeconds": seconds}, "status": status}
