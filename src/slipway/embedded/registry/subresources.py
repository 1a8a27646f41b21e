"""Sub-resources that are not the object itself: scale, eviction, binding and the tokens of ServiceAccounts."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.embedded import errors, fielderrors
from slipway.embedded.registry import delete
from slipway.embedded.registry.delete import DeleteOptions
from slipway.embedded.registry.metadata import timestamp
from slipway.embedded.registry.resources import Resource
from slipway.embedded.storage import selectors

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.core import Core
    from slipway.embedded.endpoints.request import RequestInfo
    from slipway.embedded.registry.write import WriteOptions


CREATED = frozenset({"binding", "eviction", "token"})
"""Those that requests create."""
SCALE = Resource(
    group="autoscaling", version="v1", plural="scales", kind="Scale", namespaced=True, bucket="", storage_version="autoscaling/v1"
)
_HOUR = 3600


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
            wrong = fielderrors.invalid(".spec.replicas", replicas, "should be a non-negative integer")
            raise errors.invalid(resource.group, resource.kind, name, [wrong])
        wrong = fielderrors.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
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


async def create(
    core: Core, resource: Resource, info: RequestInfo, namespace: str, manifest: Manifest, options: WriteOptions
) -> tuple[Manifest, int]:
    """Carry out a request that creates a sub-resource; the answer and its code."""
    stored = core.store.get(resource.bucket, namespace, info.name)
    if stored is None:
        raise errors.not_found(resource.group, resource.plural, info.name)
    if info.subresource == "token":
        seconds = int((manifest.get("spec") or {}).get("expirationSeconds") or _HOUR)
        token, ends = core.authenticator.issue(namespace, info.name, stored.uid, seconds)
        status = {"token": token, "expirationTimestamp": timestamp(ends)}
        document = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": manifest.get("metadata") or {}}
        return {**document, "spec": {**(manifest.get("spec") or {}), "expirationSeconds": seconds}, "status": status}, 201
    if info.subresource == "binding":
        target = (manifest.get("target") or {}).get("name") or ""

        def bind(live: Manifest | None) -> Manifest:
            pod = live or {}
            if (pod.get("spec") or {}).get("nodeName"):
                raise errors.conflict(
                    "", "pods/binding", info.name, f'pod {info.name} is already assigned to node "{pod["spec"]["nodeName"]}"'
                )
            pod.setdefault("spec", {})["nodeName"] = target
            return pod

        await core.registry.update(resource, namespace, info.name, bind, options, creates=False)
    else:
        await _evict(core, resource, namespace, info.name, manifest, options)
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201


async def _evict(core: Core, resource: Resource, namespace: str, name: str, manifest: Manifest, options: WriteOptions) -> None:
    """Delete a Pod if the budgets that cover it allow a disruption."""
    stored = core.store.get(resource.bucket, namespace, name)
    if stored is None:
        raise errors.not_found(resource.group, resource.plural, name)
    budgets = core.catalog.find("policy", "v1", "poddisruptionbudgets")
    covering = [
        (budget, content)
        for budget in core.store.bucket("poddisruptionbudgets.policy").within(namespace)
        for content in (budget.manifest(),)
        if "selector" in (content.get("spec") or {})
        and selectors.match_labels(selectors.from_label_selector(content["spec"]["selector"]), stored.labels)
    ]
    if len(covering) > 1:
        raise errors.internal("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")
    given = delete.options_of(manifest.get("deleteOptions") or {}, {})
    for budget, content in covering:
        status = content.get("status") or {}
        if not status.get("disruptionsAllowed"):
            needed, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
            cause = {
                "reason": "DisruptionBudget",
                "message": f"The disruption budget {budget.name} needs {needed} healthy pods and has {healthy} currently",
            }
            raise errors.too_many_requests("Cannot evict pod as it would violate the pod's disruption budget.", details={"causes": [cause]})
        if budgets is not None and not given.dry_run:
            status["disruptionsAllowed"] -= 1
            status.setdefault("disruptedPods", {})[name] = timestamp(core.clock())
            core.store.put(budgets.bucket, {**content, "status": status}, budget.version)
    await delete.delete(core.registry, resource, namespace, name, DeleteOptions(**msgspec.structs.asdict(given)), options)
