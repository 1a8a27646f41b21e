"""The ConfigMap cluster-info, its signature and its pin."""

from __future__ import annotations

import subprocess
import sys
from base64 import b64encode

import pytest
from kube import authorities

from slipway.api.machinery.version import Version
from slipway.api.releases import release_for
from slipway.node.cluster import imagined
from slipway.workload import clusterinfo

TOKEN = "abcdef.abcdef0123456789"


# util/apiclient/dryrun.go of each release holds a cluster-info with its signature by this token.
@pytest.mark.parametrize(
    ("version", "signature"),
    [
        ("1.33.13", "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9..wUZ0q9o0VK1RWFptmSBOEem2bXHWrHyxrposHg0mb1w"),
        ("1.34.10", "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9..rh3cVKiU2mdt3CqHzC81sNE-4WQLRHMtXduHWfSbrIM"),
        ("1.35.4", "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9..rh3cVKiU2mdt3CqHzC81sNE-4WQLRHMtXduHWfSbrIM"),
        ("1.36.3", "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9..rh3cVKiU2mdt3CqHzC81sNE-4WQLRHMtXduHWfSbrIM"),
    ],
)
def test_a_token_signs_the_kubeconfig_as_the_controller_manager_does(version: str, signature: str) -> None:
    ca_data = b64encode(imagined.CA_CERTIFICATE.encode()).decode()
    text = clusterinfo.kubeconfig(imagined.SERVER, ca_data, release_for(Version.parse(version)))
    assert clusterinfo.signature(text, TOKEN) == signature


def test_another_secret_signs_differently() -> None:
    assert clusterinfo.signature("text", TOKEN) != clusterinfo.signature("text", "abcdef.abcdef0123456780")


def test_a_pin_is_the_hash_of_the_public_key() -> None:
    # discovery/token/token.go names the pin of this certificate.
    assert clusterinfo.public_key_pins(imagined.CA_CERTIFICATE.encode()) == [
        "sha256:3b793efefe27a19f93b0fbe6e637e9c41d0dde8a377d6ab1c0f656bf1136dd8a"
    ]


def test_every_certificate_of_a_bundle_has_a_pin() -> None:
    assert len(clusterinfo.public_key_pins(imagined.CA_CERTIFICATE.encode() * 2)) == 2


@pytest.mark.filterwarnings("ignore:Parsed a serial number")
def test_a_ca_of_cluster_api_with_the_serial_number_zero_has_a_pin_without_a_warning() -> None:
    program = "import sys; from slipway.node import clusterinfo; print(clusterinfo.public_key_pins(sys.stdin.buffer.read())[0][:7])"
    done = subprocess.run([sys.executable, "-c", program], input=authorities.cluster_api().trusted, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"sha256:\n", b"")
