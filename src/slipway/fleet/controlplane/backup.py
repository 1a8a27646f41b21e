"""A snapshot of a cluster's etcd because a person wants one now, by the same way that a rollout takes it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.controlplane.kubeadmcontrolplane import KubeadmControlPlane
from slipway.api.cluster.core.cluster import Cluster
from slipway.api.cluster.kinds import CLUSTER, KUBEADM_CONTROL_PLANE
from slipway.api.cluster.meta import decode
from slipway.api.machinery.errors import OperatorError
from slipway.fleet import certificates
from slipway.fleet.certificates import CertificateSecrets
from slipway.fleet.clustercache import WorkloadClusters
from slipway.fleet.controlplane import desired
from slipway.fleet.controlplane.decisions.snapshot import wish_from
from slipway.fleet.controlplane.workload.cluster import Workload
from slipway.fleet.controlplane.workload.etcdcredentials import client_context
from slipway.fleet.snapshots.taking import Subject, take

if TYPE_CHECKING:
    from datetime import datetime

    from slipway.fleet.snapshots.places import Place
    from slipway.fleet.snapshots.record import Snapshot
    from slipway.fleet.snapshots.store import Progress, Store
    from slipway.kube.aio import AsyncClient


class Found(NamedTuple):
    """The control plane of a Cluster, and where its own annotations have snapshots kept; None where they do not say a store of its own."""

    plane: KubeadmControlPlane
    place: Place | None
    keep: int | None


async def find(client: AsyncClient, namespace: str, cluster: str) -> Found:
    found = await client.find(CLUSTER, cluster, namespace)
    if found is None:
        raise OperatorError(f"there is no Cluster {namespace}/{cluster}")
    reference = decode(found, Cluster).spec.control_plane_ref
    if reference is None or reference.kind != KUBEADM_CONTROL_PLANE.kind:
        raise OperatorError(f"the Cluster {namespace}/{cluster} has no KubeadmControlPlane, whose etcd could be asked")
    manifest = await client.find(KUBEADM_CONTROL_PLANE, reference.name, namespace)
    if manifest is None:
        raise OperatorError(f"there is no KubeadmControlPlane {namespace}/{reference.name}")
    wish = wish_from(manifest["metadata"].get("annotations") or {})
    return Found(decode(manifest, KubeadmControlPlane), None if wish is None else wish.place, None if wish is None else wish.keep)


async def take_now(
    client: AsyncClient, found: Found, subject: Subject, store: Store, now: datetime, progress: Progress | None = None
) -> Snapshot:
    """Take a snapshot of the etcd of a control plane."""
    if not desired.manages_etcd(found.plane):
        raise OperatorError("etcd is external to this cluster: its owner takes its snapshots")
    name = certificates.secret_name(subject.cluster, certificates.ETCD_CA)
    secret = await CertificateSecrets(client).read(subject.namespace, name)
    if secret is None:
        raise OperatorError(f"etcd cannot be asked: there is no Secret {subject.namespace}/{name} with its CA")
    context = client_context(f"etcd of the cluster {subject.namespace}/{subject.cluster}", certificates.pair_from(secret), now)
    version = found.plane.status.version or found.plane.spec.version
    async with AsyncExitStack() as stack:
        clusters = WorkloadClusters(client)
        stack.push_async_callback(clusters.close)
        inside = await stack.enter_async_context(clusters.client(subject.namespace, subject.cluster))
        return await take(Workload(inside, context), store, subject._replace(kubernetes_version=version), now, progress)
