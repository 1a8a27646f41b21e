"""Applies manifests to a cluster by server-side apply and waits until its new kinds are served."""

from __future__ import annotations

import asyncio
import time
from enum import Enum
from typing import TYPE_CHECKING

from slipway.api.cluster import kinds
from slipway.api.machinery.errors import OperatorError
from slipway.kube.aio import PatchType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient

FIELD_MANAGER = "slipway"
_ESTABLISHED = "Established"
_PATIENCE = 30.0
_PAUSE = 0.2


class Outcome(Enum):
    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"


async def install(client: AsyncClient, manifests: Iterable[Manifest], say: Callable[[str], None]) -> None:
    """Apply everything in its order.  Fields that somebody else set become ours: who installs wants what is installed."""
    crds = []
    for manifest in manifests:
        kind = kind_of(manifest)
        outcome = await apply(client, kind, manifest)
        say(f"{kind.kind} {_place(manifest)} {outcome.value}")
        if kind == kinds.CUSTOM_RESOURCE_DEFINITION:
            crds.append(manifest["metadata"]["name"])
    for name in crds:
        await _established(client, name)


async def apply(client: AsyncClient, kind: Kind, manifest: Manifest) -> Outcome:
    name, namespace = manifest["metadata"]["name"], manifest["metadata"].get("namespace", "")
    before = await client.find(kind, name, namespace)
    swap = other_way(before, manifest) if before is not None else {}
    if swap:
        # An application leaves the fields of others, and the API server takes no CRD that is converted in two ways.
        await client.patch(kind, name, namespace, swap, type=PatchType.MERGE, field_manager=FIELD_MANAGER)
    after = await client.patch(kind, name, namespace, manifest, type=PatchType.APPLY, field_manager=FIELD_MANAGER, force=True)
    if before is None:
        return Outcome.CREATED
    return Outcome.UNCHANGED if _said(before) == _said(after) else Outcome.CONFIGURED


def other_way(before: Manifest, manifest: Manifest) -> Manifest:
    """The merge patch after which a CRD's conversion is called by URL and not by Service, or the other way round; empty if it is."""
    wanted, current = _conversion_client(manifest), _conversion_client(before)
    stale = [way for way in ("url", "service") if way in current and way not in wanted]
    if not wanted or not stale:
        return {}
    removed: Manifest = dict.fromkeys(stale)
    client = {**wanted, **removed}
    version = {"resourceVersion": before["metadata"]["resourceVersion"]}
    return {"metadata": version, "spec": {"conversion": {"webhook": {"clientConfig": client}}}}


def _conversion_client(crd: Manifest) -> Manifest:
    conversion = (crd.get("spec") or {}).get("conversion") or {}
    return (conversion.get("webhook") or {}).get("clientConfig") or {}


def kind_of(manifest: Manifest) -> Kind:
    try:
        return kinds.named(manifest["apiVersion"], manifest["kind"])
    except ValueError as error:
        raise OperatorError(f"a {manifest['kind']} of {manifest['apiVersion']} cannot be installed: {error}") from None


async def _established(client: AsyncClient, name: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        crd = await client.get(kinds.CUSTOM_RESOURCE_DEFINITION, name)
        found = {condition["type"]: condition for condition in (crd.get("status") or {}).get("conditions") or ()}
        if (found.get(_ESTABLISHED) or {}).get("status") == "True":
            return
        if time.monotonic() > deadline:
            message = (found.get("NamesAccepted") or {}).get("message")
            why = f": {message}" if message else ""
            raise OperatorError(f"the API server does not serve {name} after {_PATIENCE:g} s{why}")
        await asyncio.sleep(_PAUSE)


def _said(manifest: Manifest) -> tuple[Manifest, list[Manifest]]:
    """What an application of ours changes: not what controllers wrote in between."""
    content = {key: value for key, value in manifest.items() if key not in ("metadata", "status")}
    managed = manifest["metadata"].get("managedFields") or ()
    return content, [entry for entry in managed if entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply"]


def _place(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])
