"""Archives are read back with the standard library's tar reader and hashed again, as a container runtime would."""

from __future__ import annotations

import hashlib
import io
import json
import random
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway.api.machinery.errors import OperatorError
from slipway.lab.images import oci

CONFIG = oci.ImageConfig(architecture="amd64", entrypoint=("/pause",), user="65535:65535")
NAME = "registry.k8s.io/pause:3.10.1"


def read_back(archive: Path) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The blobs of an archive by digest, each checked against its name, and the entry of its index."""
    with tarfile.open(archive) as tar:
        members = {member.name: tar.extractfile(member) for member in tar}
        contents = {name: stream.read() for name, stream in members.items() if stream is not None}
    blobs = {f"sha256:{name.removeprefix('blobs/sha256/')}": data for name, data in contents.items() if name.startswith("blobs/")}
    for digest, data in blobs.items():
        assert digest == f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert json.loads(contents["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    (entry,) = json.loads(contents["index.json"])["manifests"]
    return blobs, entry


def written(tmp_path: Path, files: dict[str, oci.Entry], config: oci.ImageConfig = CONFIG) -> tuple[dict[str, bytes], dict[str, Any]]:
    oci.write(oci.image(NAME, files, config), tmp_path / "image.tar")
    return read_back(tmp_path / "image.tar")


def layer_of(blobs: dict[str, bytes], entry: dict[str, Any]) -> list[tarfile.TarInfo]:
    (layer,) = json.loads(blobs[entry["digest"]])["layers"]
    with tarfile.open(fileobj=io.BytesIO(blobs[layer["digest"]]), mode="r:") as tar:
        return tar.getmembers()


def test_index_names_the_image_for_containerd_and_leads_to_blobs_of_the_stated_size(tmp_path: Path) -> None:
    blobs, entry = written(tmp_path, {"/pause": oci.File(oci.Text(b"program"), 0o755)})
    assert entry["annotations"]["io.containerd.image.name"] == NAME
    assert entry["size"] == len(blobs[entry["digest"]])
    manifest = json.loads(blobs[entry["digest"]])
    for descriptor in (manifest["config"], *manifest["layers"]):
        assert descriptor["size"] == len(blobs[descriptor["digest"]])
    assert len(blobs) == 3


def test_config_has_entrypoint_user_path_and_the_digest_of_the_uncompressed_layer(tmp_path: Path) -> None:
    blobs, entry = written(tmp_path, {"/pause": oci.File(oci.Text(b"program"), 0o755)})
    manifest = json.loads(blobs[entry["digest"]])
    config = json.loads(blobs[manifest["config"]["digest"]])
    assert (config["architecture"], config["os"]) == ("amd64", "linux")
    assert config["config"]["Entrypoint"] == ["/pause"]
    assert config["config"]["User"] == "65535:65535"
    assert config["config"]["Env"] == ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
    assert config["rootfs"]["diff_ids"] == [manifest["layers"][0]["digest"]]


def test_layer_has_each_folder_before_its_files_and_nothing_of_the_machine_that_made_it(tmp_path: Path) -> None:
    files: dict[str, oci.Entry] = {
        "/usr/sbin/iptables": oci.Link("/usr/sbin/xtables-nft-multi"),
        "/usr/sbin/xtables-nft-multi": oci.File(oci.Text(b"x" * 513), 0o755),
        "/tmp": oci.Folder(0o1777),
        "/usr-local": oci.File(oci.Text(b"")),
    }
    members = layer_of(*written(tmp_path, files))
    assert [(member.name, member.mode, member.linkname) for member in members] == [
        ("tmp", 0o1777, ""),
        ("usr", 0o755, ""),
        ("usr/sbin", 0o755, ""),
        ("usr/sbin/iptables", 0o777, "/usr/sbin/xtables-nft-multi"),
        ("usr/sbin/xtables-nft-multi", 0o755, ""),
        ("usr-local", 0o644, ""),
    ]
    assert {(member.mtime, member.uid, member.gid, member.uname, member.gname) for member in members} == {(0, 0, 0, "", "")}


def test_file_from_disk_and_the_same_bytes_from_memory_give_the_same_image(tmp_path: Path) -> None:
    data = random.Random(4).randbytes(3 * 1024 * 1024 + 7)
    (tmp_path / "program").write_bytes(data)
    on_disk = oci.image(NAME, {"/p": oci.File(oci.FileOnDisk.at(tmp_path / "program"), 0o755)}, CONFIG)
    in_memory = oci.image(NAME, {"/p": oci.File(oci.Text(data), 0o755)}, CONFIG)
    assert on_disk.digest == in_memory.digest
    assert max(len(chunk) for chunk in on_disk.archive.chunks()) <= 1 << 20


def test_path_longer_than_a_tar_header_is_kept(tmp_path: Path) -> None:
    path = "/" + "/".join(["f" * 60] * 5)
    assert layer_of(*written(tmp_path, {path: oci.File(oci.Text(b""))}))[-1].name == path[1:]


def test_file_that_grows_while_it_is_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "program").write_bytes(b"1234")
    content = oci.FileOnDisk.at(tmp_path / "program")
    (tmp_path / "program").write_bytes(b"12345")
    with pytest.raises(OperatorError, match="changed while it was read"):
        oci.image(NAME, {"/p": oci.File(content)}, CONFIG)


@pytest.mark.parametrize("path", ["pause", "/a/../b", "/a//b", "/a/"])
def test_path_that_could_leave_the_image_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="absolute path"):
        oci.image(NAME, {path: oci.File(oci.Text(b""))}, CONFIG)


def test_file_in_the_place_of_a_folder_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be a file too"):
        oci.image(NAME, {"/a": oci.File(oci.Text(b"")), "/a/b": oci.File(oci.Text(b""))}, CONFIG)


_NAMES = st.text("abc.-ü", min_size=1, max_size=4).filter(lambda name: name not in (".", ".."))
_FILES = st.builds(lambda data, mode: oci.File(oci.Text(data), mode), st.binary(max_size=1100), st.sampled_from([0o644, 0o755]))
_ENTRIES = _FILES | st.builds(oci.Link, st.text("ab/", min_size=1, max_size=5))


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(_NAMES.map(lambda name: f"/usr/{name}"), _ENTRIES, max_size=8), st.randoms(use_true_random=False))
def test_same_files_have_the_same_archive_in_whatever_order_they_come(files: dict[str, oci.Entry], shuffler: random.Random) -> None:
    shuffled = list(files.items())
    shuffler.shuffle(shuffled)
    one, other = oci.image(NAME, files, CONFIG), oci.image(NAME, dict(shuffled), CONFIG)
    assert one.digest == other.digest
    archive = b"".join(one.archive.chunks())
    assert archive == b"".join(other.archive.chunks())
    assert len(archive) == one.archive.size


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(_NAMES.map(lambda name: f"/{name}"), _FILES, min_size=1, max_size=5), st.data())
def test_one_changed_byte_or_mode_changes_the_digest(files: dict[str, oci.File], data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(files)))
    old = files[path]
    assert isinstance(old.content, oci.Text)
    new = data.draw(
        st.sampled_from([oci.File(oci.Text(old.content.data + b"\0"), old.mode), oci.File(old.content, old.mode ^ 0o111)]), label="changed"
    )
    before: dict[str, oci.Entry] = dict(files)
    assert oci.image(NAME, before, CONFIG).digest != oci.image(NAME, {**before, path: new}, CONFIG).digest
