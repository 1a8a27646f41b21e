"""The objects of a control-plane machine as they are to be: Machine, KubeadmConfig, and the infrastructure's clone."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from slipway.api.cluster.bootstrap.kubeadm_node import InitConfiguration, JoinConfiguration, JoinControlPlane
from slipway.api.cluster.core.machine import Bootstrap, MachineReadinessGate, MachineSpec
from slipway.api.cluster.kinds import KUBEADM_CONFIG, KUBEADM_CONTROL_PLANE, MACHINE
from slipway.api.cluster.meta import manifest
from slipway.api.cluster.names import (
    CLUSTER_NAME_LABEL,
    CONTROL_PLANE_LABEL,
    CONTROL_PLANE_NAME_LABEL,
    KUBEADM_CONTROL_PLANE_PRE_TERMINATE_HOOK,
    REMEDIATION_FOR_ANNOTATION,
    REMEDIATION_IN_PROGRESS_ANNOTATION,
)
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.fleet.contract import naming, templates
from slipway.fleet.controlplane.decisions.machines import ETCD_CHECKS, KUBERNETES_CHECKS, LABELS_AND_TAINTS
from slipway.runtime import owners

if TYPE_CHECKING:
    from slipway.api.cluster.bootstrap.config import KubeadmConfigSpec
    from slipway.api.cluster.controlplane.kubeadmcontrolplane import KubeadmControlPlane
    from slipway.api.cluster.core.machine import Machine
    from slipway.api.machinery.objects import Manifest

_NAMING = "{{ .kubeadmControlPlane.name }}-{{ .random }}"
_RANDOM = "{{ .random }}"
_LOCAL_MODE = "ControlPlaneKubeletLocalMode"
# The releases of Kubernetes whose kubeadm has the gate, and does not have it on by itself.
_LOCAL_MODE_MINORS = range(31, 36)


def labels_of(plane: KubeadmControlPlane, cluster: str) -> dict[str, str]:
    """The labels of every object of a machine."""
    return {
        **plane.spec.machine_template.metadata.labels,
        CLUSTER_NAME_LABEL: cluster,
        CONTROL_PLANE_LABEL: "",
        CONTROL_PLANE_NAME_LABEL: naming.label_value(plane.metadata["name"]),
    }


def annotations_of(plane: KubeadmControlPlane) -> dict[str, str]:
    """The annotations of every object of a machine."""
    return dict(plane.spec.machine_template.metadata.annotations)


def owner(plane: KubeadmControlPlane, *, controller: bool) -> Manifest:
    made = {"apiVersion": KUBEADM_CONTROL_PLANE.api_version, "kind": KUBEADM_CONTROL_PLANE.kind, "metadata": plane.metadata}
    return owners.reference(made, controller=controller)


def manages_etcd(plane: KubeadmControlPlane) -> bool:
    return not plane.spec.kubeadm_config_spec.cluster_configuration.etcd.external


def machine_name(plane: KubeadmControlPlane, cluster: str) -> str:
    template = plane.spec.machine_naming.template or _NAMING
    if _RANDOM not in template:
        raise OperatorError(f'no name of a Machine can be made: {_RANDOM} is missing in machineNaming.template "{template}"')
    return naming.rendered(template, {"cluster": {"name": cluster}, "kubeadmControlPlane": {"name": plane.metadata["name"]}})


def machine(
    plane: KubeadmControlPlane, cluster: str, *, name: str = "", failure_domain: str = "", existing: Machine | None = None
) -> Manifest:
    """A new Machine of this name, or what there is to be of one: its version and references stay as they are."""
    told = {KUBEADM_CONTROL_PLANE_PRE_TERMINATE_HOOK: ""}
    source = plane.metadata if existing is None else existing.metadata
    remediation = (source.get("annotations") or {}).get(
        REMEDIATION_IN_PROGRESS_ANNOTATION if existing is None else REMEDIATION_FOR_ANNOTATION
    )
    if remediation is not None:
        told[REMEDIATION_FOR_ANNOTATION] = remediation
    template = plane.spec.machine_template.spec
    spec = MachineSpec(
        cluster_name=cluster,
        version=plane.spec.version if existing is None else existing.spec.version,
        failure_domain=failure_domain if existing is None else existing.spec.failure_domain,
        readiness_gates=_readiness_gates(plane),
        taints=template.taints,
    )
    spec.deletion.node_drain_timeout_seconds = template.deletion.node_drain_timeout_seconds
    spec.deletion.node_volume_detach_timeout_seconds = template.deletion.node_volume_detach_timeout_seconds
    spec.deletion.node_deletion_timeout_seconds = template.deletion.node_deletion_timeout_seconds
    if existing is not None:
        spec.infrastructure_ref = existing.spec.infrastructure_ref
        spec.bootstrap = Bootstrap(config_ref=existing.spec.bootstrap.config_ref)
    return {
        "apiVersion": MACHINE.api_version,
        "kind": MACHINE.kind,
        "metadata": {
            "name": name if existing is None else existing.metadata["name"],
            "namespace": plane.metadata["namespace"],
            "labels": labels_of(plane, cluster),
            "annotations": {**annotations_of(plane), **told},
            "ownerReferences": [owner(plane, controller=True)],
        },
        "spec": manifest(spec),
    }


def parsed(version: str) -> Version:
    try:
        return Version.tolerant(version)
    except ValueError as error:
        raise OperatorError(f"spec.version of the KubeadmControlPlane cannot be used: {error}") from None


def config_spec(plane: KubeadmControlPlane, *, join: bool) -> KubeadmConfigSpec:
    """What a machine boots with: the first one has no use for how to join, the others none for how to begin."""
    spec = deepcopy(plane.spec.kubeadm_config_spec)
    if join:
        spec.init_configuration = InitConfiguration()
        # By it a configuration is known to be one that joins.
        spec.join_configuration.control_plane = spec.join_configuration.control_plane or JoinControlPlane()
    else:
        spec.join_configuration = JoinConfiguration()
    version = parsed(plane.spec.version)
    if version.major == 1 and version.minor in _LOCAL_MODE_MINORS:
        gates = spec.cluster_configuration.feature_gates
        spec.cluster_configuration.feature_gates = {_LOCAL_MODE: True, **gates}
    return spec


def config(plane: KubeadmControlPlane, cluster: str, *, name: str, join: bool) -> Manifest:
    made: Manifest = {
        "apiVersion": KUBEADM_CONFIG.api_version,
        "kind": KUBEADM_CONFIG.kind,
        "metadata": {
            "name": name,
            "namespace": plane.metadata["namespace"],
            "labels": labels_of(plane, cluster),
            # The Machine becomes its controller.
            "ownerReferences": [owner(plane, controller=False)],
        },
    }
    if told := annotations_of(plane):
        made["metadata"]["annotations"] = told
    spec = manifest(config_spec(plane, join=join))
    return {**made, "spec": spec} if spec else made


def infrastructure(plane: KubeadmControlPlane, template: Manifest, cluster: str, *, name: str) -> Manifest:
    return templates.clone(
        template,
        name=name,
        namespace=plane.metadata["namespace"],
        cluster=cluster,
        labels=labels_of(plane, cluster),
        annotations=annotations_of(plane),
        owners=[owner(plane, controller=False)],
    )


def _readiness_gates(plane: KubeadmControlPlane) -> list[MachineReadinessGate]:
    ours = (LABELS_AND_TAINTS, *KUBERNETES_CHECKS, *(ETCD_CHECKS if manages_etcd(plane) else ()))
    gates = {name: MachineReadinessGate(condition_type=name) for name in ours}
    for gate in plane.spec.machine_template.spec.readiness_gates:
        gates.setdefault(gate.condition_type, gate)
    return list(gates.values())
