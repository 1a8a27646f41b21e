"""Snapshot files against real etcd processes, and against what etcdutl says of them; skipped where the lab has neither in its cache."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from node.conftest import Lines
from node.etcd_process import EtcdNode, addresses

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.certificates import KeyPair
from slipway.fleet.controlplane.workload import etcdcredentials
from slipway.kube.bytestream import TcpStream
from slipway.lab.programs import cache
from slipway.workload import etcdaio, etcdapi, etcdsnapshot
from slipway.workload.etcdapi import EtcdError
from slipway.workload.etcdsnapshot import Piece, SnapshotStream

FOLDER = "/etc/kubernetes/pki/etcd"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdNode]:
    made = EtcdNode(tmp_path_factory.mktemp("etcd"), addresses(1)[0], "first", Lines()).begin()
    try:
        yield made
    finally:
        made.stop()


def etcdctl(node: EtcdNode, *words: str, given: str | None = None) -> str:
    program = cache.find(cache.cache_root(), "etcdctl", "v3.6.6")
    if program is None:
        pytest.skip("etcdctl v3.6.6 is not in the lab's cache")
    pki = node.root / FOLDER[1:]
    keys = (f"--cacert={pki}/ca.crt", f"--cert={pki}/healthcheck-client.crt", f"--key={pki}/healthcheck-client.key")
    done = subprocess.run(
        [program, f"--endpoints={node.client_url}", *keys, *words], input=given, capture_output=True, text=True, check=True
    )
    return done.stdout


def status(path: Path) -> dict[str, int]:
    program = cache.find(cache.cache_root(), "etcdutl", "v3.6.6")
    if program is None:
        pytest.skip("etcdutl v3.6.6 is not in the lab's cache")
    done = subprocess.run([program, "snapshot", "status", str(path), "-w", "json"], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


async def taken(node: EtcdNode, path: Path) -> tuple[int, int, list[tuple[int, int]]]:
    """The revision before, the size, and what was said on the way."""
    read = node.ctx.host.read
    authority = KeyPair(read(f"{FOLDER}/ca.crt"), read(f"{FOLDER}/ca.key"))
    from datetime import UTC, datetime

    context = etcdcredentials.client_context("etcd", authority, datetime.now(UTC))
    told: list[tuple[int, int]] = []
    stream = await TcpStream.connect(node.address, 2379)
    with path.open("wb") as file:

        async def write(piece: bytes) -> None:
            file.write(piece)

        try:
            async with etcdaio.over(stream, context, "etcd-first") as client:
                revision = await client.ask(etcdapi.revision())
                size = await client.snapshot(write, lambda done, whole: told.append((done, whole)))
                # The connection is good for more.
                assert (await client.ask(etcdapi.status())).version == "3.6.6"
        finally:
            await stream.close()
    return revision, size, told


def test_a_snapshot_over_a_stream_is_the_one_that_etcdutl_reads(node: EtcdNode, tmp_path: Path) -> None:
    path = tmp_path / "snapshot.db"
    for number in range(3):
        etcdctl(node, "put", f"/registry/{number}", given="x" * 200_000)
    revision, size, told = asyncio.run(taken(node, path))
    found = etcdsnapshot.check(path)
    said = status(path)
    # etcdutl counts the database, without the digest after it.
    assert (found.revision, found.size) == (said["revision"], size) == (revision, path.stat().st_size)
    assert said["totalSize"] == size - etcdsnapshot.DIGEST_SIZE
    assert found.sha256 == subprocess.run(["sha256sum", path], capture_output=True, text=True, check=True).stdout.split()[0]
    assert told[-1] == (size, size)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_a_last_revision_that_was_compacted_away_counts(node: EtcdNode, tmp_path: Path) -> None:
    """What was deleted and thrown away leaves no key behind, and etcd does not count backwards."""
    etcdctl(node, "put", "gone", "soon")
    etcdctl(node, "del", "gone")
    now = json.loads(etcdctl(node, "get", "nothing", "-w", "json"))["header"]["revision"]
    etcdctl(node, "compact", str(now), "--physical")
    path = tmp_path / "snapshot.db"
    revision, _, _ = asyncio.run(taken(node, path))
    assert etcdsnapshot.revision(path) == revision == now


def test_the_blocking_client_takes_the_same(node: EtcdNode, tmp_path: Path) -> None:
    path = tmp_path / "snapshot.db"
    with path.open("wb") as file:
        size = node.client().snapshot(file.write)
    assert etcdsnapshot.check(path).size == size


@pytest.mark.parametrize("at", [100, 5000, -1])
def test_a_changed_byte_is_found(node: EtcdNode, tmp_path: Path, at: int) -> None:
    path = tmp_path / "snapshot.db"
    with path.open("wb") as file:
        node.client().snapshot(file.write)
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(OperatorError, match="not a snapshot of etcd, or damaged"):
        etcdsnapshot.check(path)


@given(st.binary(min_size=1, max_size=9000))
def test_what_is_no_database_gets_a_sentence(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "nonsense.db"
    path.write_bytes(content)
    with pytest.raises(OperatorError, match="is not a database of etcd"):
        etcdsnapshot.revision(path)


def whole(database: bytes) -> bytes:
    import hashlib

    return database + hashlib.sha256(database).digest()


@given(st.integers(1, 4), st.lists(st.integers(0, 2100), max_size=6))
def test_pieces_may_end_anywhere(pages: int, cuts: list[int]) -> None:
    content = whole(bytes(512 * pages))
    bounds = [0, *sorted(min(cut, len(content)) for cut in cuts), len(content)]
    stream = SnapshotStream("etcd")
    for start, end in pairwise(bounds):
        stream.add(Piece(max(len(content) - etcdsnapshot.DIGEST_SIZE - end, 0), content[start:end]))
    # Where the first piece reaches into the digest, what is announced is more than what etcd would say.
    if bounds[1] <= len(content) - etcdsnapshot.DIGEST_SIZE:
        assert stream.ended() == len(content)


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        pytest.param([], "is empty", id="nothing"),
        pytest.param([Piece(512, bytes(512))], "ended after 512 of 1056 bytes", id="cut"),
        pytest.param([Piece(0, bytes(512)), Piece(0, bytes(32))], "damaged", id="another digest"),
    ],
)
def test_a_stream_that_is_not_whole_is_no_snapshot(pieces: list[Piece], said: str) -> None:
    stream = SnapshotStream("etcd")
    for each in pieces:
        stream.add(each)
    with pytest.raises(EtcdError, match=said):
        stream.ended()


def test_a_failure_in_the_stream_is_told_in_its_words() -> None:
    line = b'{"error":{"code":14,"message":"etcdserver: no leader"}}'
    with pytest.raises(EtcdError, match="etcd-a: etcdserver: no leader"):
        etcdsnapshot.piece("etcd-a", line)
