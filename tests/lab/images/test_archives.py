"""The archives of a Kubernetes version: names as the real kubeadm lists them, contents, and when they are written again."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from lab.static_elf import STATIC_ELF

from slipway.api.machinery.errors import OperatorError
from slipway.lab.images import archives
from slipway.lab.programs.catalog import release_named
from slipway.lab.programs.obtain import Obtained

VERSION = "v1.35.4"
# What `kubeadm config images list --kubernetes-version v1.35.4` of kubeadm v1.35.4 prints.
LISTED = [
    "registry.k8s.io/kube-apiserver:v1.35.4",
    "registry.k8s.io/kube-controller-manager:v1.35.4",
    "registry.k8s.io/kube-scheduler:v1.35.4",
    "registry.k8s.io/kube-proxy:v1.35.4",
    "registry.k8s.io/coredns/coredns:v1.13.1",
    "registry.k8s.io/pause:3.10.1",
    "registry.k8s.io/etcd:3.6.6-0",
]


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "slipway"


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, Obtained]:
    """Static programs that differ in their last bytes."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in archives.PROGRAMS:
        (folder / name).write_bytes(STATIC_ELF + name.encode())
    return {name: Obtained(name, folder / name, VERSION, "folder") for name in archives.PROGRAMS}


@pytest.fixture
def rootfs(tmp_path: Path) -> Path:
    """A root file system with what kube-proxy runs."""
    sbin = tmp_path / "rootfs" / "usr" / "sbin"
    plugins = tmp_path / "rootfs" / "usr" / "lib" / "x86_64-linux-gnu" / "xtables"
    for folder in (sbin, plugins):
        folder.mkdir(parents=True)
    for path in (sbin / "xtables-nft-multi", sbin / "nft", sbin / "conntrack", plugins / "libxt_comment.so"):
        path.write_bytes(STATIC_ELF)
    for name in ("iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"):
        (sbin / name).symlink_to("xtables-nft-multi")
    return tmp_path / "rootfs"


def opened(archive: Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, tarfile.TarInfo]]:
    """The entry of the index, the image's configuration and the files of its layer."""
    with tarfile.open(archive) as tar:

        def blob(digest: str) -> bytes:
            stream = tar.extractfile(f"blobs/{digest.replace(':', '/')}")
            assert stream is not None
            return stream.read()

        index = tar.extractfile("index.json")
        assert index is not None
        (entry,) = json.load(index)["manifests"]
        manifest = json.loads(blob(entry["digest"]))
        config = json.loads(blob(manifest["config"]["digest"]))["config"]
        with tarfile.open(fileobj=io.BytesIO(blob(manifest["layers"][0]["digest"]))) as layer:
            files = {f"/{member.name}": member for member in layer if not member.isdir()}
    return entry, config, files


def test_archives_are_named_as_kubeadm_lists_the_images(programs: dict[str, Obtained], rootfs: Path, cache_folder: Path) -> None:
    made = archives.build(VERSION, programs, rootfs=rootfs)
    assert list(made) == LISTED
    for name, path in made.items():
        assert path == cache_folder / "archives" / VERSION / f"{name.rpartition('/')[2].partition(':')[0]}.tar"
        assert opened(path)[0]["annotations"]["io.containerd.image.name"] == name


@pytest.mark.parametrize(
    ("image", "files", "entrypoint", "user"),
    [
        ("kube-apiserver", {"/usr/local/bin/kube-apiserver"}, ["/usr/local/bin/kube-apiserver"], ""),
        ("etcd", {f"/usr/local/bin/{tool}" for tool in ("etcd", "etcdctl", "etcdutl")}, ["/usr/local/bin/etcd"], ""),
        ("coredns", {"/coredns"}, ["/coredns"], ""),
        ("pause", {"/pause"}, ["/pause"], "65535:65535"),
    ],
)
def test_image_has_its_program_where_manifests_look_for_it(
    programs: dict[str, Obtained], rootfs: Path, image: str, files: set[str], entrypoint: list[str], user: str
) -> None:
    made = archives.build(VERSION, programs, rootfs=rootfs)
    _, config, layer = opened(made[archives.names(release_named(VERSION))[image]])
    assert set(layer) == files
    assert {member.mode for member in layer.values()} == {0o755}
    assert (config["Entrypoint"], config["User"]) == (entrypoint, user)
    assert "/usr/local/bin" in config["Env"][0].removeprefix("PATH=").split(":")


