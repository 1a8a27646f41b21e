"""OS images as a registry has them: layers that are the same bytes each time, and a store that the real server reads."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from pathlib import Path

import pytest
import yaml
from lab.lab_records import saved_lab
from lab.recorded_progress import RecordedProgress

from slipway.api.machinery.errors import OperatorError
from slipway.lab.osimage.image import OSImage
from slipway.lab.registry import layers, server
from slipway.lab.registry.storage import Storage


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OSImage:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    store = tmp_path / "cache/slipway/os"
    for folder, text in (("0123/layer/usr/bin", "kubelet"), ("base-1/sbin", "init")):
        (store / folder).mkdir(parents=True)
        (store / folder / text).write_text(text)
    (store / "base-1/sbin/link").symlink_to("init")
    return OSImage(
        name="v1.35.4", digest="0123", version="v1.35.4", node_tool="slipway", layers=[store / "0123/layer", store / "base-1"], built=0.0
    )


def test_the_tar_of_a_layer_has_the_same_digest_whenever_it_is_made(image: OSImage, tmp_path: Path) -> None:
    first = layers.write_layer(image.layers[1], tmp_path / "one")
    os.utime(image.layers[1] / "sbin/init", (1, 1))
    assert layers.write_layer(image.layers[1], tmp_path / "two") == first
    written = (tmp_path / "one" / first.hex).read_bytes()
    assert (hashlib.sha256(written).hexdigest(), len(written)) == (first.hex, first.size)
    with tarfile.open(fileobj=io.BytesIO(written)) as archive:
        assert archive.getnames() == [".", "./sbin", "./sbin/init", "./sbin/link"]
        assert {member.mtime for member in archive} == {0}


def test_a_layer_is_found_by_its_digest_for_as_long_as_the_cache_has_it(image: OSImage, tmp_path: Path) -> None:
    blob = layers.write_layer(image.layers[1], tmp_path / "blobs")
    assert layers.shared_layer(blob.hex) == image.layers[1].resolve()
    link = tmp_path / "cache/slipway/os/layers" / blob.hex
    assert os.readlink(link) == "../base-1"  # hosts see the cache at another place
    image.layers[1].rename(tmp_path / "away")
    assert layers.shared_layer(blob.hex) is None


def test_an_image_is_put_where_the_registry_of_the_distribution_project_looks_for_it(image: OSImage, tmp_path: Path) -> None:
    lab = saved_lab(tmp_path)
    server._save(lab, "10.88.3.1:5000", None)
    pushed = server.push(lab, image, "os/base-image:v0.0.0-1.35.4", RecordedProgress())
    assert pushed.reference == "10.88.3.1:5000/os/base-image:v0.0.0-1.35.4"
    root = server.storage(lab).folder / "docker/registry/v2"
    links = {str(path.parent.relative_to(root / "repositories")): path.read_text() for path in root.rglob("link")}
    manifest = json.loads(blob(root, pushed.digest))
    digests = [layer["digest"] for layer in manifest["layers"]]
    assert links == {
        "os/base-image/_manifests/tags/v0.0.0-1.35.4/current": pushed.digest,
        f"os/base-image/_manifests/tags/v0.0.0-1.35.4/index/{pushed.digest.replace(':', '/')}": pushed.digest,
        f"os/base-image/_manifests/revisions/{pushed.digest.replace(':', '/')}": pushed.digest,
        **{f"os/base-image/_layers/{digest.replace(':', '/')}": digest for digest in (*digests, manifest["config"]["digest"])},
    }
    config = json.loads(blob(root, manifest["config"]["digest"]))
    assert config["rootfs"]["diff_ids"] == digests
    # The lowest layer first.
    assert layers.shared_layer(digests[0].removeprefix("sha256:")) == image.layers[1].resolve()
    assert [len(blob(root, layer["digest"])) for layer in manifest["layers"]] == [layer["size"] for layer in manifest["layers"]]


def blob(root: Path, digest: str) -> bytes:
    content = (root / "blobs/sha256" / digest[7:9] / digest[7:] / "data").read_bytes()
    assert f"sha256:{hashlib.sha256(content).hexdigest()}" == digest
    return content


def test_a_layer_that_the_registry_has_is_not_made_again(image: OSImage, tmp_path: Path) -> None:
    lab = saved_lab(tmp_path)
    server._save(lab, "10.88.3.1:5000", None)
    first = server.push(lab, image, "os:one", RecordedProgress())
    data = server.storage(lab).folder / "docker/registry/v2/blobs"
    before = {path: path.stat().st_ino for path in data.rglob("data")}
    assert server.push(lab, image, "other:two", RecordedProgress()).digest == first.digest
    assert {path: path.stat().st_ino for path in data.rglob("data")} == before


def test_a_tag_can_be_forgotten(image: OSImage, tmp_path: Path) -> None:
    storage = Storage(tmp_path / "store")
    made = layers.oci_image(image, ())
    storage.add(made, "os", "v1")
    storage.remove_tag("os", "v1")
    storage.remove_tag("os", "v1")
    assert not list(storage.folder.rglob("current/link"))
    assert storage.has(made.manifest.digest)


def test_an_image_needs_a_registry_and_a_name_that_can_be_pulled(image: OSImage, tmp_path: Path) -> None:
    lab = saved_lab(tmp_path)
    with pytest.raises(OperatorError, match="has no registry: start it"):
        server.push(lab, image, "os:v1", RecordedProgress())
    for name in ("os", "OS:v1", "os:", "a b:v1", "os:v1/x"):
        with pytest.raises(OperatorError, match="cannot be the name of an image"):
            server.push(lab, image, name, RecordedProgress())


def test_the_server_listens_on_the_bridge_and_keeps_its_images_in_the_labs_folder() -> None:
    settings = yaml.safe_load(server.configuration("10.88.3.1:5000", Path("/labs/dev/registry/storage")))
    assert settings["http"]["addr"] == "10.88.3.1:5000"
    assert settings["storage"]["filesystem"] == {"rootdirectory": "/labs/dev/registry/storage"}
