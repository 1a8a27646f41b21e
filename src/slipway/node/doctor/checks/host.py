"""Whether the machine is a node at all, what an earlier one left on it, and the agent of a bare-metal host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.node import paths
from slipway.node.doctor.finding import Check, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.node.doctor.facts import Facts
    from slipway.node.doctor.finding import Finding

NO_NODE = Kind("no-node", "note", "this machine is no node of a cluster", ("slipway init, or slipway join, makes it one",))
LEFT = Kind("left-behind", "error", "this machine is no node, and has what one left behind: {what}", ("slipway reset",))
CONTAINERS_LEFT = Kind(
    "containers-left", "error", "this machine is no node, and {number} containers of Pods are still on it", ("slipway reset",)
)
BOOTSTRAPPING = Kind(
    "join-unfinished",
    "error",
    "this machine's join did not end: the kubelet has no certificate of its own yet",
    ("journalctl -u kubelet -n 50", "run the join command again, with a token that is valid (slipway token create --print-join-command)"),
)

NOT_RUNNING = Kind(
    "agent-stopped", "error", "the host's agent {service} is {state}: it takes no plans", ("systemctl enable --now {service}",)
)
UNREGISTERED = Kind(
    "agent-not-registered",
    "error",
    "this host has a registration's configuration, and is not registered",
    ("slipway agent register", "journalctl -u slipway-agent -n 50"),
)
UNUSABLE = Kind(
    "agent-files-unusable", "error", "what the agent keeps of its registration or of its plan cannot be used", ("slipway agent register",)
)
PLAN_FAILED = Kind(
    "plan-failed",
    "error",
    "the host's last plan has failed {failures} times",
    ("slipway agent status", "journalctl -u slipway-agent -n 100"),
)
PLAN_CANCELED = Kind("plan-canceled", "warning", "the host's last plan was canceled", ("slipway agent status",))
PLAN_RUNNING = Kind("plan-running", "note", "the host works on a plan ({done} of {total} instructions are done)", ("slipway agent status",))
UNREPORTED = Kind(
    "plan-not-reported",
    "warning",
    "the outcome of the host's last plan is not told to the management cluster yet",
    ("journalctl -u slipway-agent -n 50", "look whether {server} can be reached from here"),
)


# All that there may be of a cluster: a reset takes both away.
_OF_CONTROL_PLANE = {f"{paths.PKI_DIR}/apiserver.crt", f"{paths.ETCD_DATA_DIR}/member"}
_KEPT_FIRST = (
    f"where this was a control plane, copy {paths.PKI_DIR} and {paths.ETCD_DATA_DIR} first: a reset takes them away, and with the last "
    "ones the cluster",
    "slipway reset",
)


def find_node(facts: Facts) -> Iterator[Finding]:
    if not facts.is_node:
        yield NO_NODE.found(f"{paths.KUBELET_CONF}: no such file")
        if facts.left:
            yield LEFT.found(
                ", ".join(facts.left),
                fix=_KEPT_FIRST if _OF_CONTROL_PLANE & {*facts.left} else (),
                what=facts.left[0] if len(facts.left) == 1 else f"{facts.left[0]} and {len(facts.left) - 1} more",
            )
        if facts.runtime.left:
            yield CONTAINERS_LEFT.found("the runtime's list of containers", number=facts.runtime.left)
    elif paths.BOOTSTRAP_KUBELET_CONF in facts.left and paths.KUBELET_CONF not in facts.left:
        yield BOOTSTRAPPING.found(f"{paths.BOOTSTRAP_KUBELET_CONF} is there, and {paths.KUBELET_CONF} is not")


def find_agent(facts: Facts) -> Iterator[Finding]:
    if facts.agent is None:
        return
    agent = facts.agent
    unit, status = agent.unit, agent.status
    if unit is not None and unit.loaded and unit.active not in ("active", "activating", "reloading"):
        last = unit.journal[-1] if unit.journal else f"systemctl show {agent.service}: ActiveState={unit.active} SubState={unit.sub}"
        yield NOT_RUNNING.found(last, service=agent.service, state=f"{unit.active} ({unit.sub})")
    if status.get("problem"):
        yield UNUSABLE.found(str(status["problem"]))
    elif status.get("configured") and not status.get("registered"):
        yield UNREGISTERED.found("slipway agent status: not registered")
    plan = status.get("plan")
    if not plan:
        return
    shown = f"plan {str(plan['checksum'])[:12]}: {plan.get('message') or plan['state']}"
    if plan["state"] == "failed":
        yield PLAN_FAILED.found(shown, failures=plan["failures"])
    elif plan["state"] == "canceled":
        yield PLAN_CANCELED.found(shown)
    elif plan["state"] == "running":
        at = f", at {plan['instruction']}" if "instruction" in plan else ""
        yield PLAN_RUNNING.found(f"since {plan['started']}{at}", done=plan["completed"], total=plan["of"])
    if plan.get("reported") is False:
        yield UNREPORTED.found(shown, server=status.get("server", "the management cluster"))


NODE = Check(
    "node", "whether this machine is a node, and what an earlier one left", (NO_NODE, LEFT, CONTAINERS_LEFT, BOOTSTRAPPING), find_node
)
AGENT = Check(
    "agent",
    "the agent of a bare-metal host, its registration and its last plan",
    (NOT_RUNNING, UNREGISTERED, UNUSABLE, PLAN_FAILED, PLAN_CANCELED, PLAN_RUNNING, UNREPORTED),
    find_agent,
)
