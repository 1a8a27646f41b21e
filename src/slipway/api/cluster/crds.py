"""The CustomResourceDefinitions of the kinds that Slipway brings, made from their types."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import msgspec

from slipway.api.cluster.addons import clusterresourceset
from slipway.api.cluster.addons import v1beta1 as addons_v1beta1
from slipway.api.cluster.bootstrap import config
from slipway.api.cluster.bootstrap import v1beta1 as bootstrap_v1beta1
from slipway.api.cluster.controlplane import kubeadmcontrolplane
from slipway.api.cluster.controlplane import v1beta1 as controlplane_v1beta1
from slipway.api.cluster.core import cluster, machine, machinedeployment, machinedrainrule, machinehealthcheck, machineset
from slipway.api.cluster.core.v1beta1 import cluster as cluster_v1beta1
from slipway.api.cluster.core.v1beta1 import machine as machine_v1beta1
from slipway.api.cluster.core.v1beta1 import machinedeployment as machinedeployment_v1beta1
from slipway.api.cluster.core.v1beta1 import machinedrainrule as machinedrainrule_v1beta1
from slipway.api.cluster.core.v1beta1 import machinehealthcheck as machinehealthcheck_v1beta1
from slipway.api.cluster.core.v1beta1 import machineset as machineset_v1beta1
from slipway.api.cluster.definition import Column, Definition, Version, age, condition, count
from slipway.api.cluster.infrastructure import definitions as infrastructure
from slipway.api.cluster.kinds import (
    CLUSTER,
    CLUSTER_RESOURCE_SET,
    CLUSTER_RESOURCE_SET_BINDING,
    CUSTOM_RESOURCE_DEFINITION,
    KUBEADM_CONFIG,
    KUBEADM_CONFIG_TEMPLATE,
    KUBEADM_CONTROL_PLANE,
    KUBEADM_CONTROL_PLANE_TEMPLATE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_DRAIN_RULE,
    MACHINE_HEALTH_CHECK,
    MACHINE_SET,
)
from slipway.api.elemental import definitions as elemental
from slipway.api.machinery.openapi import schemas_of

if TYPE_CHECKING:
    from slipway.api.cluster.meta import Type
    from slipway.api.machinery.objects import Manifest

_SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}


def _old(of: type[Type], *columns: Column) -> Version:
    return Version("v1beta1", of, columns, deprecated=True)


def _new(of: type[Type], *columns: Column) -> Version:
    return Version("v1beta2", of, columns, storage=True)


def _owner(kind: str) -> Column:
    return Column(kind, f'.metadata.ownerReferences[?(@.kind=="{kind}")].name', f"Name of the {kind} owning this template")


def _counts_of_cluster(short: str, path: str, which: str) -> tuple[Column, ...]:
    return (
        count(f"{short} Desired", f".status.{path}.desiredReplicas", f"{which} machines that are wanted"),
        count(f"{short} Current", f".status.{path}.replicas", f"{which} machines", 10),
        count(f"{short} Ready", f".status.{path}.readyReplicas", f"{which} machines that are ready", 10),
        count(f"{short} Available", f".status.{path}.availableReplicas", f"{which} machines that are available"),
        count(f"{short} Up-to-date", f".status.{path}.upToDateReplicas", f"{which} machines that are up to date"),
    )


_LABELLED_CLUSTER = Column("Cluster", ".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']", "Cluster")
_CLUSTER = Column("Cluster", ".spec.clusterName", "Cluster")
_PAUSED = condition("Paused", "Reconciliation paused", priority=10)
_AVAILABLE = condition("Available", "Whether all checks of availability pass")
_PHASE = Column("Phase", ".status.phase", "Where the object is in its life")
_VERSION = Column("Version", ".spec.version", "Kubernetes version")
_TEMPLATE_VERSION = Column("Version", ".spec.template.spec.version", "Kubernetes version")
_DESIRED = count("Desired", ".spec.replicas", "Machines that are wanted")
_COUNTS = (
    _DESIRED,
    count("Current", ".status.replicas", "Machines"),
    count("Ready", ".status.readyReplicas", "Machines that are ready"),
    count("Available", ".status.availableReplicas", "Machines that are available"),
    count("Up-to-date", ".status.upToDateReplicas", "Machines that are up to date"),
)
_OLD_COUNTS = (
    _DESIRED._replace(priority=10),
    count("Replicas", ".status.replicas", "Machines"),
    count("Ready", ".status.readyReplicas", "Machines that are ready"),
)
_UPDATED = count("Updated", ".status.updatedReplicas", "Machines that were made from the current template")
_UNAVAILABLE = count("Unavailable", ".status.unavailableReplicas", "Machines that are not available")
_CLASS_VERSION = Column("Version", ".spec.topology.version", "Kubernetes version of the topology")
_PROVIDER_ID = Column("Provider ID", ".spec.providerID", "The provider's identity of the host", priority=10)
_NODE = Column("Node Name", ".status.nodeRef.name", "The Node of the machine")
_RULE_COLUMNS = (
    Column("Behavior", ".spec.drain.behavior", "What is done with the Pods"),
    Column("Order", ".spec.drain.order", "Which Pods go first"),
    age(MACHINE_DRAIN_RULE),
)

# The kinds that upstream has, too.
DEFINITIONS = (
    Definition(
        KUBEADM_CONFIG,
        (
            _old(bootstrap_v1beta1.KubeadmConfig, _LABELLED_CLUSTER, age(KUBEADM_CONFIG)),
            _new(
                config.KubeadmConfig,
                _LABELLED_CLUSTER,
                _PAUSED,
                Column("Data secret created", ".status.initialization.dataSecretCreated", "Bootstrap secret is created"),
                age(KUBEADM_CONFIG),
            ),
        ),
        status=True,
    ),
    Definition(
        KUBEADM_CONFIG_TEMPLATE,
        (
            _old(bootstrap_v1beta1.KubeadmConfigTemplate, age(KUBEADM_CONFIG_TEMPLATE)),
            _new(config.KubeadmConfigTemplate, _owner("ClusterClass"), _owner("Cluster"), age(KUBEADM_CONFIG_TEMPLATE)),
        ),
    ),
    Definition(
        CLUSTER,
        (
            _old(
                cluster_v1beta1.Cluster,
                Column("ClusterClass", ".spec.topology.class", "ClusterClass, if there is one"),
                _PHASE,
                age(CLUSTER),
                _CLASS_VERSION,
            ),
            _new(
                cluster.Cluster,
                Column("ClusterClass", ".spec.topology.classRef.name", "ClusterClass, if there is one"),
                _AVAILABLE,
                *_counts_of_cluster("CP", "controlPlane", "Control plane"),
                *_counts_of_cluster("W", "workers", "Worker"),
                _PAUSED,
                _PHASE,
                age(CLUSTER),
                _CLASS_VERSION,
            ),
        ),
        status=True,
        short_names=("cl",),
    ),
    Definition(
        MACHINE,
        (
            _old(
                machine_v1beta1.Machine,
                _CLUSTER,
                _NODE._replace(name="NodeName"),
                _PROVIDER_ID._replace(name="ProviderID", priority=0),
                _PHASE,
                age(MACHINE),
                _VERSION,
            ),
            _new(
                machine.Machine,
                _CLUSTER,
                _NODE,
                _PROVIDER_ID,
                Column("Failure domain", ".status.failureDomain", "The failure domain that the machine is in"),
                condition("Ready", "Whether all checks of readiness pass"),
                condition("Available", "Whether the machine has been ready for minReadySeconds"),
                condition("UpToDate", "Whether the machine is as its owner would make it now", name="Up-to-date"),
                Column("Internal-IP", '.status.addresses[?(@.type=="InternalIP")].address', "Internal address", priority=10),
                Column("External-IP", '.status.addresses[?(@.type=="ExternalIP")].address', "External address", priority=10),
                Column("OS-Image", ".status.nodeInfo.osImage", "Operating system of the Node", priority=10),
                _PAUSED,
                _PHASE,
                age(MACHINE),
                _VERSION,
            ),
        ),
        status=True,
        short_names=("ma",),
    ),
    Definition(
        MACHINE_SET,
        (
            _old(
                machineset_v1beta1.MachineSet,
                _CLUSTER,
                *_OLD_COUNTS,
                count("Available", ".status.availableReplicas", "Machines that are available"),
                age(MACHINE_SET),
                _TEMPLATE_VERSION,
            ),
            _new(machineset.MachineSet, _CLUSTER, *_COUNTS, _PAUSED, age(MACHINE_SET), _TEMPLATE_VERSION),
        ),
        status=True,
        scale=True,
        short_names=("ms",),
    ),
    Definition(
        MACHINE_DEPLOYMENT,
        (
            _old(
                machinedeployment_v1beta1.MachineDeployment,
                _CLUSTER,
                *_OLD_COUNTS,
                _UPDATED,
                _UNAVAILABLE,
                _PHASE,
                age(MACHINE_DEPLOYMENT),
                _TEMPLATE_VERSION,
            ),
            _new(
                machinedeployment.MachineDeployment,
                _CLUSTER,
                _AVAILABLE,
                *_COUNTS,
                _PAUSED,
                _PHASE,
                age(MACHINE_DEPLOYMENT),
                _TEMPLATE_VERSION,
            ),
        ),
        status=True,
        scale=True,
        short_names=("md",),
    ),
    Definition(
        MACHINE_HEALTH_CHECK,
        (
            _old(
                machinehealthcheck_v1beta1.MachineHealthCheck,
                _CLUSTER,
                count("ExpectedMachines", ".status.expectedMachines", "Machines that are watched"),
                Column("MaxUnhealthy", ".spec.maxUnhealthy", "How many machines may be unhealthy"),
                count("CurrentHealthy", ".status.currentHealthy", "Machines that are healthy"),
                age(MACHINE_HEALTH_CHECK),
            ),
            _new(
                machinehealthcheck.MachineHealthCheck,
                _CLUSTER,
                count("Replicas", ".status.expectedMachines", "Machines that are watched"),
                count("Healthy", ".status.currentHealthy", "Machines that are healthy"),
                _PAUSED,
                age(MACHINE_HEALTH_CHECK),
            ),
        ),
        status=True,
        short_names=("mhc", "mhcs"),
    ),
    Definition(
        MACHINE_DRAIN_RULE,
        (_old(machinedrainrule_v1beta1.MachineDrainRule, *_RULE_COLUMNS), _new(machinedrainrule.MachineDrainRule, *_RULE_COLUMNS)),
    ),
    Definition(
        KUBEADM_CONTROL_PLANE,
        (
            _old(
                controlplane_v1beta1.KubeadmControlPlane,
                _LABELLED_CLUSTER,
                Column("Initialized", ".status.initialized", "Whether the control plane has its kubeadm-config", "boolean"),
                Column("API Server Available", ".status.ready", "Whether the API server can take requests", "boolean"),
                *_OLD_COUNTS,
                _UPDATED,
                _UNAVAILABLE,
                age(KUBEADM_CONTROL_PLANE),
                _VERSION,
            ),
            _new(
                kubeadmcontrolplane.KubeadmControlPlane,
                _LABELLED_CLUSTER,
                _AVAILABLE,
                *_COUNTS,
                _PAUSED,
                Column(
                    "Initialized", ".status.initialization.controlPlaneInitialized", "Whether the API server can take requests", "boolean"
                ),
                age(KUBEADM_CONTROL_PLANE),
                _VERSION,
            ),
        ),
        status=True,
        scale=True,
        short_names=("kcp",),
    ),
    Definition(
        KUBEADM_CONTROL_PLANE_TEMPLATE,
        (
            _old(controlplane_v1beta1.KubeadmControlPlaneTemplate, age(KUBEADM_CONTROL_PLANE_TEMPLATE)),
            _new(kubeadmcontrolplane.KubeadmControlPlaneTemplate, _owner("ClusterClass"), age(KUBEADM_CONTROL_PLANE_TEMPLATE)),
        ),
    ),
    Definition(
        CLUSTER_RESOURCE_SET,
        (
            _old(addons_v1beta1.ClusterResourceSet, age(CLUSTER_RESOURCE_SET)),
            _new(
                clusterresourceset.ClusterResourceSet,
                condition("ResourcesApplied", "Whether everything was applied to every Cluster", name="Applied"),
                _PAUSED,
                age(CLUSTER_RESOURCE_SET),
            ),
        ),
        status=True,
    ),
    Definition(
        CLUSTER_RESOURCE_SET_BINDING,
        (
            _old(addons_v1beta1.ClusterResourceSetBinding, age(CLUSTER_RESOURCE_SET_BINDING))._replace(status=True),
            _new(clusterresourceset.ClusterResourceSetBinding, _CLUSTER, age(CLUSTER_RESOURCE_SET_BINDING)),
        ),
    ),
)

EVERY = (*DEFINITIONS, *infrastructure.DEFINITIONS, *elemental.DEFINITIONS)
"""And those of the bare-metal provider, which upstream has no counterpart of."""


def crds() -> list[Manifest]:
    """Every CustomResourceDefinition, without the clause on conversion: where the webhook is, the manager knows."""
    return [crd(definition) for definition in EVERY]


def crd(definition: Definition) -> Manifest:
    kind = definition.kind
    names = {
        **({"categories": list(definition.categories)} if definition.categories else {}),
        "kind": kind.kind,
        "listKind": kind.list_kind,
        "plural": kind.plural,
        "singular": kind.kind.lower(),
    }
    if definition.short_names:
        names["shortNames"] = list(definition.short_names)
    return {
        "apiVersion": CUSTOM_RESOURCE_DEFINITION.api_version,
        "kind": CUSTOM_RESOURCE_DEFINITION.kind,
        "metadata": {"name": definition.name, "labels": definition.labels},
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [_version(definition, version) for version in definition.versions],
        },
    }


@cache
def _schemas() -> dict[type[Type], bytes]:
    """The schema of each type, as text: whoever gets one may change it."""
    kinds = [version.type for definition in EVERY for version in definition.versions]
    return {kind: msgspec.json.encode(schema) for kind, schema in zip(kinds, schemas_of(kinds), strict=True)}


def _version(definition: Definition, version: Version) -> Manifest:
    has_status = definition.status or version.status
    subresources: Manifest = ({"scale": dict(_SCALE)} if definition.scale else {}) | ({"status": {}} if has_status else {})
    out: Manifest = {
        "name": version.name,
        "served": True,
        "storage": version.storage,
        "additionalPrinterColumns": [column.manifest() for column in version.columns],
        "schema": {"openAPIV3Schema": msgspec.json.decode(_schemas()[version.type])},
        "subresources": subresources,
    }
    return out | ({"deprecated": True} if version.deprecated else {})
