"""The names that the Machine controller alone sets; what others read as well is in :mod:`slipway.api.cluster.names`."""

from __future__ import annotations

from slipway.api.cluster import names

# Conditions of v1beta1 that have other names than today's.
BOOTSTRAP_READY = "BootstrapReady"
DRAINING_SUCCEEDED = "DrainingSucceeded"
PRE_DRAIN_HOOK_SUCCEEDED = "PreDrainDeleteHookSucceeded"
PRE_TERMINATE_HOOK_SUCCEEDED = "PreTerminateDeleteHookSucceeded"
VOLUME_DETACH_SUCCEEDED = "VolumeDetachSucceeded"

OWNED = (
    names.PAUSED_CONDITION,
    names.AVAILABLE_CONDITION,
    names.READY_CONDITION,
    names.BOOTSTRAP_CONFIG_READY_CONDITION,
    names.INFRASTRUCTURE_READY_CONDITION,
    names.NODE_READY_CONDITION,
    names.NODE_HEALTHY_CONDITION,
    names.DELETING_CONDITION,
    names.UPDATING_CONDITION,
)
OWNED_DEPRECATED = (names.READY_CONDITION, BOOTSTRAP_READY, names.INFRASTRUCTURE_READY_CONDITION, DRAINING_SUCCEEDED)

# Reasons of Deleting.
WAITING_FOR_PRE_DRAIN_HOOK = "WaitingForPreDrainHook"
DRAINING_NODE = "DrainingNode"
WAITING_FOR_VOLUME_DETACH = "WaitingForVolumeDetach"
WAITING_FOR_PRE_TERMINATE_HOOK = "WaitingForPreTerminateHook"
WAITING_FOR_BOOTSTRAP_DELETION = "WaitingForBootstrapDeletion"
DELETING_NODE = "DeletingNode"

NODE_DELETION_STARTED = "slipway.io/node-deletion-started"
"""The annotation that says when the first try to delete the Node was made, where it failed."""

HOST_POWERED_OFF = "HostPoweredOff"
"""The condition of an infrastructure machine by which its provider vouches that the host is off, and stays off until it is told otherwise.

Cluster API has no such thing.  While it is True and the Machine is being deleted, nothing can run on the host any more: its Pods are
deleted without asking PodDisruptionBudgets, and the Node gets the taint out-of-service, by which Kubernetes lets go of its volumes.
"""
