"""Whom a KubeadmConfig works for: its Machine or MachinePool and their Cluster, as the few facts that decisions need.

Values are read from plain manifests; a field of another type than the API's counts as absent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.cluster.kinds import CLUSTER, MACHINE, MACHINE_POOL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from slipway.api.cluster.kinds import Kind
    from slipway.runtime.objects import OwnerReference

CLUSTER_NAME_LABEL = "cluster.x-k8s.io/cluster-name"
CONTROL_PLANE_LABEL = "cluster.x-k8s.io/control-plane"

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

    @property
    def is_pool(self) -> bool:
        return self.kind == MACHINE_POOL.kind

    @property
    def consumed(self) -> bool:
        """Whether no host will read the data any more.  A pool may grow at any time, so its data is never used up."""
        return not self.is_pool and (self.joined or self.provisioned)


class ControlPlaneReference(NamedTuple):
    """Cluster.spec.controlPlaneRef: a group and a kind, whose version the CRD's contract label gives."""

    api_group: str
    kind: str
    name: str


class ClusterFacts(NamedTuple):
    """What bootstrap data depends on in a Cluster."""

    namespace: str
    name: str
    uid: str = ""
    deleting: bool = False
    infrastructure_provisioned: bool = False
    control_plane_initialized: bool = False
    control_plane_ref: ControlPlaneReference | None = None
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


def owner_from(kind: Kind, manifest: Mapping[str, Any]) -> Owner:
    metadata, spec, status = manifest["metadata"], _section(manifest, "spec"), _section(manifest, "status")
    # A pool has the fields of its machines in a template.
    machine = spec if kind is MACHINE else _section(_section(spec, "template"), "spec")
    return Owner(
        kind=kind.kind,
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        cluster_name=_text(spec, "clusterName"),
        version=_text(machine, "version"),
        data_secret_name=_text(_section(machine, "bootstrap"), "dataSecretName"),
        control_plane=kind is MACHINE and CONTROL_PLANE_LABEL in (metadata.get("labels") or {}),
        joined=bool(status.get("nodeRef")) if kind is MACHINE else len(status.get("nodeRefs") or ()) == _replicas(spec),
        provisioned=_section(status, "initialization").get("infrastructureProvisioned") is True,
    )


def cluster_from(manifest: Mapping[str, Any]) -> ClusterFacts:
    metadata, spec, status = manifest["metadata"], _section(manifest, "spec"), _section(manifest, "status")
    network = _section(spec, "clusterNetwork")
    return ClusterFacts(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        deleting=bool(metadata.get("deletionTimestamp")),
        infrastructure_provisioned=_section(status, "initialization").get("infrastructureProvisioned") is True,
        control_plane_initialized=_condition(status, "ControlPlaneInitialized") == "True",
        control_plane_ref=_control_plane_ref(_section(spec, "controlPlaneRef")),
        endpoint=_endpoint(_section(spec, "controlPlaneEndpoint")),
        service_domain=_text(network, "serviceDomain"),
        service_subnet=_blocks(network, "services"),
        pod_subnet=_blocks(network, "pods"),
    )


def cluster_reference(cluster: ClusterFacts) -> dict[str, Any]:
    """The owner reference of what belongs to the cluster as a whole."""
    return {"apiVersion": CLUSTER.api_version, "kind": CLUSTER.kind, "name": cluster.name, "uid": cluster.uid}


def _section(manifest: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = manifest.get(name)
    return found if isinstance(found, dict) else {}


def _text(section: Mapping[str, Any], name: str) -> str:
    found = section.get(name)
    return found if isinstance(found, str) else ""


def _replicas(spec: Mapping[str, Any]) -> int:
    replicas = spec.get("replicas")
    return replicas if isinstance(replicas, int) else 1


def _condition(status: Mapping[str, Any], name: str) -> str:
    return next((str(condition.get("status")) for condition in status.get("conditions") or () if condition.get("type") == name), "")


def _control_plane_ref(reference: Mapping[str, Any]) -> ControlPlaneReference | None:
    if not _text(reference, "name"):
        return None
    return ControlPlaneReference(_text(reference, "apiGroup"), _text(reference, "kind"), _text(reference, "name"))


def _endpoint(endpoint: Mapping[str, Any]) -> str:
    host, port = _text(endpoint, "host"), endpoint.get("port")
    if not host or not port:
        return ""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _blocks(network: Mapping[str, Any], name: str) -> str:
    return ",".join(_section(network, name).get("cidrBlocks") or ())
