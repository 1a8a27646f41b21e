"""KubeadmControlPlane and KubeadmControlPlaneTemplate between v1beta1 and v1beta2 (see ``versions``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster.bootstrap.conversion import SPEC
from slipway.api.cluster.controlplane import kubeadmcontrolplane, v1beta1
from slipway.api.cluster.core.moved import given, status_down, status_up, timeouts_down, timeouts_up
from slipway.api.cluster.kinds import KUBEADM_CONTROL_PLANE, KUBEADM_CONTROL_PLANE_TEMPLATE
from slipway.api.cluster.versions import Conversion, Part, at, duration, meant, part_down, part_up, seconds_of, within

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest

_COUNTERS = ("updatedReplicas", "readyReplicas", "unavailableReplicas")
_OF_MACHINES = ("readinessGates", "taints")
ROLLING_UPDATE = "RollingUpdate"


def _shared_down(out: Manifest) -> Manifest:
    """What a control plane and a template of it have in common."""
    rollout, remediation = out.pop("rollout", {}), out.pop("remediation", {})
    out["kubeadmConfigSpec"] = part_down(out.get("kubeadmConfigSpec", {}), SPEC)
    out |= given(
        rolloutBefore=rollout.get("before"),
        rolloutAfter=rollout.get("after"),
        rolloutStrategy=rollout.get("strategy"),
        remediationStrategy=_remediation_down(remediation) if remediation else None,
        machineNamingStrategy=out.pop("machineNaming", None),
    )
    template = within(out, "machineTemplate")
    spec = template.pop("spec", {})
    template |= {name: spec[name] for name in _OF_MACHINES if name in spec} | timeouts_down(spec.get("deletion", {}))
    return out


def _shared_up(out: Manifest, before: Manifest) -> Manifest:
    strategy = out.pop("rolloutStrategy", {})
    rollout = given(before=out.pop("rolloutBefore", None), after=out.pop("rolloutAfter", None), strategy=strategy)
    remediation = out.pop("remediationStrategy", {})
    out["kubeadmConfigSpec"] = part_up(out.get("kubeadmConfigSpec", {}), at(before, "kubeadmConfigSpec") or {}, SPEC)
    out |= given(
        rollout=rollout,
        remediation=_remediation_up(remediation, before.get("remediation", {})) if remediation else None,
        machineNaming=out.pop("machineNamingStrategy", None),
    )
    template = within(out, "machineTemplate")
    template["spec"] = {name: template.pop(name) for name in _OF_MACHINES if name in template} | {"deletion": timeouts_up(template)}
    return out


def _remediation_down(remediation: Manifest) -> Manifest:
    periods = {"retryPeriod": "retryPeriodSeconds", "minHealthyPeriod": "minHealthyPeriodSeconds"}
    out = {old: duration(remediation[new]) for old, new in periods.items() if new in remediation}
    return out | given(maxRetry=remediation.get("maxRetry"))


def _remediation_up(remediation: Manifest, before: Manifest) -> Manifest:
    retry, healthy = remediation["retryPeriod"], remediation.get("minHealthyPeriod")
    was = before.get("retryPeriodSeconds")
    return given(
        maxRetry=remediation.get("maxRetry"),
        retryPeriodSeconds=meant(0, was) if retry == "0s" else seconds_of(retry),
        minHealthyPeriodSeconds=None if healthy is None else seconds_of(healthy),
    )


def _spec_down(out: Manifest, _: str) -> Manifest:
    return _shared_down(out)


def _template_down(out: Manifest, _: str) -> Manifest:
    template = within(out, "template")
    template["spec"] = _shared_down(template.get("spec", {}))
    return out


def _template_up(out: Manifest, before: Manifest) -> Manifest:
    template = within(out, "template")
    spec = template.get("spec", {})
    if "rolloutStrategy" in spec:
        # v1beta1 says so without a word.
        spec["rolloutStrategy"].setdefault("type", ROLLING_UPDATE)
    template["spec"] = _shared_up(spec, at(before, "template", "spec") or {})
    return out


def _status_down(out: Manifest, _: str) -> Manifest:
    if "lastRemediation" in out:
        out["lastRemediation"]["timestamp"] = out["lastRemediation"].pop("time", None)
    out["initialized"] = bool(out.pop("initialization", {}).get("controlPlaneInitialized"))
    made = status_down(out)
    return made | {"ready": made.get("readyReplicas", 0) > 0}


def _status_up(out: Manifest, before: Manifest) -> Manifest:
    if "lastRemediation" in out:
        out["lastRemediation"]["time"] = out["lastRemediation"].pop("timestamp", None) or ""
    was = before.get("initialization", {}).get("controlPlaneInitialized")
    out["initialization"] = {"controlPlaneInitialized": meant(out.pop("initialized"), was)}
    return status_up({"replicas": 0} | out, *_COUNTERS)


CONVERSIONS = {
    KUBEADM_CONTROL_PLANE.kind: Conversion(
        {
            "spec": Part(
                kubeadmcontrolplane.KubeadmControlPlaneSpec,
                v1beta1.KubeadmControlPlaneSpec,
                _spec_down,
                _shared_up,
                ((("machineTemplate", "infrastructureRef"), ("machineTemplate", "spec", "infrastructureRef")),),
            ),
            "status": Part(kubeadmcontrolplane.KubeadmControlPlaneStatus, v1beta1.KubeadmControlPlaneStatus, _status_down, _status_up),
        }
    ),
    KUBEADM_CONTROL_PLANE_TEMPLATE.kind: Conversion(
        {
            "spec": Part(
                kubeadmcontrolplane.KubeadmControlPlaneTemplateSpec, v1beta1.KubeadmControlPlaneTemplateSpec, _template_down, _template_up
            )
        }
    ),
}
