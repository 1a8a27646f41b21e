"""Transfers from a web server on loopback: whole, interrupted, continued, and not what was published."""

from __future__ import annotations

import hashlib
import random
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab.release_site import ReleaseSite, serving

from slipway.api.machinery.errors import OperatorError
from slipway.lab.programs import download

DATA = random.Random(1).randbytes(2_500_000)
DIGEST = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def site() -> Iterator[ReleaseSite]:
    with serving() as site:
        site.publish("/kubelet", DATA)
        yield site


def test_file_arrives_whole_and_the_bytes_are_counted(site: ReleaseSite, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    download.fetch(f"{site.url}/kubelet", DIGEST, tmp_path / "part", lambda here, total: seen.append((here, total)))
    assert (tmp_path / "part").read_bytes() == DATA
    assert seen[-1] == (len(DATA), len(DATA))
    assert [here for here, _ in seen] == sorted(here for here, _ in seen)


def test_broken_transfer_is_continued_with_a_range_where_it_stopped(site: ReleaseSite, tmp_path: Path) -> None:
    site.breaks_after = 1_000_000
    for here in (1_000_000, 2_000_000):
        with pytest.raises(download.UnavailableError, match=f"broke off after {here} of {len(DATA)} bytes"):
            download.fetch(f"{site.url}/kubelet", DIGEST, tmp_path / "part")
    download.fetch(f"{site.url}/kubelet", DIGEST, tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == DATA
    assert [wanted for _, wanted in site.transfers()] == [None, "bytes=1000000-", "bytes=2000000-"]


def test_server_that_ignores_ranges_sends_the_whole_file_again(site: ReleaseSite, tmp_path: Path) -> None:
    site.ranges = False
    (tmp_path / "part").write_bytes(DATA[:1000])
    download.fetch(f"{site.url}/kubelet", DIGEST, tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == DATA


def test_transfer_that_ended_before_it_was_checked_is_not_repeated(site: ReleaseSite, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(DATA)
    download.fetch(f"{site.url}/kubelet", DIGEST, tmp_path / "part")
    assert [wanted for _, wanted in site.transfers()] == [f"bytes={len(DATA)}-"]


@pytest.mark.parametrize("left", [b"something else", b"longer" * 1_000_000], ids=["shorter", "longer"])
def test_beginning_that_belongs_to_another_file_is_given_up_for_a_whole_transfer(site: ReleaseSite, tmp_path: Path, left: bytes) -> None:
    (tmp_path / "part").write_bytes(left)
    download.fetch(f"{site.url}/kubelet", DIGEST, tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == DATA
    assert [wanted for _, wanted in site.transfers()] == [f"bytes={len(left)}-", None]


def test_file_that_is_not_the_published_one_is_refused_and_not_kept(site: ReleaseSite, tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=f"has the SHA-256 {DIGEST}, but {'0' * 64} was published"):
        download.fetch(f"{site.url}/kubelet", "0" * 64, tmp_path / "part")
    assert list(tmp_path.iterdir()) == []


def test_missing_file_is_unavailable_but_the_site_is_not_unreachable(site: ReleaseSite) -> None:
    with pytest.raises(download.UnavailableError, match="answered 404") as raised:
        download.text(f"{site.url}/absent.sha256")
    assert not isinstance(raised.value, download.UnreachableError)


def test_site_where_nobody_listens_is_unreachable() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(download.UnreachableError, match="cannot be reached"):
            download.text(f"http://127.0.0.1:{unused.getsockname()[1]}/kubelet.sha256")


def test_server_that_does_not_accept_is_given_up_within_the_connect_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_CONNECT_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        waiting = [socket.socket() for _ in range(3)]
        for client in waiting:
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        with pytest.raises(download.UnreachableError, match="timed out"):
            download.text(f"http://127.0.0.1:{full.getsockname()[1]}/kubelet.sha256")
        for client in waiting:
            client.close()
