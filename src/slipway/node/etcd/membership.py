"""This node's place among the members of a stacked etcd: it joins as a learner, becomes a voter, and leaves.

Every step can be interrupted at any line and done again: what to do next is decided from the members that etcd lists
and from what the data folder says about itself (:func:`standing`), not from what an earlier run remembers.
"""

from __future__ import annotations

import time
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.errors import OperatorError
from slipway.host import waiting
from slipway.host.cri.client import ContainerRuntimeError
from slipway.node import paths
from slipway.node.etcd import pod as etcd
from slipway.node.etcd import wal
from slipway.node.health import diagnosis
from slipway.workload.etcdapi import EtcdError, EtcdMember
from slipway.workload.etcdclient import EtcdClient

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from slipway.host.interface import Host
    from slipway.host.progress import Progress
    from slipway.node.cluster.interface import Cluster
    from slipway.node.context import NodeContext

_ANNOTATION = etcd.ADVERTISE_CLIENT_URLS_ANNOTATION
_PODS = {"component": "etcd", "tier": "control-plane"}
_HEALTHY_WITHIN = 40.0
_LOOK_EVERY = 1.0
# How long a member that the others know may take until it serves: it needs a few milliseconds.
_SERVES_WITHIN = 0.5
_API_CALL, _ETCD_CALL = 60.0, 120.0


class Step(Enum):
    """What a join has to begin with."""

    ADD = "announce this node's member"
    REUSE = "start the member that an earlier try announced"
    KEEP = "go on with the member that runs"
    REPLACE = "remove the member whose data is lost, and announce it anew"


class Standing(NamedTuple):
    """Where a join stands."""

    step: Step
    member: EtcdMember | None
    foreign_data: bool
    """Whether the data folder holds what a member that is no longer one has left."""


class Departure(Enum):
    """How a member left."""

    REMOVED = "removed"
    ABSENT = "no member has this node's peer URL"
    LAST = "the only member"


def connect(ctx: NodeContext, cluster: Cluster) -> EtcdClient:
    """A client of the etcd that runs on the control planes, with the certificates of this node."""
    patience = waiting.seconds(ctx.config.timeouts.kubernetes_api_call, _API_CALL)
    client = client_of(ctx.host, ctx.config.cluster.certificates_dir, pod_endpoints(cluster, patience), ctx.progress, _etcd_call(ctx))
    client.sync()
    return client


def client_of(host: Host, certificates_dir: str, endpoints: Sequence[str], progress: Progress, patience: float) -> EtcdClient:
    """A client that shows the health check's certificate."""

    def read(name: str) -> bytes:
        path = paths.join(certificates_dir, "etcd", name)
        try:
            return host.read(path)
        except OSError as error:
            raise OperatorError(f"etcd cannot be asked without {host.location(path)}: {error.strerror}") from error

    return EtcdClient(
        endpoints,
        ca=read("ca.crt"),
        certificate=read("healthcheck-client.crt"),
        key=read("healthcheck-client.key"),
        patience=patience,
        on_wait=lambda reason: progress.say(f"[etcd] Waiting for etcd: {reason}"),
    )


def pod_endpoints(cluster: Cluster, patience: float) -> list[str]:
    """The client URLs that the etcd Pods carry, once every Pod does: a static Pod is mirrored a moment after its start."""
    endpoints: list[str] = []

    def annotated() -> str:
        pods = cluster.list("v1", "Pod", "kube-system", _PODS)
        found = {pod["metadata"]["name"]: (pod["metadata"].get("annotations") or {}).get(_ANNOTATION, "") for pod in pods}
        endpoints[:] = [url for url in found.values() if url]
        if not found:
            return "could not retrieve the list of etcd endpoints: kube-system has no Pods with component=etcd,tier=control-plane"
        lacking = [name for name, url in found.items() if not url]
        return f"could not retrieve the list of etcd endpoints: Pod {lacking[0]} has no annotation {_ANNOTATION}" if lacking else ""

    waiting.until(annotated, timeout=patience)
    return endpoints


def check_health(ctx: NodeContext, client: EtcdClient) -> None:
    """OperatorError unless etcd is healthy, by the release's idea of it, before its patience ends."""
    _await_health(ctx, client, _etcd_call(ctx))


