"""The examination of a node: facts are gathered once, and every check of the table says what it makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.node.doctor.checks import certificates, etcd, host, kubelet, machine, network, pods, runtime, vip

if TYPE_CHECKING:
    from slipway.node.doctor.facts import Facts, Role, Unseen
    from slipway.node.doctor.finding import Check, Finding, Severity

CHECKS: tuple[Check, ...] = (
    host.NODE,
    kubelet.CHECK,
    runtime.CHECK,
    pods.CHECK,
    etcd.CHECK,
    certificates.CHECK,
    network.CHECK,
    vip.CHECK,
    machine.CHECK,
    host.AGENT,
)
_ORDER: tuple[Severity, ...] = ("error", "warning", "note")


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a doctor says of a machine."""

    role: Role
    node: str
    findings: tuple[tuple[str, Finding], ...]
    """Each with the name of its check, the worst first."""
    unseen: tuple[Unseen, ...]

    def count(self, severity: Severity) -> int:
        return sum(finding.severity == severity for _, finding in self.findings)

    @property
    def is_well(self) -> bool:
        """Whether there is neither an error nor a warning; what could not be seen is no fault."""
        return not self.count("error") and not self.count("warning")


def examine(facts: Facts) -> Report:
    found = [(check.name, finding) for check in CHECKS for finding in check.find(facts)]
    ranked = sorted(found, key=lambda pair: _ORDER.index(pair[1].severity))
    return Report(role=facts.role, node=facts.node, findings=tuple(ranked), unseen=facts.unseen)
