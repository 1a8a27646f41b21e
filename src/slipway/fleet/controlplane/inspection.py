"""Looks into the workload cluster, and writes what is seen to the conditions of the Machines and of the control plane."""

from __future__ import annotations

from contextlib import asynccontextmanager
from copy import deepcopy
from typing import TYPE_CHECKING

from slipway.api.cluster import names
from slipway.api.cluster.kinds import MACHINE
from slipway.api.machinery.errors import OperatorError
from slipway.fleet import certificates
from slipway.fleet.certificates import CertificatesError
from slipway.fleet.contract import conditions
from slipway.fleet.contract.conditions import FALSE, TRUE, Condition
from slipway.fleet.contract.scope import Patcher
from slipway.fleet.contract.status import Status
from slipway.fleet.controlplane.work import CHECKS
from slipway.fleet.controlplane.workload.cluster import Workload
from slipway.fleet.controlplane.workload.conditions import Connection, Trouble, blind, judge, trouble
from slipway.fleet.controlplane.workload.etcdcredentials import EtcdCredentials
from slipway.fleet.controlplane.workload.verdicts import CONNECTION_DOWN
from slipway.kube.errors import UnauthorizedError, UnreachableError

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Sequence

    from slipway.fleet.certificates import CertificateSecrets
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.fleet.controlplane.work import Owned, Work
    from slipway.fleet.controlplane.workload.conditions import Judged
    from slipway.fleet.controlplane.workload.verdicts import Said
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache

_OWNED = (names.UP_TO_DATE_CONDITION, *CHECKS)


class Inspection:
    """``make_workload`` is the one place at which a workload cluster is gone into."""

    def __init__(self, client: AsyncClient, cache: Cache, clusters: WorkloadClusters, secrets: CertificateSecrets) -> None:
        self._client = client
        self._cache = cache
        self._clusters = clusters
        self._secrets = secrets
        self._etcd = EtcdCredentials()

    @asynccontextmanager
    async def workload(self, work: Work) -> AsyncIterator[Workload]:
        """The workload cluster of a control plane, for the time of the block."""
        tls = await self._etcd_tls(work)
        async with self._clusters.client(work.namespace, work.cluster.name) as client:
            yield self.make_workload(client, tls)

    def make_workload(self, client: AsyncClient, tls: ssl.SSLContext | None) -> Workload:
        return Workload(client, tls)

    async def look(self, work: Work) -> bool:
        """Write down what is seen; whether there was anything to see, or nothing can be seen yet that would matter.

        False means that nothing else may be done: what was seen last is too old to decide by.
        """
        why = self._trouble(work)
        if why is None:
            try:
                async with self.workload(work) as workload:
                    machines = [owned for owned in work.machines.values() if owned.node]
                    staying = sorted(machines, key=lambda owned: owned.deleting)
                    work.observed = await workload.observe([owned.node for owned in machines], ask=[owned.node for owned in staying])
            except (UnreachableError, UnauthorizedError) as error:
                why = Trouble(CONNECTION_DOWN, error.message, overwrites=False)
        facts = [owned.facts() for owned in work.machines.values()]
        if why is not None:
            present = {condition["type"] for condition in conditions.of(work.manifest)}
            judged = blind(why, facts, present, etcd_managed=work.manages_etcd)
        else:
            assert work.observed is not None
            judged = judge(work.observed, facts, etcd_managed=work.manages_etcd, now=work.now)
        work.members_match = judged.members_match
        status = Status(work.manifest, work.now)
        _tell(status, judged.control_plane)
        await self._tell_machines(work, judged)
        return why is None or not work.initialized

    async def is_made(self, work: Work) -> bool:
        """Whether kubeadm has made the cluster.  One that cannot be reached is not there yet."""
        try:
            async with self._clusters.client(work.namespace, work.cluster.name) as client:
                return await self.make_workload(client, None).has_kubeadm_config()
        except OperatorError:
            return False

    def forget(self, namespace: str, cluster: str) -> None:
        self._etcd.forget(namespace, cluster)

    def _trouble(self, work: Work) -> Trouble | None:
        if work.initialized_at is None:
            return trouble(None, Connection(None, 0, connected=False), work.now)
        probe = self._clusters.probe(work.namespace, work.cluster.name)
        return trouble(work.initialized_at, Connection(probe.succeeded_at, probe.failed_in_a_row, probe.connected), work.now)

    async def _etcd_tls(self, work: Work) -> ssl.SSLContext | None:
        if not work.manages_etcd:
            return None
        secret = await self._secrets.read(work.namespace, certificates.secret_name(work.cluster.name, certificates.ETCD_CA))
        if secret is None:
            raise CertificatesError(f"etcd cannot be asked: there is no Secret {work.namespace}/{work.cluster.name}-etcd with its CA")
        return self._etcd.context(work.namespace, work.cluster.name, certificates.pair_from(secret), work.now)

    async def _tell_machines(self, work: Work, judged: Judged) -> None:
        for owned in work.machines.values():
            after = deepcopy(owned.manifest)
            status = Status(after, work.now)
            status.say(up_to_date(owned))
            _tell(status, judged.machines.get(owned.name, ()))
            patcher = Patcher(self._client, MACHINE, owned.manifest, owned_conditions=_OWNED, owned_deprecated_conditions=CHECKS)
            written = await patcher.patch(after)
            if written["metadata"]["resourceVersion"] != owned.manifest["metadata"]["resourceVersion"]:
                self._cache.wrote(MACHINE, written)
            owned.manifest = written


def up_to_date(owned: Owned) -> Condition:
    """Whether a Machine is as its control plane wants it, and its kubelet as the Machine."""
    machine = owned.machine
    if not owned.drift.up_to_date:
        message = "\n".join(f"* {reason}" for reason in owned.drift.messages)
        return Condition(type=names.UP_TO_DATE_CONDITION, status=FALSE, reason=names.NOT_UP_TO_DATE_REASON, message=message)
    kubelet = machine.status.node_info.kubelet_version if machine.status.node_info is not None else ""
    if kubelet and kubelet != machine.spec.version:
        message = f"* Node.status.nodeInfo.kubeletVersion {kubelet}, {machine.spec.version} required"
        return Condition(type=names.UP_TO_DATE_CONDITION, status=FALSE, reason=names.UPDATING_REASON, message=message)
    return Condition(type=names.UP_TO_DATE_CONDITION, status=TRUE, reason=names.UP_TO_DATE_REASON)


def _tell(status: Status, told: Sequence[Said]) -> None:
    for one in told:
        if one.condition is not None:
            status.say(one.condition)
        if one.deprecated is not None:
            status.set_deprecated(one.deprecated)
