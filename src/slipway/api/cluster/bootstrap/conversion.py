"""KubeadmConfig and KubeadmConfigTemplate between v1beta1 and v1beta2 (see ``versions``).

Upstream loses some fields on the way there and back (tests/api/cluster/test_bootstrap_conversion.py has the list).
"""

from __future__ import annotations

from collections import deque
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from slipway.api.cluster.bootstrap import config, v1beta1
from slipway.api.cluster.kinds import KUBEADM_CONFIG, KUBEADM_CONFIG_TEMPLATE
from slipway.api.cluster.versions import Conversion, Part, at, duration, meant, part_down, part_up, seconds_of, within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.api.machinery.objects import Manifest


def _spec_down(out: Manifest, _: str) -> Manifest:
    for holder, key in _argument_lists(out):
        holder[key] = {arg.get("name", ""): arg.get("value", "") for arg in holder[key]}
    for token in (out.get("initConfiguration") or {}).get("bootstrapTokens", []):
        if "ttlSeconds" in token:
            token["ttl"] = duration(token.pop("ttlSeconds"))
    init = (out.get("initConfiguration") or {}).pop("timeouts", {})
    if "controlPlaneComponentHealthCheckSeconds" in init:
        api_server = out.setdefault("clusterConfiguration", {}).setdefault("apiServer", {})
        api_server["timeoutForControlPlane"] = duration(init["controlPlaneComponentHealthCheckSeconds"])
    join = (out.get("joinConfiguration") or {}).pop("timeouts", {})
    if "tlsBootstrapSeconds" in join:
        out["joinConfiguration"].setdefault("discovery", {})["timeout"] = duration(join["tlsBootstrapSeconds"])
    for configuration in ("initConfiguration", "joinConfiguration"):
        # What had nothing but timeouts is gone; an empty controlPlane is not nothing.
        if configuration in out and not out[configuration]:
            del out[configuration]
    return out


def _spec_up(given: Manifest, before: Manifest) -> Manifest:
    out = deepcopy(given)
    for holder, key in _argument_lists(out):
        holder[key] = [{"name": name, "value": value} for name, value in sorted(holder[key].items())]
    for token in (out.get("initConfiguration") or {}).get("bootstrapTokens") or []:
        if token.get("ttl") is not None:
            token["ttlSeconds"] = seconds_of(token.pop("ttl"))
    for partition in (out.get("diskSetup") or {}).get("partitions") or []:
        # v1beta1 must say layout, and v1beta2 does not take it beside diskLayout.
        if partition.get("diskLayout") and not partition.get("layout"):
            del partition["layout"]
    _booleans_to_v1beta2(out, before)
    for configuration in ("initConfiguration", "joinConfiguration"):
        timeouts = before.get(configuration, {}).get("timeouts")
        if timeouts:
            within(out, configuration)["timeouts"] = deepcopy(timeouts)
    _timeouts_to_v1beta2(given, out)
    return out


def _timeouts_to_v1beta2(spec: Manifest, out: Manifest) -> None:
    """What v1beta1 says of timeouts, in other places than v1beta2, counts more than what was restored."""
    control_plane = (at(spec, "clusterConfiguration", "apiServer") or {}).get("timeoutForControlPlane")
    discovery = (at(spec, "joinConfiguration", "discovery") or {}).get("timeout")
    if control_plane is not None:
        init = within(out, "initConfiguration", "timeouts")
        seconds = seconds_of(control_plane)
        # v1beta1 has one for both; where it is as before, so is that of the join, which may be another.
        if init.get("controlPlaneComponentHealthCheckSeconds") != seconds:
            init["controlPlaneComponentHealthCheckSeconds"] = seconds
            within(out, "joinConfiguration", "timeouts")["controlPlaneComponentHealthCheckSeconds"] = seconds
    if discovery is not None:
        within(out, "joinConfiguration", "timeouts")["tlsBootstrapSeconds"] = seconds_of(discovery)


def _booleans_to_v1beta2(out: Manifest, before: Manifest) -> None:
    """v1beta1 has no word for "not said": false is only false in v1beta2 where it was false before."""
    for holder, key, was in _booleans(out, before):
        if not holder.get(key):
            holder.pop(key, None)
            if was.get(key) is False:
                holder[key] = False


