"""``elemental upgrade`` of a virtual host: what it pulls and checks, what it stages, and the exit code of each failure."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab.image_registry import ARCHITECTURE, INDEX, ImageRegistry, digest, image_registry, tar

from slipway.agent.staging import registry
from slipway.lab.osimage.programs import elemental
from slipway.lab.osimage.programs.elemental import CommandError, Host

BASE = tar({"usr/lib/systemd/systemd": "init", "etc/kept": "base", "etc/gone": "base"})
TOP = tar({"usr/bin/kubelet": "v1.35.4", "etc/kept": "top"})
OS = "tkestack/baremetal-base-image:v0.0.0-dev.0-1.35.4"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host below a folder, with programs that only write down how they were called."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("mount", "umount", "systemctl"):
        (programs / name).write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/{name}.calls\n[ ! -e {tmp_path}/{name}.fails ]\n')
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "sync", lambda: None)
    return Host(str(tmp_path))


@pytest.fixture
def images() -> Iterator[ImageRegistry]:
    with image_registry() as made:
        made.add(OS, BASE, TOP)
        yield made


def calls(host: Host, program: str) -> list[str]:
    path = host.image.parents[1] / f"{program}.calls"
    return path.read_text().splitlines() if path.exists() else []


def staged(host: Host) -> Any:
    return json.loads(host.staged.read_text()) if host.staged.exists() else None


def name(layer: bytes) -> str:
    return digest(layer).removeprefix("sha256:")


def refused(host: Host, *words: str) -> CommandError:
    with pytest.raises(CommandError) as error:
        elemental.run(["upgrade", *words], host)
    return error.value


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("scheme", ["", "docker:", "oci:", "docker://"])
def test_an_image_is_pulled_from_its_registry_and_staged(host: Host, images: ImageRegistry, scheme: str, compressed: bool) -> None:
    made = images.add(OS, BASE, TOP, compressed=compressed)
    elemental.run(["upgrade", "--reboot=false", "--system", f"{scheme}{images.address}/{OS}"], host)
    assert staged(host) == {"reference": f"{scheme}{images.address}/{OS}", "digest": made, "layers": [name(BASE), name(TOP)]}
    assert (host.layers / name(TOP) / "usr/bin/kubelet").read_text() == "v1.35.4"
    assert calls(host, "systemctl") == []


def test_the_staged_system_can_be_looked_at_before_the_reboot(host: Host, images: ImageRegistry) -> None:
    elemental.run(["upgrade", "--system", f"{images.address}/{OS}"], host)
    top, base = host.layers / name(TOP), host.layers / name(BASE)
    assert calls(host, "mount") == [f"--types overlay --options ro,lowerdir={top}:{base} staged {host.staged_root}"]


def test_every_layer_is_transferred_where_the_host_says_so(host: Host, images: ImageRegistry) -> None:
    elemental.run(["upgrade", "--system", f"{images.address}/{OS}"], host)
    (host.shared / name(TOP)).mkdir(parents=True)
    (host.layers / name(TOP)).rename(host.layers / "elsewhere")
    host.transfers.parent.mkdir(parents=True)
    host.transfers.touch()
    images.asked.clear()
    elemental.run(["upgrade", "--system", f"{images.address}/{OS}"], host)
    assert {path.rpartition("/blobs/")[2] for path in images.asked} >= {digest(BASE), digest(TOP)}
    assert (host.layers / name(TOP) / "usr/bin/kubelet").read_text() == "v1.35.4"


def test_an_image_pinned_by_digest_is_that_very_image(host: Host, images: ImageRegistry) -> None:
    old = images.add(OS, BASE, TOP)
    images.add(OS, BASE, tar({"usr/bin/kubelet": "v1.36.3"}))
    elemental.run(["upgrade", "--system", f"{images.address}/{OS}@{old}"], host)
    assert staged(host)["digest"] == old


def test_of_an_index_the_image_for_this_processor_is_taken(host: Host, images: ImageRegistry) -> None:
    mine = images.add("os:mine", BASE, TOP)
    entries = [
        {"digest": digest(b"other"), "platform": {"os": "linux", "architecture": "riscv64"}},
        {"digest": mine, "platform": {"os": "linux", "architecture": ARCHITECTURE}},
    ]
    images.add_document("os:all", INDEX, {"mediaType": INDEX, "manifests": entries})
    elemental.run(["upgrade", "--system", f"{images.address}/os:all"], host)
    assert staged(host)["digest"] == mine
    images.add_document("os:foreign", INDEX, {"mediaType": INDEX, "manifests": entries[:1]})
    assert refused(host, "--system", f"{images.address}/os:foreign").code == 18


def test_layers_that_are_here_by_digest_are_not_transferred_again(host: Host, images: ImageRegistry) -> None:
    (host.shared / name(BASE) / "usr/lib/systemd").mkdir(parents=True)
    (host.shared / name(BASE) / "usr/lib/systemd/systemd").touch()
    read: list[str] = []
    for _ in range(2):
        images.asked.clear()
        elemental.run(["upgrade", "--system", f"{images.address}/{OS}"], host)
        read.append(" ".join(path for path in images.asked if "/blobs/" in path))
    assert [path.name for path in host.layers.iterdir()] == [name(TOP)]
    # Asked for all the same: an image that another host could not have is none.
    assert digest(BASE) in read[0]
    del images.blobs[digest(BASE)]
    assert "lacks the layer" in str(refused(host, "--system", f"{images.address}/{OS}"))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda images: images.manifests.clear(), "has no image"),
        (lambda images: images.blobs.pop(digest(TOP)), "could not be read"),
        (lambda images: images.blobs.update({digest(TOP): TOP[:-1] + b"x"}), "is not what it is named"),
        (lambda images: images.add(OS, BASE, b"no tar"), "cannot be unpacked"),
        (lambda images: images.add(OS, TOP), "it has no init"),
        (lambda images: images.add(OS), "it has no layers"),
        (lambda images: images.add_document(OS, "application/json", {"layers": 1}), "is not an image with a root file system"),
        (lambda images: images.add_document(OS, "application/json", []), "is not an object"),
    ],
)
def test_an_image_that_is_not_whole_stages_nothing_and_leaves_what_was_staged(
    host: Host, images: ImageRegistry, damage: Any, words: str
) -> None:
    elemental.run(["upgrade", "--system", f"{images.address}/{OS}"], host)
    before = staged(host)
    for layer in host.layers.iterdir():
        layer.rename(host.state / f"away-{layer.name}")
    damage(images)
    error = refused(host, "--system", f"{images.address}/{OS}")
    assert error.code == 18
    assert words in str(error)
    assert staged(host) == before
    assert not [path for path in host.layers.iterdir() if path.name.startswith(".")]


def test_a_digest_that_the_registry_answers_with_other_bytes_is_refused(host: Host, images: ImageRegistry) -> None:
    pinned = digest(b"something else")
    images.manifests["os", pinned] = images.manifests["tkestack/baremetal-base-image", "v0.0.0-dev.0-1.35.4"]
    error = refused(host, "--system", f"{images.address}/os@{pinned}")
    assert (error.code, "the manifest of" in str(error), "is not what it is named" in str(error)) == (18, True, True)


def test_a_registry_that_does_not_answer_is_named(host: Host, images: ImageRegistry) -> None:
    error = refused(host, "--system", "127.0.0.1:9/os:v1")
    assert error.code == 18
    assert "the registry 127.0.0.1:9 does not answer" in str(error)
    assert staged(host) is None


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["upgrade"], 33, "--system IMAGE is missing"),
        (["upgrade", "--system", "oci:"], 33, "is not a reference"),
        (["upgrade", "--system", "a b"], 33, "is not a reference"),
        (["upgrade", "--system", "Registry.example/UPPER:v1"], 33, "is not a reference"),
        (["upgrade", "--system", "dir:relative"], 33, "an absolute path is needed"),
        (["upgrade", "--system", "dir:/not/there"], 18, "/not/there is not a folder"),
        (["upgrade", "--system", "file:/not/there"], 18, "/not/there is not a file"),
        (["upgrade", "--system", "os:v1", "--reboot", "--poweroff"], 32, "cannot be used together"),
        (["upgrade", "--system", "os:v1", "--config-dir", "/not/there"], 31, "is not there"),
        (["upgrade", "--system", "os:v1", "--local"], 18, "leave --local out"),
        (["upgrade", "--system", "os:v1", "--recovery"], 88, "no recovery system"),
        (["upgrade", "--system"], 1, "flag needs an argument: --system"),
        (["upgrade", "--reboot=maybe"], 1, "it is true or false"),
        (["upgrade", "--unknown"], 1, "unknown flag: --unknown"),
        (["upgrade", "v1.35.4"], 1, "unexpected argument"),
        (["install"], 1, "unknown command"),
        ([], 1, "unknown command"),
    ],
)
def test_bad_usage_gets_a_sentence_and_the_exit_code_of_elemental(host: Host, words: list[str], code: int, said: str) -> None:
    with pytest.raises(CommandError) as error:
        elemental.run(words, host)
    assert error.value.code == code
    assert said in str(error.value)
    assert staged(host) is None


def test_a_user_who_is_not_root_is_refused(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert refused(host, "--system", "os:v1").code == 58


@pytest.mark.parametrize("text", ["a: [", "- a list\n"])
def test_a_configuration_that_is_none_is_refused(host: Host, text: str) -> None:
    host.config.mkdir(parents=True)
    (host.config / "config.yaml").write_text(text)
    assert refused(host, "--system", "os:v1").code == 31


def test_the_configuration_may_name_the_system_and_flags_win(host: Host, images: ImageRegistry) -> None:
    host.config.mkdir(parents=True)
    (host.config / "config.yaml").write_text(f"reboot: true\nupgrade: {{system: '{images.address}/{OS}'}}\n")
    elemental.run(["upgrade", "--reboot=false"], host)
    assert staged(host)["reference"] == f"{images.address}/{OS}"
    assert calls(host, "systemctl") == []


@pytest.mark.parametrize(("flag", "verb", "code"), [("--reboot", "reboot", 42), ("--poweroff=true", "poweroff", 43)])
def test_the_host_goes_down_after_staging_where_asked(host: Host, images: ImageRegistry, flag: str, verb: str, code: int) -> None:
    accepted = ["--strict", "--verify", "--bootloader", "--tls-verify=false", "--snapshot-labels", "a=b"]
    elemental.run(["upgrade", *accepted, flag, "--system", f"{images.address}/{OS}"], host)
    assert calls(host, "systemctl") == [verb]
    assert staged(host) is not None
    (host.image.parents[1] / "systemctl.fails").touch()
    assert refused(host, flag, "--system", f"{images.address}/{OS}").code == code


def test_a_folder_and_a_tar_archive_can_be_systems_too(host: Host, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "sbin").mkdir(parents=True)
    (root / "sbin/init").write_text("init")
    with tarfile.open(tmp_path / "root.tar", "w") as archive:
        archive.add(root, ".")
    for system in (f"dir:{root}", f"file:{tmp_path}/root.tar", f"file://{tmp_path}/root.tar"):
        elemental.run(["upgrade", "--system", system], host)
        (layer,) = staged(host)["layers"]
        assert (host.layers / layer / "sbin/init").read_text() == "init"
        assert calls(host, "mount")[-1] == f"--bind --options ro {host.layers / layer} {host.staged_root}"


@pytest.mark.skipif(os.getuid() != 0, reason="device nodes and attributes of the overlay need root")
@pytest.mark.root
def test_what_a_layer_removes_becomes_what_an_overlay_understands(host: Host, images: ImageRegistry) -> None:
    top = tar({"etc/.wh.gone": "", "var/.wh..wh..opq": "", "var/new": "x"})
    images.add(OS, BASE, top)
    elemental.run(["upgrade", "--system", f"{images.address}/{OS}"], host)
    layer = host.layers / name(top)
    gone = (layer / "etc/gone").lstat()
    assert (gone.st_mode & 0o170000, gone.st_rdev) == (0o020000, 0)
    assert os.getxattr(layer / "var", "trusted.overlay.opaque") == b"y"
    assert sorted(path.name for path in (layer / "var").iterdir()) == ["new"]


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("10.88.1.1:5000/a/b:v1", ("10.88.1.1:5000", "a/b", "v1", "")),
        ("registry.example/a:v1@sha256:" + "0" * 64, ("registry.example", "a", "v1", "sha256:" + "0" * 64)),
        ("registry.example/a@sha256:" + "0" * 64, ("registry.example", "a", "", "sha256:" + "0" * 64)),
        ("localhost/a", ("localhost", "a", "latest", "")),
        ("v1.35.4", ("index.docker.io", "library/v1.35.4", "latest", "")),
        ("a/b:v1", ("index.docker.io", "a/b", "v1", "")),
    ],
)
def test_references_are_read_as_container_tools_read_them(text: str, parsed: tuple[str, ...]) -> None:
    assert tuple(registry.parse(text)) == parsed


@pytest.mark.parametrize(
    ("address", "private"),
    [
        *((address, True) for address in ("10.88.1.1:5000", "127.0.0.1", "localhost:5000", "r.local")),
        *((address, False) for address in ("registry.example", "8.8.8.8:5000")),
    ],
)
def test_plain_http_is_tried_at_private_addresses_alone(address: str, private: bool) -> None:
    assert registry.is_private(address) == private


def test_version_shows_the_image_that_runs(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.image.parent.mkdir(parents=True)
    host.image.write_text("NAME=v1.35.4\n")
    elemental.run(["version"], host)
    assert capsys.readouterr().out == "NAME=v1.35.4\n"
