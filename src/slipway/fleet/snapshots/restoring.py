"""The way back from the loss of every control plane, as an operator walks it: what is checked, asked for, and waited for.

What is asked for is an annotation and a Secret; what they bring about is the controllers' work and goes on without us.  We are needed for
as long as hosts fetch the snapshot from here.
"""

from __future__ import annotations

import asyncio
import secrets
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.cluster.kinds import BAREMETAL_MACHINE, CLUSTER, KUBEADM_CONTROL_PLANE, MACHINE, SECRET
from slipway.api.cluster.names import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, RESTORE_SCRIPT_KEY
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.fleet.snapshots import hostscript
from slipway.fleet.snapshots.request import ANNOTATION, Restore, restore_from
from slipway.kube.aio import PatchType
from slipway.kube.errors import ConflictError
from slipway.runtime import owners

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.snapshots.hostscript import Download
    from slipway.fleet.snapshots.record import Snapshot
    from slipway.kube.aio import AsyncClient

SECRET_TYPE = "slipway.io/restore"
FORCE_RELEASE_ANNOTATION = "slipway.io/force-release"
_AUTHORITIES = ("ca", "etcd", "sa", "proxy")
_LOOK = 2.0
_ATTEMPTS = 5
_ON_ITS_WAY = f"a restore is on its way: wait for it, or take the annotation {ANNOTATION} off the KubeadmControlPlane"


class Standing(NamedTuple):
    """How far a restore is."""

    stage: str
    message: str

    @property
    def is_done(self) -> bool:
        return self.stage == "done"


class Wanted(NamedTuple):
    """What there is to restore: the control plane, and what is known of the snapshot."""

    namespace: str
    cluster: str
    plane: Manifest
    machines: tuple[Manifest, ...]


async def look(client: AsyncClient, namespace: str, cluster: str) -> Wanted:
    found = await client.find(CLUSTER, cluster, namespace)
    if found is None:
        raise OperatorError(f"there is no Cluster {namespace}/{cluster}: its objects are needed to restore it")
    reference: Manifest = (found.get("spec") or {}).get("controlPlaneRef") or {}
    if reference.get("kind") != KUBEADM_CONTROL_PLANE.kind:
        raise OperatorError(f"the Cluster {namespace}/{cluster} has no KubeadmControlPlane that could be restored")
    plane = await client.find(KUBEADM_CONTROL_PLANE, reference["name"], namespace)
    if plane is None:
        raise OperatorError(f"there is no KubeadmControlPlane {namespace}/{reference['name']}")
    missing = [name for kind in _AUTHORITIES if await client.find(SECRET, name := f"{cluster}-{kind}", namespace) is None]
    if missing:
        raise OperatorError(
            f"the Secrets {', '.join(missing)} are not there: without the authorities that the cluster had, neither its workers nor its "
            "kubeconfigs are good for the restored one; get them from a backup of the management cluster"
        )
    labels = f"{CLUSTER_NAME_LABEL}={cluster},{CONTROL_PLANE_LABEL}"
    return Wanted(namespace, cluster, plane, tuple(await client.list(MACHINE, namespace, labels=labels)))


def refusal(wanted: Wanted, snapshot: Snapshot, *, answers: bool) -> str:
    """Why it is better not to; empty where nothing is against it."""
    if restore_from(wanted.plane["metadata"].get("annotations") or {}) is not None:
        return _ON_ITS_WAY
    if ((wanted.plane.get("spec") or {}).get("kubeadmConfigSpec") or {}).get("clusterConfiguration", {}).get("etcd", {}).get("external"):
        return "etcd is external to this cluster: it is restored by its owner, and the control plane needs nothing"
    if answers:
        return "its API server answers: what has changed since the snapshot would be lost; say --force where that is wanted"
    version = str(wanted.plane["spec"]["version"])
    if snapshot.kubernetes_version:
        had, has = Version.tolerant(snapshot.kubernetes_version), Version.tolerant(version)
        if not 0 <= has.minor - had.minor <= 1:
            return (
                f"the snapshot is of Kubernetes {snapshot.kubernetes_version} and the KubeadmControlPlane has {version}: set its "
                f"spec.version to {snapshot.kubernetes_version} first"
            )
    return ""


