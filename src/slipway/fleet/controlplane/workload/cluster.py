"""A workload cluster as its control plane deals with it: one look into it, and the few things that are done there.

What it looks at becomes values (:mod:`view`), what is to be done is decided elsewhere (by the planner, :mod:`kubeadmconfig` and
:mod:`addons`); here is how it is asked and written.  Everything that is written can be written again, and is not where it is there already.
"""

from __future__ import annotations

import asyncio
from datetime import UTC
from typing import TYPE_CHECKING, Any

from slipway.api.cluster.kinds import CLUSTER_ROLE_BINDING, CONFIG_MAP, DAEMON_SET, DEPLOYMENT, NODE, POD
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.credentials import tls
from slipway.fleet.controlplane.workload import addons, kubeadmconfig, podhealth
from slipway.fleet.controlplane.workload.etcdaccess import NAMESPACE, EtcdAccess
from slipway.fleet.controlplane.workload.view import API_SERVER, COMPONENTS, CONTROL_PLANE_LABEL, ETCD, EtcdMember, Observed
from slipway.fleet.snapshots.taking import Source
from slipway.kube import portforward
from slipway.kube.aio import PatchType
from slipway.kube.bytestream import TlsStream
from slipway.kube.errors import AlreadyExistsError, ApiError, ConflictError
from slipway.workload import coredns, etcdaio, etcdapi, kubeproxy, roles
from slipway.workload.configmaps import KUBEADM_CONFIG
from slipway.workload.etcdapi import EtcdError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.snapshots.store import Progress
    from slipway.fleet.snapshots.taking import Write
    from slipway.kube.aio import AsyncClient
    from slipway.workload.etcdaio import AsyncEtcd
    from slipway.workload.etcdapi import EtcdStatus

API_SERVER_PORT = 6443
_CERTIFICATE_NAME = "kube-apiserver"
_HANDSHAKE = 15.0
_TRIES = 5
_STATIC_PODS = "tier=control-plane"
# Up to here kubeadm's upgrades bring the bindings, which older clusters lack; later every cluster has been made with them.
_WITH_BINDINGS = Version(1, 38, 0)


