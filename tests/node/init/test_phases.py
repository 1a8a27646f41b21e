"""``init`` as a whole, without root and without a cluster; what it prints is compared in the golden cases."""

from __future__ import annotations

import base64
import io
import json
from typing import TYPE_CHECKING

import pytest
from support.machine import Machine

from slipway.api.kubeadm.internal import DNS, ClusterConfiguration, Proxy
from slipway.api.machinery.errors import OperatorError, PreflightError
from slipway.host.progress import JsonProgress
from slipway.node import init
from slipway.node.init import InitOptions
from slipway.node.init.steps import skipped_phases

if TYPE_CHECKING:
    from pathlib import Path

    from node.conftest import Lines

pytestmark = [pytest.mark.upstream_table, pytest.mark.recorded]

CONFIG = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration:
  name: n1
  criSocket: unix:///run/containerd/containerd.sock
localAPIEndpoint:
  advertiseAddress: 10.0.0.5
bootstrapTokens:
- token: abcdef.0123456789abcdef
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.3
encryptionAlgorithm: ECDSA-P256
"""
DRY = {"dryRun": True, "nodeRegistration.ignorePreflightErrors": ["all"]}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "root", {"KUBEADM_INIT_DRYRUN_DIR": str(tmp_path / "dry")})


def options(**fields: object) -> InitOptions:
    fields = {"text": CONFIG, "overrides": DRY, **fields}
    return InitOptions(**fields)  # type: ignore[arg-type]


# Skipped phases of the command line, dns.disabled, proxy.disabled; then what is skipped, and what is disabled in the end.
# cmd/init_test.go, TestManageSkippedAddons
@pytest.mark.parametrize(
    ("asked", "disabled", "skipped", "in_the_end"),
    [
        ((), (False, False), (), (False, False)),
        (("addon",), (False, False), ("addon",), (True, True)),
        (("addon/coredns",), (False, False), ("addon/coredns",), (True, False)),
        (("addon/kube-proxy",), (False, False), ("addon/kube-proxy",), (False, True)),
        ((), (True, False), ("addon/coredns",), (True, False)),
        ((), (False, True), ("addon/kube-proxy",), (False, True)),
        ((), (True, True), ("addon/coredns", "addon/kube-proxy"), (True, True)),
        (("addon",), (True, True), ("addon",), (True, True)),
        (("addon/coredns",), (True, True), ("addon/coredns", "addon/kube-proxy"), (True, True)),
        (("certs",), (True, False), ("certs", "addon/coredns"), (True, False)),
    ],
)
def test_a_disabled_addon_is_skipped_and_a_skipped_one_disabled(
    asked: tuple[str, ...], disabled: tuple[bool, bool], skipped: tuple[str, ...], in_the_end: tuple[bool, bool]
) -> None:
    cluster = ClusterConfiguration(dns=DNS(disabled=disabled[0]), proxy=Proxy(disabled=disabled[1]))
    assert skipped_phases(cluster, asked) == skipped
    assert (cluster.dns.disabled, cluster.proxy.disabled) == in_the_end


def test_a_dry_run_changes_nothing_on_the_machine(machine: Machine, lines: Lines, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    init.run(options(), machine, lines)
    assert list((tmp_path / "root").iterdir()) == []
    assert (tmp_path / "dry" / "admin.conf").is_file()


def test_a_dry_run_tells_a_program_how_others_join(machine: Machine, lines: Lines) -> None:
    key = "ab" * 32
    made = init.run(options(upload_certs=True, overrides={**DRY, "certificateKey": key}), machine, lines)
    assert (made.node_name, made.kubernetes_version, made.endpoint) == ("n1", "v1.36.3", "https://10.0.0.5:6443")
    assert made.tokens == ("abcdef.0123456789abcdef",)
    assert made.certificate_key == key
    (pin,) = made.ca_pins
    joining = f"kubeadm join 10.0.0.5:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash {pin}"
    assert made.worker_join_command == joining
    # Without a controlPlaneEndpoint there is no place that would lead to several control planes.
    assert made.control_plane_join_command == ""
    assert set(made.seconds) == {event.phase for event in lines.events if event.event == "finished"}


def test_one_phase_says_nothing_of_what_it_did_not_make(machine: Machine, lines: Lines) -> None:
    made = init.run(options(overrides={}, only="certs/ca"), machine, lines)
    assert list(made.seconds) == ["certs/ca"]
    assert (made.tokens, made.ca_pins, made.worker_join_command) == ((), (), "")


def test_a_manifest_that_says_the_same_is_not_written_again(machine: Machine, lines: Lines, tmp_path: Path) -> None:
    manifest = tmp_path / "root/etc/kubernetes/manifests/kube-scheduler.yaml"
    init.run(options(overrides={}, only="control-plane/scheduler"), machine, lines)
    before = manifest.stat()
    init.run(options(overrides={}, only="control-plane/scheduler"), machine, lines)
    assert (manifest.stat().st_ino, manifest.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_phases_that_need_no_cluster_work_for_real(machine: Machine, lines: Lines, tmp_path: Path) -> None:
    for phase in ("certs", "kubeconfig", "etcd", "control-plane"):
        init.run(options(overrides={}, only=phase), machine, lines)
    folder = tmp_path / "root/etc/kubernetes"
    assert (folder / "pki/apiserver.crt").is_file()
    assert (folder / "super-admin.conf").is_file()
    assert sorted(path.name for path in (folder / "manifests").iterdir()) == [
        "etcd.yaml",
        "kube-apiserver.yaml",
        "kube-controller-manager.yaml",
        "kube-scheduler.yaml",
    ]


@pytest.mark.parametrize("phase", ["upload-config/kubeadm", "mark-control-plane", "bootstrap-token", "addon/coredns"])
def test_phases_that_need_a_cluster_say_so(phase: str, machine: Machine, lines: Lines) -> None:
    with pytest.raises(
        OperatorError, match=rf"^error execution phase {phase}: failed to load admin kubeconfig: open .*/admin.conf: no such"
    ):
        init.run(options(overrides={}, only=phase), machine, lines)


@pytest.mark.parametrize("phase", ["upload-config/kubelet", "mark-control-plane", "bootstrap-token", "addon/kube-proxy"])
def test_a_phase_alone_needs_an_admin_conf_even_in_a_dry_run(phase: str, machine: Machine, lines: Lines, tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=rf"failed to load the kubeconfig {tmp_path}/dry/admin.conf"):
        init.run(options(only=phase), machine, lines)


def test_printing_an_addon_needs_neither_cluster_nor_files(machine: Machine, lines: Lines, tmp_path: Path) -> None:
    init.run(options(overrides={}, only="addon/coredns", print_manifest=True), machine, lines)
    kinds = [line.removeprefix("kind: ") for text in lines.shown for line in text.splitlines() if line.startswith("kind: ")]
    # dns.go, coreDNSAddon: the order in which the real one prints them.
    assert kinds == ["Deployment", "ConfigMap", "Service", "ClusterRole", "ClusterRoleBinding", "ServiceAccount"]
    assert not (tmp_path / "dry").exists()


def test_the_join_command_cannot_be_shown_without_the_token(machine: Machine, lines: Lines) -> None:
    with pytest.raises(OperatorError, match="unresolved dependencies"):
        init.run(options(overrides={**DRY, "skipPhases": ["bootstrap-token"]}), machine, lines)


def test_failed_checks_end_the_run(machine: Machine, lines: Lines, tmp_path: Path) -> None:
    machine.busy = {6443}
    with pytest.raises(PreflightError, match="error execution phase preflight: preflight checks failed"):
        init.run(options(overrides={"dryRun": True}), machine, lines)
    assert "\t[ERROR Port-6443]: Port 6443 is in use" in lines.warned[-1]
    assert not (tmp_path / "dry").exists()


def test_someone_else_than_root_is_told_before_anything_else(machine: Machine, lines: Lines) -> None:
    machine.uid = 1000
    with pytest.raises(PreflightError):
        init.run(options(overrides={"dryRun": True}), machine, lines)
    assert "[ERROR IsPrivilegedUser]" in lines.warned[-1]
    assert "NumCPU" not in lines.warned[-1]


def test_checks_look_at_the_machine_and_not_at_the_files_of_an_earlier_dry_run(machine: Machine, lines: Lines) -> None:
    for _ in range(2):
        init.run(options(), machine, lines)
    assert not [line for line in lines.warned if "FileAvailable" in line]


def test_external_certificates_cannot_be_uploaded(machine: Machine, lines: Lines) -> None:
    init.run(options(overrides={}, only="certs"), machine, lines)
    machine.remove("/etc/kubernetes/pki/front-proxy-ca.key")
    with pytest.raises(OperatorError, match="can't use upload-certs with an external CA or an external front-proxy CA"):
        init.run(options(upload_certs=True), machine, lines)


def test_an_external_ca_needs_all_kubeconfigs(machine: Machine, lines: Lines) -> None:
    init.run(options(overrides={}, only="certs"), machine, lines)
    machine.remove("/etc/kubernetes/pki/ca.key")
    with pytest.raises(OperatorError, match=r"file does not exists or it is not valid"):
        init.run(options(), machine, lines)


def test_tokens_and_keys_can_be_kept_out_of_the_output(machine: Machine, lines: Lines) -> None:
    overrides = {**DRY, "controlPlaneEndpoint": "api.example.org", "certificateKey": "e6" * 32}
    init.run(options(overrides=overrides, upload_certs=True, skip_token_print=True, skip_certificate_key_print=True), machine, lines)
    farewell = lines.shown[-1]
    assert "--token <value withheld> \\" in farewell
    assert "--control-plane --certificate-key <value withheld>" in farewell
    assert not [text for text in (*lines.said, farewell) if "abcdef.0123456789abcdef" in text or "e6" * 32 in text]


SECRETS = {**DRY, "controlPlaneEndpoint": "api.example.org", "certificateKey": "e6" * 32}


def test_events_have_no_secrets_and_say_so(machine: Machine) -> None:
    out = io.StringIO()
    init.run(options(overrides=SECRETS, upload_certs=True), machine, JsonProgress(out))
    secret = b"0123456789abcdef"
    for text in ("abcdef.0123456789abcdef", "e6" * 32, secret.decode(), base64.b64encode(secret).decode()):
        assert text not in out.getvalue()
    marked = [event["text"] for event in map(json.loads, out.getvalue().splitlines()) if event.get("secret")]
    assert [text for text in marked if "<value withheld>" not in text] == []
    assert "[upload-certs] Using certificate key:\n<value withheld>" in marked
    assert "[bootstrap-token] Using token: <value withheld>" in marked
    assert "--token <value withheld> \\" in marked[-1]


def test_events_have_the_secrets_that_were_asked_for(machine: Machine) -> None:
    out = io.StringIO()
    init.run(options(overrides=SECRETS, upload_certs=True), machine, JsonProgress(out, show_secrets=True))
    marked = [event["text"] for event in map(json.loads, out.getvalue().splitlines()) if event.get("secret")]
    assert "[bootstrap-token] Using token: abcdef.0123456789abcdef" in marked
    assert f"--certificate-key {'e6' * 32}" in marked[-1]


def test_events_tell_phase_by_phase_what_happened(machine: Machine) -> None:
    out = io.StringIO()
    init.run(options(overrides={**DRY, "skipPhases": ["addon/coredns"]}), machine, JsonProgress(out))
    events = [json.loads(line) for line in out.getvalue().splitlines()]
    finished = [event["phase"] for event in events if event["event"] == "finished"]
    assert finished[:3] == ["preflight", "certs", "certs/ca"]
    assert finished[-1] == "show-join-command"
    assert [event["phase"] for event in events if event["event"] == "skipped"] == ["addon/coredns"]
    assert all(event["seconds"] >= 0 for event in events if "phase" in event)
