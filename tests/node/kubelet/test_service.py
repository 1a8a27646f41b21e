"""The kubelet after its TLS bootstrap: its kubeconfig, and the service that it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from support.machine import Machine

from slipway.api.kubeadm.internal import Arg
from slipway.api.machinery.errors import OperatorError
from slipway.kube import kubeconfig
from slipway.node import paths
from slipway.node.kubelet import files, service

if TYPE_CHECKING:
    from pathlib import Path

    from node.conftest import Lines, MakeContext

    from slipway.host.interface import CommandResult
    from slipway.node.context import NodeContext

SHOW = "systemctl show kubelet --timestamp=unix --property=LoadState,ActiveState,NeedDaemonReload,ActiveEnterTimestamp"
CURRENT = "/var/lib/kubelet/pki/kubelet-client-current.pem"


@pytest.fixture
def ctx(make_context: MakeContext, tmp_path: Path) -> NodeContext:
    context = make_context()
    context.host = Machine(tmp_path)
    document = kubeconfig.document(
        server="https://x:6443",
        cluster="c",
        user="system:node:n1",
        ca=b"CA",
        credentials={"client-certificate-data": "YQ==", "client-key-data": "Yg=="},
    )
    context.host.write(paths.KUBELET_CONF, kubeconfig.text(document, context.release).encode())
    return context


def user(ctx: NodeContext) -> dict[str, str]:
    found: dict[str, str] = yaml.safe_load(ctx.host.read(paths.KUBELET_CONF))["users"][0]["user"]
    return found


def test_kubelet_conf_follows_the_rotating_certificate(ctx: NodeContext) -> None:
    ctx.host.write(CURRENT, b"PEM")
    files.enable_client_cert_rotation(ctx)
    assert user(ctx) == {"client-certificate": CURRENT, "client-key": CURRENT}


def test_the_kubelets_own_folder_of_certificates_counts(ctx: NodeContext) -> None:
    ctx.config.node_registration.kubelet_extra_args = [Arg(name="cert-dir", value="/certs")]
    ctx.host.write("/certs/kubelet-client-current.pem", b"PEM")
    files.enable_client_cert_rotation(ctx)
    assert user(ctx)["client-key"] == "/certs/kubelet-client-current.pem"


def test_without_rotation_nothing_changes(ctx: NodeContext, lines: Lines) -> None:
    before = ctx.host.read(paths.KUBELET_CONF)
    files.enable_client_cert_rotation(ctx)
    assert ctx.host.read(paths.KUBELET_CONF) == before
    assert lines.said == []


@pytest.mark.parametrize("text", ["current-context: x\n", "current-context: c\ncontexts:\n- name: c\n  context: {user: gone}\n"])
def test_a_broken_kubelet_conf_is_refused(text: str, ctx: NodeContext) -> None:
    ctx.host.write(CURRENT, b"PEM")
    ctx.host.write(paths.KUBELET_CONF, text.encode())
    with pytest.raises(OperatorError, match=r"kubelet.conf"):
        files.enable_client_cert_rotation(ctx)


class Systemd(Machine):
    """Remembers the commands that it was given."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.programs = {SHOW: "LoadState=loaded\nActiveState=active\nNeedDaemonReload=no\nActiveEnterTimestamp=@4102444800\n"}
        self.commands: list[str] = []

    def run(self, *command: str) -> CommandResult:
        self.commands.append(" ".join(command))
        return super().run(*command)


def test_a_restart_reads_units_anew_that_changed(ctx: NodeContext, tmp_path: Path) -> None:
    ctx.host = host = Systemd(tmp_path)
    host.programs[SHOW] = "LoadState=loaded\nActiveState=inactive\nNeedDaemonReload=yes\nActiveEnterTimestamp=\n"
    service.restart(ctx)
    assert [command for command in host.commands if command != SHOW] == ["systemctl daemon-reload", "systemctl restart kubelet"]


def test_a_restart_leaves_units_alone_that_did_not_change(ctx: NodeContext, tmp_path: Path) -> None:
    ctx.host = host = Systemd(tmp_path)
    service.restart(ctx)
    assert [command for command in host.commands if command != SHOW] == ["systemctl restart kubelet"]


@pytest.mark.parametrize(("written", "expected"), [(4102444799, True), (4102444800, False), (4102444801, False)])
def test_a_kubelet_runs_with_its_files_that_was_started_after_them(written: int, expected: bool, ctx: NodeContext, tmp_path: Path) -> None:
    ctx.host = host = Systemd(tmp_path)
    host.programs[f"stat --format=%Y {ctx.host.location(paths.KUBELET_CONF)}"] = f"{written}\n"
    assert service.runs_with_its_files(ctx) is expected


def test_a_kubelet_that_cannot_be_stopped_is_only_warned_of(ctx: NodeContext, tmp_path: Path, lines: Lines) -> None:
    ctx.host = host = Systemd(tmp_path)
    host.failing = {"systemctl stop kubelet"}
    service.stop(ctx)
    assert lines.warned == ["[kubelet-start] WARNING: unable to stop the kubelet service: exit status 1"]


def test_a_machine_without_systemd_is_told_so(ctx: NodeContext, lines: Lines) -> None:
    service.stop(ctx)
    assert lines.said == [
        "[kubelet-start] No supported init system detected, can't keep the kubelet from running while its files are written."
    ]
