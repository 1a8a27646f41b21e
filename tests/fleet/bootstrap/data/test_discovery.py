"""Discovery of joining nodes.  Rows of Cluster API's kubeadmconfig_controller_test.go are among them."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from slipway.fleet.bootstrap.data import discovery
from slipway.fleet.bootstrap.data.discovery import EndpointUnknownError

pytestmark = pytest.mark.upstream_table

HASHES = ["sha256:" + "0" * 64]


def test_everything_but_the_token_is_filled_in() -> None:
    assert discovery.with_endpoint({}, "example.com:6443", HASHES) == {
        "bootstrapToken": {"caCertHashes": HASHES, "apiServerEndpoint": "example.com:6443"}
    }


@pytest.mark.parametrize(
    "given",
    [
        {"apiServerEndpoint": "bar.com:6443"},
        {"token": "abcdef.0123456789abcdef"},
        {"caCertHashes": ["...."]},
        {"unsafeSkipCAVerification": True},
    ],
)
def test_what_was_said_stays(given: dict[str, Any]) -> None:
    made = discovery.with_endpoint({"bootstrapToken": given, "tlsBootstrapToken": "x"}, "example.com:6443", HASHES)
    assert given.items() <= made["bootstrapToken"].items()
    assert made["tlsBootstrapToken"] == "x"


def test_without_an_endpoint_there_is_nothing_to_do_but_wait() -> None:
    with pytest.raises(EndpointUnknownError):
        discovery.with_endpoint({}, "", HASHES)
    assert discovery.with_endpoint({"bootstrapToken": {"apiServerEndpoint": "bar.com:6443"}}, "", HASHES)
    with pytest.raises(EndpointUnknownError):
        discovery.with_file({"file": {"kubeConfigPath": "/k", "kubeConfig": {"user": {"exec": {"command": "/b"}}}}}, "", b"ca")


def test_a_file_that_the_host_has_already_needs_nothing() -> None:
    given = {"file": {"kubeConfigPath": "/tmp/kubeconfig"}}
    assert discovery.with_file(given, "", b"ca") == given
    assert discovery.kubeconfig_file(given) is None


def test_a_kubeconfig_with_a_plugin_is_written_as_upstream_does() -> None:
    given = {
        "file": {
            "kubeConfigPath": "/bootstrap-kubeconfig.yaml",
            "kubeConfig": {"user": {"exec": {"command": "/usr/bin/bootstrap", "env": [{"name": "ENV_TEST", "value": "value"}]}}},
        }
    }
    assert discovery.kubeconfig_file(discovery.with_file(given, "example.com:6443", b"ca-data")) == {
        "path": "/bootstrap-kubeconfig.yaml",
        "owner": "root:root",
        "permissions": "0640",
        "content": """clusters:
- cluster:
    certificate-authority-data: Y2EtZGF0YQ==
    server: https://example.com:6443
  name: default
contexts:
- context:
    cluster: default
    user: default
  name: default
current-context: default
users:
- name: default
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      args: null
      command: /usr/bin/bootstrap
      env:
      - name: ENV_TEST
        value: value
      interactiveMode: Never
      provideClusterInfo: false
""",
    }


def test_server_and_ca_of_the_user_stay() -> None:
    cluster = {
        "server": "https://lb:443",
        "certificateAuthorityData": b64encode(b"own").decode(),
        "tlsServerName": "api",
        "proxyURL": "http://p",
    }
    user = {"authProvider": {"name": "oidc", "config": {"a": "b"}}}
    given = {"file": {"kubeConfigPath": "/k", "kubeConfig": {"cluster": cluster, "user": user}}}
    made = discovery.with_file(given, "example.com:6443", b"ca-data")
    assert made == given
    file = discovery.kubeconfig_file(made)
    assert file is not None
    for line in ("server: https://lb:443", "tls-server-name: api", "proxy-url: http://p", "auth-provider:", "name: oidc"):
        assert line in file["content"]
