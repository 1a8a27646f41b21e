"""What a join lays out for the kubelet, and by what it knows a kubelet that an earlier try has let in already."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest
import yaml
from node.conftest import Lines, MakeContext
from node.tlsserver import Authority

from slipway.kube import kubeconfig
from slipway.kube.kubeconfig import Document
from slipway.node import paths
from slipway.node.context import NodeContext
from slipway.node.join import tlsbootstrap

CERTIFICATE = "/var/lib/kubelet/pki/kubelet-client-current.pem"


@pytest.fixture
def ctx(make_context: MakeContext) -> NodeContext:
    return make_context(version="v1.35.4")


@pytest.fixture
def authority() -> Authority:
    return Authority()


def found(authority: Authority) -> Document:
    token = {"token": "abcdef.0123456789abcdef"}
    return kubeconfig.document(server="https://10.0.0.1:6443", cluster="kubernetes", user="u", ca=authority.pem, credentials=token)


def registered(ctx: NodeContext, authority: Authority, name: str) -> None:
    """What the kubelet has once it was let in."""
    credentials = {"client-certificate": CERTIFICATE, "client-key": CERTIFICATE}
    own = kubeconfig.document(server="https://10.0.0.1:6443", cluster="c", user="d", ca=authority.pem, credentials=credentials)
    ctx.host.write(paths.KUBELET_CONF, yaml.safe_dump(own).encode())
    ctx.host.write(CERTIFICATE, authority.server_pem(name=f"system:node:{name}"))


def test_the_credentials_lead_to_the_server_that_is_given(ctx: NodeContext, authority: Authority, tmp_path: Path) -> None:
    ctx.config.cluster.cluster_name = "lab"
    tlsbootstrap.write_credentials(ctx, found(authority), "https://10.0.0.6:6443")
    path = tmp_path / paths.BOOTSTRAP_KUBELET_CONF.removeprefix("/")
    data = b64encode(authority.pem).decode()
    written = yaml.safe_load(path.read_text())
    assert written["clusters"] == [{"name": "lab", "cluster": {"server": "https://10.0.0.6:6443", "certificate-authority-data": data}}]
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_authority_that_is_there_stays_and_another_one_is_warned_of(ctx: NodeContext, authority: Authority, lines: Lines) -> None:
    path = "/etc/kubernetes/pki/ca.crt"
    for _ in range(2):
        tlsbootstrap.write_authority(ctx, found(authority), path)
    assert ctx.host.read(path) == authority.pem
    assert lines.warned == []
    tlsbootstrap.write_authority(ctx, found(Authority()), path)
    assert ctx.host.read(path) == authority.pem
    assert ["is not the certificate authority of this cluster" in text for text in lines.warned] == [True]


def test_a_node_is_known_as_its_own_by_its_name_and_its_cluster(ctx: NodeContext, authority: Authority) -> None:
    assert not tlsbootstrap.is_own_node(ctx, "node-1", found(authority))
    registered(ctx, authority, "node-1")
    assert tlsbootstrap.is_own_node(ctx, "node-1", found(authority))
    assert not tlsbootstrap.is_own_node(ctx, "node-2", found(authority))
    assert not tlsbootstrap.is_own_node(ctx, "node-1", found(Authority()))


def test_a_kubelet_that_still_waits_for_its_certificate_owns_nothing(ctx: NodeContext, authority: Authority) -> None:
    registered(ctx, authority, "node-1")
    ctx.host.remove(CERTIFICATE)
    assert not tlsbootstrap.is_own_node(ctx, "node-1", found(authority))
