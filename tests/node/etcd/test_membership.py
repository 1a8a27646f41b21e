"""Joining and leaving a stacked etcd, with real etcd processes; the decisions as a table.

What a kubelet would do is done by running the command of the manifest that the join wrote.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from node.etcd_process import VERSIONS, EtcdNode, addresses

from slipway.api.machinery.duration import Duration
from slipway.api.machinery.errors import OperatorError
from slipway.host import waiting
from slipway.node.cluster.dryrun import DryRunCluster
from slipway.node.etcd import membership, wal
from slipway.node.etcd import pod as etcd
from slipway.node.etcd.membership import Departure, Step
from slipway.node.etcd.wal import Owner
from slipway.workload.etcdapi import EtcdMember

if TYPE_CHECKING:
    from node.conftest import Lines

MANIFEST = "/etc/kubernetes/manifests/etcd.yaml"
URL = "https://10.0.0.2:2380"


class Nodes(list[EtcdNode]):
    """Nodes of one cluster; the first runs, the others have what a join has before its etcd phase."""

    def cluster(self) -> DryRunCluster:
        """An API server that knows the etcd Pod of the first node."""
        annotations = {etcd.ADVERTISE_CLIENT_URLS_ANNOTATION: self[0].client_url}
        labels = {"component": "etcd", "tier": "control-plane"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "etcd-a", "namespace": "kube-system", "labels": labels}}
        pod["metadata"]["annotations"] = annotations  # type: ignore[index]
        ctx = self[0].ctx
        return DryRunCluster(ctx.progress, ctx.release, lists={"Pod": [pod]})

    def join(self, index: int) -> None:
        with kubelet(self[index]):
            membership.join(self[index].ctx, self.cluster())

    def voters(self) -> list[str]:
        members = self[0].client().members()
        assert not any(member.is_learner for member in members)
        return sorted(member.name for member in members)


@contextmanager
def kubelet(node: EtcdNode) -> Iterator[None]:
    """Runs the static Pod of a node when its manifest is there, unless it runs."""

    def run() -> None:
        waiting.until(lambda: "" if node.ctx.host.exists(MANIFEST) or ended.is_set() else "the manifest", timeout=60, interval=0.02)
        if node.process is None and not ended.is_set():
            node.start()

    ended = threading.Event()
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.fixture
def nodes(request: pytest.FixtureRequest, tmp_path: Path, lines: Lines) -> Iterator[Nodes]:
    version = getattr(request, "param", "v1.35.4")
    made = Nodes(EtcdNode(tmp_path, address, name, lines, version) for name, address in zip("abc", addresses(3), strict=True))
    try:
        made[0].begin()
        for node in made[1:]:
            node.make_certificates(made[0])
        yield made
    finally:
        for node in made:
            node.stop()


@pytest.mark.parametrize("nodes", VERSIONS, indirect=True)
def test_a_node_becomes_a_voter_and_leaves(nodes: Nodes, lines: Lines) -> None:
    nodes.join(1)
    assert nodes.voters() == ["a", "b"]
    assert "[etcd] Announced new etcd member joining to the existing etcd cluster" in lines.said
    joined = nodes[1].ctx.host.read(MANIFEST).decode()
    # In the order of etcd's answer, as kubeadm has it.
    (flag,) = [line.partition("--initial-cluster=")[2] for line in joined.splitlines() if "--initial-cluster=" in line]
    assert sorted(flag.split(",")) == [f"a={nodes[0].peer_url}", f"b={nodes[1].peer_url}"]
    peer_url = nodes[1].peer_url
    client = membership.connect(nodes[1].ctx, nodes.cluster())
    assert set(client.endpoints) == {nodes[0].client_url, nodes[1].client_url}
    membership.check_health(nodes[1].ctx, client)
    assert membership.leave(client, peer_url) is Departure.REMOVED
    assert nodes.voters() == ["a"]
    assert membership.leave(nodes[0].client(), peer_url) is Departure.ABSENT
    assert membership.leave(nodes[0].client(), nodes[0].peer_url) is Departure.LAST
    assert nodes.voters() == ["a"]


def test_a_leader_leaves_after_it_handed_over(nodes: Nodes) -> None:
    nodes.join(1)
    first = nodes[0].client().status(nodes[0].client_url)
    assert first.leader == first.member_id
    assert membership.leave(nodes[0].client(nodes[0].client_url, nodes[1].client_url), nodes[0].peer_url) is (Departure.REMOVED)
    assert [member.name for member in nodes[1].client().members()] == ["b"]


def test_a_finished_join_changes_nothing_when_it_is_run_again(nodes: Nodes) -> None:
    nodes.join(1)
    before, manifest = nodes[0].client().members(), nodes[1].ctx.host.read(MANIFEST)
    nodes.join(1)
    assert nodes[0].client().members() == before
    assert nodes[1].ctx.host.read(MANIFEST) == manifest


def test_a_join_that_was_killed_after_it_announced_its_member_goes_on_with_it(nodes: Nodes) -> None:
    announced, _ = nodes[0].client().add_learner(nodes[1].peer_url)
    nodes.join(1)
    assert announced in {member.id for member in nodes[0].client().members()}
    assert nodes.voters() == ["a", "b"]


def test_a_join_that_was_killed_while_its_learner_ran_promotes_it(nodes: Nodes) -> None:
    announced, members = nodes[0].client().add_learner(nodes[1].peer_url)
    etcd.write_joined(nodes[1].ctx, membership.initial_cluster(members, announced, "b"))
    nodes[1].start()
    nodes.join(1)
    assert nodes.voters() == ["a", "b"]
    owner = wal.owner(nodes[1].ctx.host, "/var/lib/etcd")
    assert owner is not None
    assert owner.member_id == announced


def test_a_learner_that_has_stopped_is_started_again(nodes: Nodes) -> None:
    announced, members = nodes[0].client().add_learner(nodes[1].peer_url)
    etcd.write_joined(nodes[1].ctx, membership.initial_cluster(members, announced, "b"))
    nodes[1].start()
    client = nodes[0].client()
    waiting.until(lambda: "" if all(member.name for member in client.members()) else "start", timeout=30)
    nodes[1].stop()
    nodes.join(1)
    assert nodes.voters() == ["a", "b"]
    assert announced in {member.id for member in client.members()}


def test_the_data_of_a_removed_member_is_put_aside(nodes: Nodes, lines: Lines) -> None:
    nodes.join(1)
    membership.leave(nodes[0].client(nodes[0].client_url, nodes[1].client_url), nodes[1].peer_url)
    nodes[1].stop()
    nodes[1].ctx.host.remove(MANIFEST)
    nodes.join(1)
    assert nodes.voters() == ["a", "b"]
    assert any(name.endswith(".removed") for name in nodes[1].ctx.host.list_dir("/var/lib/etcd"))
    assert any("data of a member that was removed" in text for text in lines.warned)


def test_the_data_of_another_cluster_is_refused_and_nobody_is_announced(nodes: Nodes, tmp_path: Path, lines: Lines) -> None:
    other = EtcdNode(tmp_path, addresses(1)[0], "other", lines)
    try:
        other.begin()
    finally:
        other.stop()
    shutil.copytree(other.data_dir, nodes[1].data_dir)
    with pytest.raises(OperatorError, match="belongs to another etcd cluster"):
        nodes.join(1)
    assert nodes.voters() == ["a"]


def test_a_learner_that_lost_its_data_is_replaced(nodes: Nodes) -> None:
    client = nodes[0].client()
    announced, members = client.add_learner(nodes[1].peer_url)
    etcd.write_joined(nodes[1].ctx, membership.initial_cluster(members, announced, "b"))
    nodes[1].start()
    waiting.until(lambda: "" if all(member.name for member in client.members()) else "start", timeout=30)
    nodes[1].stop()
    shutil.rmtree(nodes[1].data_dir)
    nodes[1].ctx.host.remove(MANIFEST)
    nodes.join(1)
    assert nodes.voters() == ["a", "b"]
    assert announced not in {member.id for member in client.members()}


def test_a_learner_of_a_node_that_does_not_join_any_more_is_named_with_the_remedy(nodes: Nodes) -> None:
    stuck, _ = nodes[0].client().add_learner(nodes[2].peer_url)
    nodes[1].ctx.config.timeouts.etcd_api_call = Duration.of(seconds=1)
    with pytest.raises(OperatorError, match=rf"never started.*member remove {stuck:x}"):
        nodes.join(1)


def test_a_third_member_waits_for_a_cluster_that_has_just_changed_and_health_is_by_release(nodes: Nodes, lines: Lines) -> None:
    """etcd refuses another member for five seconds after the second one came."""
    nodes.join(1)
    nodes.join(2)
    assert nodes.voters() == ["a", "b", "c"]
    assert any("Waiting for etcd" in text for text in lines.said)
    client = membership.connect(nodes[0].ctx, nodes.cluster())
    nodes[2].stop()
    # kubeadm 1.35.4 wants every member to answer, 1.35.5 most of them.
    assert "Connection refused" in membership.health_problem(nodes[0].ctx, client)
    other = EtcdNode(Path(nodes[0].root.parent), nodes[0].address, "a", lines, "v1.36.3")
    assert membership.health_problem(other.ctx, client) == ""


def test_pods_without_the_annotation_are_named(nodes: Nodes) -> None:
    ctx = nodes[0].ctx
    labels = {"component": "etcd", "tier": "control-plane"}
    bare = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "etcd-z", "namespace": "kube-system", "labels": labels}}
    with pytest.raises(waiting.TimedOutError, match="Pod etcd-z has no annotation"):
        membership.pod_endpoints(DryRunCluster(ctx.progress, ctx.release, lists={"Pod": [bare]}), 0)
    with pytest.raises(waiting.TimedOutError, match="has no Pods"):
        membership.pod_endpoints(DryRunCluster(ctx.progress, ctx.release, lists={"Pod": []}), 0)


def member(name: str, *, number: int = 7, url: str = URL, learner: bool = False) -> EtcdMember:
    return EtcdMember(number, name, (url,), (), learner)


@pytest.mark.parametrize(
    ("found", "owner", "step", "foreign"),
    [
        (None, None, Step.ADD, False),
        (None, Owner(7, 1), Step.ADD, True),
        (member("", learner=True), None, Step.REUSE, False),
        (member(""), None, Step.REUSE, False),
        (member("", learner=True), Owner(7, 1), Step.REUSE, False),
        (member("", learner=True), Owner(6, 1), Step.REUSE, True),
        (member("b", learner=True), Owner(7, 1), Step.KEEP, False),
        (member("b"), Owner(7, 1), Step.KEEP, False),
        (member("renamed"), Owner(7, 1), Step.KEEP, False),
        (member("b", learner=True), None, Step.REPLACE, False),
        (member("b"), Owner(6, 1), Step.REPLACE, True),
    ],
)
def test_where_a_join_stands(found: EtcdMember | None, owner: Owner | None, step: Step, foreign: bool) -> None:
    members = [member("a", number=1, url="https://10.0.0.1:2380"), *([found] if found else [])]
    assert membership.standing(members, URL, "b", owner, 1, answers=False) == (step, found, foreign)


@pytest.mark.parametrize(
    ("found", "owner", "answers", "reason"),
    [
        (member("a"), None, False, "advertiseAddress"),
        (member("b"), None, True, "has the peer URL"),
        (None, Owner(7, 2), False, "another etcd cluster"),
        (member("b"), Owner(7, 2), False, "another etcd cluster"),
    ],
)
def test_what_a_join_refuses(found: EtcdMember | None, owner: Owner | None, answers: bool, reason: str) -> None:
    with pytest.raises(OperatorError, match=reason):
        membership.standing([found] if found else [], URL, "b", owner, 1, answers=answers)


def test_members_without_a_name_are_named_by_their_id() -> None:
    members = [
        member("a", number=1, url="https://10.0.0.1:2380"),
        member("", number=255, url="https://10.0.0.3:2380"),
        member("", number=7),
    ]
    assert membership.initial_cluster(members, 7, "b") == [
        ("a", "https://10.0.0.1:2380"),
        ("ff", "https://10.0.0.3:2380"),
        ("b", URL),
    ]