def health_problem(ctx: NodeContext, client: EtcdClient) -> str:
    """What is wrong now; empty where etcd is healthy.  Most members are enough, or all have to answer, by release."""
    statuses = client.statuses()
    silent = {endpoint: status.message for endpoint, status in statuses.items() if isinstance(status, EtcdError)}
    if not ctx.release.etcd_health_by_quorum:
        return "; ".join(silent.values())
    ailing = {e: f"{e}: {', '.join(s.errors)}" for e, s in statuses.items() if not isinstance(s, EtcdError) and s.errors}
    problems = {**silent, **ailing}
    return "; ".join(problems.values()) if len(statuses) - len(problems) <= len(statuses) // 2 else ""


def standing(
    members: Sequence[EtcdMember], peer_url: str, name: str, owner: wal.Owner | None, cluster_id: int, *, answers: bool
) -> Standing:
    """Where this node's join stands.  ``owner`` wrote the data folder; ``answers``: something serves as this node's member."""
    if owner is not None and owner.cluster_id != cluster_id:
        raise OperatorError(
            f"the etcd data folder of this node belongs to another etcd cluster ({owner.cluster_id:x}, this one is {cluster_id:x}): "
            "run `kubeadm reset` on this node if that data is no longer needed, or move it away"
        )
    member = next((member for member in members if peer_url in member.peer_urls), None)
    if member is None:
        return Standing(Step.ADD, None, owner is not None)
    own_data = owner is not None and owner.member_id == member.id
    if own_data and member.name:
        return Standing(Step.KEEP, member, foreign_data=False)
    if not member.name:
        return Standing(Step.REUSE, member, owner is not None and not own_data)
    if member.name != name or answers:
        raise OperatorError(
            f'the etcd member "{member.name}" ({member.id:x}) has the peer URL {peer_url} already, '
            f'and this node, "{name}", has no data of it: '
            "set localAPIEndpoint.advertiseAddress to an address of this node, or, if that member is gone for good, remove it with "
            f"`{remedy(member)}`"
        )
    # A voter that comes back empty-handed under its old id would break what it has promised to the others.
    return Standing(Step.REPLACE, member, owner is not None)


def remedy(member: EtcdMember) -> str:
    """The command that takes a member out, to be run where kubectl works."""
    pki = "/etc/kubernetes/pki/etcd"
    return (
        "kubectl -n kube-system exec etcd-CONTROL-PLANE-NODE -- etcdctl --endpoints=https://127.0.0.1:2379 "
        f"--cacert={pki}/ca.crt --cert={pki}/healthcheck-client.crt --key={pki}/healthcheck-client.key member remove {member.id:x}"
    )


def join(ctx: NodeContext, cluster: Cluster) -> None:
    """Make this node a voter of the stacked etcd: announced, started, caught up, promoted, healthy."""
    local = ctx.config.cluster.etcd.local
    if local is None:
        raise OperatorError("a node cannot join an external etcd: its members are not looked after here")
    client = connect(ctx, cluster)
    found = _find_standing(ctx, client, local.data_dir)
    if found.foreign_data:
        _put_aside(ctx, local.data_dir)
    ctx.host.make_dir(local.data_dir, 0o700)
    member_id, members = _announce(ctx, client, found)
    # The manifest of a member that runs is left as it is: another list of members in it would only restart etcd.
    if found.step is not Step.KEEP or not ctx.host.exists(f"{paths.MANIFESTS_DIR}/etcd.yaml"):
        etcd.write_joined(ctx, initial_cluster(members, member_id, ctx.config.node_registration.name))
    _await_start(ctx, client, member_id)
    _await_service(ctx, client, member_id)
    _await_promotion(ctx, client, member_id)
    ctx.progress.say(f"[etcd] Waiting for the new etcd member to join the cluster. This can take up to {waiting.shown(_HEALTHY_WITHIN)}")
    client.sync()
    _await_health(ctx, client, _HEALTHY_WITHIN)


def initial_cluster(members: Sequence[EtcdMember], member_id: int, name: str) -> list[etcd.Member]:
    """The members as a new one is told about them; one that has not started yet has no name but its id."""
    return [etcd.Member(name if member.id == member_id else member.name or f"{member.id:x}", member.peer_urls[0]) for member in members]


