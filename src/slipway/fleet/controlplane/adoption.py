"""Which control-plane Machines of a Cluster are a control plane's, and how it takes over those that are nobody's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster import names
from slipway.api.cluster.kinds import KUBEADM_CONFIG, KUBEADM_CONTROL_PLANE, MACHINE, SECRET
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.facts import owner_from
from slipway.fleet.contract.references import control_plane_members
from slipway.fleet.controlplane import desired
from slipway.kube.aio import PatchType
from slipway.runtime import owners

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.api.machinery.version import Version
    from slipway.fleet.controlplane.work import Work
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.events import EventRecorder
    from slipway.runtime.objects import Object


async def control_plane_machines(cache: Cache, namespace: str, cluster: str) -> list[Object]:
    """In the order in which they were made."""
    found = await control_plane_members(cache, MACHINE, namespace, cluster)
    return sorted(found, key=lambda machine: (machine.metadata.creation_timestamp or "", machine.name))


def is_owned(machine: Object, name: str) -> bool:
    """By name: after a move to another management cluster the uid is another."""
    return any(
        (reference.kind, reference.name) == (KUBEADM_CONTROL_PLANE.kind, name)
        and reference.api_version.partition("/")[0] == KUBEADM_CONTROL_PLANE.group
        for reference in machine.metadata.owner_references
    )


def orphans(machines: Sequence[Object]) -> list[Object]:
    return [machine for machine in machines if not any(reference.controller for reference in machine.metadata.owner_references)]


def require_all(machines: Sequence[Object], name: str) -> None:
    """An error unless every Machine is the control plane's: two cannot look after one etcd."""
    others = [machine.name for machine in machines if not is_owned(machine, name)]
    if others:
        raise OperatorError(
            "not all control plane machines are owned by this KubeadmControlPlane, refusing to operate in mixed management mode: "
            f"{', '.join(others)}"
        )


async def adopt(client: AsyncClient, work: Work, machines: Sequence[Object], events: EventRecorder) -> None:
    """Make the Machines the control plane's, with the Secrets that their bootstrap configurations have made for the cluster."""
    current = await client.get(KUBEADM_CONTROL_PLANE, work.name, work.namespace)
    if current["metadata"].get("deletionTimestamp"):
        # The garbage collector may have orphaned them just now.
        raise OperatorError(f"the KubeadmControlPlane {work.namespace}/{work.name} is being deleted and adopts no Machines")
    version = desired.parsed(work.plane.spec.version)
    for machine in machines:
        facts = owner_from(machine)
        if facts.config_ref is None or facts.config_ref.kind != KUBEADM_CONFIG.kind:
            raise OperatorError(f"the Machine {machine.request} cannot be adopted: it does not boot with a KubeadmConfig")
        if facts.version and not _is_near(version, desired.parsed(facts.version)):
            message = (
                f'Could not adopt Machine {machine.request}: its version ("{facts.version}") is outside supported +/- one minor version '
                f'skew from KCP\'s ("{work.plane.spec.version}")'
            )
            events.event(work.manifest, "Warning", "AdoptionFailed", message)
            return
    owner = desired.owner(work.plane, controller=True)
    for machine in machines:
        reference = owner_from(machine).config_ref
        assert reference is not None
        await _adopt_secrets(client, work, await client.get(KUBEADM_CONFIG, reference.name, work.namespace), owner)
        found = machine.content()["metadata"]
        patch = {"resourceVersion": found["resourceVersion"], "ownerReferences": owners.ensure(found.get("ownerReferences"), owner)}
        await client.patch(MACHINE, machine.name, work.namespace, {"metadata": patch}, type=PatchType.MERGE)


async def _adopt_secrets(client: AsyncClient, work: Work, config: Manifest, owner: Manifest) -> None:
    previous = owners.reference({**config, "apiVersion": KUBEADM_CONFIG.api_version, "kind": KUBEADM_CONFIG.kind})
    data = (config.get("status") or {}).get("dataSecretName")
    for secret in await client.list(SECRET, work.namespace, labels=f"{names.CLUSTER_NAME_LABEL}={work.cluster.name}"):
        metadata = secret["metadata"]
        references = metadata.get("ownerReferences") or []
        if metadata["name"] == data or not any(owners.same_owner(reference, previous) for reference in references):
            continue
        replaced = owners.ensure(owners.remove(references, previous), owner)
        patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "ownerReferences": replaced}}
        await client.patch(SECRET, metadata["name"], work.namespace, patch, type=PatchType.MERGE)


def _is_near(one: Version, other: Version) -> bool:
    return one.major == other.major and abs(one.minor - other.minor) <= 1
