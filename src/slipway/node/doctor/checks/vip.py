"""The address that control planes share: keepalived's files, and whether an API server answers at the address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.node.doctor.finding import Check, Kind
from slipway.workload.alive import pod

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.node.doctor.facts import Facts
    from slipway.node.doctor.finding import Finding

VALUES = Kind(
    "vip-values-unusable",
    "error",
    "the values of the shared address cannot be used",
    ("delete the Machine of this node, so that it is made anew: they come with the host's user-data",),
)
UNCONFIGURED = Kind(
    "vip-not-configured",
    "error",
    "keepalived has no configuration for the shared address {vip}",
    ("crictl logs $(crictl ps -a --name side-car -q | head -1)", "delete the Machine of this node, so that it is made anew"),
)
INTERFACE = Kind(
    "vip-device-missing",
    "error",
    "this machine has no network device {interface}, which is to get the shared address {vip}",
    ("ip link", "set networkDevice in the BaremetalCluster, or in this host's entry of the pool, to its device"),
)
UNANSWERED = Kind(
    "vip-not-answering",
    "error",
    "no API server answers at the shared address {vip} ({holder})",
    (
        "ip address show dev {interface}",
        "crictl logs $(crictl ps -a --name keepalived -q | head -1)",
        "kubectl -n kube-system get lease alive (with the address of a control plane)",
    ),
)
HOLDS = Kind("vip-here", "note", "this machine has the shared address {vip}")


def find(facts: Facts) -> Iterator[Finding]:
    vip = facts.vip
    if vip is None:
        return
    if vip.values is None:
        yield VALUES.found(vip.problem)
        return
    known: dict[str, Any] = {"vip": vip.values.vip, "interface": vip.values.interface}
    if vip.interface_missing:
        yield INTERFACE.found(f"{pod.VALUES}: interface {vip.values.interface}", **known)
    if not vip.configured:
        yield UNCONFIGURED.found(f"{pod.CONFIGURATION} is not there, or has not the address", **known)
    if vip.answer:
        yield UNANSWERED.found(vip.answer, holder="this machine has it" if vip.holds else "another machine has it, or none", **known)
    elif vip.holds:
        yield HOLDS.found(f"the addresses of {vip.values.interface}", **known)


CHECK = Check(
    "shared address", "the virtual address of the control planes and keepalived", (VALUES, UNCONFIGURED, INTERFACE, UNANSWERED, HOLDS), find
)
