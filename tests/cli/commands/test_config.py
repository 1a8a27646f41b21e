"""``config``: files in and out, and the output formats."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Run

_V1BETA3 = """\
apiVersion: kubeadm.k8s.io/v1beta3
kind: ClusterConfiguration
kubernetesVersion: v1.35.4
apiServer:
  extraArgs:
    v: "4"
"""

# What kubeadm v1.35.4 prints for `config images list --kubernetes-version v1.35.4`.
_IMAGES = [
    "registry.k8s.io/kube-apiserver:v1.35.4",
    "registry.k8s.io/kube-controller-manager:v1.35.4",
    "registry.k8s.io/kube-scheduler:v1.35.4",
    "registry.k8s.io/kube-proxy:v1.35.4",
    "registry.k8s.io/coredns/coredns:v1.13.1",
    "registry.k8s.io/pause:3.10.1",
    "registry.k8s.io/etcd:3.6.6-0",
]
_HEAD = '    "kind": "Images",\n    "apiVersion": "output.kubeadm.k8s.io/v1alpha3",\n'
_FORMATS = {
    "text": "".join(f"{image}\n" for image in _IMAGES),
    "json": "{\n" + _HEAD + '    "images": [\n' + ",\n".join(f'        "{image}"' for image in _IMAGES) + "\n    ]\n}\n",
    "yaml": "apiVersion: output.kubeadm.k8s.io/v1alpha3\nimages:\n" + "".join(f"- {image}\n" for image in _IMAGES) + "kind: Images\n",
    "kyaml": '---\n{\n  kind: "Images",\n  apiVersion: "output.kubeadm.k8s.io/v1alpha3",\n  images: [\n'
    + "".join(f'    "{image}",\n' for image in _IMAGES)
    + "  ],\n}\n",
}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old.yaml"
    path.write_text(_V1BETA3)
    return path


@pytest.mark.parametrize("output", sorted(_FORMATS))
def test_images_are_listed_in_the_format_asked_for(output: str, run: Run) -> None:
    outcome = run("config", "images", "list", "--kubernetes-version", "v1.35.4", "-o", output, acting_as="v1.35.4")
    assert (outcome.code, outcome.out) == (0, _FORMATS[output])


@pytest.mark.parametrize("output", ["jsonpath={.images}", "go-template", "templatefile"])
def test_templates_are_refused_with_a_sentence(output: str, run: Run) -> None:
    outcome = run("config", "images", "list", "--kubernetes-version", "v1.35.4", "-o", output)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(f'error: could not construct output printer: the output format "{output}" needs templates')


def test_kyaml_came_with_1_35(run: Run) -> None:
    outcome = run("config", "images", "list", "--kubernetes-version", "v1.34.10", "-o", "kyaml", acting_as="v1.34.10")
    assert outcome.code == 1
    assert 'unable to match a printer suitable for the output format "kyaml"' in outcome.err


def test_a_file_beats_the_flags_of_images_list(run: Run, old: Path) -> None:
    outcome = run("config", "images", "list", "--config", str(old), "--image-repository", "example.org")
    assert outcome.out == _FORMATS["text"]


def test_migrate_prints_the_new_file(run: Run, old: Path) -> None:
    outcome = run("config", "migrate", "--old-config", str(old))
    assert outcome.code == 0
    assert outcome.out == (
        'apiServer:\n  extraArgs:\n  - name: v\n    value: "4"\n'
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.35.4\n"
    )


def test_migrate_says_what_it_dropped_on_standard_error(run: Run, old: Path) -> None:
    """The KEP's step from v1beta2: useHyperKubeImage is gone."""
    old.write_text("apiVersion: kubeadm.k8s.io/v1beta2\nkind: ClusterConfiguration\nuseHyperKubeImage: true\n")
    outcome = run("config", "migrate", "--old-config", str(old))
    assert outcome.code == 0
    assert "useHyperKubeImage" in outcome.err
    assert "useHyperKubeImage" not in outcome.out


