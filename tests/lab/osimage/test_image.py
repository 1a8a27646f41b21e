"""OS images: what their digest covers, and how a reference finds one in a made-up cache."""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path

import msgspec
import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.host.progress import TextProgress
from slipway.lab.osimage import image as osimage
from slipway.lab.osimage import slipway
from slipway.lab.osimage.image import NodeTool
from slipway.lab.programs.obtain import Obtained

BASE = "base-0123456789abcdef"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "slipway/os"
    (folder / BASE).mkdir(parents=True)
    return folder


def put(cache: Path, digest: str, version: str, node_tool: NodeTool = "slipway", *, built: float = 0.0, base: str = BASE) -> str:
    """An image in the cache, as far as references are concerned; its digest is filled up to the length of a SHA-256."""
    whole = digest.ljust(64, "0")
    folder = cache / whole[:16]
    (folder / "layer").mkdir(parents=True)
    known = dict(name=osimage.image_name(version, node_tool), digest=whole, version=version, nodeTool=node_tool, base=base)
    (folder / "image.json").write_bytes(msgspec.json.encode(known))
    os.utime(folder / "image.json", (built, built))
    return whole


@pytest.mark.parametrize(
    ("reference", "digest"),
    [
        ("v1.35.4", "aaaaaa2"),
        ("1.35.4", "aaaaaa2"),
        ("v1.35.4-kubeadm", "bbbbbb"),
        ("v1.34.10", "cccccc"),
        ("bbbbbb", "bbbbbb"),
        ("aaaaaa1", "aaaaaa1"),
        ("sha256:aaaaaa1", "aaaaaa1"),
        ("cccccc".ljust(64, "0"), "cccccc"),
        ("registry.example/os:v1.35.4-kubeadm", "bbbbbb"),
        ("registry.example:5000/os@sha256:" + "cccccc".ljust(64, "0"), "cccccc"),
    ],
)
def test_a_reference_finds_its_image_and_a_name_the_newest_of_that_name(cache: Path, reference: str, digest: str) -> None:
    put(cache, "aaaaaa1", "v1.35.4", built=1)
    put(cache, "aaaaaa2", "v1.35.4", built=3)
    put(cache, "bbbbbb", "v1.35.4", "kubeadm", built=2)
    put(cache, "cccccc", "v1.34.10", built=4)
    assert osimage.find(reference).digest == digest.ljust(64, "0")


@pytest.mark.parametrize("reference", ["v1.35", "v1.35.40", "aaaaa", "", "registry.example/os", "latest", "v1.35.4-kubeadm", "ffffff"])
def test_a_reference_to_nothing_gets_a_sentence_with_what_there_is(cache: Path, reference: str) -> None:
    put(cache, "aaaaaa1", "v1.35.4")
    with pytest.raises(OperatorError, match=r"there is no OS image .* \(there are: v1\.35\.4\): build one"):
        osimage.find(reference)


def test_the_beginning_of_two_digests_is_refused(cache: Path) -> None:
    put(cache, "aaaaaa1", "v1.35.4")
    put(cache, "aaaaaa2", "v1.34.10")
    with pytest.raises(OperatorError, match="beginning of 2 OS images"):
        osimage.find("aaaaaa")


def test_layers_are_the_versions_over_the_base(cache: Path) -> None:
    digest = put(cache, "aaaaaa1", "v1.35.4")
    assert osimage.find("v1.35.4").layers == [cache / digest[:16] / "layer", cache / BASE]


def test_an_image_without_its_base_is_not_listed(cache: Path) -> None:
    put(cache, "aaaaaa1", "v1.35.4", base="base-gone")
    assert osimage.list_images() == []


def test_unfinished_work_is_not_an_image(cache: Path) -> None:
    (cache / ".image-v1.35.4.partial").mkdir()
    (cache / ".image-v1.35.4.partial/image.json").write_text("{")
    assert osimage.list_images() == []


def test_one_index_names_the_images_of_all_archives() -> None:
    indexes = [{"schemaVersion": 2, "manifests": [{"digest": "sha256:a"}]}, {"schemaVersion": 2, "manifests": [{"digest": "sha256:b"}]}]
    assert osimage.merged_index(indexes) == {"schemaVersion": 2, "manifests": [{"digest": "sha256:a"}, {"digest": "sha256:b"}]}


