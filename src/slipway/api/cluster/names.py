"""The names that Cluster API's objects are marked with: labels, annotations, finalizers, conditions, reasons and field managers.

Those that several controllers, or others' controllers, read.  A reason that one controller alone sets stays with it.
"""

from __future__ import annotations

# https://cluster-api.sigs.k8s.io/reference/api/labels-and-annotations
CLUSTER_NAME_LABEL = "cluster.x-k8s.io/cluster-name"
CONTROL_PLANE_LABEL = "cluster.x-k8s.io/control-plane"
CONTROL_PLANE_NAME_LABEL = "cluster.x-k8s.io/control-plane-name"
DEPLOYMENT_NAME_LABEL = "cluster.x-k8s.io/deployment-name"
SET_NAME_LABEL = "cluster.x-k8s.io/set-name"
POOL_NAME_LABEL = "cluster.x-k8s.io/pool-name"
PROVIDER_LABEL = "cluster.x-k8s.io/provider"
INTERRUPTIBLE_LABEL = "cluster.x-k8s.io/interruptible"
# On a Pod of a workload cluster.
POD_DRAIN_LABEL = "cluster.x-k8s.io/drain"
# On MachineSets and their Machines: which of a MachineDeployment's templates they come from.
TEMPLATE_HASH_LABEL = "machine-template-hash"
# Labels of a Machine that its Node gets, too: these, and every one in or below the two domains.
NODE_ROLE_LABEL_PREFIX = "node-role.kubernetes.io"
NODE_RESTRICTION_LABEL_DOMAIN = "node-restriction.kubernetes.io"
MANAGED_NODE_LABEL_DOMAIN = "node.cluster.x-k8s.io"
MANAGED_NODE_ANNOTATION_DOMAIN = "node.cluster.x-k8s.io"

PAUSED_ANNOTATION = "cluster.x-k8s.io/paused"
# On infrastructure of a cluster: somebody else than its provider takes care of it.
MANAGED_BY_ANNOTATION = "cluster.x-k8s.io/managed-by"
# On what clusterctl takes away after it has moved it to another management cluster.
DELETE_FOR_MOVE_ANNOTATION = "clusterctl.cluster.x-k8s.io/delete-for-move"
AUTOSCALER_MIN_SIZE_ANNOTATION = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"
AUTOSCALER_MAX_SIZE_ANNOTATION = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"
CLONED_FROM_NAME_ANNOTATION = "cluster.x-k8s.io/cloned-from-name"
CLONED_FROM_GROUP_KIND_ANNOTATION = "cluster.x-k8s.io/cloned-from-groupkind"
CONVERSION_DATA_ANNOTATION = "cluster.x-k8s.io/conversion-data"
DELETE_MACHINE_ANNOTATION = "cluster.x-k8s.io/delete-machine"
DISABLE_MACHINE_CREATE_ANNOTATION = "cluster.x-k8s.io/disable-machine-create"
REMEDIATE_MACHINE_ANNOTATION = "cluster.x-k8s.io/remediate-machine"
SKIP_REMEDIATION_ANNOTATION = "cluster.x-k8s.io/skip-remediation"
EXCLUDE_NODE_DRAINING_ANNOTATION = "machine.cluster.x-k8s.io/exclude-node-draining"
EXCLUDE_WAIT_FOR_NODE_VOLUME_DETACH_ANNOTATION = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach"
CERTIFICATES_EXPIRY_ANNOTATION = "machine.cluster.x-k8s.io/certificates-expiry"
# An annotation that starts with one of these holds a Machine's deletion up until it is removed.
PRE_DRAIN_HOOK_PREFIX = "pre-drain.delete.hook.machine.cluster.x-k8s.io"
PRE_TERMINATE_HOOK_PREFIX = "pre-terminate.delete.hook.machine.cluster.x-k8s.io"
# The control plane's own hook: until it has removed the etcd member.
KUBEADM_CONTROL_PLANE_PRE_TERMINATE_HOOK = f"{PRE_TERMINATE_HOOK_PREFIX}/kcp-cleanup"
SKIP_PREFLIGHT_CHECKS_ANNOTATION = "machineset.cluster.x-k8s.io/skip-preflight-checks"
REVISION_ANNOTATION = "machinedeployment.clusters.x-k8s.io/revision"
DESIRED_REPLICAS_ANNOTATION = "machinedeployment.clusters.x-k8s.io/desired-replicas"
MAX_REPLICAS_ANNOTATION = "machinedeployment.clusters.x-k8s.io/max-replicas"
SKIP_COREDNS_ANNOTATION = "controlplane.cluster.x-k8s.io/skip-coredns"
SKIP_KUBE_PROXY_ANNOTATION = "controlplane.cluster.x-k8s.io/skip-kube-proxy"
REMEDIATION_IN_PROGRESS_ANNOTATION = "controlplane.cluster.x-k8s.io/remediation-in-progress"
REMEDIATION_FOR_ANNOTATION = "controlplane.cluster.x-k8s.io/remediation-for"
# Of upstream's in-place updates and lifecycle hooks, which Slipway does not do: an object that has one is in the middle of something.
IN_PLACE_UPDATE_PREFIX = "in-place-updates.internal.cluster.x-k8s.io/"
PENDING_ACKNOWLEDGE_MOVE_ANNOTATION = f"{IN_PLACE_UPDATE_PREFIX}pending-acknowledge-move"
UPDATE_IN_PROGRESS_ANNOTATION = f"{IN_PLACE_UPDATE_PREFIX}update-in-progress"
PENDING_HOOKS_ANNOTATION = "runtime.cluster.x-k8s.io/pending-hooks"
TOPOLOGY_UPGRADE_STEP_ANNOTATION = "topology.internal.cluster.x-k8s.io/upgrade-step"
# Annotations of a Node.
NODE_CLUSTER_NAME_ANNOTATION = "cluster.x-k8s.io/cluster-name"
NODE_CLUSTER_NAMESPACE_ANNOTATION = "cluster.x-k8s.io/cluster-namespace"
NODE_MACHINE_ANNOTATION = "cluster.x-k8s.io/machine"
NODE_OWNER_KIND_ANNOTATION = "cluster.x-k8s.io/owner-kind"
NODE_OWNER_NAME_ANNOTATION = "cluster.x-k8s.io/owner-name"
NODE_LABELS_FROM_MACHINE_ANNOTATION = "cluster.x-k8s.io/labels-from-machine"
NODE_ANNOTATIONS_FROM_MACHINE_ANNOTATION = "cluster.x-k8s.io/annotations-from-machine"
NODE_TAINTS_FROM_MACHINE_ANNOTATION = "cluster.x-k8s.io/taints-from-machine"

