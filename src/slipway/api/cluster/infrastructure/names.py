"""The names of the bare-metal provider: labels, annotations, finalizers, phases, condition types and reasons."""

from __future__ import annotations

# On a MachineInventory; once it is released, those of the owner are gone and the pool stays.
POOL_ANNOTATION = "baremetal.alauda.io/pool"
ALLOCATION_STATE_ANNOTATION = "baremetal.alauda.io/allocation-state"
OWNER_CLUSTER_ANNOTATION = "baremetal.alauda.io/owner-cluster"
OWNER_MACHINE_ANNOTATION = "baremetal.alauda.io/owner-machine"
OWNER_BAREMETAL_MACHINE_ANNOTATION = "baremetal.alauda.io/owner-baremetalmachine"
OWNER_ANNOTATIONS = (OWNER_CLUSTER_ANNOTATION, OWNER_MACHINE_ANNOTATION, OWNER_BAREMETAL_MACHINE_ANNOTATION)

# On a plan Secret, beside Elemental's.
PLAN_TYPE_ANNOTATION = "baremetal.alauda.io/plan.type"
PLAN_CLEAN = "clean"
PLAN_REPROVISION = "reprovision"

# On a Cluster: the registry whose address takes the place of the one in the catalog.
REGISTRY_ADDRESS_ANNOTATION = "cpaas.io/registry-address"

BAREMETAL_CLUSTER_FINALIZER = "baremetalcluster.infrastructure.cluster.x-k8s.io"
BAREMETAL_MACHINE_FINALIZER = "baremetalmachine.infrastructure.cluster.x-k8s.io"

PROVIDER_ID_PREFIX = "baremetal:///"

CATALOG_NAME = "elemental-image-catalog"
# The repository of an image has its registration image beside it, under the same name with this at its end.
ISO_SUFFIX = "-iso"

# In the bootstrap Secret: the data as the host gets it.  ``value`` stays as it was.
RESOLVED_VALUE_KEY = "resolved-value"

# Of the annotation allocation-state.
AVAILABLE = "Available"
ALLOCATED = "Allocated"
PREPARING = "Preparing"
REPROVISIONING = "Reprovisioning"
UNAVAILABLE = "Unavailable"
ALLOCATION_STATES = (AVAILABLE, ALLOCATED, PREPARING, REPROVISIONING, UNAVAILABLE)

# Of a BaremetalMachine's status.phase.
PENDING_PHASE = "Pending"
ALLOCATED_PHASE = "Allocated"
REPROVISIONING_PHASE = "Reprovisioning"
RUNNING_PHASE = "Running"
PREPARING_PHASE = "Preparing"
FAILED_PHASE = "Failed"
PHASES = (PENDING_PHASE, ALLOCATED_PHASE, REPROVISIONING_PHASE, RUNNING_PHASE, PREPARING_PHASE, FAILED_PHASE)

# Of a BaremetalCluster's load balancer.
INTERNAL = "Internal"
EXTERNAL = "External"

# Of a template: hosts are taken in the order of the pool, or first those that a machine of the same control plane or deployment had.
ORDERED = "Ordered"
PREFER_SAME = "PreferSame"
ALLOCATION_POLICIES = (ORDERED, PREFER_SAME)

# Of a template: what a clean does beside ending the node.
KEEP = "Keep"
SCRUB = "Scrub"
CLEAN_POLICIES = (KEEP, SCRUB)

# Of a pool: an image is fetched when a plan needs it, or on every host before that.
ON_DEMAND = "OnDemand"
AHEAD = "Ahead"
IMAGE_STAGINGS = (ON_DEMAND, AHEAD)

FAILURE_DOMAIN_LABEL = "topology.kubernetes.io/zone"
"""On an inventory: the failure domain that its host is in, such as its rack."""
GROUP_ANNOTATION = "slipway.io/allocated-for"
"""On an inventory: the control plane or deployment whose machine has its host, or had it last, as cluster/name."""

# Of a BaremetalCluster.
ENDPOINT_READY_CONDITION = "EndpointReady"
ROLLOUT_GUARDED_CONDITION = "RolloutGuarded"
VIP_READY_CONDITION = "VIPReady"
# Of a BaremetalMachine.
INVENTORY_ALLOCATED_CONDITION = "InventoryAllocated"
BOOTSTRAP_READY_CONDITION = "BootstrapReady"
IMAGE_RESOLVED_CONDITION = "ImageResolved"
PLAN_APPLIED_CONDITION = "PlanApplied"
NODE_JOINED_CONDITION = "NodeJoined"
HOST_CLEANED_CONDITION = "HostCleaned"
# Of a MachineInventoryPool.
MEMBERS_VALID_CONDITION = "MembersValid"
IMAGES_STAGED_CONDITION = "ImagesStaged"