async def ask(client: AsyncClient, wanted: Wanted, snapshot: str, download: Download, *, hosts_lost: bool) -> Restore:
    """Ask the controllers for it: from here on it goes its way.  Whose hosts are lost are released without being cleaned."""
    made = await client.create(SECRET, secret(wanted, f"{wanted.cluster}-restore-{secrets.token_hex(3)}", download))
    # The API server's time, as that of Machines is: with a clock that is ahead, the new ones would be given up as well.
    restore = Restore(snapshot, made["metadata"]["name"], datetime.fromisoformat(made["metadata"]["creationTimestamp"]))
    if hosts_lost:
        for machine in wanted.machines:
            reference = machine["spec"]["infrastructureRef"]
            if reference.get("kind") == BAREMETAL_MACHINE.kind:
                patch = {"metadata": {"annotations": {FORCE_RELEASE_ANNOTATION: "true"}}}
                await client.patch(BAREMETAL_MACHINE, reference["name"], wanted.namespace, patch, type=PatchType.MERGE)
    try:
        await _begin(client, wanted, restore)
    except OperatorError:
        # Nobody will ever ask for it.
        await client.delete(SECRET, made["metadata"]["name"], wanted.namespace, uid=made["metadata"]["uid"])
        raise
    return restore


async def _begin(client: AsyncClient, wanted: Wanted, restore: Restore) -> None:
    """Of two operators at once, one begins; the status of a control plane changes all the time, which is no reason to give up."""
    name = wanted.plane["metadata"]["name"]
    for attempt in range(_ATTEMPTS):
        metadata = (await client.get(KUBEADM_CONTROL_PLANE, name, wanted.namespace))["metadata"]
        if restore_from(metadata.get("annotations") or {}) is not None:
            raise OperatorError(_ON_ITS_WAY)
        body = {"metadata": {"resourceVersion": metadata["resourceVersion"], "annotations": {ANNOTATION: restore.text()}}}
        try:
            await client.patch(KUBEADM_CONTROL_PLANE, name, wanted.namespace, body, type=PatchType.MERGE)
        except ConflictError:
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return


def secret(wanted: Wanted, name: str, download: Download) -> Manifest:
    plane = {"apiVersion": KUBEADM_CONTROL_PLANE.api_version, "kind": KUBEADM_CONTROL_PLANE.kind, "metadata": wanted.plane["metadata"]}
    return {
        "metadata": {
            "name": name,
            "namespace": wanted.namespace,
            "labels": {CLUSTER_NAME_LABEL: wanted.cluster},
            "ownerReferences": [owners.reference(plane, controller=False)],
        },
        "type": SECRET_TYPE,
        "stringData": {RESTORE_SCRIPT_KEY: hostscript.script(download)},
    }


def standing(plane: Manifest, machines: list[Manifest], restore: Restore) -> Standing:
    """How far it is, from the objects alone."""
    old = [each for each in machines if restore.gives_up(datetime.fromisoformat(each["metadata"]["creationTimestamp"]))]
    if old:
        names = ", ".join(sorted(each["metadata"]["name"] for each in old))
        return Standing("giving-up", f"waiting for the lost Machines to be gone: {names}")
    new = [each for each in machines if each not in old]
    if not new:
        return Standing("starting", "waiting for the first new Machine")
    name = new[0]["metadata"]["name"]
    if ANNOTATION in (plane["metadata"].get("annotations") or {}):
        phase = (new[0].get("status") or {}).get("phase") or "Pending"
        return Standing("restoring", f"the Machine {name} gets the data of the snapshot and makes the control plane ({phase})")
    return Standing("done", f"the control plane runs with the data of the snapshot, on the Machine {name}")


async def follow(client: AsyncClient, wanted: Wanted, restore: Restore, tell: Callable[[Standing], Any]) -> None:
    """Tell each change, until it is done; then the Secret goes, too."""
    labels = f"{CLUSTER_NAME_LABEL}={wanted.cluster},{CONTROL_PLANE_LABEL}"
    told = None
    while True:
        machines = await client.list(MACHINE, wanted.namespace, labels=labels)
        plane = await client.get(KUBEADM_CONTROL_PLANE, wanted.plane["metadata"]["name"], wanted.namespace)
        now = standing(plane, machines, restore)
        if now != told:
            tell(now)
            told = now
        if now.is_done:
            await client.delete(SECRET, restore.secret, wanted.namespace)
            return
        await asyncio.sleep(_LOOK)
