"""What is read of the real clusters: the management cluster's objects, and what of the workload cluster decides about evictions.

Nothing here writes: ``get`` and ``list`` are all that is asked for.  Of Secrets the two that lead to the workload cluster and to the
registry are read where that is allowed; authorities, tokens and plans of hosts are not, as a rehearsal makes its own.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    BAREMETAL_MACHINE_TEMPLATE,
    CLUSTER,
    CONFIG_MAP,
    DAEMON_SET,
    KUBEADM_CONFIG,
    KUBEADM_CONFIG_TEMPLATE,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_DRAIN_RULE,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    MACHINE_SET,
    NODE,
    POD,
    REPLICA_SET,
    SECRET,
    Kind,
)
from slipway.api.cluster.names import CLUSTER_NAME_LABEL
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.baremetal.options import BaremetalOptions
from slipway.fleet.baremetal.plans import catalog
from slipway.fleet.baremetal.rollouts.survey import no_such_cluster
from slipway.fleet.clustercache import connection_from, secret_name
from slipway.fleet.overview.stages import host_of
from slipway.kube.aio import AsyncClient
from slipway.kube.errors import ApiError, ForbiddenError, NotFoundError
from slipway.simulation.workload.controllers import BUDGET, STATEFUL_SET

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.kube.connection import Connection

LISTED = (
    BAREMETAL_CLUSTER,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    MACHINE,
    KUBEADM_CONFIG,
    KUBEADM_CONFIG_TEMPLATE,
    BAREMETAL_MACHINE,
    BAREMETAL_MACHINE_TEMPLATE,
    MACHINE_INVENTORY_POOL,
    MACHINE_INVENTORY,
    MACHINE_DRAIN_RULE,
)
"""What is listed in the cluster's namespace, beside its Cluster and the catalog."""
_OPTIONAL = (MACHINE_DRAIN_RULE,)
WORKLOADS = (NODE, POD, REPLICA_SET, STATEFUL_SET, DAEMON_SET, BUDGET)
_PATIENCE = 15.0
_MADE_UP = "registry.invalid"