# Of InventoryAllocated.
ALLOCATED_REASON = "Allocated"
POOL_MISSING_REASON = "PoolMissing"
POOL_EXHAUSTED_REASON = "PoolExhausted"
WAITING_FOR_SAME_HOST_REASON = "WaitingForSameHost"
POOL_INVALID_REASON = "PoolInvalid"
INVENTORY_LOST_REASON = "InventoryLost"
WAITING_FOR_CLUSTER_INFRASTRUCTURE_REASON = "WaitingForClusterInfrastructure"
# Of BootstrapReady.
BOOTSTRAP_READY_REASON = "BootstrapReady"
BOOTSTRAP_WAITING_REASON = "BootstrapWaiting"
BOOTSTRAP_INVALID_REASON = "BootstrapInvalid"
NETWORK_DEVICE_IS_SLAVE_REASON = "NetworkDeviceIsSlave"
# Of ImageResolved.
IMAGE_RESOLVED_REASON = "ImageResolved"
IMAGE_CATALOG_MISS_REASON = "ImageCatalogMiss"
IMAGE_CATALOG_INVALID_REASON = "ImageCatalogInvalid"
IMAGE_REGISTRY_MISSING_REASON = "ImageRegistryMissing"
# Of PlanApplied.
PLAN_PENDING_REASON = "PlanPending"
PLAN_RUNNING_REASON = "PlanRunning"
PLAN_APPLIED_REASON = "PlanApplied"
PLAN_FAILED_REASON = "PlanFailed"
PLAN_SECRET_MISSING_REASON = "PlanSecretMissing"
# Of NodeJoined.
NODE_JOINED_REASON = "NodeJoined"
WAITING_FOR_NODE_REASON = "WaitingForNode"
JOIN_DEADLINE_EXCEEDED_REASON = "JoinDeadlineExceeded"
NODE_VERSION_DIFFERS_REASON = "NodeVersionDiffers"
# Of HostCleaned.
CLEANING_REASON = "Cleaning"
CLEANED_REASON = "Cleaned"
CLEAN_FAILED_REASON = "CleanFailed"
CLEAN_DEADLINE_EXCEEDED_REASON = "CleanDeadlineExceeded"
# Of MembersValid.
MEMBERS_VALID_REASON = "MembersValid"
MEMBER_MISSING_REASON = "MemberMissing"
MEMBER_DUPLICATE_REASON = "MemberDuplicate"
MEMBER_IN_OTHER_POOL_REASON = "MemberInOtherPool"
# Of ImagesStaged.
ALL_STAGED_REASON = "AllStaged"
NOTHING_TO_STAGE_REASON = "NothingToStage"
STAGING_REASON = "Staging"
STAGING_FAILED_REASON = "StagingFailed"
IMAGE_UNKNOWN_REASON = "ImageUnknown"
# Of EndpointReady.
ENDPOINT_READY_REASON = "EndpointReady"
ENDPOINT_MISSING_REASON = "EndpointMissing"
ENDPOINT_CONFLICT_REASON = "EndpointConflict"
# Of VIPReady.
VIP_READY_REASON = "PeersPublished"
VIP_INVALID_REASON = "InvalidLoadBalancer"
VIP_IS_HOST_ADDRESS_REASON = "AddressOfAHost"
VRID_IN_USE_REASON = "VirtualRouterIDInUse"
VIP_PEERS_UNKNOWN_REASON = "PeersUnknown"
VIP_WAITING_FOR_CONTROL_PLANE_REASON = "WaitingForControlPlane"
VIP_API_NOT_REACHABLE_REASON = "APINotReachable"
# Of RolloutGuarded.
NO_OBJECTION_REASON = "NoObjection"
ROLLOUT_OBJECTION_REASON = "RolloutObjection"
NOT_LOOKED_YET_REASON = "NotLookedYet"


def provider_id(inventory: str) -> str:
    """What a Node on this host has as its providerID."""
    return PROVIDER_ID_PREFIX + inventory


def inventory_of(provider_id: str) -> str:
    """The inventory that a providerID names; empty where it is not one of ours."""
    return provider_id.removeprefix(PROVIDER_ID_PREFIX) if provider_id.startswith(PROVIDER_ID_PREFIX) else ""