def test_image_of_kube_proxy_has_the_programs_that_it_runs(programs: dict[str, Obtained], rootfs: Path) -> None:
    made = archives.build(VERSION, programs, rootfs=rootfs)
    _, _, layer = opened(made["registry.k8s.io/kube-proxy:v1.35.4"])
    names = {"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"}
    assert {path for path, member in layer.items() if member.issym()} == {f"/usr/sbin/{name}" for name in names}
    assert {path for path, member in layer.items() if member.isreg()} == {
        "/usr/local/bin/kube-proxy",
        "/usr/sbin/xtables-nft-multi",
        "/usr/sbin/nft",
        "/usr/sbin/conntrack",
        "/usr/lib/x86_64-linux-gnu/xtables/libxt_comment.so",
    }


def test_archive_is_written_again_only_when_its_content_changed(programs: dict[str, Obtained], rootfs: Path) -> None:
    first = {name: path.stat().st_ino for name, path in archives.build(VERSION, programs, rootfs=rootfs).items()}
    programs["coredns"].path.write_bytes(STATIC_ELF + b"another build")
    second = {name: path.stat().st_ino for name, path in archives.build(VERSION, programs, rootfs=rootfs).items()}
    assert [name for name in first if first[name] != second[name]] == ["registry.k8s.io/coredns/coredns:v1.13.1"]


def test_archive_that_was_cut_off_is_written_again(programs: dict[str, Obtained], rootfs: Path) -> None:
    pause = archives.build(VERSION, programs, rootfs=rootfs)["registry.k8s.io/pause:3.10.1"]
    whole = pause.read_bytes()
    pause.write_bytes(whole[:100])
    archives.build(VERSION, programs, rootfs=rootfs)
    assert pause.read_bytes() == whole


def test_same_programs_elsewhere_have_the_same_bytes(
    programs: dict[str, Obtained], rootfs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = [path.read_bytes() for path in archives.build(VERSION, programs, rootfs=rootfs).values()]
    moved = tmp_path / "moved"
    (tmp_path / "programs").rename(moved)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    elsewhere = {name: Obtained(name, moved / name, VERSION, "cache") for name in programs}
    assert [path.read_bytes() for path in archives.build(VERSION, elsewhere, rootfs=rootfs).values()] == first


def test_program_that_is_missing_is_named(programs: dict[str, Obtained], rootfs: Path) -> None:
    del programs["etcdctl"]
    with pytest.raises(OperatorError, match=r"etcd:3\.6\.6-0 needs etcdctl"):
        archives.build(VERSION, programs, rootfs=rootfs)


def test_program_that_needs_libraries_is_refused(programs: dict[str, Obtained], rootfs: Path) -> None:
    interpreter = b"/lib64/ld-linux-x86-64.so.2\0"
    header = bytearray(STATIC_ELF)
    header[0x38:0x3A] = (1).to_bytes(2, "little")
    segment = b"".join(
        number.to_bytes(size, "little")
        for number, size in ((3, 4), (4, 4), (120, 8), (0, 8), (0, 8), (len(interpreter), 8), (0, 8), (1, 8))
    )
    programs["kube-apiserver"].path.write_bytes(bytes(header) + segment + interpreter)
    with pytest.raises(OperatorError, match="kube-apiserver needs shared libraries, so it cannot run in an image by itself"):
        archives.build(VERSION, programs, rootfs=rootfs)


def test_script_is_refused_as_a_program_of_an_image(programs: dict[str, Obtained], rootfs: Path) -> None:
    programs["kube-apiserver"].path.write_text("#!/bin/sh\nexec real-kube-apiserver\n")
    with pytest.raises(OperatorError, match="is not a 64-bit ELF file, so it cannot run in an image"):
        archives.build(VERSION, programs, rootfs=rootfs)