class Original(msgspec.Struct, kw_only=True):
    """A cluster as it is, by kind; only what belongs to it."""

    cluster: Manifest
    objects: Mapping[Kind, Sequence[Manifest]]
    catalog: Mapping[str, str] | None
    """None where there is no catalog."""
    catalog_place: str
    registry: str = ""
    """Where hosts pull from; empty where nobody says so."""
    registry_unknown: str = ""
    """Why it could not be found out: then one is made up."""
    workload: Mapping[Kind, Sequence[Manifest]] | None = None
    workload_unknown: str = ""
    """Why the workload cluster could not be read."""

    @property
    def name(self) -> str:
        return str(self.cluster["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.cluster["metadata"]["namespace"])

    @property
    def infrastructure(self) -> Manifest | None:
        return self._referred(BAREMETAL_CLUSTER, "infrastructureRef")

    @property
    def control_plane(self) -> Manifest | None:
        return self._referred(KUBEADM_CONTROL_PLANE, "controlPlaneRef")

    def _referred(self, kind: Kind, field: str) -> Manifest | None:
        reference = (self.cluster.get("spec") or {}).get(field) or {}
        if reference.get("kind") != kind.kind:
            return None
        return next((each for each in self.objects[kind] if each["metadata"]["name"] == reference.get("name")), None)


async def read(
    client: AsyncClient, namespace: str, name: str, *, catalog_namespace: str = "", workload: Connection | None = None
) -> Original:
    """Everything that a rehearsal needs; an OperatorError where something of it is not there, or may not be read."""
    cluster = await _find(client, CLUSTER, name, namespace)
    if cluster is None:
        raise await no_such_cluster(client, name, namespace)
    lists = await asyncio.gather(*(_list(client, kind, namespace) for kind in LISTED))
    listed = dict(zip(LISTED, lists, strict=True))
    place = catalog_namespace or namespace
    entries = await _find(client, CONFIG_MAP, names.CATALOG_NAME, place)
    registry, registry_unknown = await _registry(client, cluster, place)
    found = Original(
        cluster=cluster,
        objects=belonging(cluster, listed),
        catalog=None if entries is None else dict(entries.get("data") or {}),
        catalog_place=f"{place}/{names.CATALOG_NAME}",
        registry=registry,
        registry_unknown=registry_unknown,
    )
    try:
        found.workload = await _workload(workload or await _way_in(client, namespace, name))
    except (ApiError, OperatorError, OSError) as error:
        found.workload_unknown = str(error)
    return found


def belonging(cluster: Manifest, listed: Mapping[Kind, Sequence[Manifest]]) -> dict[Kind, list[Manifest]]:
    """Of all objects of a namespace those of the cluster, and the templates, pools and hosts that it uses."""
    name = cluster["metadata"]["name"]
    spec = cluster.get("spec") or {}
    referred = {(each.get("kind"), each.get("name")) for each in (spec.get("infrastructureRef") or {}, spec.get("controlPlaneRef") or {})}
    found: dict[Kind, list[Manifest]] = {
        kind: [each for each in listed[kind] if (kind.kind, each["metadata"]["name"]) in referred]
        for kind in (BAREMETAL_CLUSTER, KUBEADM_CONTROL_PLANE)
    }
    for kind in (MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE):
        found[kind] = [each for each in listed[kind] if (each.get("spec") or {}).get("clusterName") == name]
    for kind in (KUBEADM_CONFIG, BAREMETAL_MACHINE):
        found[kind] = [each for each in listed[kind] if (each["metadata"].get("labels") or {}).get(CLUSTER_NAME_LABEL) == name]
    for kind in (KUBEADM_CONFIG_TEMPLATE, BAREMETAL_MACHINE_TEMPLATE, MACHINE_DRAIN_RULE):
        found[kind] = list(listed[kind])
    found[MACHINE_INVENTORY_POOL] = [each for each in listed[MACHINE_INVENTORY_POOL] if (each.get("spec") or {}).get("clusterName") == name]
    members = {str(member.get("name")) for pool in found[MACHINE_INVENTORY_POOL] for member in pool["spec"].get("machineInventories") or ()}
    members |= {host_of(machine) for machine in found[BAREMETAL_MACHINE]}
    found[MACHINE_INVENTORY] = [each for each in listed[MACHINE_INVENTORY] if each["metadata"]["name"] in members]
    return found


async def _list(client: AsyncClient, kind: Kind, namespace: str) -> list[Manifest]:
    try:
        return await client.list(kind, namespace)
    except NotFoundError:
        if kind in _OPTIONAL:
            return []
        raise OperatorError(
            f"the management cluster does not have the kind {kind.kind} ({kind.api_version}): is it the right one?"
        ) from None
    except ForbiddenError as error:
        raise OperatorError(f"a rehearsal needs the right to list {kind.plural} of {kind.group} in {namespace}: {error.message}") from None


async def _find(client: AsyncClient, kind: Kind, name: str, namespace: str) -> Manifest | None:
    try:
        return await client.find(kind, name, namespace)
    except ForbiddenError as error:
        raise OperatorError(f"a rehearsal needs the right to get {kind.plural} in {namespace}: {error.message}") from None


async def _registry(client: AsyncClient, cluster: Manifest, namespace: str) -> tuple[str, str]:
    """The registry that hosts pull from, and why it is not known."""
    told = str((cluster["metadata"].get("annotations") or {}).get(names.REGISTRY_ADDRESS_ANNOTATION) or "")
    if told:
        return told, ""
    secret = BaremetalOptions().registry_secret
    try:
        return catalog.platform_registry(await client.find(SECRET, secret, namespace)), ""
    except ForbiddenError:
        why = f"the Cluster has no annotation {names.REGISTRY_ADDRESS_ANNOTATION}, and the Secret {namespace}/{secret} may not be read"
        return _MADE_UP, why


async def _way_in(client: AsyncClient, namespace: str, name: str) -> Connection:
    try:
        secret = await client.find(SECRET, secret_name(name), namespace)
    except ForbiddenError:
        raise OperatorError(
            f"the Secret {namespace}/{secret_name(name)} may not be read: name a kubeconfig with --workload-kubeconfig"
        ) from None
    if secret is None:
        raise OperatorError(f"there is no Secret {namespace}/{secret_name(name)}: name a kubeconfig with --workload-kubeconfig")
    return connection_from(secret)


async def _workload(connection: Connection) -> dict[Kind, list[Manifest]]:
    try:
        async with asyncio.timeout(_PATIENCE), AsyncClient(connection, timeout=_PATIENCE) as client:
            lists = await asyncio.gather(*(client.list(kind) for kind in WORKLOADS))
            return dict(zip(WORKLOADS, lists, strict=True))
    except TimeoutError:
        raise OperatorError(f"the workload cluster {connection.server} has not answered within {_PATIENCE:.0f} s") from None
