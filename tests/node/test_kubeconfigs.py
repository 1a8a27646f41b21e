"""Kubeconfig files of users, against those of the real kubeadm; the control plane's are in test_certificates and test_pki."""

from __future__ import annotations

import shlex
from datetime import timedelta
from pathlib import Path

import cases.certificate_state as state
import pytest
from cases.certificates import Machine, cases_with_fast_keys, described_tree, read_golden

from slipway.api.machinery.duration import Duration
from slipway.api.machinery.errors import OperatorError
from slipway.credentials.profile import CLIENT_AUTH
from slipway.host.dryrun import DryRunHost
from slipway.node import kubeconfigs

pytestmark = pytest.mark.recorded


def _user(machine: Machine, command: str) -> str:
    words = shlex.split(command)
    options = dict(zip(words[::2], words[1::2], strict=True))
    return kubeconfigs.user(
        machine.ctx,
        client_name=options["--client-name"],
        organizations=tuple(options["--org"].split(",")) if "--org" in options else (),
        token=options.get("--token", ""),
        validity=Duration.parse(options.get("--validity-period", "8760h")),
    )


@pytest.mark.parametrize(("name", "version"), cases_with_fast_keys())
def test_kubeconfigs_of_users_are_those_of_the_real_kubeadm(name: str, version: str, tmp_path: Path) -> None:
    machine, golden = Machine(tmp_path, name, version), read_golden(name, version)["users"]
    machine.run("certs ca")
    machine.host.clock += timedelta(seconds=2)
    for command in state.USERS:
        # The command ends the text with a line of its own.
        (tmp_path / "user.conf").write_text(_user(machine, command) + "\n")
        assert described_tree(tmp_path)["user.conf"][1:] == golden[command]["user.conf"], command


def test_a_long_validity_is_warned_of(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.run("certs ca")
    kubeconfigs.user(machine.ctx, client_name="jane", validity=Duration.of(hours=8761))
    assert machine.warned() == [
        "WARNING: the specified certificate validity period 8761h0m0s is longer than the default duration 8760h0m0s, "
        "this may increase security risks."
    ]


@pytest.mark.parametrize("token", ["", "abc.def"])
def test_a_kubeconfig_needs_the_key_of_the_ca(token: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.run("certs ca")
    (tmp_path / "etc/kubernetes/pki/ca.key").unlink()
    with pytest.raises(OperatorError, match="the CA files couldn't be loaded: couldn't load the private key file"):
        kubeconfigs.user(machine.ctx, client_name="jane", token=token)


def test_another_port_in_the_endpoint_is_warned_of_once(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "endpoint-name")
    machine.run("certs ca")
    machine.run("kubeconfig all")
    assert machine.warned() == ["[endpoint] WARNING: port specified in controlPlaneEndpoint overrides bindPort in the controlplane address"]


def test_a_dry_run_with_an_external_ca_copies_the_files_that_are_there(tmp_path: Path) -> None:
    real, dry = tmp_path / "real", tmp_path / "dry"
    Machine(real).run("certs all")
    Machine(real).run("kubeconfig all")
    (real / "etc/kubernetes/pki/ca.key").unlink()
    machine = Machine(real)
    machine.ctx.host = DryRunHost(machine.host, str(dry), ("/etc/kubernetes", "/etc/kubernetes/pki"))
    machine.run("kubeconfig all")
    assert machine.said()[0] == f'[kubeconfig] Using kubeconfig folder "{dry}"'
    assert (dry / "scheduler.conf").read_bytes() == (real / "etc/kubernetes/scheduler.conf").read_bytes()


def test_files_that_will_be_made_are_counted(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    names = [spec.name for spec in kubeconfigs.KUBECONFIGS]
    assert kubeconfigs.missing(machine.ctx, names) == 5
    machine.run("certs all")
    machine.run("kubeconfig admin")
    assert kubeconfigs.missing(machine.ctx, names) == 4
    (tmp_path / "etc/kubernetes/pki/ca.key").unlink()
    assert kubeconfigs.missing(machine.ctx, names) == 0


def test_the_kubelet_is_the_only_client_named_after_its_node(tmp_path: Path) -> None:
    config = Machine(tmp_path).ctx.config
    names = {spec.name: kubeconfigs.profile(spec, config).common_name for spec in kubeconfigs.KUBECONFIGS}
    assert names == {
        "admin": "kubernetes-admin",
        "super-admin": "kubernetes-super-admin",
        "kubelet": "system:node:cp-1",
        "controller-manager": "system:kube-controller-manager",
        "scheduler": "system:kube-scheduler",
    }
    assert all(kubeconfigs.profile(spec, config).usages == (CLIENT_AUTH,) for spec in kubeconfigs.KUBECONFIGS)
