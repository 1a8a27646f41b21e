"""kube-proxy: its endpoint, its hash and its environment; rows of phases/addons/proxy/proxy_test.go (1.36.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from node import recorded
from node.conftest import VERSIONS

from slipway.api import components
from slipway.api.kubeadm.internal import APIEndpoint, ClusterConfiguration, Networking, NodeRegistrationOptions
from slipway.node.cluster.dryrun import as_printed
from slipway.workload import arguments, kubeproxy

if TYPE_CHECKING:
    from node.conftest import MakeContext

    from slipway.node.context import NodeContext

pytestmark = pytest.mark.upstream_table

ENDPOINT = APIEndpoint(advertise_address="10.0.0.11", bind_port=6443)


def defaulted(ctx: NodeContext) -> NodeContext:
    components.default(ctx.config.cluster, ctx.config.local_api_endpoint, NodeRegistrationOptions(), ctx.release, systemd_resolved=False)
    return ctx


def cluster(version: str = "v1.36.3", endpoint: str = "") -> ClusterConfiguration:
    return ClusterConfiguration(
        kubernetes_version=version,
        image_repository="registry.k8s.io",
        control_plane_endpoint=endpoint,
        networking=Networking(service_subnet="10.96.0.0/12", dns_domain="cluster.local"),
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_configuration_and_daemon_set_are_those_of_the_real_kubeadm(version: str, make_context: MakeContext) -> None:
    ctx = defaulted(make_context(cluster(version), endpoint=ENDPOINT, version=version))
    for manifest in (kubeproxy.config_map(ctx.config, ctx.release), kubeproxy.daemon_set(ctx.config.cluster)):
        assert recorded.as_text(as_printed(manifest, ctx.release)) == recorded.objects(version)[manifest["kind"], "kube-proxy"]


@pytest.mark.parametrize(
    ("endpoint", "server"),
    [("", "https://10.0.0.11:6443"), ("api.example.org:443", "https://api.example.org:443"), ("[fd00::1]:7443", "https://[fd00::1]:7443")],
)
def test_it_reaches_the_control_plane_by_its_endpoint(endpoint: str, server: str, make_context: MakeContext) -> None:
    ctx = defaulted(make_context(cluster(endpoint=endpoint), endpoint=ENDPOINT))
    kubeconfig = yaml.safe_load(kubeproxy.config_map(ctx.config, ctx.release)["data"]["kubeconfig.conf"])
    assert [entry["cluster"]["server"] for entry in kubeconfig["clusters"]] == [server]


def test_a_users_own_configuration_has_no_hash(make_context: MakeContext) -> None:
    ctx = defaulted(make_context(cluster(), endpoint=ENDPOINT))
    assert "annotations" in kubeproxy.config_map(ctx.config, ctx.release)["metadata"]
    ctx.config.cluster.component_configs[kubeproxy.GROUP].user_supplied = True
    assert "annotations" not in kubeproxy.config_map(ctx.config, ctx.release)["metadata"]


def test_proxies_go_to_the_container() -> None:
    found = arguments.proxies({"NO_PROXY": "10.0.0.0/8", "HTTPS_PROXY": "http://p:1", "PATH": "/bin"})
    env = kubeproxy.daemon_set(cluster(), found)["spec"]["template"]["spec"]["containers"][0]["env"]
    assert [variable["name"] for variable in env] == ["NODE_NAME", "HTTPS_PROXY", "NO_PROXY"]
