"""Where the files of a dry run go, and how they are shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.host.real import RealHost
from slipway.node import dryrun, paths

if TYPE_CHECKING:
    from pathlib import Path

    from node.conftest import Lines, MakeContext

    from slipway.node.context import NodeContext


def test_the_variable_names_the_folder(tmp_path: Path, lines: Lines) -> None:
    host = RealHost(str(tmp_path / "root"), {"KUBEADM_INIT_DRYRUN_DIR": str(tmp_path / "dry")})
    here = dryrun.host_for(host, dryrun.INIT_VARIABLE, "kubeadm-init-dryrun", lines, "/srv/pki")
    for path, name in (
        ("/etc/kubernetes/pki/etcd/ca.crt", "etcd/ca.crt"),
        ("/srv/pki/ca.crt", "ca.crt"),
        (paths.ADMIN_CONF, "admin.conf"),
        ("/etc/kubernetes/manifests/etcd.yaml", "etcd.yaml"),
        (paths.KUBELET_CONFIG, "config.yaml"),
    ):
        here.write(path, b"content")
        assert (tmp_path / "dry" / name).read_bytes() == b"content"
    assert not (tmp_path / "root").exists()
    assert lines.warned == []


def test_without_the_variable_a_new_folder_is_made_and_told(tmp_path: Path, lines: Lines) -> None:
    here = dryrun.host_for(RealHost(str(tmp_path), {}), dryrun.JOIN_VARIABLE, "kubeadm-join-dryrun", lines)
    folder = here.location(paths.KUBERNETES_DIR)
    assert re.fullmatch(rf"{tmp_path}/etc/kubernetes/tmp/kubeadm-join-dryrun\d+", folder)
    assert lines.warned == [f"Using dry-run directory {folder}. To override it, set the environment variable KUBEADM_JOIN_DRYRUN_DIR"]


def test_a_folder_that_cannot_be_made_names_the_variable(tmp_path: Path, lines: Lines) -> None:
    (tmp_path / "etc").write_text("no folder")
    with pytest.raises(OperatorError, match="set KUBEADM_INIT_DRYRUN_DIR to a folder"):
        dryrun.host_for(RealHost(str(tmp_path), {}), dryrun.INIT_VARIABLE, "kubeadm-init-dryrun", lines)


def dry_context(make_context: MakeContext, tmp_path: Path, lines: Lines) -> NodeContext:
    ctx = make_context(environment={dryrun.INIT_VARIABLE: str(tmp_path / "dry")})
    ctx.host = dryrun.host_for(ctx.host, dryrun.INIT_VARIABLE, "", lines)
    return ctx


def test_files_are_shown_under_their_real_names(make_context: MakeContext, tmp_path: Path, lines: Lines) -> None:
    ctx = dry_context(make_context, tmp_path, lines)
    for path in (paths.KUBELET_CONFIG, paths.KUBELET_FLAGS_ENV):
        ctx.host.write(path, f"{path}\n".encode())
    dryrun.show_files(ctx, control_plane=False)
    # util/dryrun/dryrun.go, PrintFilesIfDryRunning
    assert lines.said == [
        f'[dryrun] Wrote certificates and kubeconfig files to the "{tmp_path}/dry" directory',
        "[dryrun] The certificates or kubeconfig files would not be printed due to their sensitive nature",
        f'[dryrun] Please examine the "{tmp_path}/dry" directory for details about what would be written',
    ]
    assert lines.shown == [
        f'[dryrun] Would write file "{path}" with content:\n{path}\n' for path in (paths.KUBELET_CONFIG, paths.KUBELET_FLAGS_ENV)
    ]


def test_a_missing_file_fails_the_run_after_the_others_were_shown(make_context: MakeContext, tmp_path: Path, lines: Lines) -> None:
    ctx = dry_context(make_context, tmp_path, lines)
    ctx.host.write(paths.KUBELET_CONFIG, b"kind: KubeletConfiguration\n")
    with pytest.raises(OperatorError) as raised:
        dryrun.show_files(ctx, control_plane=True)
    assert f"{tmp_path}/dry/kube-scheduler.yaml" in raised.value.message
    assert len(lines.shown) == 1
