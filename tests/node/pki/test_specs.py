"""Certificates, against those of the real kubeadm of four releases, field by field."""

from __future__ import annotations

import shutil
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from cases.certificates import Machine, cases_and_versions, described_tree, read_golden

from slipway.api.kubeadm.internal import APIServer, InitConfiguration
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.api.releases import release_for
from slipway.node.pki import specs

pytestmark = pytest.mark.recorded

RELEASE = release_for(Version(1, 36, 3))


@pytest.mark.filterwarnings("ignore:Attribute's length must be")
@pytest.mark.parametrize(("name", "version"), cases_and_versions())
def test_certificates_and_kubeconfigs_are_those_of_the_real_kubeadm(name: str, version: str, tmp_path: Path) -> None:
    machine, golden = Machine(tmp_path, name, version), read_golden(name, version)
    machine.run("certs all")
    assert machine.said() == golden["certs"]
    machine.host.clock += timedelta(seconds=2)
    machine.run("kubeconfig all")
    assert machine.said() == golden["kubeconfig"]
    made = described_tree(tmp_path)
    assert made.keys() == golden["files"].keys()
    for path, described in made.items():
        assert described == golden["files"][path], path

    machine.host.clock += timedelta(hours=1)
    machine.run("certs all")
    assert machine.said() == golden["certs again"]
    machine.run("kubeconfig all")
    assert machine.said() == golden["kubeconfig again"]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
@pytest.mark.parametrize("name", ["default", "ecdsa-p384", "ipv6"])
def test_openssl_verifies_what_we_sign(name: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, name)
    machine.run("certs all")
    folder = tmp_path / "etc/kubernetes/pki"
    for spec in specs.CERTIFICATES:
        ca = specs.spec_of(spec.ca or spec.name)
        command = ["openssl", "verify", "-x509_strict", "-CAfile", f"{folder}/{ca.base_name}.crt", f"{folder}/{spec.base_name}.crt"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_name_in_the_configuration_twice_is_once_in_the_certificate() -> None:
    config = InitConfiguration()
    config.node_registration.name = "cp-1"
    config.local_api_endpoint.advertise_address = "10.0.0.1"
    config.cluster.networking.service_subnet = "10.96.0.0/12"
    config.cluster.api_server = APIServer(cert_sans=["b.example", "a.example", "cp-1", "010.0.0.1", "::ffff:10.0.0.7", "10.0.0.7"])
    made = specs.profile(specs.spec_of("apiserver"), config, RELEASE)
    assert made.dns_names == ("a.example", "b.example", "cp-1", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
    assert made.addresses == ("10.96.0.1", "10.0.0.1", "10.0.0.7")


@pytest.mark.parametrize(
    ("address", "subnet", "node", "phrase"),
    [
        ("", "10.96.0.0/12", "cp-1", "localAPIEndpoint.advertiseAddress"),
        ("10.0.0", "10.96.0.0/12", "cp-1", "localAPIEndpoint.advertiseAddress"),
        ("10.0.0.1", "10.96.0.0/33", "cp-1", "networking.serviceSubnet"),
        ("10.0.0.1", "10.96.0.1/32", "cp-1", "networking.serviceSubnet"),
    ],
)
def test_a_configuration_that_no_certificate_can_be_made_of_is_named(address: str, subnet: str, node: str, phrase: str) -> None:
    config = InitConfiguration()
    config.node_registration.name = node
    config.local_api_endpoint.advertise_address = address
    config.cluster.networking.service_subnet = subnet
    with pytest.raises(OperatorError, match=phrase):
        specs.profile(specs.spec_of("apiserver"), config, RELEASE)


def test_etcd_certificates_need_a_node_name() -> None:
    config = InitConfiguration()
    config.local_api_endpoint.advertise_address = "10.0.0.1"
    with pytest.raises(OperatorError, match=r"nodeRegistration\.name"):
        specs.profile(specs.spec_of("etcd-peer"), config, RELEASE)
