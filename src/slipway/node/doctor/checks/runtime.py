"""The container runtime: its service, its answers over the CRI, the network of Pods and the cgroup driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.node.doctor.finding import Check, Kind
from slipway.node.health.causes import UNKNOWN, runtime_cause_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.node.doctor.facts import Facts
    from slipway.node.doctor.finding import Finding
    from slipway.node.health.observation import Unit

STOPPED = Kind("runtime-stopped", "error", "the container runtime's service {service} is {state}{cause}", ("systemctl start {service}",))
SILENT = Kind(
    "runtime-not-answering",
    "error",
    "the container runtime does not answer{cause}",
    ("journalctl -u {service} -n 50", "systemctl restart {service}"),
)
NOT_READY = Kind(
    "runtime-not-ready",
    "error",
    "the container runtime says that it is not ready",
    ("journalctl -u {service} -n 50", "systemctl restart {service}"),
)
NO_NETWORK = Kind(
    "pod-network-missing",
    "error",
    "the container runtime has no network for Pods: only those on the host's network run",
    ("ls /etc/cni/net.d", "install the cluster's network add-on (CNI), or look at its Pod of this node: kubectl get pods -A -o wide"),
)
DRIVER = Kind(
    "cgroup-driver-differs",
    "error",
    "the kubelet has the cgroup driver {kubelet}, and the container runtime {runtime}",
    (
        "set cgroupDriver: {runtime} in /var/lib/kubelet/config.yaml (and in the ConfigMap kubelet-config of kube-system)",
        "systemctl restart kubelet",
    ),
)
NOT_ENABLED = Kind(
    "runtime-not-enabled",
    "warning",
    "the container runtime's service {service} is disabled: it does not come back after a reboot",
    ("systemctl enable {service}",),
)


def find(facts: Facts) -> Iterator[Finding]:
    runtime = facts.runtime
    if not facts.is_node:
        return
    unit = runtime.unit if runtime.unit is not None and runtime.unit.loaded else None
    if unit is not None and unit.active not in ("active", "activating", "reloading"):
        yield _stopped(runtime.service, unit)
    elif runtime.problem:
        cause = runtime_cause_of(unit.failure) if unit is not None else UNKNOWN
        yield SILENT.found(runtime.problem, fix=cause.fixes, service=runtime.service, cause=cause.clause)
    if runtime.not_ready:
        yield NOT_READY.found("; ".join(runtime.not_ready), service=runtime.service)
    if runtime.network_not_ready:
        yield NO_NETWORK.found("; ".join(runtime.network_not_ready))
    own = str(facts.kubelet.config.get("cgroupDriver") or "cgroupfs")
    if runtime.cgroup_driver and own != runtime.cgroup_driver and not facts.kubelet.config_problem and facts.kubelet.config:
        yield DRIVER.found(f"the runtime's answer to RuntimeConfig: {runtime.cgroup_driver}", kubelet=own, runtime=runtime.cgroup_driver)
    if unit is not None and unit.enabled == "disabled":
        yield NOT_ENABLED.found(f"systemctl show {runtime.service}: UnitFileState=disabled", service=runtime.service)


def _stopped(service: str, unit: Unit) -> Finding:
    state = f"systemctl show {service}: ActiveState={unit.active} SubState={unit.sub}"
    if unit.enabled.startswith("masked"):
        fix = (f"systemctl unmask {service}", f"systemctl start {service}")
        return STOPPED.found(f"{state} UnitFileState={unit.enabled}", fix=fix, service=service, state="masked", cause="")
    # What is in the journal of one that was stopped is not why it does not run.
    failed = unit.active == "failed" or unit.sub == "auto-restart"
    cause = runtime_cause_of(unit.failure) if failed else UNKNOWN
    return STOPPED.found(cause.line or state, fix=cause.fixes, service=service, state=f"{unit.active} ({unit.sub})", cause=cause.clause)


CHECK = Check(
    "container runtime",
    "the runtime's service, its answers, the network of Pods and the cgroup driver",
    (STOPPED, SILENT, NOT_READY, NO_NETWORK, DRIVER, NOT_ENABLED),
    find,
)
