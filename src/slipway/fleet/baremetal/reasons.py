"""Every condition of the bare-metal provider, with every reason that it can have: what it means, what happens, what to do.

The reference in ``docs/baremetal.md`` is made from this table, and the tests bring about every row of it.
"""

from __future__ import annotations

from typing import NamedTuple

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import BAREMETAL_CLUSTER, BAREMETAL_MACHINE, MACHINE_INVENTORY_POOL
from slipway.fleet.baremetal.hosts.pool import (
    MEMBER_NOT_CLEAN_REASON,
    MEMBER_ORPHANED_REASON,
    MEMBER_UNSUPPORTED_REASON,
    SELECTOR_INVALID_REASON,
)

# Of BootstrapReady.
BOOTSTRAP_TOKEN_EXPIRED = "BootstrapTokenExpired"
# Of PlanApplied.
OLD_NODE_REMAINS = "OldNodeRemains"
HOST_BUSY = "HostBusy"
HOST_SILENT = "HostSilent"
PLAN_EDITED = "PlanEdited"
# Of NodeJoined.
NODE_GONE = "NodeGone"
# Of several.
WORKLOAD_UNREACHABLE = "WorkloadClusterUnreachable"
# Of a pool's Ready.
POOL_READY = "PoolReady"
POOL_EMPTY = "PoolEmpty"
MEMBERS_INVALID = "MembersInvalid"


class Reason(NamedTuple):
    """A row of the reference."""

    kind: str
    condition: str
    status: str
    reason: str
    meaning: str
    by_itself: str = ""
    """What happens without anybody doing anything."""
    to_do: str = ""


_BMM, _MIP, _BMC = BAREMETAL_MACHINE.kind, MACHINE_INVENTORY_POOL.kind, BAREMETAL_CLUSTER.kind
_ALLOCATED, _BOOTSTRAP, _IMAGE = names.INVENTORY_ALLOCATED_CONDITION, names.BOOTSTRAP_READY_CONDITION, names.IMAGE_RESOLVED_CONDITION
_PLAN, _NODE, _CLEANED = names.PLAN_APPLIED_CONDITION, names.NODE_JOINED_CONDITION, names.HOST_CLEANED_CONDITION
_GUARDED = names.ROLLOUT_GUARDED_CONDITION
_STAGED = names.IMAGES_STAGED_CONDITION
_MEMBERS, _ENDPOINT, _VIP = names.MEMBERS_VALID_CONDITION, names.ENDPOINT_READY_CONDITION, names.VIP_READY_CONDITION

