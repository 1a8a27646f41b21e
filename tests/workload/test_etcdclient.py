"""The client against real etcd processes; where the lab has none in its cache, these tests are skipped."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from node.etcd_process import VERSIONS, EtcdNode, addresses

from slipway.host import waiting
from slipway.workload.etcdapi import EtcdError, EtcdMember, EtcdUnreachableError
from slipway.workload.etcdclient import EtcdClient

if TYPE_CHECKING:
    from node.conftest import Lines

PEER = "https://127.9.9.9:2380"


@pytest.fixture(params=VERSIONS)
def node(request: pytest.FixtureRequest, tmp_path: Path, lines: Lines) -> Iterator[EtcdNode]:
    node = EtcdNode(tmp_path, addresses(1)[0], "first", lines, request.param)
    try:
        yield node.begin()
    finally:
        node.stop()


def test_a_member_tells_who_and_how_it_is(node: EtcdNode) -> None:
    client = node.client()
    (member,) = client.members()
    assert member == EtcdMember(member.id, "first", (node.peer_url,), (node.client_url,), is_learner=False)
    status = client.status(node.client_url)
    assert status.version == VERSIONS[node.ctx.config.cluster.kubernetes_version].removeprefix("v")
    assert status.leader == status.member_id == member.id > 0
    assert status.db_size > 0
    assert not status.is_learner
    assert status.errors == ()
    assert client.alarms() == []
    assert client.unhealthy() == {}


def test_a_learner_is_added_once_and_removed_twice(node: EtcdNode) -> None:
    client = node.client()
    added, members = client.add_learner(PEER)
    assert [(member.name, member.is_learner) for member in members if member.id == added] == [("", True)]
    assert client.add_learner(PEER)[0] == added
    with pytest.raises(EtcdError) as caught:
        client.add_learner("https://127.9.9.8:2380")
    assert caught.value.says_too_many_learners
    with pytest.raises(EtcdError) as caught:
        client.promote(added)
    assert caught.value.says_not_in_sync
    assert [member.name for member in client.remove(added)] == ["first"]
    assert [member.name for member in client.remove(added)] == ["first"]
    # Within the same second etcd would give it the id that was just removed for good.
    assert client.add_learner(PEER)[0] != added


def test_a_voter_that_is_promoted_stays_a_voter(node: EtcdNode) -> None:
    client = node.client()
    (member,) = client.members()
    assert client.promote(member.id) == [member]


def test_a_snapshot_is_the_database_and_its_digest(node: EtcdNode) -> None:
    pieces: list[bytes] = []
    size = node.client().snapshot(pieces.append)
    content = b"".join(pieces)
    assert len(content) == size
    assert hashlib.sha256(content[:-32]).digest() == content[-32:]
    # What every file of bbolt has in its first page.
    assert content[16:20] == (0xED0CDAED).to_bytes(4, "little")


def test_endpoints_are_asked_in_turn(node: EtcdNode) -> None:
    nobody = "https://127.0.0.1:1"
    client = node.client(nobody, node.client_url)
    assert [member.name for member in client.members()] == ["first"]
    assert client.unhealthy() == {nobody: f"{nobody}: Connection refused"}
    client.sync()
    assert client.endpoints == (node.client_url,)


def test_what_never_answers_is_named_after_the_patience(node: EtcdNode) -> None:
    node.stop(signal.SIGKILL)
    with pytest.raises(EtcdUnreachableError, match="Connection refused"):
        node.client(patience=0.3).members()


def test_a_member_that_restarts_is_waited_for(node: EtcdNode) -> None:
    node.stop(signal.SIGKILL)
    node.start()
    assert [member.name for member in node.client().members()] == ["first"]


def test_another_authority_is_not_trusted_and_not_asked_again(node: EtcdNode, tmp_path: Path, lines: Lines) -> None:
    stranger = EtcdNode(tmp_path, "127.0.0.1", "stranger", lines)
    stranger.make_certificates()
    with pytest.raises(EtcdError, match="its certificate is not trusted") as caught:
        stranger.client(node.client_url).members()
    assert not caught.value.transient
    own, other = node.ctx.host.read, stranger.ctx.host.read
    folder = "/etc/kubernetes/pki/etcd"
    mixed = EtcdClient(
        [node.client_url],
        ca=own(f"{folder}/ca.crt"),
        certificate=other(f"{folder}/healthcheck-client.crt"),
        key=other(f"{folder}/healthcheck-client.key"),
    )
    with pytest.raises(EtcdError, match="refused this node's client certificate"):
        mixed.members()


def test_a_learner_that_runs_becomes_a_voter(node: EtcdNode, tmp_path: Path, lines: Lines) -> None:
    from slipway.node.etcd import pod

    first, second = node.address, f"{node.address[:-1]}2"
    assert first != second
    joining = EtcdNode(tmp_path, second, "second", lines, node.ctx.config.cluster.kubernetes_version)
    joining.make_certificates(node)
    client = node.client()
    added, _ = client.add_learner(joining.peer_url)
    pod.write_joined(joining.ctx, [pod.Member("first", node.peer_url), pod.Member("second", joining.peer_url)])
    joining.start()

    def promoted() -> str:
        try:
            client.promote(added)
        except EtcdError as error:
            return error.message
        return ""

    try:
        waiting.until(promoted, timeout=30)
        assert sorted((member.name, member.is_learner) for member in client.members()) == [("first", False), ("second", False)]
    finally:
        joining.stop()
