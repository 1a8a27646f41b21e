"""``reset`` in a dry run; what it prints is compared in the golden cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from node.machine import Machine

from slipway.api.machinery.errors import OperatorError, PreflightError
from slipway.node import reset
from slipway.node.reset import ResetOptions

if TYPE_CHECKING:
    from pathlib import Path

    from node.conftest import Lines

DRY = {"dryRun": True, "criSocket": "unix:///run/containerd/containerd.sock"}
ETCD = "/etc/kubernetes/manifests/etcd.yaml"
POD = "apiVersion: v1\nkind: Pod\nspec:\n  volumes:\n"


# cmd/phases/reset/removeetcdmember_test.go, TestGetEtcdDataDir
@pytest.mark.parametrize(
    ("manifest", "folder"),
    [
        (None, "/var/lib/etcd"),
        (POD + "  - hostPath: {path: /path/to/etcd, type: DirectoryOrCreate}\n    name: etcd-data\n", "/path/to/etcd"),
        (POD + "  - hostPath: {path: /etc/kubernetes/pki/etcd}\n    name: etcd-certs\n", None),
        (POD + "  - emptyDir: {}\n    name: etcd-data\n", None),
        ("", None),
    ],
)
def test_the_manifest_tells_where_etcd_keeps_its_data(manifest: str | None, folder: str | None, tmp_path: Path) -> None:
    host = Machine(tmp_path)
    if manifest is not None:
        host.put(ETCD, manifest)
    assert reset.etcd_data_dir(host) == folder


def test_an_etcd_without_a_data_folder_is_taken_for_an_external_one(tmp_path: Path, lines: Lines) -> None:
    reset.run(ResetOptions(overrides=DRY), Machine(tmp_path).put(ETCD, POD), lines)
    assert "[reset] No etcd config found. Assuming external etcd" in lines.said


def test_a_dry_run_deletes_nothing(tmp_path: Path, lines: Lines) -> None:
    host = Machine(tmp_path).put("/etc/kubernetes/admin.conf", "").put("/etc/kubernetes/pki/ca.crt", "")
    reset.run(ResetOptions(overrides=DRY), host, lines)
    assert host.exists("/etc/kubernetes/admin.conf")
    assert host.exists("/etc/kubernetes/pki/ca.crt")


def test_the_folders_are_those_of_the_configuration(tmp_path: Path, lines: Lines) -> None:
    reset.run(ResetOptions(overrides={**DRY, "certificatesDir": "/srv/pki", "cleanupTmpDir": True}), Machine(tmp_path), lines)
    assert "[dryrun] Would delete contents of directories: [/etc/kubernetes/manifests /srv/pki /etc/kubernetes/tmp]" in lines.said
    assert '[reset] WARNING: Cleaning a non-default certificates directory: "/srv/pki"' in lines.warned


def test_a_phase_alone_ends_without_instructions(tmp_path: Path, lines: Lines) -> None:
    reset.run(ResetOptions(overrides=DRY, only="cleanup-node"), Machine(tmp_path), lines)
    assert lines.shown == []


def test_only_root_may_reset(tmp_path: Path, lines: Lines) -> None:
    host = Machine(tmp_path)
    host.uid = 1000
    with pytest.raises(PreflightError):
        reset.run(ResetOptions(overrides=DRY), host, lines)


def test_a_real_reset_is_refused(tmp_path: Path, lines: Lines) -> None:
    host = Machine(tmp_path).put("/etc/kubernetes/admin.conf", "")
    with pytest.raises(OperatorError, match="add --dry-run"):
        reset.run(ResetOptions(overrides={**DRY, "dryRun": False}), host, lines)
    assert host.exists("/etc/kubernetes/admin.conf")
