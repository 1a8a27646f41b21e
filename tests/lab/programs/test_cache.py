"""The cache: what is in it, what pruning frees, locks, and a disk that is full."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from lab import fake_program

from slipway.api.machinery.errors import OperatorError
from slipway.lab.programs import cache


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A cache with programs of two versions, things on the way, and something that is not a version's."""
    for shelf, program, version in (
        ("v1.34.10", "kubelet", "v1.34.10"),
        ("v1.35.4", "kubelet", "v1.35.4"),
        ("etcd-v3.6.5", "etcd", "v3.6.5"),
        ("etcd-v3.6.6", "etcd", "v3.6.6"),
        ("pause-3.10.1", "pause", "3.10.1"),
    ):
        fake_program.install(tmp_path / "bin" / shelf, program, version)
    cache.record(tmp_path / "bin" / "v1.35.4" / "kubelet", "v1.35.4", "Go build")
    for path, size in (("archives/v1.34.10/etcd.tar", 1000), ("build/v1.34.10/go.mod", 10), ("bin/v1.34.10/.abc.part", 500)):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"x" * size)
    (tmp_path / "bin" / "stand-in").write_text("not of a version")
    (tmp_path / "go").mkdir()
    (tmp_path / "go" / "compiler").write_bytes(b"x" * 7)
    return tmp_path


def test_listing_has_each_program_with_version_size_and_source(root: Path) -> None:
    listed = [(entry.program, entry.version, entry.source) for entry in cache.listing(root)]
    assert listed == [
        ("etcd", "v3.6.5", ""),
        ("etcd", "v3.6.6", ""),
        ("pause", "3.10.1", ""),
        ("kubelet", "v1.34.10", ""),
        ("kubelet", "v1.35.4", "Go build"),
    ]
    assert all(entry.size == entry.path.stat().st_size for entry in cache.listing(root))


def test_listing_of_no_cache_is_empty(tmp_path: Path) -> None:
    assert cache.listing(tmp_path / "absent") == []
    assert cache.prune([], tmp_path / "absent") == 0


def test_prune_frees_what_no_kept_version_uses_and_tells_how_much(root: Path) -> None:
    doomed = [
        "bin/v1.34.10/kubelet",
        "bin/etcd-v3.6.5/etcd",
        "archives/v1.34.10/etcd.tar",
        "build/v1.34.10/go.mod",
        "bin/v1.34.10/.abc.part",
    ]
    size = sum((root / path).stat().st_size for path in doomed)
    assert cache.prune(["v1.35.4"], root) == size
    assert [(entry.program, entry.version) for entry in cache.listing(root)] == [
        ("etcd", "v3.6.6"),
        ("pause", "3.10.1"),
        ("kubelet", "v1.35.4"),
    ]
    assert sorted(path.name for path in root.glob("*/*")) == ["compiler", "etcd-v3.6.6", "pause-3.10.1", "stand-in", "v1.35.4"]


def test_prune_that_keeps_nothing_frees_the_toolchain_too_and_leaves_strangers(root: Path) -> None:
    cache.prune([], root)
    assert [path.name for path in root.rglob("*") if path.is_file()] == ["stand-in"]


def test_prune_leaves_what_another_run_works_on(root: Path) -> None:
    with cache.locked(root / "bin" / "v1.34.10" / ".lock"):
        cache.prune(["v1.35.4"], root)
        assert (root / "bin" / "v1.34.10" / "kubelet").exists()
    cache.prune(["v1.35.4"], root)
    assert not (root / "bin" / "v1.34.10").exists()


def test_prune_refuses_a_version_that_it_does_not_know(root: Path) -> None:
    for version, sentence in (("v1.20.0", "not supported"), ("1.35", "is not a Kubernetes version")):
        with pytest.raises(OperatorError, match=sentence):
            cache.prune([version], root)
    assert len(cache.listing(root)) == 5


def test_lock_makes_others_wait_and_tells_them(tmp_path: Path) -> None:
    holder = (tmp_path / ".lock").open("w")
    fcntl.flock(holder, fcntl.LOCK_EX)
    # The holder lets go as soon as the other is told to wait.
    with cache.locked(tmp_path / ".lock", on_wait=holder.close):
        assert holder.closed


def test_lock_that_was_removed_while_it_was_awaited_is_taken_anew(tmp_path: Path) -> None:
    folder = tmp_path / "shelf"
    folder.mkdir()
    holder = (folder / ".lock").open("w")
    fcntl.flock(holder, fcntl.LOCK_EX)

    def removed() -> None:
        shutil.rmtree(folder)
        holder.close()

    with cache.locked(folder / ".lock", on_wait=removed):
        (folder / "program").write_text("")
        with (folder / ".lock").open("w") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_folder_in_which_nothing_came_about_is_removed_with_its_lock(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), cache.locked(tmp_path / "shelf" / ".lock"):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_file_has_its_final_name_only_when_it_is_whole(tmp_path: Path) -> None:
    with cache.appearing(tmp_path / "program") as partial:
        partial.write_text("whole")
        assert not (tmp_path / "program").exists()
    assert (tmp_path / "program").read_text() == "whole"


def test_work_that_fails_leaves_the_earlier_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "program").write_text("earlier")

    def fill_the_disk() -> None:
        with cache.appearing(tmp_path / "program") as partial:
            partial.symlink_to("/dev/full")
            partial.write_text("half")

    with pytest.raises(OSError, match="No space left"):
        fill_the_disk()
    assert [path.name for path in tmp_path.iterdir()] == ["program"]
    assert (tmp_path / "program").read_text() == "earlier"


def test_leftovers_of_a_run_that_was_killed_are_removed_by_the_next(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    (tmp_path / f".program.{ended.pid}").write_text("half")
    (tmp_path / f".program.{os.getppid()}").write_text("of a run that goes on")
    with cache.appearing(tmp_path / "program") as partial:
        partial.write_text("whole")
    assert {path.name for path in tmp_path.iterdir()} == {"program", f".program.{os.getppid()}"}


def test_work_that_needs_more_than_is_free_is_refused_before_it_begins(tmp_path: Path) -> None:
    with (
        pytest.raises(
            OperatorError, match=r"not enough disk space for the build of kubelet: \d+ MiB are free in .* and \d+ MiB are needed"
        ),
        cache.space_needed("the build of kubelet", tmp_path / "absent" / "cache", 2**62),
    ):
        pytest.fail("the work began")


def test_disk_that_becomes_full_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="the disk became full during the download"), cache.space_needed("the download", tmp_path):
        Path("/dev/full").write_text("x")


def test_record_that_cannot_be_read_counts_as_none(tmp_path: Path) -> None:
    path = fake_program.install(tmp_path / "bin" / "v1.35.4", "kubelet", "v1.35.4")
    path.with_name("kubelet.json").write_text('{"version": ')
    assert cache.read_record(path) is None
    assert cache.find(tmp_path, "kubelet", "v1.35.4") == path
    assert cache.read_record(path) is not None