def _booleans(out: Manifest, before: Manifest) -> Iterator[tuple[Manifest, str, Manifest]]:
    """Each object that has a boolean of that kind, the boolean's name, and the object that it was."""
    for path, key in (
        (("joinConfiguration", "discovery", "bootstrapToken"), "unsafeSkipCAVerification"),
        (("joinConfiguration", "discovery", "file", "kubeConfig", "cluster"), "insecureSkipTLSVerify"),
        (("joinConfiguration", "discovery", "file", "kubeConfig", "user", "exec"), "provideClusterInfo"),
        (("ignition", "containerLinuxConfig"), "strict"),
    ):
        holder = at(out, *path)
        if holder is not None:
            yield holder, key, at(before, *path) or {}
    for component in ("apiServer", "controllerManager", "scheduler"):
        path = ("clusterConfiguration", component)
        were = (at(before, *path) or {}).get("extraVolumes", [])
        for volume, was in _paired((at(out, *path) or {}).get("extraVolumes", []), were, "hostPath"):
            yield volume, "readOnly", was
    for file, was in _paired(out.get("files", []), before.get("files", []), "path"):
        yield file, "append", was


def _argument_lists(spec: Manifest) -> Iterator[tuple[Manifest, str]]:
    """Each object that has arguments for a component, and the name that they have there."""
    cluster = ("clusterConfiguration",)
    for path, key in (
        ((*cluster, "apiServer"), "extraArgs"),
        ((*cluster, "controllerManager"), "extraArgs"),
        ((*cluster, "scheduler"), "extraArgs"),
        ((*cluster, "etcd", "local"), "extraArgs"),
        (("initConfiguration", "nodeRegistration"), "kubeletExtraArgs"),
        (("joinConfiguration", "nodeRegistration"), "kubeletExtraArgs"),
    ):
        holder = at(spec, *path)
        if holder is not None and holder.get(key) is not None:
            yield holder, key


def _paired(rows: list[Manifest], were: list[Manifest], key: str) -> Iterator[tuple[Manifest, Manifest]]:
    """Each row with the one that it was: that of the same key, and of several the one that comes as late."""
    left: dict[Any, deque[Manifest]] = {}
    for each in were:
        left.setdefault(each.get(key), deque()).append(each)
    for row in rows:
        same = left.get(row.get(key))
        yield row, same.popleft() if same else {}


def _status_down(status: Manifest, _: str) -> Manifest:
    deprecated = (status.get("deprecated") or {}).get("v1beta1") or {}
    out: Manifest = {
        "ready": bool(status.get("initialization", {}).get("dataSecretCreated")),
        "observedGeneration": status.get("observedGeneration", 0),
        **{key: deprecated[key] for key in ("conditions", "failureReason", "failureMessage") if key in deprecated},
    }
    if status.get("dataSecretName"):
        out["dataSecretName"] = status["dataSecretName"]
    if status.get("conditions"):
        out["v1beta2"] = {"conditions": status["conditions"]}
    return out


def _status_up(given: Manifest, before: Manifest) -> Manifest:
    return {
        "conditions": given.get("v1beta2", {}).get("conditions", []),
        "initialization": {"dataSecretCreated": meant(given["ready"], before.get("initialization", {}).get("dataSecretCreated"))},
        "dataSecretName": given.get("dataSecretName", ""),
        "observedGeneration": given.get("observedGeneration", 0),
        "deprecated": {"v1beta1": {key: given[key] for key in ("conditions", "failureReason", "failureMessage") if key in given}},
    }


SPEC = Part(config.KubeadmConfigSpec, v1beta1.KubeadmConfigSpec, _spec_down, _spec_up)


def _template_down(out: Manifest, _: str) -> Manifest:
    template = within(out, "template")
    template["spec"] = part_down(template.get("spec", {}), SPEC)
    return out


def _template_up(out: Manifest, before: Manifest) -> Manifest:
    template = within(out, "template")
    template["spec"] = part_up(template.get("spec", {}), at(before, "template", "spec") or {}, SPEC)
    return out


CONVERSIONS = {
    KUBEADM_CONFIG.kind: Conversion(
        {"spec": SPEC, "status": Part(config.KubeadmConfigStatus, v1beta1.KubeadmConfigStatus, _status_down, _status_up)}
    ),
    KUBEADM_CONFIG_TEMPLATE.kind: Conversion(
        {"spec": Part(config.KubeadmConfigTemplateSpec, v1beta1.KubeadmConfigTemplateSpec, _template_down, _template_up)}
    ),
}
