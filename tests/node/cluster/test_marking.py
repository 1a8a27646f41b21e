"""Labels and taints of a control plane; rows of kubeadm's phases/markcontrolplane/markcontrolplane_test.go (1.36.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from slipway.api.kubeadm.internal import ClusterConfiguration, Taint
from slipway.node.cluster import marking
from slipway.node.cluster.dryrun import DryRunCluster

if TYPE_CHECKING:
    from node.conftest import Lines, MakeContext

pytestmark = pytest.mark.upstream_table


# k8s.io/api/core/v1, Taint.ToString
@pytest.mark.parametrize(
    ("taint", "text"),
    [
        (Taint(key="a", value="b", effect="NoSchedule"), "a=b:NoSchedule"),
        (Taint(key="a", effect="NoExecute"), "a:NoExecute"),
        (Taint(key="a", value="b"), "a=b:"),
        (Taint(key="a"), "a"),
    ],
)
def test_a_taint_is_told_as_go_tells_it(taint: Taint, text: str) -> None:
    assert marking.as_text(taint) == text


@pytest.mark.parametrize(("taints", "told"), [(None, False), ([], False), ([Taint(key="a", effect="NoSchedule")], True)])
def test_taints_are_told_where_there_are_any(taints: list[Taint] | None, told: bool, make_context: MakeContext, lines: Lines) -> None:
    ctx = make_context()
    ctx.config.node_registration.name, ctx.config.node_registration.taints = "n1", taints
    marking.mark(ctx, DryRunCluster(lines, ctx.release))
    assert lines.said[0] == (
        "[mark-control-plane] Marking the node n1 as control-plane by adding the labels: "
        "[node-role.kubernetes.io/control-plane node.kubernetes.io/exclude-from-external-load-balancers]"
    )
    assert [line for line in lines.said if "by adding the taints" in line] == (
        ["[mark-control-plane] Marking the node n1 as control-plane by adding the taints [a:NoSchedule]"] if told else []
    )


def test_a_taint_has_only_the_fields_that_are_set() -> None:
    assert marking.manifests([Taint(key="a", effect="NoSchedule"), Taint(key="b", value="c")]) == [
        {"key": "a", "effect": "NoSchedule"},
        {"key": "b", "value": "c"},
    ]


# features.NodeLocalCRISocket: off by default in 1.33, on since 1.34; 1.36 has locked it and never writes the annotation.
@pytest.mark.parametrize(
    ("version", "gates", "written"),
    [
        ("v1.33.13", {}, True),
        ("v1.33.13", {"NodeLocalCRISocket": True}, False),
        ("v1.34.10", {}, False),
        ("v1.34.10", {"NodeLocalCRISocket": False}, True),
        ("v1.35.4", {}, False),
        ("v1.35.4", {"NodeLocalCRISocket": False}, True),
        ("v1.36.3", {}, False),
    ],
)
def test_the_runtimes_socket_is_an_annotation_where_no_file_has_it(
    version: str, gates: dict[str, bool], written: bool, make_context: MakeContext, lines: Lines
) -> None:
    ctx = make_context(ClusterConfiguration(feature_gates=gates), version=version)
    ctx.config.node_registration.name = "n1"
    marking.annotate_cri_socket(ctx, DryRunCluster(lines, ctx.release))
    assert bool(lines.said) is written
