"""The kubelet: its service, its configuration, its health and its version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.machinery.version import Version
from slipway.node import paths
from slipway.node.doctor.finding import Check, Kind
from slipway.node.health.causes import UNKNOWN, kubelet_cause_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.node.doctor.facts import Facts
    from slipway.node.doctor.finding import Finding
    from slipway.node.health.observation import Unit

_OLDEST_SKEW = 3
"""How many minors a kubelet may be older than its API server (version skew policy of Kubernetes since 1.28)."""

NOT_INSTALLED = Kind(
    "kubelet-not-installed",
    "error",
    "there is no service kubelet",
    ("install the package kubelet of the cluster's version, with its unit",),
)
STOPPED = Kind("kubelet-stopped", "error", "the kubelet's service is {state}", ("systemctl start kubelet",))
FAILING = Kind(
    "kubelet-failing",
    "error",
    "the kubelet ends with exit code {code}: {cause}",
    ("journalctl -u kubelet -n 50", "systemctl restart kubelet"),
)
UNHEALTHY = Kind(
    "kubelet-unhealthy",
    "error",
    "the kubelet runs, and does not answer as it should{cause}",
    ("journalctl -u kubelet -n 50", "systemctl restart kubelet"),
)
NOT_ENABLED = Kind(
    "kubelet-not-enabled",
    "warning",
    "the kubelet's service is {state}: it does not come back after a reboot",
    ("systemctl enable kubelet",),
)
MASKED = Kind(
    "kubelet-masked",
    "error",
    "the kubelet's service is masked: nothing can start it",
    ("systemctl unmask kubelet", "systemctl enable --now kubelet"),
)
STALE_UNIT = Kind(
    "kubelet-unit-stale",
    "warning",
    "the kubelet's unit was changed since systemd has read it",
    ("systemctl daemon-reload", "systemctl restart kubelet"),
)
CONFIG_UNUSABLE = Kind(
    "kubelet-config-unusable",
    "error",
    "the kubelet's configuration cannot be used",
    ("slipway upgrade node phase kubelet-config", "systemctl restart kubelet"),
)
SKEW = Kind(
    "kubelet-version-skew",
    "error",
    "the kubelet is {kubelet} and the API server {server}: it may be {most} minors older at most, and never newer",
    ("install a kubelet of a minor from {server} down to {most} minors less", "systemctl restart kubelet"),
)


def find(facts: Facts) -> Iterator[Finding]:
    if not facts.is_node:
        return
    kubelet, unit = facts.kubelet, facts.kubelet.unit
    if kubelet.config_problem:
        yield CONFIG_UNUSABLE.found(kubelet.config_problem)
    if unit is not None:
        yield from _service(unit)
    if kubelet.health and (unit is None or unit.active == "active"):
        cause = kubelet_cause_of(unit.failure) if unit is not None else UNKNOWN
        yield UNHEALTHY.found(kubelet.health, fix=cause.fixes, cause=cause.clause)
    yield from _skew(facts)


def _service(unit: Unit) -> Iterator[Finding]:
    if not unit.loaded:
        yield NOT_INSTALLED.found(f"systemctl show kubelet: LoadState=not-found; {paths.KUBELET_CONF} says that this is a node")
        return
    state = f"systemctl show kubelet: ActiveState={unit.active} SubState={unit.sub}"
    if unit.enabled in ("masked", "masked-runtime"):
        yield MASKED.found(f"{state} UnitFileState={unit.enabled}")
    elif unit.active == "failed" or unit.sub == "auto-restart":
        cause = kubelet_cause_of(unit.failure)
        evidence = cause.line or f"{state}, started {unit.restarts + 1} times"
        yield FAILING.found(evidence, fix=cause.fixes, code=unit.exit_code, cause=cause.sentence)
    elif unit.active not in ("active", "activating", "reloading"):
        yield STOPPED.found(state, state=f"{unit.active} ({unit.sub})")
    if unit.enabled == "disabled":
        yield NOT_ENABLED.found(f"systemctl show kubelet: UnitFileState={unit.enabled}", state=unit.enabled)
    if unit.stale:
        yield STALE_UNIT.found("systemctl show kubelet: NeedDaemonReload=yes")


def _skew(facts: Facts) -> Iterator[Finding]:
    spec = facts.manifest_of("kube-apiserver")
    told = (facts.api.version if facts.api is not None else "") or (spec.image.rpartition(":")[2] if spec is not None else "")
    try:
        kubelet, server = Version.parse(facts.kubelet.version), Version.parse(told)
    except ValueError:
        return
    if kubelet.major == server.major and server.minor - _OLDEST_SKEW <= kubelet.minor <= server.minor:
        return
    yield SKEW.found(
        f"kubelet --version: v{kubelet}; the API server's version: v{server}", kubelet=f"v{kubelet}", server=f"v{server}", most=_OLDEST_SKEW
    )


CHECK = Check(
    "kubelet",
    "the kubelet's service, configuration, health and version",
    (NOT_INSTALLED, STOPPED, FAILING, UNHEALTHY, NOT_ENABLED, MASKED, STALE_UNIT, CONFIG_UNUSABLE, SKEW),
    find,
)
