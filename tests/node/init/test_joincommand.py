"""The join commands, in the bytes of kubeadm's cmd/util/join.go (1.36.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.kube import kubeconfig
from slipway.node import kubeconfigs, paths
from slipway.node.init import joincommand

if TYPE_CHECKING:
    from node.conftest import MakeContext

SERVER, PINS, TOKEN = "https://10.0.0.5:6443", ["sha256:aa"], "abcdef.0123456789abcdef"


def test_a_worker_joins_with_token_and_pin() -> None:
    assert joincommand.worker(SERVER, PINS, TOKEN) == (
        "kubeadm join 10.0.0.5:6443 --token abcdef.0123456789abcdef \\\n\t--discovery-token-ca-cert-hash sha256:aa "
    )


@pytest.mark.parametrize(
    ("key", "show", "end"),
    [
        ("", True, "--control-plane "),
        ("k", True, "--control-plane --certificate-key k"),
        ("k", False, "--control-plane --certificate-key <value withheld>"),
        ("", False, "--control-plane --certificate-key <value withheld>"),
    ],
)
def test_a_control_plane_joins_with_the_key_if_there_is_one(key: str, show: bool, end: str) -> None:
    command = joincommand.control_plane(SERVER, [*PINS, "sha256:bb"], TOKEN, key, show_certificate_key=show)
    assert command == (
        "kubeadm join 10.0.0.5:6443 --token abcdef.0123456789abcdef \\\n"
        f"\t--discovery-token-ca-cert-hash sha256:aa --discovery-token-ca-cert-hash sha256:bb \\\n\t{end}"
    )


def test_the_cluster_is_that_of_the_current_context(make_context: MakeContext) -> None:
    ctx = make_context()
    document = kubeconfig.document(server=SERVER, cluster="c", user="u", ca=b"PEM", credentials={})
    ctx.host.write(paths.ADMIN_CONF, kubeconfig.text(document, ctx.release).encode())
    assert kubeconfigs.leads_to(ctx.host, paths.ADMIN_CONF) == (SERVER, b"PEM")


def test_a_kubeconfig_that_leads_nowhere_is_refused(make_context: MakeContext) -> None:
    ctx = make_context()
    with pytest.raises(OperatorError, match="failed to load the kubeconfig"):
        kubeconfigs.leads_to(ctx.host, paths.ADMIN_CONF)
    ctx.host.write(paths.ADMIN_CONF, b"kind: Config\ncurrent-context: gone\n")
    with pytest.raises(OperatorError, match="malformed kubeconfig file"):
        kubeconfigs.leads_to(ctx.host, paths.ADMIN_CONF)
    with pytest.raises(OperatorError, match="no CA certificates found"):
        joincommand.pins_of(b"", paths.ADMIN_CONF)