def layer(root: Path) -> Path:
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/kubelet").write_text("kubelet")
    (root / "usr/bin/kubelet").chmod(0o755)
    (root / "etc").mkdir()
    (root / "etc/link").symlink_to("/run/x")
    return root


def test_the_digest_is_that_of_the_listing_of_files_and_links(tmp_path: Path) -> None:
    kubelet = hashlib.sha256(b"kubelet").hexdigest()
    listing = f"base\netc/link\0link /run/x\nusr/bin/kubelet\x00755 {kubelet}\n"
    assert osimage.layer_digest(layer(tmp_path / "a"), "base") == hashlib.sha256(listing.encode()).hexdigest()


def test_the_same_files_made_at_another_time_in_another_place_have_the_same_digest(tmp_path: Path) -> None:
    one, other = layer(tmp_path / "a"), layer(tmp_path / "b/c")
    os.utime(other / "usr/bin/kubelet", (1, 1))
    assert osimage.layer_digest(one, "base") == osimage.layer_digest(other, "base")


@pytest.mark.parametrize("change", ["content", "mode", "target", "name", "base"])
def test_any_change_changes_the_digest(tmp_path: Path, change: str) -> None:
    one, other = layer(tmp_path / "a"), layer(tmp_path / "b")
    base = "base"
    match change:
        case "content":
            (other / "usr/bin/kubelet").write_text("kubelet2")
        case "mode":
            (other / "usr/bin/kubelet").chmod(0o700)
        case "target":
            (other / "etc/link").unlink()
            (other / "etc/link").symlink_to("/run/y")
        case "name":
            (other / "usr/bin/kubelet").rename(other / "usr/bin/kubectl")
        case "base":
            base = "another base"
    assert osimage.layer_digest(one, "base") != osimage.layer_digest(other, base)


def test_an_image_without_its_programs_is_refused_before_anything_is_made(cache: Path) -> None:
    kubelet = Obtained(program="kubelet", path=Path("/bin/true"), version="v1.35.4", source="cache")
    with pytest.raises(OperatorError, match=r"needs kubectl, kubeadm: obtain them with `slipway lab components v1\.35\.4`"):
        osimage.build("v1.35.4", components={"kubelet": kubelet}, progress=TextProgress())
    assert [path.name for path in cache.iterdir()] == [BASE]


def test_slipways_dependencies_are_those_that_it_runs_with() -> None:
    found = slipway.dependencies("slipway")
    assert {name.lower() for name in found} == {
        "aiohappyeyeballs", "aiohttp", "aiosignal", "attrs", "cffi", "cryptography", "frozenlist", "google-re2", "grpcio", "idna",
        "markdown-it-py", "mdurl", "msgspec", "multidict",
        "prometheus-client", "propcache", "protobuf", "pycparser", "pygments", "pyyaml", "rich", "typing-extensions", "yarl",
    }  # fmt: skip
    assert found["msgspec"] == msgspec.__version__


def test_wheels_for_a_newer_c_library_than_the_bases_are_not_taken() -> None:
    tags = slipway.platforms("x86_64")
    assert "manylinux_2_28_x86_64" in tags
    assert "manylinux2014_x86_64" in tags
    assert "manylinux_2_39_x86_64" not in tags  # Debian 12 has glibc 2.36


def test_a_wheel_is_unpacked_where_python_finds_it(tmp_path: Path) -> None:
    wheel = tmp_path / "thing-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("thing/__init__.py", "")
        archive.writestr("thing-1.dist-info/METADATA", "Name: thing\n")
    slipway.unpack(wheel, tmp_path / "site")
    assert (tmp_path / "site/thing/__init__.py").exists()
    assert (tmp_path / "site/thing-1.dist-info/METADATA").exists()


def test_a_wheel_with_files_for_other_places_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "thing-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("thing-1.data/scripts/thing", "")
    with pytest.raises(OperatorError, match=r"thing-1\.data/scripts/thing"):
        slipway.unpack(wheel, tmp_path / "site")