def test_migrate_writes_the_new_file(run: Run, old: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.yaml"
    outcome = run("config", "migrate", "--old-config", str(old), "--new-config", str(new))
    assert (outcome.code, outcome.out) == (0, "")
    assert new.read_text() == run("config", "migrate", "--old-config", str(old)).out
    assert new.stat().st_mode & 0o777 == 0o644


def test_migrate_may_replace_the_file_that_it_reads(run: Run, old: Path) -> None:
    expected = run("config", "migrate", "--old-config", str(old)).out
    assert run("config", "migrate", "--old-config", str(old), "--new-config", str(old)).code == 0
    assert old.read_text() == expected


# kubeadm writes with os.WriteFile (cmd/kubeadm/app/cmd/config.go, 1.35.4): it follows links, and writes into what is there.
def test_migrate_writes_through_what_is_not_a_regular_file(run: Run, old: Path, tmp_path: Path) -> None:
    expected = run("config", "migrate", "--old-config", str(old)).out
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for name in (pipe, link):
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            assert run("config", "migrate", "--old-config", str(old), "--new-config", str(name)).code == 0
            assert os.read(reader, 1 << 16).decode() == expected
        finally:
            os.close(reader)
    assert pipe.is_fifo()
    assert link.is_symlink()


def test_migrate_can_write_to_standard_output_by_its_name(run: Run, old: Path, tmp_path: Path) -> None:
    """As /dev/stdout is; a link of our own, since a defect here would replace that of the machine."""
    expected = run("config", "migrate", "--old-config", str(old)).out
    link = tmp_path / "stdout"
    link.symlink_to("/proc/self/fd/1")
    command = [sys.executable, "-m", "slipway", "config", "migrate", "--old-config", str(old), "--new-config", str(link)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == expected


def test_migrate_follows_a_link_to_the_file_that_it_writes(run: Run, old: Path, tmp_path: Path) -> None:
    expected = run("config", "migrate", "--old-config", str(old)).out
    link = tmp_path / "folder" / "link.yaml"
    link.parent.mkdir()
    link.symlink_to("../old.yaml")
    assert run("config", "migrate", "--old-config", str(link), "--new-config", str(link)).code == 0
    assert link.is_symlink()
    assert old.read_text() == expected


def test_a_new_file_that_cannot_be_written_is_a_sentence(run: Run, old: Path) -> None:
    outcome = run("config", "migrate", "--old-config", str(old), "--new-config", f"{old}/new.yaml")
    assert outcome.code == 1
    assert outcome.err.startswith(f'error: failed to write the new configuration to the file "{old}/new.yaml": ')


def test_strict_compat_migrates_as_kubeadm_does(run: Run, old: Path) -> None:
    """kubeadm writes defaults into the file; ours does not unless asked to be exact."""
    exact = run("config", "migrate", "--old-config", str(old), "--strict-compat", acting_as="v1.35.4").out
    assert "caCertificateValidityPeriod: 87600h0m0s\n" in exact
    assert "caCertificateValidityPeriod" not in run("config", "migrate", "--old-config", str(old)).out


def test_validate_says_ok(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "kubeadm.yaml"
    path.write_text("apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.35.4\n")
    outcome = run("config", "validate", "--config", str(path))
    assert (outcome.code, outcome.out, outcome.err) == (0, "ok\n", "")


def test_a_file_that_is_not_text_is_a_sentence(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "kubeadm.yaml"
    path.write_bytes(b"\xff\xfe")
    outcome = run("config", "validate", "--config", str(path))
    assert outcome.code == 1
    assert f'unable to read config from "{path}" : it is not UTF-8 text' in outcome.err


def test_files_are_seen_from_rootfs(run: Run, old: Path, tmp_path: Path) -> None:
    outcome = run("config", "migrate", "--rootfs", str(tmp_path), "--old-config", "/old.yaml", "--new-config", "/new.yaml")
    assert outcome.code == 0
    assert (tmp_path / "new.yaml").exists()


def test_the_schema_is_json(run: Run) -> None:
    assert json.loads(run("config", "schema").out)["$schema"].startswith("https://json-schema.org/")


@pytest.mark.parametrize("command", [("validate", "--config"), ("migrate", "--old-config"), ("images", "list", "--config")])
def test_a_file_without_end_is_refused(command: tuple[str, ...], run: Run) -> None:
    outcome = run("config", *command, "/dev/zero")
    assert outcome.code == 1
    assert 'unable to read config from "/dev/zero" : it is larger than 1048576 bytes, the most that is read\n' in outcome.err


def test_a_pipe_is_read(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(_V1BETA3,))
    writer.start()
    outcome = run("config", "validate", "--config", str(path), "--allow-deprecated-api")
    writer.join()
    assert (outcome.code, outcome.out) == (0, "ok\n")


def test_very_many_feature_gates_are_told_in_a_few_lines(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "kubeadm.yaml"
    gates = "".join(f"  A{number}: true\n" for number in range(9_000))
    path.write_text(f"apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.35.4\nfeatureGates:\n{gates}")
    outcome = run("config", "validate", "--config", str(path))
    assert outcome.code == 1
    assert "A0 is not a valid feature name." in outcome.err
    assert re.search(r", and 89[0-9]{2} more\]\n", outcome.err)
    assert len(outcome.err) < 200_000