# Slipway's own.
MULTI_STEP_UPGRADE_ANNOTATION = "slipway.io/multi-step-upgrade"
UPGRADE_TARGET_ANNOTATION = "slipway.io/upgrade-target"

SECRET_TYPE = "cluster.x-k8s.io/secret"

# Taints of a Node.
UNINITIALIZED_TAINT = "node.cluster.x-k8s.io/uninitialized"
OUTDATED_REVISION_TAINT = "node.cluster.x-k8s.io/outdated-revision"

CLUSTER_FINALIZER = "cluster.cluster.x-k8s.io"
MACHINE_FINALIZER = "machine.cluster.x-k8s.io"
MACHINE_SET_FINALIZER = "cluster.x-k8s.io/machineset"
MACHINE_DEPLOYMENT_FINALIZER = "cluster.x-k8s.io/machinedeployment"
KUBEADM_CONTROL_PLANE_FINALIZER = "kubeadm.controlplane.cluster.x-k8s.io"

# Field managers of server-side apply: upstream's, so that a field that it gave up goes, whoever applies next.
MACHINE_DEPLOYMENT_FIELD_MANAGER = "capi-machinedeployment"
MACHINE_SET_FIELD_MANAGER = "capi-machineset"
MACHINE_SET_METADATA_FIELD_MANAGER = "capi-machineset-metadata"
KUBEADM_CONTROL_PLANE_FIELD_MANAGER = "capi-kubeadmcontrolplane"
KUBEADM_CONTROL_PLANE_METADATA_FIELD_MANAGER = "capi-kubeadmcontrolplane-metadata"

# What an object of a template's kind is named without.
TEMPLATE_SUFFIX = "Template"

# Checks before a MachineSet makes a Machine, as the annotation that skips them names them.
PREFLIGHT_ALL = "All"
PREFLIGHT_KUBEADM_VERSION_SKEW = "KubeadmVersionSkew"
PREFLIGHT_KUBERNETES_VERSION_SKEW = "KubernetesVersionSkew"
PREFLIGHT_CONTROL_PLANE_IS_STABLE = "ControlPlaneIsStable"
PREFLIGHT_CONTROL_PLANE_VERSION_SKEW = "ControlPlaneVersionSkew"

