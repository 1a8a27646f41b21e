"""The lock that lets one machine of a cluster run ``kubeadm init``: a ConfigMap that other providers of Cluster API know as well.

Its name is ``<cluster>-lock`` and it says which Machine holds it.  The holder may take it again, so a killed reconcile goes on
where it was; a holder that is gone loses it.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.api.cluster.kinds import CONFIG_MAP, MACHINE
from slipway.api.cluster.names import CLUSTER_NAME_LABEL
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.facts import cluster_reference
from slipway.kube.errors import AlreadyExistsError, ConflictError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.facts import ClusterFacts
    from slipway.kube.aio import AsyncClient

KEY = "lock-information"


class Claim(Enum):
    """What a machine may do about the lock."""

    TAKE = "nobody holds it"
    HELD = "the machine holds it already"
    WAIT = "another machine holds it"
    BREAK = "its holder is gone"


class _Information(msgspec.Struct):
    machine_name: str = msgspec.field(name="machineName", default="")


def lock_name(cluster: str) -> str:
    return f"{cluster}-lock"


def lock_manifest(cluster: ClusterFacts, machine: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": lock_name(cluster.name),
            "namespace": cluster.namespace,
            "labels": {CLUSTER_NAME_LABEL: cluster.name},
            "ownerReferences": [cluster_reference(cluster)],
        },
        "data": {KEY: msgspec.json.encode(_Information(machine)).decode()},
    }


def holder(lock: Mapping[str, Any]) -> str:
    """The Machine that holds the lock."""
    text = (lock.get("data") or {}).get(KEY) or ""
    try:
        return msgspec.json.decode(text, type=_Information).machine_name
    except msgspec.DecodeError as error:
        metadata = lock["metadata"]
        raise OperatorError(
            f"the init lock, ConfigMap {metadata.get('namespace')}/{metadata['name']}, does not say who holds it: its key {KEY} is not "
            f'{{"machineName": "…"}} ({error}). Delete it if no machine of the cluster runs kubeadm init'
        ) from None


def claim(held_by: str, machine: str, *, holder_exists: bool) -> Claim:
    """``held_by`` is empty where there is no lock."""
    if not held_by:
        return Claim.TAKE
    if held_by == machine:
        return Claim.HELD
    return Claim.WAIT if holder_exists else Claim.BREAK


async def acquire(client: AsyncClient, cluster: ClusterFacts, machine: str) -> bool:
    """Whether ``machine`` holds the lock now.  The lock of a holder that is gone is released, and is free at the next try."""
    lock = await client.find(CONFIG_MAP, lock_name(cluster.name), cluster.namespace)
    held_by = holder(lock) if lock is not None else ""
    exists = bool(held_by) and (held_by == machine or await client.find(MACHINE, held_by, cluster.namespace) is not None)
    match claim(held_by, machine, holder_exists=exists):
        case Claim.HELD:
            return True
        case Claim.WAIT:
            return False
        case Claim.BREAK:
            assert lock is not None
            await _delete(client, lock)
            return False
    if lock is not None:
        # A lock without a holder's name is nobody's.
        await _delete(client, lock)
    try:
        await client.create(CONFIG_MAP, lock_manifest(cluster, machine))
    except AlreadyExistsError:
        return False
    return True


async def release(client: AsyncClient, cluster: ClusterFacts, machine: str = "") -> None:
    """Release the lock, whoever holds it; with ``machine``, only where that one does."""
    lock = await client.find(CONFIG_MAP, lock_name(cluster.name), cluster.namespace)
    if lock is not None and (not machine or holder(lock) == machine):
        await _delete(client, lock)


async def _delete(client: AsyncClient, lock: Manifest) -> None:
    metadata = lock["metadata"]
    try:
        await client.delete(CONFIG_MAP, metadata["name"], metadata["namespace"], uid=metadata["uid"])
    except ConflictError:
        # Another lock has taken its place, and that one is not ours to release.
        return