def leave(client: EtcdClient, peer_url: str) -> Departure:
    """Take the member of a node out of etcd; one that is not there, or the only one, is left alone."""
    members = client.members()
    own = next((member for member in members if peer_url in member.peer_urls), None)
    if own is None:
        return Departure.ABSENT
    if len(members) == 1:
        return Departure.LAST
    # A member that is removed ends at once and cannot answer any more: the others are asked first.
    client.endpoints = tuple(sorted(client.endpoints, key=lambda url: url in own.client_urls))
    _hand_over_leadership(client, own, members)
    client.remove(own.id)
    return Departure.REMOVED


def _hand_over_leadership(client: EtcdClient, own: EtcdMember, members: Sequence[EtcdMember]) -> None:
    """A leader that hands over before it goes spares the cluster an election; where it cannot, there will be one."""
    heir = next((member for member in members if member.name and not member.is_learner and member.id != own.id), None)
    if heir is None or not own.client_urls:
        return
    try:
        if client.status(own.client_urls[0]).leader == own.id:
            client.move_leader(own.client_urls[0], heir.id)
    except EtcdError:
        return


def _find_standing(ctx: NodeContext, client: EtcdClient, data_dir: str) -> Standing:
    peer_url, name = etcd.peer_url(ctx.config.local_api_endpoint), ctx.config.node_registration.name
    members, cluster_id = client.members(), client.cluster_id()
    own = next((member for member in members if peer_url in member.peer_urls), None)
    answers = False
    if own is not None and own.client_urls:
        try:
            answers = client.status(own.client_urls[0]).member_id == own.id
        except EtcdError:
            answers = False
    return standing(members, peer_url, name, wal.owner(ctx.host, data_dir), cluster_id, answers=answers)


def _put_aside(ctx: NodeContext, data_dir: str) -> None:
    """etcd would refuse to start with the data of a removed member; whether anybody still wants it is not ours to decide."""
    target = f"{data_dir}/member-{int(ctx.host.now().timestamp())}.removed"
    ctx.host.rename(f"{data_dir}/member", target)
    ctx.progress.warn(f"[etcd] WARNING: {data_dir} has data of a member that was removed from the cluster; it was moved to {target}")


def _announce(ctx: NodeContext, client: EtcdClient, found: Standing) -> tuple[int, list[EtcdMember]]:
    peer_url = etcd.peer_url(ctx.config.local_api_endpoint)
    if found.step in (Step.KEEP, Step.REUSE) and found.member is not None:
        state = "runs" if found.step is Step.KEEP else "was announced by an earlier try"
        ctx.progress.say(f"[etcd] The etcd member {found.member.id:x} with the peer URL {peer_url} {state}")
        return found.member.id, client.members()
    if found.step is Step.REPLACE and found.member is not None:
        ctx.progress.say(f"[etcd] Removing the etcd member {found.member.id:x} of this node: it has started before, and its data is lost")
        client.remove(found.member.id)
    announced = _add_learner(ctx, client, peer_url)
    ctx.progress.say("[etcd] Announced new etcd member joining to the existing etcd cluster")
    return announced


def _add_learner(ctx: NodeContext, client: EtcdClient, peer_url: str) -> tuple[int, list[EtcdMember]]:
    """etcd takes one learner at a time: that of another node which joins now is waited for."""
    added: list[tuple[int, list[EtcdMember]]] = []
    told: set[int] = set()

    def add() -> str:
        try:
            added.append(client.add_learner(peer_url))
        except EtcdError as error:
            if not error.says_too_many_learners:
                raise
            learner = next((member for member in client.members() if member.is_learner), None)
            if learner is None:
                return "the other learner has just been promoted"
            if learner.id not in told:
                told.add(learner.id)
                ctx.progress.say(f"[etcd] Waiting for the member {_shown(learner)} to be promoted: etcd takes one learner at a time")
            return _blocked_by(learner)
        return ""

    waiting.until(add, timeout=_etcd_call(ctx), interval=0.2)
    return added[-1]


def _blocked_by(learner: EtcdMember) -> str:
    state = "is still a learner" if learner.name else "was announced but has never started"
    return (
        f"etcd takes one learner at a time, and the member {_shown(learner)} {state}. Wait for the join of that node, or, if none is "
        f"running there any more, run `kubeadm reset` on it or remove the member with `{remedy(learner)}`, and join again"
    )


def _await_start(ctx: NodeContext, client: EtcdClient, member_id: int) -> None:
    _await(ctx, lambda: _in_list(client, member_id, lambda member: bool(member.name), "has not started"))


