"""What the API server asks before it stores a Cluster, a Machine or what makes and watches Machines.

The rules and their texts are those of Cluster API 1.14.  Beyond them:

- ``spec.topology`` of a Cluster is refused: ClusterClass stays upstream's.  One that is there already may stay as it is, so
  that its Cluster can still be labelled, paused and deleted.
- ``replicas`` may not be negative, nor more than any cluster has Nodes: a slip would make Machines without end.  What ``/scale``, about
  which nobody is asked, has set may stay: its condition says what is wrong, and everything else can still be written.
"""

from __future__ import annotations

from copy import deepcopy
from ipaddress import ip_interface
from typing import TYPE_CHECKING

from slipway.api.cluster import names
from slipway.api.cluster.core.cluster import Cluster
from slipway.api.cluster.core.machine import Machine
from slipway.api.cluster.core.machinedeployment import MachineDeployment
from slipway.api.cluster.core.machinedrainrule import MachineDrainRule
from slipway.api.cluster.core.machinehealthcheck import MachineHealthCheck
from slipway.api.cluster.core.machineset import MachineSet
from slipway.api.cluster.kinds import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_DRAIN_RULE, MACHINE_HEALTH_CHECK, MACHINE_SET
from slipway.api.cluster.meta import manifest
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.fieldpath import FieldError, Fields, Path, forbidden, invalid, required
from slipway.api.machinery.labels import value_problems
from slipway.fleet.contract import naming, selectors
from slipway.fleet.contract.admission import (
    judged,
    metadata_errors,
    naming_errors,
    readable,
    selector_problem,
    share_errors,
    stored,
    taint_errors,
    version_errors,
    with_prefix,
    worker_taint_errors,
)
from slipway.runtime.webhook.admission import Defaulter, Validator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slipway.api.cluster.core.machine import Bootstrap, MachineTemplateSpec
    from slipway.api.cluster.kinds import Kind
    from slipway.api.cluster.meta import LabelSelector, Type
    from slipway.api.machinery.objects import Manifest
    from slipway.runtime.webhook.admission import AdmissionRequest

NODE_DELETION_TIMEOUT_SECONDS = 10
NODE_STARTUP_TIMEOUT_SECONDS = 600
_LEAST_STARTUP_TIMEOUT = 30
_MOST_REPLICAS = 100_000
_AUTOSCALER = (names.AUTOSCALER_MIN_SIZE_ANNOTATION, names.AUTOSCALER_MAX_SIZE_ANNOTATION)
_PREFLIGHTS = (
    names.PREFLIGHT_ALL,
    names.PREFLIGHT_CONTROL_PLANE_IS_STABLE,
    names.PREFLIGHT_CONTROL_PLANE_VERSION_SKEW,
    names.PREFLIGHT_KUBEADM_VERSION_SKEW,
    names.PREFLIGHT_KUBERNETES_VERSION_SKEW,
)
_TOPOLOGY = "ClusterClass is not served here: describe the cluster by its own objects, or run Cluster API's manager for it"
_NAMING_VALUES = {"machineSet": {"name": "machineset"}}


def webhooks() -> list[Validator | Defaulter]:
    return [
        Validator(CLUSTER, judged(Cluster, cluster_errors)),
        Defaulter(MACHINE, _default_machine),
        Validator(MACHINE, judged(Machine, machine_errors)),
        Defaulter(MACHINE_SET, _default_set),
        Validator(MACHINE_SET, judged(MachineSet, set_errors)),
        Defaulter(MACHINE_DEPLOYMENT, _default_deployment),
        Validator(MACHINE_DEPLOYMENT, judged(MachineDeployment, deployment_errors)),
        Defaulter(MACHINE_HEALTH_CHECK, _default_health_check),
        Validator(MACHINE_HEALTH_CHECK, judged(MachineHealthCheck, health_check_errors)),
        Validator(MACHINE_DRAIN_RULE, judged(MachineDrainRule, drain_rule_errors)),
    ]


# Defaults.


def _labelled(request: AdmissionRequest, into: type[Type]) -> tuple[Manifest, Manifest]:
    """A copy of the object, with the label that says to which cluster it belongs, and its spec."""
    readable(request.object or {}, into)
    out = deepcopy(request.object or {})
    spec: Manifest = out.setdefault("spec", {})
    _filled(out, "metadata", "labels")[names.CLUSTER_NAME_LABEL] = spec.get("clusterName", "")
    return out, spec


def _filled(content: Manifest, *path: str) -> Manifest:
    """The object at a path, which is made where it ends."""
    for key in path:
        if content.get(key) is None:
            content[key] = {}
        content = content[key]
    return content


