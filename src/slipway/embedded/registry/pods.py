"""The defaults of Pods and of what makes Pods, as Kubernetes 1.35 fills them in, and the few things that are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.embedded.errors import FieldError

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest


_POD = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}
_CONTAINER = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "resources": {}}
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_ROLLING = {"maxUnavailable": "25%", "maxSurge": "25%"}

WORKLOAD_DEFAULTS: dict[str, Manifest] = {
    "Deployment": {
        "replicas": 1,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": _ROLLING},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    },
    "ReplicaSet": {"replicas": 1},
    "DaemonSet": {
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
        "revisionHistoryLimit": 10,
    },
    "StatefulSet": {
        "replicas": 1,
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "revisionHistoryLimit": 10,
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    },
    "Job": {
        "completions": 1,
        "parallelism": 1,
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "suspend": False,
        "podReplacementPolicy": "TerminatingOrFailed",
    },
}
"""What users leave out of spec."""


def default(spec: Manifest) -> None:
    """Fill in what a Pod's spec leaves out."""
    for field, value in _POD.items():
        spec.setdefault(field, dict(value) if isinstance(value, dict) else value)
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(field) or ():
            for name, value in _CONTAINER.items():
                container.setdefault(name, dict(value) if isinstance(value, dict) else value)
            container.setdefault("imagePullPolicy", _pull_policy(str(container.get("image") or "")))
            for port in container.get("ports") or ():
                port.setdefault("protocol", "TCP")
            for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
                if isinstance(container.get(probe), dict):
                    container[probe] = {**_PROBE, **container[probe]}
    if spec.get("serviceAccountName"):
        spec["serviceAccount"] = spec["serviceAccountName"]


def admit(spec: Manifest) -> None:
    """What the admission plugins of kube-apiserver add to every Pod, but for the volume with its token."""
    spec["serviceAccountName"] = spec["serviceAccount"] = spec.get("serviceAccountName") or "default"
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    tolerated = {toleration.get("key") for toleration in spec.get("tolerations") or ()}
    missing = [key for key in _TOLERATED if key not in tolerated and None not in tolerated]
    added = [{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300} for key in missing]
    if added:
        spec["tolerations"] = [*(spec.get("tolerations") or ()), *added]


def _pull_policy(image: str) -> str:
    last = image.rpartition("/")[2]
    if "@" in last:
        return "IfNotPresent"
    return "Always" if last.endswith(":latest") or ":" not in last else "IfNotPresent"


def qos_class(spec: Manifest) -> str:
    """BestEffort without requests and limits, Guaranteed where every container has equal ones of both, else Burstable."""
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    resources = [container.get("resources") or {} for container in containers]
    if not any(resource.get("requests") or resource.get("limits") for resource in resources):
        return "BestEffort"
    for resource in resources:
        limits = resource.get("limits") or {}
        if not {"cpu", "memory"} <= set(limits) or {**limits, **(resource.get("requests") or {})} != limits:
            return "Burstable"
    return "Guaranteed"


def errors(spec: Manifest, path: str) -> list[FieldError]:
    """What is wrong with a Pod's spec, as far as this server looks."""
    if not spec.get("containers"):
        return [FieldError.required(f"{path}.containers")]
    found: list[FieldError] = []
    names: set[str] = set()
    for index, container in enumerate(spec["containers"]):
        where = f"{path}.containers[{index}]"
        name = container.get("name") or ""
        if not name:
            found.append(FieldError.required(f"{where}.name"))
        elif name in names:
            found.append(FieldError.duplicate(f"{where}.name", name))
        names.add(name)
        if not container.get("image"):
            found.append(FieldError.required(f"{where}.image"))
    return found
