"""The ConfigMap cluster-info, and its signature."""

from __future__ import annotations

from base64 import b64encode

import pytest

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
