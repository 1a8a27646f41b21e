"""Whom a joining machine trusts; rows of kubeadm's discovery/token/token_test.go and discovery/file/file_test.go (1.36.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.machine import Machine

from slipway.api.kubeadm.internal import BootstrapTokenDiscovery, Discovery, FileDiscovery
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.api.releases import release_for
from slipway.node.cluster import imagined
from slipway.node.cluster.dryrun import DryRunCluster
from slipway.node.discovery import trust

if TYPE_CHECKING:
    from pathlib import Path

    from node.conftest import Lines

pytestmark = pytest.mark.upstream_table

RELEASE = release_for(Version(1, 36, 3))
TOKEN = "123456.abcdef1234567890"
PIN = "sha256:3b793efefe27a19f93b0fbe6e637e9c41d0dde8a377d6ab1c0f656bf1136dd8a"
FILE = f"""\
apiVersion: v1
kind: Config
clusters:
- cluster:
    certificate-authority-data: LS0t
    server: {imagined.SERVER}
  name: x
"""


def found(token: str, lines: Lines, tmp_path: Path, *, signed_by: str = TOKEN, pins: tuple[str, ...] = (), tls: str = TOKEN) -> Any:
    cluster = DryRunCluster(lines, RELEASE, imagined=imagined.objects(RELEASE, signed_by), expects_cluster=True)
    by_token = BootstrapTokenDiscovery(token=token, api_server_endpoint="10.0.0.1:6443", ca_cert_hashes=list(pins))
    return trust.imagine(Discovery(bootstrap_token=by_token, tls_bootstrap_token=tls), cluster, Machine(tmp_path))


@pytest.mark.parametrize("pins", [(), (PIN,), ("sha256:" + "0" * 64, PIN), (PIN.upper().replace("SHA256", "sha256"),)])
def test_a_signed_cluster_info_with_a_pinned_authority_is_trusted(pins: tuple[str, ...], lines: Lines, tmp_path: Path) -> None:
    config = found(TOKEN, lines, tmp_path, pins=pins)
    assert config["clusters"][0]["cluster"]["server"] == imagined.SERVER
    assert config["users"] == [{"name": "tls-bootstrap-token-user", "user": {"token": TOKEN}}]


@pytest.mark.parametrize(
    ("token", "pins", "complaint"),
    [
        ("123456.abcdef1234567891", (), "failed to verify JWS signature"),
        ("999999.abcdef1234567890", (), 'token id "999999" is invalid for this cluster or it has expired'),
        (TOKEN, ("sha256:" + "0" * 64,), "cluster CA found in cluster-info ConfigMap is invalid"),
    ],
)
def test_what_is_not_signed_or_pinned_is_refused(token: str, pins: tuple[str, ...], complaint: str, lines: Lines, tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"^couldn't validate the identity of the API Server: ") as raised:
        found(token, lines, tmp_path, pins=pins)
    assert complaint in raised.value.message


def by_file(text: str | None, lines: Lines, tmp_path: Path, tls: str = "") -> Any:
    host = Machine(tmp_path)
    if text is not None:
        host.put("/discovery.conf", text)
    wanted = Discovery(file=FileDiscovery(kube_config_path="/discovery.conf"), tls_bootstrap_token=tls)
    return trust.imagine(wanted, DryRunCluster(lines, RELEASE), host)


def test_a_file_without_credentials_needs_a_token(lines: Lines, tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="could not find authentication credentials"):
        by_file(FILE, lines, tmp_path)
    assert by_file(FILE, lines, tmp_path, TOKEN)["users"][0]["user"] == {"token": TOKEN}


def test_a_file_with_credentials_is_taken_as_it_is(lines: Lines, tmp_path: Path) -> None:
    config = by_file(FILE + "users:\n- name: me\n  user: {token: x}\n", lines, tmp_path)
    assert config["users"] == [{"name": "me", "user": {"token": "x"}}]


@pytest.mark.parametrize("text", [None, "", "clusters: []", "- 1"])
def test_a_file_that_leads_nowhere_is_refused(text: str | None, lines: Lines, tmp_path: Path) -> None:
    with pytest.raises(OperatorError):
        by_file(text, lines, tmp_path, TOKEN)


def test_the_cluster_gets_its_real_name(lines: Lines, tmp_path: Path) -> None:
    config = trust.leading_to(found(TOKEN, lines, tmp_path), "lab", "https://10.0.0.6:6443")
    assert [(entry["name"], entry["cluster"]["server"]) for entry in config["clusters"]] == [("lab", "https://10.0.0.6:6443")]
    # cmd/join.go renames the cluster, not the context.
    assert config["contexts"] == [
        {"name": "tls-bootstrap-token-user@kubernetes", "context": {"cluster": "lab", "user": "tls-bootstrap-token-user"}}
    ]
    assert config["current-context"] == "tls-bootstrap-token-user@kubernetes"