def _await_service(ctx: NodeContext, client: EtcdClient, member_id: int) -> None:
    """Start a learner anew that is known to the others and still serves no clients.

    A member serves once it has seen its own name arrive through raft.  A new one often gets the name with the leader's first
    snapshot instead (etcd 3.5 and 3.6), does not notice, and announces itself again only after seven seconds; with its data at
    hand it needs none.  While it is a learner nobody depends on it, so this is the moment.
    """

    def serves() -> str:
        # The port is open before anybody answers there, so an answer is not waited for long.
        return _silence(client, member_id, _SERVES_WITHIN)

    try:
        waiting.until(serves, timeout=_SERVES_WITHIN)
    except waiting.TimedOutError:
        _restart(ctx)
        _await(ctx, serves)


def _silence(client: EtcdClient, member_id: int, timeout: float) -> str:
    """Why a member gives no answer to clients; empty where it does."""
    try:
        own = next((member for member in client.members(patience=0) if member.id == member_id), None)
        if own is None or not own.client_urls:
            return f"the etcd member {member_id:x} is not listed with a client URL"
        client.status(own.client_urls[0], timeout=timeout)
    except EtcdError as error:
        return f"the etcd member {member_id:x} does not answer: {error.message}"
    return ""


def _restart(ctx: NodeContext) -> None:
    """The kubelet starts a container that has ended once without a pause.  Where this cannot be done, the join waits instead."""
    try:
        with ctx.host.container_runtime(ctx.config.node_registration.cri_socket) as runtime:
            for container in runtime.containers(all=False):
                if container.name == "etcd" and container.namespace == "kube-system":
                    ctx.progress.say("[etcd] The new etcd member missed its own announcement: starting it anew")
                    runtime.stop_container(container.id, patience=1)
    except ContainerRuntimeError as error:
        ctx.progress.say(f"[etcd] The new etcd member could not be started anew, so it is waited for: {error.message}")


def _await_promotion(ctx: NodeContext, client: EtcdClient, member_id: int) -> None:
    def promoted() -> str:
        try:
            # Asked first: a promotion whose answer was lost has happened all the same.
            if not _in_list(client, member_id, lambda member: not member.is_learner, "is a learner"):
                return ""
            client.promote(member_id, patience=0)
        except EtcdError as error:
            if error.says_not_in_sync or error.transient:
                return f"the etcd member {member_id:x} cannot be promoted yet: {error.message}"
            raise
        return ""

    _await(ctx, promoted)


def _await(ctx: NodeContext, probe: Callable[[], str]) -> None:
    """Wait for this node's etcd, with an eye on its container: one that fails again and again ends the wait."""
    look, last = diagnosis.Look(ctx), time.monotonic()

    def watched() -> str:
        nonlocal last
        missing = probe()
        if missing and time.monotonic() - last >= _LOOK_EVERY:
            if hopeless := look.hopeless(["etcd"]):
                raise OperatorError(f"{missing}: {hopeless}\n{diagnosis.explain(ctx, ['etcd'])}")
            last = time.monotonic()
        return missing

    try:
        waiting.until(watched, timeout=_etcd_call(ctx))
    except waiting.TimedOutError as error:
        raise OperatorError(f"{error.message}\n{diagnosis.explain(ctx, ['etcd'])}") from error


def _await_health(ctx: NodeContext, client: EtcdClient, timeout: float) -> None:
    def healthy() -> str:
        problem = health_problem(ctx, client)
        return f"etcd cluster is not healthy: {problem}" if problem else ""

    waiting.until(healthy, timeout=timeout)


def _in_list(client: EtcdClient, member_id: int, wanted: Callable[[EtcdMember], bool], otherwise: str) -> str:
    try:
        members = client.members(patience=0)
    except EtcdError as error:
        if not error.transient:
            raise
        return f"etcd does not list its members: {error.message}"
    member = next((member for member in members if member.id == member_id), None)
    if member is None:
        raise OperatorError(f"the etcd member {member_id:x} of this node was removed while it joined: join again")
    return "" if wanted(member) else f"the etcd member {_shown(member)} {otherwise}"


def _shown(member: EtcdMember) -> str:
    return f"{member.name or 'without a name'} ({member.id:x}, {', '.join(member.peer_urls)})"


def _etcd_call(ctx: NodeContext) -> float:
    return waiting.seconds(ctx.config.timeouts.etcd_api_call, _ETCD_CALL)
