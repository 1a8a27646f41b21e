"""The metrics of a fleet as a table: names, labels and what each one says.

The reference in ``docs/metrics.md`` is held against it, and so are the dashboard and the alert rules.  Labels name what there are few of:
namespaces, clusters, pools, states and reasons; never a host or a machine.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from slipway.api.cluster.infrastructure.names import ALLOCATION_STATES


class Metric(NamedTuple):
    """A row of the reference; a counter's name is without its ``_total``, as the Prometheus client has it."""

    name: str
    type: Literal["gauge", "counter", "histogram"]
    labels: tuple[str, ...]
    text: str

    @property
    def exposed(self) -> str:
        """The name as it is on the wire."""
        return f"{self.name}_total" if self.type == "counter" else self.name


IN_NO_POOL = "InNoPool"
"""The state of a host that has registered, and that no pool names."""
HOST_STATES = (*ALLOCATION_STATES, IN_NO_POOL)
OTHER = "Other"
"""In the place of a reason, or of a type of plan, that this Slipway does not know."""

HOSTS = Metric("slipway_hosts", "gauge", ("namespace", "state"), "Hosts that have registered, by the state that they are in")
HOSTS_QUARANTINED = Metric(
    "slipway_hosts_quarantined", "gauge", ("namespace",), "Hosts that were given up, and are out of use until they have been cleaned"
)
POOL_HOSTS = Metric(
    "slipway_pool_hosts", "gauge", ("namespace", "pool", "state"), "Hosts of a pool, by the state that its status counts them in"
)
MACHINES = Metric(
    "slipway_baremetal_machines", "gauge", ("namespace", "cluster", "phase"), "BaremetalMachines of a cluster, by their phase"
)
PLANS_IN_FLIGHT = Metric("slipway_plans_in_flight", "gauge", ("namespace", "type"), "Hosts that have a plan and have not ended it")
PLANS = Metric("slipway_plans", "counter", ("type", "outcome"), "Plans that hosts have ended, by how")
ROLLOUTS = Metric(
    "slipway_rollouts_in_progress",
    "gauge",
    ("namespace", "cluster", "kind"),
    "Control planes and MachineDeployments whose machines are being replaced",
)
ROLLOUT_AGE = Metric(
    "slipway_rollout_age_seconds", "gauge", ("namespace", "cluster", "kind"), "How long the longest rollout that goes on has taken so far"
)
ROLLOUT_MACHINES = Metric(
    "slipway_rollout_machines",
    "gauge",
    ("namespace", "cluster", "kind", "state"),
    "Machines of control planes and MachineDeployments, by whether they are as wanted (UpToDate) or to be replaced (Outdated)",
)
WAITING = Metric(
    "slipway_waiting_objects", "gauge", ("kind", "condition", "reason"), "Objects of which a condition does not hold, by the reason"
)
OLDEST_WAIT = Metric(
    "slipway_oldest_wait_seconds",
    "gauge",
    ("kind", "condition", "reason"),
    "For how long the condition has not held of the object that waits longest, by the reason of today",
)
NODE_OUT = Metric(
    "slipway_node_out_seconds",
    "histogram",
    (),
    "How long a host was no Node: from the deletion of its Machine to the next one's Ready, less the time in which it lay free in its pool",
)
HOST_STAGE = Metric(
    "slipway_host_stage_seconds",
    "histogram",
    ("stage",),
    "How long hosts took for a part of a machine's life: drain, clean, prepare, reprovision, boot and ready",
)
REGISTRATIONS = Metric(
    "slipway_registrations", "gauge", ("namespace", "ready"), "MachineRegistrations, by whether hosts can register there"
)
HOST_REGISTRATIONS = Metric(
    "slipway_host_registrations", "counter", ("result",), "Calls of hosts that wanted to register here, by how they ended"
)

METRICS = (
    HOSTS, HOSTS_QUARANTINED, POOL_HOSTS, MACHINES, PLANS_IN_FLIGHT, PLANS, ROLLOUTS, ROLLOUT_AGE, ROLLOUT_MACHINES, WAITING, OLDEST_WAIT,
    NODE_OUT, HOST_STAGE, REGISTRATIONS, HOST_REGISTRATIONS,
)  # fmt: skip
