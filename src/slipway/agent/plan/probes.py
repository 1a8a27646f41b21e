"""Probes of a plan that is applied: asked in turn, and counted as elemental-system-agent counts them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.agent.machine import HttpGet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.agent.machine import Machine
    from slipway.api.elemental.plan import Plan, Probe

DEFAULT_PERIOD = 5.0
_SUCCESSES, _FAILURES, _TIMEOUT = 1, 3, 1


class Status(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    healthy: bool = False
    success_count: int = 0
    failure_count: int = 0


def read(written: bytes) -> dict[str, Status]:
    """What the Secret has; nothing where that cannot be read, as counting begins anew then."""
    try:
        return msgspec.json.decode(written or b"{}", type=dict[str, Status])
    except msgspec.DecodeError:
        return {}


def counted(status: Status, probe: Probe, succeeded: bool) -> Status:
    """A probe becomes healthy, or stops being so, after as many answers in a row as its threshold says."""
    successes, failures = probe.success_threshold or _SUCCESSES, probe.failure_threshold or _FAILURES
    if succeeded:
        count = min(status.success_count + 1, successes)
        return Status(healthy=status.healthy or count >= successes, success_count=count)
    count = min(status.failure_count + 1, failures)
    return Status(healthy=status.healthy and count < failures, failure_count=count)


def ask_all(machine: Machine, plan: Plan, known: Mapping[str, Status], since_applied: float) -> dict[str, Status]:
    """The statuses after one round; a probe is left alone until its first delay has passed since the plan was applied."""
    statuses = {}
    for name, probe in plan.probes.items():
        status = known.get(name, Status())
        statuses[name] = counted(status, probe, _answers(machine, probe)) if since_applied >= probe.initial_delay_seconds else status
    return statuses


def _answers(machine: Machine, probe: Probe) -> bool:
    get = probe.http_get
    question = HttpGet(
        url=get.url,
        insecure=get.insecure,
        ca=get.ca_cert,
        certificate=get.client_cert,
        key=get.client_key,
        timeout=float(probe.timeout_seconds or _TIMEOUT),
    )
    try:
        # As the kubelet judges its probes.
        return 200 <= machine.status(question) < 400
    except OSError:
        return False
