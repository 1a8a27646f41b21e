"""The kinds that controllers work with: group, version, name on the wire and place in the API.  The one source of these names."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote


class Kind(NamedTuple):
    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """What an object of this kind has as its apiVersion."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_kind(self) -> str:
        return self.kind + "List"


CORE_GROUP = "cluster.x-k8s.io"
BOOTSTRAP_GROUP = "bootstrap.cluster.x-k8s.io"
CONTROL_PLANE_GROUP = "controlplane.cluster.x-k8s.io"
ADDONS_GROUP = "addons.cluster.x-k8s.io"
IPAM_GROUP = "ipam.cluster.x-k8s.io"
RUNTIME_GROUP = "runtime.cluster.x-k8s.io"
INFRASTRUCTURE_GROUP = "infrastructure.cluster.x-k8s.io"
ELEMENTAL_GROUP = "elemental.cattle.io"

CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps")
ENDPOINTS = Kind("", "v1", "Endpoints", "endpoints")
NAMESPACE = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
NODE = Kind("", "v1", "Node", "nodes", namespaced=False)
PERSISTENT_VOLUME = Kind("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
POD = Kind("", "v1", "Pod", "pods")
SECRET = Kind("", "v1", "Secret", "secrets")
SERVICE = Kind("", "v1", "Service", "services")
SERVICE_ACCOUNT = Kind("", "v1", "ServiceAccount", "serviceaccounts")
CORE_EVENT = Kind("", "v1", "Event", "events")

EVENT = Kind("events.k8s.io", "v1", "Event", "events")
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases")
CERTIFICATE_SIGNING_REQUEST = Kind("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", namespaced=False)
ENDPOINT_SLICE = Kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
VOLUME_ATTACHMENT = Kind("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", namespaced=False)
JOB = Kind("batch", "v1", "Job", "jobs")
REPLICA_SET = Kind("apps", "v1", "ReplicaSet", "replicasets")
DAEMON_SET = Kind("apps", "v1", "DaemonSet", "daemonsets")
DEPLOYMENT = Kind("apps", "v1", "Deployment", "deployments")
TOKEN_REVIEW = Kind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False)
SUBJECT_ACCESS_REVIEW = Kind("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)
CLUSTER_ROLE = Kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING = Kind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
ROLE = Kind("rbac.authorization.k8s.io", "v1", "Role", "roles")
ROLE_BINDING = Kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")
CUSTOM_RESOURCE_DEFINITION = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
MUTATING_WEBHOOK_CONFIGURATION = Kind(
    "admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False
)
VALIDATING_WEBHOOK_CONFIGURATION = Kind(
    "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced=False
)

CLUSTER = Kind(CORE_GROUP, "v1beta2", "Cluster", "clusters")
CLUSTER_CLASS = Kind(CORE_GROUP, "v1beta2", "ClusterClass", "clusterclasses")
MACHINE = Kind(CORE_GROUP, "v1beta2", "Machine", "machines")
MACHINE_DEPLOYMENT = Kind(CORE_GROUP, "v1beta2", "MachineDeployment", "machinedeployments")
MACHINE_DRAIN_RULE = Kind(CORE_GROUP, "v1beta2", "MachineDrainRule", "machinedrainrules")
MACHINE_HEALTH_CHECK = Kind(CORE_GROUP, "v1beta2", "MachineHealthCheck", "machinehealthchecks")
MACHINE_POOL = Kind(CORE_GROUP, "v1beta2", "MachinePool", "machinepools")
MACHINE_SET = Kind(CORE_GROUP, "v1beta2", "MachineSet", "machinesets")

KUBEADM_CONFIG = Kind(BOOTSTRAP_GROUP, "v1beta2", "KubeadmConfig", "kubeadmconfigs")
KUBEADM_CONFIG_TEMPLATE = Kind(BOOTSTRAP_GROUP, "v1beta2", "KubeadmConfigTemplate", "kubeadmconfigtemplates")
KUBEADM_CONTROL_PLANE = Kind(CONTROL_PLANE_GROUP, "v1beta2", "KubeadmControlPlane", "kubeadmcontrolplanes")
KUBEADM_CONTROL_PLANE_TEMPLATE = Kind(CONTROL_PLANE_GROUP, "v1beta2", "KubeadmControlPlaneTemplate", "kubeadmcontrolplanetemplates")

CLUSTER_RESOURCE_SET = Kind(ADDONS_GROUP, "v1beta2", "ClusterResourceSet", "clusterresourcesets")
CLUSTER_RESOURCE_SET_BINDING = Kind(ADDONS_GROUP, "v1beta2", "ClusterResourceSetBinding", "clusterresourcesetbindings")

BAREMETAL_CLUSTER = Kind(INFRASTRUCTURE_GROUP, "v1beta1", "BaremetalCluster", "baremetalclusters")
BAREMETAL_MACHINE = Kind(INFRASTRUCTURE_GROUP, "v1beta1", "BaremetalMachine", "baremetalmachines")
BAREMETAL_MACHINE_TEMPLATE = Kind(INFRASTRUCTURE_GROUP, "v1beta1", "BaremetalMachineTemplate", "baremetalmachinetemplates")
MACHINE_INVENTORY_POOL = Kind(INFRASTRUCTURE_GROUP, "v1beta1", "MachineInventoryPool", "machineinventorypools")

MACHINE_INVENTORY = Kind(ELEMENTAL_GROUP, "v1beta1", "MachineInventory", "machineinventories")
MACHINE_REGISTRATION = Kind(ELEMENTAL_GROUP, "v1beta1", "MachineRegistration", "machineregistrations")
SEED_IMAGE = Kind(ELEMENTAL_GROUP, "v1beta1", "SeedImage", "seedimages")


_NAMED = {(kind.group, kind.kind): kind for kind in list(globals().values()) if isinstance(kind, Kind)}


def named(api_version: str, kind: str) -> Kind:
    """The kind that a manifest's apiVersion and kind mean, in that version."""
    group, _, version = api_version.rpartition("/")
    found = _NAMED.get((group, kind))
    if found is None:
        raise ValueError(f"it is not known where objects of the kind {kind} of {api_version} are in the API: the table of kinds lacks it")
    return found._replace(version=version)


def path(kind: Kind, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """The path of one object, or without a name of all of a kind, in one namespace or in all of them."""
    parts = ["apis", kind.group, kind.version] if kind.group else ["api", kind.version]
    if kind.namespaced and namespace:
        parts += ["namespaces", quote(namespace, safe="")]
    elif kind.namespaced and name:
        raise ValueError(f'the {kind.kind} "{name}" is wanted without saying in which namespace it is')
    parts.append(kind.plural)
    if name:
        parts.append(quote(name, safe=":"))
    if subresource:
        if not name:
            raise ValueError(f"the subresource {subresource} of a {kind.kind} is wanted without a name")
        parts += subresource.split("/")
    return "/" + "/".join(parts)