REASONS = (
    Reason(_BMM, _ALLOCATED, "True", names.ALLOCATED_REASON, "A host of the pool is claimed for this machine."),
    Reason(
        _BMM,
        _ALLOCATED,
        "False",
        names.WAITING_FOR_CLUSTER_INFRASTRUCTURE_REASON,
        "The BaremetalCluster is not ready yet.",
        "Goes on when it is.",
        "Look at the condition EndpointReady of the BaremetalCluster.",
    ),
    Reason(
        _BMM,
        _ALLOCATED,
        "False",
        names.POOL_MISSING_REASON,
        "There is no pool of the name in machineInventoryPoolRef.",
        "Stays Pending; goes on when the pool is made.",
        "Make the pool, or roll out a template that names another one.",
    ),
    Reason(
        _BMM,
        _ALLOCATED,
        "False",
        names.POOL_INVALID_REASON,
        "The pool is for another cluster.",
        "Stays Pending.",
        "Roll out a template that names a pool of this cluster.",
    ),
    Reason(
        _BMM,
        _ALLOCATED,
        "False",
        names.POOL_EXHAUSTED_REASON,
        "No host of the pool is free; the message says why of each.",
        "Stays Pending; goes on when a host comes back from its cleaning, or is added.",
        "Add a MachineInventory to the pool, or mend one that is Unavailable.",
    ),
    Reason(
        _BMM,
        _ALLOCATED,
        "False",
        names.WAITING_FOR_SAME_HOST_REASON,
        "allocationPolicy is PreferSame, and a host that a machine of the same control plane or deployment has is about to come back.",
        "Takes it once it is clean; takes another one that is free after --host-deadline.",
    ),
    Reason(
        _BMM,
        _ALLOCATED,
        "False",
        names.INVENTORY_LOST_REASON,
        "The host of a machine that was provisioned is gone, or somebody else's.",
        "Failed; no other host is taken, as the Node would be another one.",
        "Delete the Machine; its replacement gets another host.",
    ),
    Reason(_BMM, _BOOTSTRAP, "True", names.BOOTSTRAP_READY_REASON, "The bootstrap data is there and fits the host."),
    Reason(
        _BMM,
        _BOOTSTRAP,
        "False",
        names.BOOTSTRAP_WAITING_REASON,
        "The Machine does not name its bootstrap data yet, or its Secret is not there.",
        "Goes on when it is; no plan is written before.",
        "Look at the KubeadmConfig of the Machine.",
    ),
    Reason(
        _BMM,
        _BOOTSTRAP,
        "False",
        names.BOOTSTRAP_INVALID_REASON,
        "The bootstrap data is no cloud-config that kubeadm's configuration can be found in; the message has the line.",
        "No plan is written; looked at again every 30 seconds.",
        "Mend the KubeadmConfigSpec and roll out, or delete the Machine.",
    ),
    Reason(
        _BMM,
        _BOOTSTRAP,
        "False",
        BOOTSTRAP_TOKEN_EXPIRED,
        "The cluster does not know the bootstrap token of the data any more: a host that booted now would not be let in.",
        "No plan is written; goes on when the bootstrap provider has refreshed the token.",
        "Where that does not happen, delete the Machine.",
    ),
    Reason(
        _BMM,
        _BOOTSTRAP,
        "False",
        WORKLOAD_UNREACHABLE,
        "The workload cluster cannot be asked for the bootstrap token.",
        "Goes on when it answers.",
        "Look whether the control plane's endpoint is reachable from the manager.",
    ),
    Reason(
        _BMM,
        _BOOTSTRAP,
        "False",
        names.VIP_INVALID_REASON,
        "There can be no virtual address with the values of the BaremetalCluster.",
        "No plan is written; looked at again every 30 seconds.",
        "Mend controlPlaneLoadBalancer, or put more hosts into the control plane's pool.",
    ),
    Reason(
        _BMM,
        _BOOTSTRAP,
        "False",
        names.VIP_IS_HOST_ADDRESS_REASON,
        "The virtual address is the own address of a host.",
        "No plan is written; looked at again every 30 seconds.",
        "Choose an address of the same network that nothing has.",
    ),
    Reason(
        _BMM,
        _BOOTSTRAP,
        "False",
        names.VRID_IN_USE_REASON,
        "An older BaremetalCluster has the same vrid.",
        "No plan is written; looked at again every 30 seconds.",
        "Choose another vrid.",
    ),
    Reason(
        _BMM,
        _BOOTSTRAP,
        "False",
        names.VIP_PEERS_UNKNOWN_REASON,
        "It is not known which address this control plane's host has, or which its peers have.",
        "No plan is written; looked at again every 30 seconds.",
        "See the message: a device of another name, or a host that did not register.",
    ),
    Reason(
        _BMM,
        _BOOTSTRAP,
        "False",
        names.NETWORK_DEVICE_IS_SLAVE_REASON,
        "The network device that the virtual address is to be on is a part of another one.",
        "No plan is written.",
        "Name the bond or bridge as networkDevice, in the BaremetalCluster or in the pool's entry.",
    ),
    Reason(_BMM, _IMAGE, "True", names.IMAGE_RESOLVED_REASON, "The image is in the message."),
    Reason(
        _BMM,
        _IMAGE,
        "False",
        names.IMAGE_CATALOG_MISS_REASON,
        "The image catalog has no key of the Machine's version, or the key lacks its leading v.",
        "Failed, without a plan; adding the key restarts it.",
        "Add the version to the ConfigMap elemental-image-catalog.",
    ),
    Reason(
        _BMM,
        _IMAGE,
        "False",
        names.IMAGE_CATALOG_INVALID_REASON,
        "What the catalog has for the version, or the registry's address, is no image reference.",
        "Failed, without a plan; goes on when it is mended.",
        "Mend the entry, or the annotation cpaas.io/registry-address.",
    ),
    Reason(
        _BMM,
        _IMAGE,
        "False",
        names.IMAGE_REGISTRY_MISSING_REASON,
        "It is not known which registry hosts pull from.",
        "Failed, without a plan; goes on when the annotation is there.",
        "Set the annotation cpaas.io/registry-address on the Cluster.",
    ),
    Reason(_BMM, _PLAN, "True", names.PLAN_APPLIED_REASON, "The host has applied the reprovision plan, and boots."),
    Reason(
        _BMM,
        _PLAN,
        "False",
        names.PLAN_PENDING_REASON,
        "The plan is written, and the host has not begun with it.",
        "Goes on when its agent takes it.",
    ),
    Reason(
        _BMM, _PLAN, "False", names.PLAN_RUNNING_REASON, "The host works on the plan.", "Goes on when it is done; a failure is tried again."
    ),
    Reason(
        _BMM,
        _PLAN,
        "False",
        names.PLAN_SECRET_MISSING_REASON,
        "The plan Secret of the host is not there.",
        "Goes on when the inventory's controller has made it.",
        "Look whether that controller runs.",
    ),
    Reason(
        _BMM,
        _PLAN,
        "False",
        HOST_BUSY,
        "The host works on another plan, which is left alone.",
        "Goes on when that one has ended.",
    ),
    Reason(
        _BMM,
        _PLAN,
        "False",
        PLAN_EDITED,
        "Somebody put another plan into the host's Secret, in the place of ours.",
        "The host ends that one; then ours is written again, unless the host is the Node by then.",
        "Leave plan Secrets to the manager; pause the Cluster to work on a host by hand.",
    ),
    Reason(
        _BMM,
        _PLAN,
        "False",
        HOST_SILENT,
        "The host has a plan for longer than a host may take.",
        "Goes on when the host does.",
        "Look at the host's power, network and agent; to try another host, delete the Machine.",
    ),
    Reason(
        _BMM,
        _PLAN,
        "False",
        OLD_NODE_REMAINS,
        "A Node of this host is Ready, or is of a Machine that is still there, so the host is not touched.",
        "Goes on when the Node has gone with its last Machine.",
        "Delete a Machine that stays though its host is gone; where the Node belongs to nobody, delete the Node.",
    ),
    Reason(
        _BMM,
        _PLAN,
        "False",
        WORKLOAD_UNREACHABLE,
        "It is not known whether the host is a Node, so no plan is written.",
        "Goes on when the workload cluster answers.",
        "Look whether the control plane's endpoint is reachable from the manager.",
    ),
    Reason(
        _BMM,
        _PLAN,
        "False",
        names.PLAN_FAILED_REASON,
        "The host could not apply its plan; the message is what it printed.",
        "Failed, and the host is Unavailable; a machine that is deleted keeps its finalizer.",
        "Delete the Machine: its host is cleaned and comes back. See the host's console for errors of elemental upgrade.",
    ),
    Reason(_BMM, _NODE, "True", names.NODE_JOINED_REASON, "The Node is there, with our provider ID and the Machine's version."),
    Reason(
        _BMM,
        _NODE,
        "False",
        names.WAITING_FOR_NODE_REASON,
        "The host has applied its plan, and boots.",
        "Goes on when the Node is there.",
    ),
    Reason(
        _BMM,
        _NODE,
        "False",
        names.JOIN_DEADLINE_EXCEEDED_REASON,
        "The host has applied its plan and is no Node after 20 minutes, or what slipway.io/join-deadline says.",
        "Failed; Running should the Node still come.",
        "See the host's console and /var/log/cloud-init-output.log, and whether it reaches the endpoint; then delete the Machine.",
    ),
    Reason(
        _BMM,
        _NODE,
        "False",
        names.NODE_VERSION_DIFFERS_REASON,
        "The Node runs another version than the Machine asks for.",
        "Failed.",
        "Mend the catalog's entry, then delete the Machine.",
    ),
    Reason(
        _BMM,
        _NODE,
        "False",
        NODE_GONE,
        "The Node of a machine that was Running is not there any more.",
        "Running again when it comes back.",
        "Delete the Machine, or let a MachineHealthCheck do it.",
    ),
    Reason(
        _BMM,
        _NODE,
        "Unknown",
        WORKLOAD_UNREACHABLE,
        "The workload cluster does not answer.",
        "Goes on when it does.",
        "Look whether the control plane's endpoint is reachable from the manager.",
    ),
    Reason(_BMM, _CLEANED, "False", names.CLEANING_REASON, "The host is being cleaned.", "The machine goes when the host is clean."),
    Reason(
        _BMM,
        _CLEANED,
        "False",
        names.CLEAN_FAILED_REASON,
        "The host could not be cleaned, or says afterwards that it is not clean; the message is why.",
        "The finalizer holds, and the host is Unavailable.",
        "Mend the host and set the annotation slipway.io/retry-clean, or give it up with slipway.io/force-release.",
    ),
    Reason(
        _BMM,
        _CLEANED,
        "False",
        names.CLEAN_DEADLINE_EXCEEDED_REASON,
        "The host does not take the clean plan, or does not end it.",
        "The machine goes when the host is clean.",
        "Look at the host's power and agent; where it is dead, set the annotation slipway.io/force-release: it stays Unavailable until it "
        "has been cleaned.",
    ),
    Reason(_MIP, _MEMBERS, "True", names.MEMBERS_VALID_REASON, "Every entry names a host that is in this pool alone."),
    Reason(
        _MIP,
        _MEMBERS,
        "False",
        names.MEMBER_MISSING_REASON,
        "There is no MachineInventory of that name; it counts as unavailable.",
        "Valid when the host registers.",
        "Register the host, or take the entry out.",
    ),
    Reason(
        _MIP,
        _MEMBERS,
        "False",
        names.MEMBER_DUPLICATE_REASON,
        "A host is named twice; it counts once.",
        "",
        "Name it once.",
    ),
    Reason(
        _MIP,
        _MEMBERS,
        "False",
        names.MEMBER_IN_OTHER_POOL_REASON,
        "A host is in another pool as well, which has it; here it counts as unavailable.",
        "Goes over when the other pool does not name it any more and it is not in use.",
        "Take it out of one of them.",
    ),
    Reason(
        _MIP,
        _MEMBERS,
        "False",
        MEMBER_UNSUPPORTED_REASON,
        "A host declares managed data volumes, which a reprovision would not keep.",
        "",
        "Take spec.storage out of the MachineInventory.",
    ),
    Reason(
        _MIP,
        _MEMBERS,
        "False",
        MEMBER_ORPHANED_REASON,
        "A host is of a BaremetalMachine that went without giving it back: somebody took its finalizer away.",
        "The host stays as it is, and may still be a Node.",
        "The message has the command that lets the host be cleaned and used again.",
    ),
    Reason(
        _MIP,
        _MEMBERS,
        "False",
        SELECTOR_INVALID_REASON,
        "The selector cannot be understood, and selects no host; those that are named can be used.",
        "",
        "Write it as kubectl's label selectors are: In and NotIn have values, Exists and DoesNotExist have none.",
    ),
    Reason(
        _MIP,
        _MEMBERS,
        "False",
        MEMBER_NOT_CLEAN_REASON,
        "A host of nobody applied its clean plan and says that it is not clean: its kubelet would start again, or containers are left.",
        "The host is not claimed until it says that it is clean.",
        "Mend the host, or have it cleaned once more by the command in the message.",
    ),
    Reason(
        _MIP, _STAGED, "True", names.ALL_STAGED_REASON, "Every host that is to have another image has it on its disk, whole and checked."
    ),
    Reason(_MIP, _STAGED, "True", names.NOTHING_TO_STAGE_REASON, "No other image is foreseen than those that the hosts run."),
    Reason(
        _MIP,
        _STAGED,
        "False",
        names.STAGING_REASON,
        "Hosts fetch the image that they will boot next; the message counts those that have it.",
        "Goes on, some hosts at a time (--staging-hosts). A rollout need not wait for it: a host without the image pulls it.",
    ),
    Reason(
        _MIP,
        _STAGED,
        "False",
        names.STAGING_FAILED_REASON,
        "Hosts could not fetch the image, or it is not what the catalog says; the message has what they said.",
        "They try again, at the latest every 15 minutes; the other hosts go on.",
        "Mend what the message names before the rollout: its plans would meet the same.",
    ),
    Reason(
        _MIP,
        _STAGED,
        "False",
        names.IMAGE_UNKNOWN_REASON,
        "It is not known which image a version is booted from, so that it cannot be fetched.",
        "Goes on when the catalog, or the Cluster's registry, says it.",
        "Add the version to the image catalog, or take it out of spec.nextVersion.",
    ),
    Reason(_MIP, "Ready", "True", POOL_READY, "The pool can be used."),
    Reason(_MIP, "Ready", "False", POOL_EMPTY, "The pool names no host, and selects none.", "", "Name hosts, or label them."),
    Reason(_MIP, "Ready", "False", MEMBERS_INVALID, "Some entries are not valid; the others can be used.", "", "See MembersValid."),
    Reason(_BMC, _ENDPOINT, "True", names.ENDPOINT_READY_REASON, "The endpoint of the control plane is known."),
    Reason(
        _BMC,
        _ENDPOINT,
        "False",
        names.ENDPOINT_MISSING_REASON,
        "Neither controlPlaneEndpoint nor controlPlaneLoadBalancer names a host.",
        "Goes on when one does.",
        "Set controlPlaneLoadBalancer.",
    ),
    Reason(
        _BMC,
        _ENDPOINT,
        "False",
        names.ENDPOINT_CONFLICT_REASON,
        "The load balancer and the endpoint differ.",
        "",
        "Make controlPlaneLoadBalancer what controlPlaneEndpoint is; that never changes.",
    ),
    Reason(_BMC, _VIP, "True", names.VIP_READY_REASON, "The hosts that share the virtual address are in the message, and know each other."),
    Reason(
        _BMC,
        _VIP,
        "False",
        names.VIP_INVALID_REASON,
        "There can be no virtual address with these values: no vrid, no IPv4 address, a single host.",
        "",
        "Mend controlPlaneLoadBalancer, or put more hosts into the control plane's pool.",
    ),
    Reason(
        _BMC,
        _VIP,
        "False",
        names.VIP_IS_HOST_ADDRESS_REASON,
        "The virtual address is the own address of a host.",
        "",
        "Choose an address of the same network that nothing has.",
    ),
    Reason(
        _BMC,
        _VIP,
        "False",
        names.VRID_IN_USE_REASON,
        "An older BaremetalCluster has the same vrid.",
        "Goes on when that one is gone.",
        "Choose another vrid.",
    ),
    Reason(
        _BMC,
        _VIP,
        "False",
        names.VIP_PEERS_UNKNOWN_REASON,
        "Nothing is known of the addresses of the control plane's hosts.",
        "Goes on when they have registered.",
        "See the message: a device of another name, or a host that did not register.",
    ),
    Reason(
        _BMC,
        _VIP,
        "Unknown",
        names.VIP_WAITING_FOR_CONTROL_PLANE_REASON,
        "There is no API server yet that the hosts could be told by.",
        "Goes on when there is one.",
    ),
    Reason(
        _BMC,
        _VIP,
        "Unknown",
        names.VIP_API_NOT_REACHABLE_REASON,
        "The workload cluster does not answer; its hosts go on with what they know.",
        "Goes on when it answers.",
        "Look whether the endpoint is reachable from the manager, which control plane has the virtual address (ip address), and at the "
        "logs of the static Pod alive there (crictl logs).",
    ),
    Reason(_BMC, _GUARDED, "True", names.NO_OBJECTION_REASON, "Nothing that is known speaks against a rollout."),
    Reason(
        _BMC,
        _GUARDED,
        "False",
        names.ROLLOUT_OBJECTION_REASON,
        "A rollout would stall: a surge, a version without an image, a small pool, versions too far apart, a bad catalog entry.",
        "Goes on when that is mended.",
        "The message says what to change; `slipway fleet preflight` shows all of it.",
    ),
    Reason(
        _BMC,
        _GUARDED,
        "Unknown",
        names.NOT_LOOKED_YET_REASON,
        "The control planes and MachineDeployments have not been read yet.",
        "Goes on when they have; where KubeadmControlPlanes are not served at all, it stays.",
    ),
)


def reference() -> str:
    """The table as Markdown."""
    head = "| object | condition | reason | what it means | by itself | what to do |\n|---|---|---|---|---|---|\n"
    return head + "".join(
        f"| {row.kind} | {row.condition}={row.status} | `{row.reason}` | {row.meaning} | {row.by_itself or '–'} | {row.to_do or '–'} |\n"
        for row in REASONS
    )