class Workload:
    """For one reconcile.  ``etcd_tls`` is what the members are asked with; None where etcd is external and none of ours."""

    def __init__(self, client: AsyncClient, etcd_tls: ssl.SSLContext | None, *, etcd_timeout: float = etcdaio.TIMEOUT) -> None:
        self._client = client
        self._etcd_tls = etcd_tls
        self._etcd_timeout = etcd_timeout
        self._nodes: dict[str, Manifest] = {}
        self._pods: dict[tuple[str, str], Manifest] = {}

    async def observe(self, node_names: Collection[str], *, ask: Sequence[str] | None = None, each: bool = False) -> Observed:
        """One look.  ``node_names`` are those of the control plane's Machines.

        ``ask`` are the Nodes whose members may be asked about etcd, the most promising first, and the first that answers speaks for all;
        without it all of them.  Those of Nodes and Pods that are not well are asked themselves how they are, and with ``each`` all: a
        member whose host is dead is a member to the others, and would be counted on.
        """
        try:
            await self._look(node_names, whole=True)
        except ApiError as error:
            return Observed({}, {}, nodes_error=error.message)
        unread, kubeadm_config = await asyncio.gather(
            self._look_at_pods(node_names), self._client.find(CONFIG_MAP, KUBEADM_CONFIG, NAMESPACE)
        )
        seen = Observed(dict(self._nodes), dict(self._pods), kubeadm_config=kubeadm_config, pods_unread=frozenset(unread))
        asked = [name for name in (node_names if ask is None else ask) if name in self._nodes]
        if self._etcd_tls is None or not asked:
            return seen
        return await self._ask_etcd(seen, asked, each=each)

    async def has_kubeadm_config(self) -> bool:
        """What shows that kubeadm has made the cluster."""
        return await self._client.find(CONFIG_MAP, KUBEADM_CONFIG, NAMESPACE) is not None

    async def forward_etcd_leadership(self, from_node: str, to_node: str) -> None:
        """Have another member lead, where that of ``from_node`` does."""
        await self._look([from_node])
        async with self._access().member(from_node) as (client, status):
            members = await client.ask(etcdapi.members())
            current = next((member for member in members if member.name == from_node), None)
            if current is None or current.id != status.leader:
                return
            following = next((member for member in members if member.name == to_node), None)
            if following is None:
                raise EtcdError(f"etcd has no member {to_node} that could lead instead of {from_node}")
            await client.ask(etcdapi.move_leader(following.id))

    async def remove_member(self, id: int) -> None:  # noqa: A002 - the word of etcd
        """Take a member out of etcd; one that is gone already is fine."""
        if not self._nodes:
            await self._look((), whole=True)
            await self._look_at_pods(list(self._nodes), (ETCD,))
        nodes = list(self._nodes)
        async with self._access().first(nodes) as (client, status):
            members = await client.ask(etcdapi.members())
            leaving = next((member for member in members if member.id == id), None)
            if leaving is None:
                return
            if len(members) == 1:
                raise EtcdError(f"{leaving.name or leaving.id} is the last member of etcd, and cannot be removed")
            if leaving.id != status.member_id:
                await _removed(client, leaving.id)
                return
        # One that removes itself may not live to answer.
        async with self._access().first([name for name in nodes if name != leaving.name], but=leaving.id) as (client, _):
            await _removed(client, leaving.id)

    async def snapshot(self, write: Write, progress: Progress | None = None) -> Source:
        """Stream the database of etcd to ``write``, from a member that has everything that etcd has agreed on until now."""
        await self._look((), whole=True)
        await self._look_at_pods(list(self._nodes), (ETCD,))
        async with self._access().first(list(self._nodes)) as (client, status):
            revision = await client.ask(etcdapi.revision())
            await client.snapshot(write, progress)
        return Source(status.version, revision)

    async def delete_control_plane_nodes(self, keep: Collection[str]) -> list[str]:
        """Delete the Nodes of control planes but for some; those that went."""
        found = [node["metadata"]["name"] for node in await self._client.list(NODE, labels=CONTROL_PLANE_LABEL)]
        gone = sorted(name for name in found if name not in keep)
        for name in gone:
            await self._client.delete(NODE, name)
        return gone

    async def update_kubeadm_config(self, spec: Mapping[str, Any], version: str) -> None:
        """Bring the ClusterConfiguration in step; ``spec`` is the clusterConfiguration of the control plane."""
        await self._change_kubeadm_config(lambda found: kubeadmconfig.updated(found, spec, version))

    async def update_kube_proxy(self, version: str, repository: str = "") -> None:
        """Give kube-proxy the version of the control plane; a cluster without one has something else instead."""
        found = await self._client.find(DAEMON_SET, kubeproxy.NAME, NAMESPACE)
        image = addons.kube_proxy_image(found, version, repository) if found is not None else None
        if image is not None:
            await self._patch_template(DAEMON_SET, kubeproxy.NAME, {"containers": [{"name": kubeproxy.NAME, "image": image}]})

    async def update_coredns(self, spec: Mapping[str, Any], version: str, *, follows: bool = False) -> None:
        """Bring CoreDNS to what the spec says, with a Corefile that it understands; a cluster without one has something else instead.

        A killed run is gone on with: until the last step CoreDNS reads the old Corefile, and the image tells that there is work left.
        """
        config_map, deployment = await asyncio.gather(
            self._client.find(CONFIG_MAP, coredns.NAME, NAMESPACE), self._client.find(DEPLOYMENT, coredns.NAME, NAMESPACE)
        )
        if config_map is None or deployment is None:
            return
        wanted = addons.core_dns(config_map, deployment, spec, version, follows=follows)
        if wanted is None:
            return
        await self._change_kubeadm_config(lambda found: kubeadmconfig.with_dns_image(found, spec.get("dns") or {}, version))
        backup = {coredns.COREFILE: wanted.original, coredns.BACKUP: wanted.original}
        config_map = await self._client.update(CONFIG_MAP, {**config_map, "data": backup})
        await self._patch_template(DEPLOYMENT, coredns.NAME, {"volumes": addons.volumes(deployment, coredns.BACKUP)})
        await self._client.update(CONFIG_MAP, {**config_map, "data": {**backup, coredns.COREFILE: wanted.corefile}})
        container = {"name": coredns.NAME, "image": wanted.image}
        await self._patch_template(
            DEPLOYMENT, coredns.NAME, {"containers": [container], "volumes": addons.volumes(deployment, coredns.COREFILE)}
        )

    async def ensure_rbac(self, version: str) -> None:
        """The ClusterRoleBindings that newer kubeadms need and older ones did not make; one that is there is left as it is."""
        if Version.tolerant(version) >= _WITH_BINDINGS:
            return
        for binding in (roles.cluster_admins(), roles.api_server_kubelet_client()):
            if await self._client.find(CLUSTER_ROLE_BINDING, binding["metadata"]["name"]) is None:
                try:
                    await self._client.create(CLUSTER_ROLE_BINDING, binding)
                except AlreadyExistsError:
                    # Somebody else was as quick.
                    continue

    async def api_server_certificate_expiry(self, node_name: str, port: int = API_SERVER_PORT) -> datetime | None:
        """Until when the certificate is valid that the API server of a Node shows; None where it is not one of kubeadm's."""
        from cryptography.x509 import load_der_x509_certificate
        from cryptography.x509.oid import NameOID

        # What is shown is looked at, not believed.
        context = tls.client_context(f"the API server of Node {node_name}", insecure=True)
        try:
            async with (
                asyncio.timeout(_HANDSHAKE),
                portforward.connect(self._client, NAMESPACE, f"{API_SERVER}-{node_name}", port) as stream,
            ):
                connection = TlsStream(stream, context)
                await connection.handshake()
                shown = connection.peer_certificate()
        except (OSError, TimeoutError) as error:
            raise OperatorError(
                f"the API server of Node {node_name} does not show its certificate: {error or 'no answer in time'}"
            ) from error
        certificate = load_der_x509_certificate(shown)
        names = {item.value for item in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)}
        return certificate.not_valid_after_utc.astimezone(UTC) if _CERTIFICATE_NAME in names else None

    async def _look(self, node_names: Collection[str], *, whole: bool = False) -> None:
        """Nodes and their etcd Pods; they tell where members can be reached without a kubelet."""
        if whole:
            labelled = await self._client.list(NODE, labels=CONTROL_PLANE_LABEL)
            self._nodes = {node["metadata"]["name"]: node for node in labelled}
        missing = [name for name in node_names if name not in self._nodes]
        for name, node in zip(missing, await asyncio.gather(*(self._client.find(NODE, name) for name in missing)), strict=True):
            if node is not None:
                self._nodes[name] = node
        if not whole:
            await self._look_at_pods(node_names, (ETCD,))

    async def _look_at_pods(self, node_names: Collection[str], components: Sequence[str] = COMPONENTS) -> list[tuple[str, str]]:
        """Read the static Pods of some Nodes; those that could not be read."""
        places = [(component, name) for name in node_names if name in self._nodes for component in components]
        if len(places) > 1:
            # One request for most of them, as kubeadm labels them; a Pod is told by its name, whatever became of its labels.
            listed = await self._listed_pods()
            self._pods |= {place: listed["-".join(place)] for place in places if "-".join(place) in listed}
            places = [place for place in places if "-".join(place) not in listed]
        found = await asyncio.gather(*map(self._pod, places))
        self._pods |= {place: pod for place, pod in zip(places, found, strict=True) if isinstance(pod, dict)}
        return [place for place, pod in zip(places, found, strict=True) if isinstance(pod, ApiError)]

    async def _listed_pods(self) -> dict[str, Manifest]:
        try:
            return {pod["metadata"]["name"]: pod for pod in await self._client.list(POD, NAMESPACE, labels=_STATIC_PODS)}
        except ApiError:
            # Each is asked for by its name then, and says what is wrong.
            return {}

    async def _pod(self, place: tuple[str, str]) -> Manifest | ApiError | None:
        try:
            return await self._client.find(POD, "-".join(place), NAMESPACE)
        except ApiError as error:
            return error

    def _access(self) -> EtcdAccess:
        if self._etcd_tls is None:
            raise EtcdError("the etcd of this cluster is not managed by its control plane")
        return EtcdAccess(self._client, self._etcd_tls, self._nodes, self._pods, call_timeout=self._etcd_timeout)

    async def _ask_etcd(self, seen: Observed, asked: Sequence[str], *, each: bool) -> Observed:
        access = self._access()
        doing = "Failed to connect to etcd"
        try:
            async with access.first(asked) as (client, status):
                doing = "Failed to get etcd members"
                members = await client.ask(etcdapi.members())
                doing = "Failed to get etcd alarms"
                alarms = await client.ask(etcdapi.alarms())
        except EtcdError as error:
            return seen._replace(members_error=f"{doing}: {error.message}")
        if all(member.id != status.leader for member in members):
            return seen._replace(members_error="Failed to get the etcd leader: the members are electing one")
        doubtful = [name for name in asked if each or podhealth.is_doubtful(seen.nodes[name], seen.pods.get((ETCD, name)))]
        statuses = dict(zip(doubtful, await asyncio.gather(*map(access.answers, doubtful)), strict=True))
        return seen._replace(
            members=tuple(
                EtcdMember(
                    id=member.id,
                    name=member.name,
                    peer_urls=member.peer_urls,
                    client_urls=member.client_urls,
                    learner=member.is_learner,
                    alarms=tuple(alarm.kind for alarm in alarms if alarm.member_id == member.id and alarm.kind != "NONE"),
                    healthy=_is_well(statuses[member.name]) if member.name in statuses else None,
                    is_leader=member.id == status.leader,
                )
                for member in members
            ),
            members_agree=len({answer.leader for answer in statuses.values() if answer is not None} | {status.leader}) == 1,
        )

    async def _change_kubeadm_config(self, change: Callable[[Manifest], Manifest | None]) -> None:
        for left in reversed(range(_TRIES)):
            changed = change(await self._client.get(CONFIG_MAP, KUBEADM_CONFIG, NAMESPACE))
            if changed is None:
                return
            try:
                await self._client.update(CONFIG_MAP, changed)
            except ConflictError:
                if not left:
                    raise
            else:
                return

    async def _patch_template(self, kind: Kind, name: str, spec: Manifest) -> None:
        body = {"spec": {"template": {"spec": spec}}}
        await self._client.patch(kind, name, NAMESPACE, body, type=PatchType.STRATEGIC)


async def _removed(client: AsyncEtcd, member_id: int) -> None:
    try:
        await client.ask(etcdapi.remove(member_id))
    except EtcdError as error:
        # An answer that was lost may have been a success.
        if not error.says_not_found:
            raise


def _is_well(status: EtcdStatus | None) -> bool:
    """Whether a member answers, and follows a leader."""
    return status is not None and status.leader != 0
