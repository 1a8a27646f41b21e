"""Add-ons put in place: what is kept of a CoreDNS that runs; rows of phases/addons/dns/dns_test.go (1.36.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from slipway.api.kubeadm.internal import ClusterConfiguration, Networking, Patches
from slipway.api.machinery.errors import OperatorError
from slipway.node import addons
from slipway.node.cluster.dryrun import DryRunCluster
from slipway.workload import coredns

if TYPE_CHECKING:
    from pathlib import Path

    from node.conftest import Lines, MakeContext


def test_replicas_that_were_chosen_are_kept(make_context: MakeContext, lines: Lines) -> None:
    ctx = make_context(ClusterConfiguration(networking=Networking(service_subnet="10.96.0.0/12")))
    cluster = DryRunCluster(lines, ctx.release)
    running = coredns.deployment(ctx.config.cluster, ctx.release, replicas=5)
    cluster.apply(running)
    lines.shown.clear()
    addons.install("coredns", ctx, cluster)
    assert "  replicas: 5\n" in "".join(lines.shown)


def test_a_corefile_that_is_there_is_left_alone(make_context: MakeContext, lines: Lines) -> None:
    ctx = make_context(ClusterConfiguration(networking=Networking(service_subnet="10.96.0.0/12")))
    cluster = DryRunCluster(lines, ctx.release)
    cluster.apply({**coredns.config_map(ctx.config.cluster), "data": {"Corefile": "mine"}})
    lines.said.clear()
    addons.install("coredns", ctx, cluster)
    assert not [line for line in lines.said if "CREATE" in line and '"configmaps"' in line]


def test_two_name_services_are_one_too_many(make_context: MakeContext, lines: Lines) -> None:
    ctx = make_context()
    cluster = DryRunCluster(lines, ctx.release)
    for name in ("coredns", "kube-dns"):
        deployment: dict[str, Any] = coredns.deployment(ctx.config.cluster, ctx.release)
        cluster.apply({**deployment, "metadata": {**deployment["metadata"], "name": name}})
    with pytest.raises(OperatorError, match="multiple DNS addon deployments found: coredns, kube-dns"):
        addons.install("coredns", ctx, cluster)


def test_patches_change_the_deployment(make_context: MakeContext, tmp_path: Path) -> None:
    ctx = make_context(ClusterConfiguration(networking=Networking(service_subnet="10.96.0.0/12")))
    (tmp_path / "patches").mkdir()
    (tmp_path / "patches" / "corednsdeployment+merge.yaml").write_text("spec:\n  replicas: 7\n")
    ctx.config.patches = Patches(directory="/patches")
    deployment = next(manifest for manifest in addons.manifests("coredns", ctx) if manifest["kind"] == "Deployment")
    assert deployment["spec"]["replicas"] == 7


OWN_COREFILE = ".:53 {\n    errors\n    kubernetes cluster.local\n}\n"
# migration.Default knows it: that of Kubernetes 1.17.
OLD_DEFAULT = """.:53 {
    errors
    health {
        lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
    loadbalance
}
"""


def installed(make_context: MakeContext, lines: Lines, corefile: str, tag: str) -> str:
    """What an upgrade to 1.36 shows of the objects that it writes, in a cluster with this Corefile and CoreDNS."""
    ctx = make_context(ClusterConfiguration(networking=Networking(service_subnet="10.96.0.0/12", dns_domain="cluster.local")))
    cluster = DryRunCluster(lines, ctx.release)
    running: dict[str, Any] = coredns.deployment(ctx.config.cluster, ctx.release)
    running["spec"]["template"]["spec"]["containers"][0]["image"] = f"registry.k8s.io/coredns/coredns:{tag}"
    cluster.apply(running)
    cluster.apply({**coredns.config_map(ctx.config.cluster), "data": {"Corefile": corefile}})
    lines.shown.clear()
    lines.said.clear()
    addons.install("coredns", ctx, cluster)
    return "".join(lines.shown)


def test_a_default_corefile_becomes_the_default_of_today(make_context: MakeContext, lines: Lines) -> None:
    assert "disable success cluster.local" in installed(make_context, lines, OLD_DEFAULT, "1.6.5")


def test_a_corefile_of_an_operator_is_kept_where_nothing_in_it_must_change(make_context: MakeContext, lines: Lines) -> None:
    shown = installed(make_context, lines, OWN_COREFILE, "v1.11.3")
    assert "disable success" not in shown
    assert "coredns:v1.14.2" in shown


def test_a_corefile_that_must_change_is_migrated_and_kept_beside(make_context: MakeContext, lines: Lines) -> None:
    shown = installed(make_context, lines, ".:53 {\n    health\n    foreign\n}\n", "1.6.2")
    assert "  Corefile: |\n    .:53 {\n        health {\n            lameduck 5s\n        }\n        foreign\n    }\n" in shown
    assert "  Corefile-backup: |\n    .:53 {\n        health\n        foreign\n    }\n" in shown
    assert "[addons] Migrating CoreDNS Corefile" in lines.said


def test_a_coredns_that_cannot_be_upgraded_from_is_left_alone(make_context: MakeContext, lines: Lines) -> None:
    shown = installed(make_context, lines, OWN_COREFILE, "v1.99.0")
    assert lines.warned == [
        "the CoreDNS Configuration was not migrated: start version '1.99.0' not supported. "
        "The existing CoreDNS Corefile configuration has been retained."
    ]
    assert "coredns:v1.14.2" not in shown


@pytest.mark.parametrize(
    ("corefile", "version", "errors"),
    [
        (OWN_COREFILE, "1.12.4", []),
        ("", "1.14.2", []),
        (
            ".:53 {\n    foreign\n}\n",
            "1.14.1",
            ['CoreDNS cannot migrate the following plugins:\n[Plugin "foreign" is unsupported by this migration tool in 1.14.2.]'],
        ),
        ("", "", []),  # a cluster without CoreDNS; kubeadm's own checks fail here
        (
            OWN_COREFILE,
            "1.99.0",
            ["start version '1.99.0' not supported", "CoreDNS will not be upgraded: start version '1.99.0' not supported"],
        ),
    ],
)
def test_preflight_tells_what_cannot_be_migrated(corefile: str, version: str, errors: list[str], make_context: MakeContext) -> None:
    found, release = coredns.Running(corefile, version), make_context().release
    checks = (addons.unsupported_plugins(found, release), addons.migration_problems(found, release))
    assert [error for findings in checks for error in findings.errors] == errors
