"""Objects made and kept in a workload cluster, of whatever kind: which resource a kind is, the cluster itself is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.api.cluster.addons.clusterresourceset import RECONCILE
from slipway.api.cluster.kinds import Kind
from slipway.api.machinery.errors import OperatorError
from slipway.kube.aio import PatchType
from slipway.kube.errors import AlreadyExistsError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient

FIELD_MANAGER = "capi-clusterresourceset"
_DEFAULT_NAMESPACE = "default"


class Resources:
    """The kinds that a cluster serves, asked for once a group and version."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._known: dict[str, dict[str, Kind]] = {}

    async def kind(self, api_version: str, kind: str) -> Kind:
        if api_version not in self._known:
            self._known[api_version] = await self._discovered(api_version)
        found = self._known[api_version].get(kind)
        if found is None:
            # A definition that was made a moment ago is not served yet; the next try asks again.
            del self._known[api_version]
            raise OperatorError(f"the cluster does not serve the kind {kind} of {api_version}, or not yet")
        return found

    async def _discovered(self, api_version: str) -> dict[str, Kind]:
        group, _, version = api_version.rpartition("/")
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        try:
            served = msgspec.json.decode(await self._client.raw(path))
        except NotFoundError:
            return {}
        return {
            each["kind"]: Kind(group, version, each["kind"], each["name"], each["namespaced"])
            for each in served.get("resources") or ()
            if "/" not in each["name"]
        }


async def apply(client: AsyncClient, objects: Sequence[Manifest], strategy: str) -> list[str]:
    """Make the objects, or bring them up to date; what went wrong, a sentence each.  One that fails does not hold up the others."""
    resources = Resources(client)
    problems: list[str] = []
    for each in objects:
        metadata = each["metadata"]
        try:
            kind = await resources.kind(each["apiVersion"], each["kind"])
            namespace = (metadata.get("namespace") or _DEFAULT_NAMESPACE) if kind.namespaced else ""
            await _apply(client, kind, {**each, "metadata": {**metadata, **({"namespace": namespace} if namespace else {})}}, strategy)
        except OperatorError as error:
            problems.append(f"the {each['kind']} {metadata['name']} could not be applied: {error.message}")
    return problems


async def _apply(client: AsyncClient, kind: Kind, wanted: Manifest, strategy: str) -> None:
    metadata = wanted["metadata"]
    if strategy == RECONCILE:
        # Not upstream's patch, which takes away what the cluster and its controllers have added: finalizers, a Service's address.
        namespace = metadata.get("namespace", "")
        await client.patch(kind, metadata["name"], namespace, wanted, type=PatchType.APPLY, field_manager=FIELD_MANAGER, force=True)
        return
    try:
        await client.create(kind, wanted)
    except AlreadyExistsError:
        # Applied once: what is there is left as it is, whoever made it.
        return