def _default_machine(request: AdmissionRequest) -> Manifest:
    out, spec = _labelled(request, Machine)
    _prefix_version(spec)
    _filled(spec, "deletion").setdefault("nodeDeletionTimeoutSeconds", NODE_DELETION_TIMEOUT_SECONDS)
    return out


def _prefix_version(spec: Manifest) -> None:
    if spec.get("version"):
        spec["version"] = with_prefix(spec["version"])


def _default_set(request: AdmissionRequest) -> Manifest:
    out, spec = _labelled(request, MachineSet)
    old = stored(request.old, MachineSet)
    spec["replicas"] = _replicas(MACHINE_SET, out, None if old is None else old.spec.replicas)
    _select_own(spec, names.SET_NAME_LABEL, naming.label_value(out["metadata"].get("name", "")))
    _prefix_version(_filled(spec, "template", "spec"))
    return out


def _default_deployment(request: AdmissionRequest) -> Manifest:
    out, spec = _labelled(request, MachineDeployment)
    old = stored(request.old, MachineDeployment)
    spec["replicas"] = _replicas(MACHINE_DEPLOYMENT, out, None if old is None else old.spec.replicas)
    strategy = _filled(spec, "rollout", "strategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = _filled(strategy, "rollingUpdate")
        for name, value in (("maxSurge", 1), ("maxUnavailable", 0)):
            if rolling.get(name) is None:
                rolling[name] = value
    _select_own(spec, names.DEPLOYMENT_NAME_LABEL, out["metadata"].get("name", ""))
    cluster = spec.get("clusterName", "")
    _filled(spec, "selector", "matchLabels")[names.CLUSTER_NAME_LABEL] = cluster
    _filled(spec, "template", "metadata", "labels")[names.CLUSTER_NAME_LABEL] = cluster
    _prefix_version(_filled(spec, "template", "spec"))
    return out


def _select_own(spec: Manifest, label: str, value: str) -> None:
    """Without a selector, the Machines that have the object's own name."""
    selector = _filled(spec, "selector")
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        _filled(selector, "matchLabels")[label] = value
        _filled(spec, "template", "metadata", "labels")[label] = value


def _replicas(kind: Kind, new: Manifest, had: int | None) -> int:
    """How many are wanted where nobody says: what an autoscaler could go on from, else 1."""
    given = new["spec"].get("replicas")
    if given is not None:
        return int(given)
    annotations = (new.get("metadata") or {}).get("annotations") or {}
    if not all(annotation in annotations for annotation in _AUTOSCALER):
        return 1
    least, most = (_size(kind, annotation, annotations) for annotation in _AUTOSCALER)
    return least if had is None else max(least, min(had, most))


def _size(kind: Kind, annotation: str, annotations: Mapping[str, str]) -> int:
    value = annotations[annotation]
    try:
        return int(value)
    except ValueError:
        problem = f'the annotation {annotation} is "{value}", and no number'
        raise OperatorError(f"how many replicas the {kind.kind} has cannot be told: {problem}") from None


def _default_health_check(request: AdmissionRequest) -> Manifest:
    out, spec = _labelled(request, MachineHealthCheck)
    checks = _filled(spec, "checks")
    if checks.get("nodeStartupTimeoutSeconds") is None:
        checks["nodeStartupTimeoutSeconds"] = NODE_STARTUP_TIMEOUT_SECONDS
    return out


# Rules.


def cluster_errors(new: Cluster, old: Cluster | None) -> list[FieldError]:
    path, spec = Path("spec"), new.spec
    name = new.metadata.get("name", "")
    found = [invalid(Path("metadata", "name"), name, f"must be a valid label value {problem}") for problem in value_problems(name)]
    if old is not None and old.spec.infrastructure_ref and not spec.infrastructure_ref:
        found.append(forbidden(path.child("infrastructureRef"), "cannot be removed"))
    if not spec.control_plane_ref and not spec.infrastructure_ref and not spec.topology:
        found.append(forbidden(path, "one of spec.controlPlaneRef, spec.infrastructureRef or spec.topology must be set"))
    if old is not None and old.spec.control_plane_ref and not spec.control_plane_ref:
        found.append(forbidden(path.child("controlPlaneRef"), "cannot be removed"))
    network = path.child("clusterNetwork")
    found += _range_errors(spec.cluster_network.pods.cidr_blocks, network.child("pods", "cidrBlocks"))
    found += _range_errors(spec.cluster_network.services.cidr_blocks, network.child("services", "cidrBlocks"))
    topology = path.child("topology")
    if spec.topology and (old is None or old.spec.topology != spec.topology):
        found.append(forbidden(topology, _TOPOLOGY))
    if old is not None and old.spec.topology and not spec.topology:
        found.append(forbidden(topology, "cannot be removed from an existing Cluster"))
    return found


def _range_errors(blocks: Sequence[str], path: Path) -> list[FieldError]:
    return [
        invalid(path.index(position), block, f"invalid CIDR address: {block}")
        for position, block in enumerate(blocks)
        if not _is_range(block)
    ]


def _is_range(block: str) -> bool:
    address, slash, length = block.partition("/")
    if not slash or "%" in address or not (length.isascii() and length.isdigit()):
        return False
    try:
        ip_interface(f"{address}/{int(length)}")
    except ValueError:
        return False
    return True


def machine_errors(new: Machine, old: Machine | None) -> list[FieldError]:
    path, spec = Path("spec"), new.spec
    labels = new.metadata.get("labels") or {}
    found: list[FieldError] = []
    # The configuration of a pool's Machine is the pool's.
    if not _is_of_pool(new.metadata):
        found += _bootstrap_errors(spec.bootstrap, path.child("bootstrap"), "spec.bootstrap")
    if old is not None and old.spec.cluster_name != spec.cluster_name:
        found.append(forbidden(path.child("clusterName"), "field is immutable"))
    if spec.version:
        found += version_errors(spec.version, path.child("version"))
    found += taint_errors(spec.taints, path.child("taints"))
    if names.CONTROL_PLANE_LABEL not in labels:
        found += worker_taint_errors(spec.taints, path.child("taints"))
    return found


def _is_of_pool(metadata: Manifest) -> bool:
    owners = metadata.get("ownerReferences") or []
    return names.POOL_NAME_LABEL in (metadata.get("labels") or {}) or any(owner.get("kind") == "MachinePool" for owner in owners)


def _bootstrap_errors(bootstrap: Bootstrap, path: Path, place: str) -> list[FieldError]:
    if bootstrap.config_ref or bootstrap.data_secret_name is not None:
        return []
    return [required(path, f"expected either {place}.dataSecretName or {place}.configRef to be populated")]


def set_errors(new: MachineSet, old: MachineSet | None) -> list[FieldError]:
    path, spec = Path("spec"), new.spec
    labels = spec.template.metadata.labels
    unmatched = invalid(path.child("template", "metadata", "labels"), labels, _must_match(spec.selector))
    return [
        *_bootstrap_errors(spec.template.spec.bootstrap, path.child("template", "spec", "bootstrap"), "spec.template.spec.bootstrap"),
        *_selector_errors(spec.selector, labels, path.child("selector"), unmatched),
        *_preflight_errors(new.metadata),
        *_cluster_name_errors(spec.cluster_name, None if old is None else old.spec.cluster_name, spec.template, path),
        *_replica_errors(spec.replicas, None if old is None else old.spec.replicas, path),
        *_template_errors(spec.template, path),
        *naming_errors(spec.machine_naming.template, _NAMING_VALUES, path.child("machineNaming", "template")),
        *metadata_errors(spec.template.metadata, path.child("template", "metadata")),
    ]


def deployment_errors(new: MachineDeployment, old: MachineDeployment | None) -> list[FieldError]:
    path, spec = Path("spec"), new.spec
    name = new.metadata.get("name", "")
    rolling, strategy = spec.rollout.strategy.rolling_update, path.child("rollout", "strategy", "rollingUpdate")
    unmatched = forbidden(path.child("template", "metadata", "labels"), _must_match(spec.selector))
    found = [invalid(Path("metadata", "name"), name, f"must be a valid label value: {problem}") for problem in value_problems(name)]
    found += _bootstrap_errors(spec.template.spec.bootstrap, path.child("template", "spec", "bootstrap"), "spec.template.spec.bootstrap")
    found += _selector_errors(spec.selector, spec.template.metadata.labels, path.child("selector"), unmatched)
    found += _preflight_errors(new.metadata)
    found += _cluster_name_errors(spec.cluster_name, None if old is None else old.spec.cluster_name, spec.template, path)
    found += _replica_errors(spec.replicas, None if old is None else old.spec.replicas, path)
    found += share_errors(rolling.max_unavailable, strategy.child("maxUnavailable"))
    found += share_errors(rolling.max_surge, strategy.child("maxSurge"))
    if rolling.max_unavailable == 0 and rolling.max_surge == 0:
        found.append(invalid(strategy, "0", "maxUnavailable and maxSurge cannot both be 0"))
    found += share_errors(spec.remediation.max_in_flight, path.child("remediation", "maxInFlight"))
    found += _template_errors(spec.template, path)
    found += naming_errors(spec.machine_naming.template, _NAMING_VALUES, path.child("machineNaming", "template"))
    return found + metadata_errors(spec.template.metadata, path.child("template", "metadata"))


def _must_match(selector: LabelSelector) -> str:
    return f'must match spec.selector "{selectors.text(selector)}"'


def _selector_errors(selector: LabelSelector, labels: Mapping[str, str], path: Path, unmatched: FieldError) -> list[FieldError]:
    problem = selector_problem(selector)
    if problem:
        return [invalid(path, Fields(manifest(selector)), problem)]
    return [] if selectors.matches(selector, labels) else [unmatched]


def _cluster_name_errors(new: str, old: str | None, template: MachineTemplateSpec, path: Path) -> list[FieldError]:
    found = []
    if old is not None and old != new:
        found.append(forbidden(path.child("clusterName"), "field is immutable"))
    if template.spec.cluster_name != new:
        same = "spec.clusterName and spec.template.spec.clusterName must be set to the same value"
        found.append(invalid(path.child("clusterName"), new, same))
    return found


def _replica_errors(replicas: int | None, had: int | None, path: Path) -> list[FieldError]:
    if replicas is None or replicas == had or 0 <= replicas <= _MOST_REPLICAS:
        return []
    return [invalid(path.child("replicas"), replicas, f"must be from 0 to {_MOST_REPLICAS}")]


def _template_errors(template: MachineTemplateSpec, path: Path) -> list[FieldError]:
    place = path.child("template", "spec")
    found = version_errors(template.spec.version, place.child("version")) if template.spec.version else []
    found += taint_errors(template.spec.taints, place.child("taints"))
    return found + worker_taint_errors(template.spec.taints, place.child("taints"))


def _preflight_errors(metadata: Manifest) -> list[FieldError]:
    skipped = (metadata.get("annotations") or {}).get(names.SKIP_PREFLIGHT_CHECKS_ANNOTATION, "")
    unknown = [each.strip() for each in skipped.split(",") if each.strip() not in _PREFLIGHTS] if skipped else []
    if not unknown:
        return []
    path = Path("metadata", "annotations", names.SKIP_PREFLIGHT_CHECKS_ANNOTATION)
    return [invalid(path, unknown, f"skipped preflight check(s) must be among: [{' '.join(_PREFLIGHTS)}]")]


def health_check_errors(new: MachineHealthCheck, old: MachineHealthCheck | None) -> list[FieldError]:
    path, spec = Path("spec"), new.spec
    shown = Fields(manifest(spec.selector))
    problem = selector_problem(spec.selector)
    found: list[FieldError] = []
    if problem:
        found.append(invalid(path.child("selector"), shown, problem))
    elif not spec.selector:
        found.append(required(path.child("selector"), "selector must not be empty"))
    if spec.selector.match_labels.get(names.CLUSTER_NAME_LABEL, spec.cluster_name) != spec.cluster_name:
        other = "cannot specify a cluster selector other than the one specified by ClusterName"
        found.append(invalid(path.child("selector"), shown, other))
    if old is not None and old.spec.cluster_name != spec.cluster_name:
        found.append(forbidden(path.child("clusterName"), "field is immutable"))
    timeout = spec.checks.node_startup_timeout_seconds
    if timeout is not None and 0 != timeout < _LEAST_STARTUP_TIMEOUT:
        found.append(invalid(path.child("checks", "nodeStartupTimeoutSeconds"), timeout, f"must be at least {_LEAST_STARTUP_TIMEOUT}s"))
    trigger = path.child("remediation", "triggerIf", "unhealthyLessThanOrEqualTo")
    return found + share_errors(spec.remediation.trigger_if.unhealthy_less_than_or_equal_to, trigger)


def drain_rule_errors(new: MachineDrainRule, _: MachineDrainRule | None) -> list[FieldError]:
    path, spec = Path("spec"), new.spec
    found: list[FieldError] = []
    if spec.drain.behavior in ("Skip", "WaitCompleted") and spec.drain.order is not None:
        detail = 'order must not be set if drain behavior is "Skip" or "WaitCompleted"'
        found.append(invalid(path.child("drain", "order"), spec.drain.order, detail))
    chosen: list[tuple[Path, LabelSelector | None]] = []
    for position, machines in enumerate(spec.machines):
        place = path.child("machines").index(position)
        chosen += [(place.child("selector"), machines.selector), (place.child("clusterSelector"), machines.cluster_selector)]
    for position, pods in enumerate(spec.pods):
        place = path.child("pods").index(position)
        chosen += [(place.child("selector"), pods.selector), (place.child("namespaceSelector"), pods.namespace_selector)]
    for place, selector in chosen:
        problem = "" if selector is None else selector_problem(selector)
        if selector is not None and problem:
            found.append(invalid(place, Fields(manifest(selector)), problem))
    return found