AVAILABLE_CONDITION = "Available"
READY_CONDITION = "Ready"
UP_TO_DATE_CONDITION = "UpToDate"
UPDATING_CONDITION = "Updating"
PAUSED_CONDITION = "Paused"
DELETING_CONDITION = "Deleting"
ROLLING_OUT_CONDITION = "RollingOut"
SCALING_UP_CONDITION = "ScalingUp"
SCALING_DOWN_CONDITION = "ScalingDown"
REMEDIATING_CONDITION = "Remediating"
MACHINES_READY_CONDITION = "MachinesReady"
MACHINES_UP_TO_DATE_CONDITION = "MachinesUpToDate"
BOOTSTRAP_CONFIG_READY_CONDITION = "BootstrapConfigReady"
INFRASTRUCTURE_READY_CONDITION = "InfrastructureReady"
# Of a Cluster.
CONTROL_PLANE_INITIALIZED_CONDITION = "ControlPlaneInitialized"
CONTROL_PLANE_AVAILABLE_CONDITION = "ControlPlaneAvailable"
CONTROL_PLANE_MACHINES_READY_CONDITION = "ControlPlaneMachinesReady"
CONTROL_PLANE_MACHINES_UP_TO_DATE_CONDITION = "ControlPlaneMachinesUpToDate"
WORKERS_AVAILABLE_CONDITION = "WorkersAvailable"
WORKER_MACHINES_READY_CONDITION = "WorkerMachinesReady"
WORKER_MACHINES_UP_TO_DATE_CONDITION = "WorkerMachinesUpToDate"
REMOTE_CONNECTION_PROBE_CONDITION = "RemoteConnectionProbe"
TOPOLOGY_RECONCILED_CONDITION = "TopologyReconciled"
# Of a Machine.
NODE_READY_CONDITION = "NodeReady"
NODE_HEALTHY_CONDITION = "NodeHealthy"
HEALTH_CHECK_SUCCEEDED_CONDITION = "HealthCheckSucceeded"
OWNER_REMEDIATED_CONDITION = "OwnerRemediated"
EXTERNALLY_REMEDIATED_CONDITION = "ExternallyRemediated"
# Of a KubeadmControlPlane.
INITIALIZED_CONDITION = "Initialized"
CERTIFICATES_AVAILABLE_CONDITION = "CertificatesAvailable"
ETCD_CLUSTER_HEALTHY_CONDITION = "EtcdClusterHealthy"
CONTROL_PLANE_COMPONENTS_HEALTHY_CONDITION = "ControlPlaneComponentsHealthy"
# Of a MachineHealthCheck.
REMEDIATION_ALLOWED_CONDITION = "RemediationAllowed"

AVAILABLE_REASON = "Available"
NOT_AVAILABLE_REASON = "NotAvailable"
READY_REASON = "Ready"
NOT_READY_REASON = "NotReady"
READY_UNKNOWN_REASON = "ReadyUnknown"
UP_TO_DATE_REASON = "UpToDate"
NOT_UP_TO_DATE_REASON = "NotUpToDate"
UP_TO_DATE_UNKNOWN_REASON = "UpToDateUnknown"
UPDATING_REASON = "Updating"
ROLLING_OUT_REASON = "RollingOut"
NOT_ROLLING_OUT_REASON = "NotRollingOut"
SCALING_UP_REASON = "ScalingUp"
NOT_SCALING_UP_REASON = "NotScalingUp"
SCALING_DOWN_REASON = "ScalingDown"
NOT_SCALING_DOWN_REASON = "NotScalingDown"
REMEDIATING_REASON = "Remediating"
NOT_REMEDIATING_REASON = "NotRemediating"
DELETING_REASON = "Deleting"
NOT_DELETING_REASON = "NotDeleting"
DELETION_COMPLETED_REASON = "DeletionCompleted"
WAITING_FOR_WORKERS_DELETION_REASON = "WaitingForWorkersDeletion"
WAITING_FOR_INFRASTRUCTURE_DELETION_REASON = "WaitingForInfrastructureDeletion"
NO_REPLICAS_REASON = "NoReplicas"
WAITING_FOR_REPLICAS_SET_REASON = "WaitingForReplicasSet"
INITIALIZED_REASON = "Initialized"
NOT_INITIALIZED_REASON = "NotInitialized"
INTERNAL_ERROR_REASON = "InternalError"
INSPECTION_FAILED_REASON = "InspectionFailed"
CONNECTION_DOWN_REASON = "ConnectionDown"
INVALID_CONDITION_REPORTED_REASON = "InvalidConditionReported"
OBJECT_DOES_NOT_EXIST_REASON = "ObjectDoesNotExist"
OBJECT_DELETED_REASON = "ObjectDeleted"
NODE_DOES_NOT_EXIST_REASON = "NodeDoesNotExist"
NODE_DELETED_REASON = "NodeDeleted"
# Of HealthCheckSucceeded.
HEALTH_CHECK_SUCCEEDED_REASON = "HealthCheckSucceeded"
UNHEALTHY_NODE_REASON = "UnhealthyNode"
UNHEALTHY_MACHINE_REASON = "UnhealthyMachine"
NODE_STARTUP_TIMEOUT_REASON = "NodeStartupTimeout"
HAS_REMEDIATE_ANNOTATION_REASON = "HasRemediateAnnotation"
# Of OwnerRemediated.
WAITING_FOR_REMEDIATION_REASON = "WaitingForRemediation"
CANNOT_BE_REMEDIATED_REASON = "CannotBeRemediated"
REMEDIATION_DEFERRED_REASON = "RemediationDeferred"
REMEDIATION_MACHINE_DELETING_REASON = "MachineDeleting"
