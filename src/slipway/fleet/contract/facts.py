"""The few facts that decisions need of a Cluster, and of the Machine or MachinePool that an object of a provider works for.

They are read from the types of :mod:`slipway.api.cluster.core`; what changes of an object beside them concerns no provider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.api.cluster import names
from slipway.api.cluster.core.cluster import Cluster
from slipway.api.cluster.core.machine import Machine
from slipway.api.cluster.core.machinepool import MachinePool
from slipway.api.cluster.kinds import CLUSTER, MACHINE, MACHINE_POOL
from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TypeVar

    from slipway.api.cluster.kinds import Kind
    from slipway.api.cluster.meta import ContractVersionedObjectReference, Type
    from slipway.api.machinery.objects import Manifest
    from slipway.runtime.objects import Object, OwnerReference

    T = TypeVar("T", bound=Type)

_OWNER_KINDS = {MACHINE.kind: MACHINE, MACHINE_POOL.kind: MACHINE_POOL}


class OwnerLink(NamedTuple):
    """The owner reference that counts; its version is ours, whatever the reference says."""

    kind: Kind
    name: str


class Owner(NamedTuple):
    """A Machine or a MachinePool."""

    kind: str
    namespace: str
    name: str
    cluster_name: str
    version: str = ""
    data_secret_name: str = ""
    control_plane: bool = False
    joined: bool = False
    """A Machine has its Node; a MachinePool has as many Nodes as replicas."""
    provisioned: bool = False
    """The infrastructure has made the host, so the data has been taken."""
    config_ref: ContractVersionedObjectReference | None = None
    """The bootstrap configuration that it boots with."""
    failure_domain: str = ""
    """The failure domain that it is meant for."""
    group: str = ""
    """The control plane or MachineDeployment that it is of."""

    @property
    def is_pool(self) -> bool:
        return self.kind == MACHINE_POOL.kind

    @property
    def consumed(self) -> bool:
        """Whether no host will read the data any more.  A pool may grow at any time, so its data is never used up."""
        return not self.is_pool and (self.joined or self.provisioned)


class ClusterFacts(NamedTuple):
    """What providers depend on in a Cluster."""

    namespace: str
    name: str
    uid: str = ""
    paused: bool = False
    deleting: bool = False
    infrastructure_provisioned: bool = False
    control_plane_initialized: bool = False
    control_plane_ref: ContractVersionedObjectReference | None = None
    endpoint: str = ""
    """host:port of the API server; empty while it is not known."""
    service_domain: str = ""
    service_subnet: str = ""
    pod_subnet: str = ""


def owner_link(references: Iterable[OwnerReference]) -> OwnerLink | None:
    """The first Machine or MachinePool among the owners."""
    for reference in references:
        kind = _OWNER_KINDS.get(reference.kind)
        if kind is not None and reference.api_version.partition("/")[0] == kind.group:
            return OwnerLink(kind, reference.name)
    return None


def read(found: Object, into: type[T]) -> T:
    """A cached object as a type; a sentence where the API server has taken in something else."""
    try:
        return found.decode(into)
    except msgspec.ValidationError as error:
        raise OperatorError(f"the {found.kind.kind} {found.request} cannot be read: {error}") from None


def owner_from(found: Object) -> Owner:
    """The facts of a Machine or a MachinePool."""
    return found.known(_owner)


def _owner(found: Object) -> Owner:
    labels = found.metadata.labels
    if found.kind == MACHINE:
        machine = read(found, Machine)
        spec, cluster_name, initialization = machine.spec, machine.spec.cluster_name, machine.status.initialization
        joined = bool(machine.status.node_ref.name)
    else:
        pool = read(found, MachinePool)
        spec, cluster_name, initialization = pool.spec.template.spec, pool.spec.cluster_name, pool.status.initialization
        joined = len(pool.status.node_refs) == (1 if pool.spec.replicas is None else pool.spec.replicas)
    return Owner(
        kind=found.kind.kind,
        namespace=found.namespace,
        name=found.name,
        cluster_name=cluster_name,
        version=spec.version,
        data_secret_name=spec.bootstrap.data_secret_name or "",
        control_plane=found.kind == MACHINE and names.CONTROL_PLANE_LABEL in labels,
        joined=joined,
        provisioned=initialization.infrastructure_provisioned is True,
        config_ref=spec.bootstrap.config_ref if spec.bootstrap.config_ref.name else None,
        failure_domain=machine.spec.failure_domain if found.kind == MACHINE else "",
        group=next((labels[name] for name in (names.CONTROL_PLANE_NAME_LABEL, names.DEPLOYMENT_NAME_LABEL) if labels.get(name)), ""),
    )


def cluster_from(found: Object) -> ClusterFacts:
    # Every controller asks for it, of every object of the cluster.
    return found.known(_cluster)


def _cluster(found: Object) -> ClusterFacts:
    cluster = read(found, Cluster)
    spec, network, endpoint = cluster.spec, cluster.spec.cluster_network, cluster.spec.control_plane_endpoint
    initialized = names.CONTROL_PLANE_INITIALIZED_CONDITION
    return ClusterFacts(
        namespace=found.namespace,
        name=found.name,
        uid=found.metadata.uid,
        paused=spec.paused is True,
        deleting=found.metadata.deletion_timestamp is not None,
        infrastructure_provisioned=cluster.status.initialization.infrastructure_provisioned is True,
        control_plane_initialized=any(one.type == initialized and one.status == "True" for one in cluster.status.conditions),
        control_plane_ref=spec.control_plane_ref if spec.control_plane_ref.name else None,
        endpoint=str(endpoint) if endpoint.host and endpoint.port else "",
        service_domain=network.service_domain,
        service_subnet=str(network.services),
        pod_subnet=str(network.pods),
    )


def paused_by(cluster: ClusterFacts | None, manifest: Manifest) -> list[str]:
    """Why an object is to be left alone, in the words of Cluster API's providers: its Cluster is paused, or it is by its annotation."""
    causes = []
    if cluster is not None and cluster.paused:
        causes.append("Cluster spec.paused is set to true")
    if names.PAUSED_ANNOTATION in (manifest["metadata"].get("annotations") or {}):
        causes.append(f"{manifest.get('kind') or 'Object'} has the {names.PAUSED_ANNOTATION} annotation")
    return causes


def cluster_reference(cluster: ClusterFacts) -> dict[str, Any]:
    """The owner reference of what belongs to the cluster as a whole."""
    return {"apiVersion": CLUSTER.api_version, "kind": CLUSTER.kind, "name": cluster.name, "uid": cluster.uid}
