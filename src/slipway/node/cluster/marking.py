"""What tells a control plane node from a worker in the cluster: labels, taints, and the annotation of its runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.kubeadm.internal import Taint
    from slipway.api.machinery.objects import Manifest
    from slipway.node.cluster.interface import Cluster
    from slipway.node.context import NodeContext

ROLE_LABEL = "node-role.kubernetes.io/control-plane"
LABELS = (ROLE_LABEL, "node.kubernetes.io/exclude-from-external-load-balancers")
CRI_SOCKET_ANNOTATION = "kubeadm.alpha.kubernetes.io/cri-socket"


def mark(ctx: NodeContext, cluster: Cluster) -> None:
    """Label and taint the Node of this machine."""
    name, taints = ctx.config.node_registration.name, ctx.config.node_registration.taints or []
    ctx.progress.say(f"[mark-control-plane] Marking the node {name} as control-plane by adding the labels: [{' '.join(LABELS)}]")
    if taints:
        shown = " ".join(as_text(taint) for taint in taints)
        ctx.progress.say(f"[mark-control-plane] Marking the node {name} as control-plane by adding the taints [{shown}]")
    cluster.amend_node(name, labels=dict.fromkeys(LABELS, ""), taints=manifests(taints))


def keeps_cri_socket(ctx: NodeContext) -> bool:
    """Whether the release keeps the socket of the runtime on the Node, because no file on the node has it."""
    node_local = ctx.release.gate(ctx.config.cluster.feature_gates, "NodeLocalCRISocket")
    return ctx.release.node_annotation_cri_socket and not node_local


def annotate_cri_socket(ctx: NodeContext, cluster: Cluster) -> None:
    """Keep the socket of the runtime on the Node, where the release does so."""
    if keeps_cri_socket(ctx):
        registration = ctx.config.node_registration
        cluster.amend_node(registration.name, annotations={CRI_SOCKET_ANNOTATION: registration.cri_socket})


def manifests(taints: Sequence[Taint]) -> list[Manifest]:
    made = [{"key": taint.key, "value": taint.value, "effect": taint.effect, "timeAdded": taint.time_added} for taint in taints]
    return [{name: value for name, value in taint.items() if value or name == "key"} for taint in made]


def as_text(taint: Taint) -> str:
    """``key=value:effect``, without the parts that the taint does not have."""
    if not taint.effect:
        return f"{taint.key}={taint.value}:" if taint.value else taint.key
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
