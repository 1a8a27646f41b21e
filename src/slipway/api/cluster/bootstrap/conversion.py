"""KubeadmConfig and KubeadmConfigTemplate between v1beta1 and v1beta2.

As upstream's webhook does it: a v1beta1 object that was v1beta2 carries that form whole in an annotation.  Where nobody has
changed it since, that form is the answer, so that nothing is lost on the way there and back; where somebody has, what
v1beta1 cannot say is taken from it, field by field.  Upstream does only the latter, and loses some fields on the way
(tests/api/cluster/test_bootstrap_conversion.py has the list).
"""

from __future__ import annotations

from collections import deque
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.api.cluster.bootstrap import config, v1beta1
from slipway.api.cluster.kinds import KUBEADM_CONFIG, KUBEADM_CONFIG_TEMPLATE
from slipway.api.cluster.meta import Type, manifest
from slipway.api.machinery.duration import Duration
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.strict import encode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.api.machinery.objects import Manifest

DATA_ANNOTATION = "cluster.x-k8s.io/conversion-data"
_KINDS = (KUBEADM_CONFIG.kind, KUBEADM_CONFIG_TEMPLATE.kind)
_MOST_SECONDS = 2**31 - 1
_SECOND = 1_000_000_000


class ConversionError(OperatorError):
    """An object that has no form in the other version."""


def convert(content: Manifest, api_version: str) -> Manifest:
    """An object in the wanted version, as a conversion webhook answers.  What is given stays as it is."""
    had = content.get("apiVersion", "")
    ways = {
        (v1beta1.API_VERSION, config.API_VERSION): to_v1beta2,
        (config.API_VERSION, v1beta1.API_VERSION): to_v1beta1,
    }
    if content.get("kind") not in _KINDS or not (had == api_version or (had, api_version) in ways):
        raise ConversionError(
            f"{content.get('kind')} {had} cannot be converted to {api_version}: only {' and '.join(_KINDS)} can, "
            f"between {v1beta1.API_VERSION} and {config.API_VERSION}"
        )
    return deepcopy(content) if had == api_version else ways[had, api_version](_without_nulls(content))


def _without_nulls(value: Any) -> Any:
    """A copy without null, which Go reads as if it were not there."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def to_v1beta2(content: Manifest) -> Manifest:
    """An object of v1beta1 in v1beta2."""
    metadata, restored = _take_data(content)
    out: Manifest = {"apiVersion": config.API_VERSION, "kind": content["kind"], "metadata": metadata}
    if content["kind"] == KUBEADM_CONFIG.kind:
        spec = _spec_to_v1beta2(content.get("spec") or {}, None if restored is None else restored.get("spec") or {})
        status = _status_to_v1beta2(content.get("status") or {}, None if restored is None else restored.get("status") or {})
        return out | ({"spec": spec} if spec else {}) | ({"status": status} if status else {})
    template = _at(content, "spec", "template") or {}
    restored_spec = None if restored is None else _at(restored, "spec", "template", "spec") or {}
    spec = _spec_to_v1beta2(template.get("spec") or {}, restored_spec)
    template = {"metadata": template.get("metadata") or {}, "spec": spec}
    return out | _new({"spec": {"template": template}}, config.KubeadmConfigTemplate)


def to_v1beta1(content: Manifest) -> Manifest:
    """An object of v1beta2 in v1beta1, with its whole v1beta2 form in an annotation."""
    types: dict[str, type[Type]] = {
        KUBEADM_CONFIG.kind: config.KubeadmConfig,
        KUBEADM_CONFIG_TEMPLATE.kind: config.KubeadmConfigTemplate,
    }
    hub = _new({key: content[key] for key in ("spec", "status") if content.get(key)}, types[content["kind"]])
    data = {"kind": content["kind"], "apiVersion": config.API_VERSION} | hub
    metadata = _metadata(content)
    metadata["annotations"] = (metadata.get("annotations") or {}) | {DATA_ANNOTATION: msgspec.json.encode(data).decode()}
    out: Manifest = {"apiVersion": v1beta1.API_VERSION, "kind": content["kind"], "metadata": metadata}
    if content["kind"] == KUBEADM_CONFIG.kind:
        return out | {"spec": _spec_to_v1beta1(hub.get("spec", {})), "status": _status_to_v1beta1(hub.get("status", {}))}
    template = hub.get("spec", {}).get("template", {})
    return out | {"spec": {"template": {"metadata": template.get("metadata", {}), "spec": _spec_to_v1beta1(template.get("spec", {}))}}}


def _take_data(content: Manifest) -> tuple[Manifest, Manifest | None]:
    """The metadata without the annotation, and what the annotation holds."""
    metadata = _metadata(content)
    annotations = metadata.get("annotations") or {}
    text = annotations.pop(DATA_ANNOTATION, None)
    if not annotations:
        metadata.pop("annotations", None)
    if text is None:
        return metadata, None
    try:
        return metadata, _without_nulls(msgspec.json.decode(msgspec.convert(text, str), type=dict[str, Any]))
    except msgspec.DecodeError as error:
        raise ConversionError(
            f"{_named(content)}: the annotation {DATA_ANNOTATION} does not hold the object's v1beta2 form: {error}. Remove the annotation"
        ) from error


def _metadata(content: Manifest) -> Manifest:
    """A copy of the metadata, of which the annotations are an object, too."""
    _at(content, "metadata", "annotations")
    return deepcopy(content.get("metadata") or {})


def _named(content: Manifest) -> str:
    metadata = content.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    return f"{content.get('kind')} {metadata.get('namespace', '')}/{metadata.get('name', '')}"


def _new(content: Manifest, into: type[Type]) -> Manifest:
    """The content as a type of v1beta2 prints it: unknown and empty fields are gone."""
    try:
        return manifest(msgspec.convert(content, into))
    except msgspec.ValidationError as error:
        raise ConversionError(f"not a valid {into.__name__} of {config.API_VERSION}: {error}") from error


def _old(content: Manifest, into: type[Type]) -> Manifest:
    """The content as a type of v1beta1 prints it."""
    try:
        return encode(msgspec.convert(content, into))
    except msgspec.ValidationError as error:
        raise ConversionError(f"not a valid {into.__name__} of {v1beta1.API_VERSION}: {error}") from error


def _spec_to_v1beta1(spec: Manifest) -> Manifest:
    out = deepcopy(spec)
    for holder, key in _argument_lists(out):
        holder[key] = {arg.get("name", ""): arg.get("value", "") for arg in holder[key]}
    for token in (out.get("initConfiguration") or {}).get("bootstrapTokens", []):
        if "ttlSeconds" in token:
            token["ttl"] = _duration(token.pop("ttlSeconds"))
    init = (out.get("initConfiguration") or {}).pop("timeouts", {})
    if "controlPlaneComponentHealthCheckSeconds" in init:
        api_server = out.setdefault("clusterConfiguration", {}).setdefault("apiServer", {})
        api_server["timeoutForControlPlane"] = _duration(init["controlPlaneComponentHealthCheckSeconds"])
    join = (out.get("joinConfiguration") or {}).pop("timeouts", {})
    if "tlsBootstrapSeconds" in join:
        out["joinConfiguration"].setdefault("discovery", {})["timeout"] = _duration(join["tlsBootstrapSeconds"])
    for configuration in ("initConfiguration", "joinConfiguration"):
        # What had nothing but timeouts is gone; an empty controlPlane is not nothing.
        if configuration in out and not out[configuration]:
            del out[configuration]
    return _old(out, v1beta1.KubeadmConfigSpec)


def _spec_to_v1beta2(spec: Manifest, restored: Manifest | None) -> Manifest:
    """``restored`` is None where there was no annotation."""
    given = _old(spec, v1beta1.KubeadmConfigSpec)
    before = _new(restored or {}, config.KubeadmConfigSpec)
    if restored is not None and _spec_to_v1beta1(before) == given:
        return before
    out = deepcopy(given)
    for holder, key in _argument_lists(out):
        holder[key] = [{"name": name, "value": value} for name, value in sorted(holder[key].items())]
    for token in (out.get("initConfiguration") or {}).get("bootstrapTokens") or []:
        if token.get("ttl") is not None:
            token["ttlSeconds"] = _seconds(token.pop("ttl"))
    for partition in (out.get("diskSetup") or {}).get("partitions") or []:
        # v1beta1 must say layout, and v1beta2 does not take it beside diskLayout.
        if partition.get("diskLayout") and not partition.get("layout"):
            del partition["layout"]
    _booleans_to_v1beta2(out, before)
    for configuration in ("initConfiguration", "joinConfiguration"):
        timeouts = before.get(configuration, {}).get("timeouts")
        if timeouts:
            _within(out, configuration)["timeouts"] = deepcopy(timeouts)
    _timeouts_to_v1beta2(given, out)
    return _new(out, config.KubeadmConfigSpec)


def _timeouts_to_v1beta2(spec: Manifest, out: Manifest) -> None:
    """What v1beta1 says of timeouts, in other places than v1beta2, counts more than what was restored."""
    control_plane = (_at(spec, "clusterConfiguration", "apiServer") or {}).get("timeoutForControlPlane")
    discovery = (_at(spec, "joinConfiguration", "discovery") or {}).get("timeout")
    if control_plane is not None:
        init = _within(out, "initConfiguration", "timeouts")
        seconds = _seconds(control_plane)
        # v1beta1 has one for both; where it is as before, so is that of the join, which may be another.
        if init.get("controlPlaneComponentHealthCheckSeconds") != seconds:
            init["controlPlaneComponentHealthCheckSeconds"] = seconds
            _within(out, "joinConfiguration", "timeouts")["controlPlaneComponentHealthCheckSeconds"] = seconds
    if discovery is not None:
        _within(out, "joinConfiguration", "timeouts")["tlsBootstrapSeconds"] = _seconds(discovery)


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
        holder = _at(out, *path)
        if holder is not None:
            yield holder, key, _at(before, *path) or {}
    for component in ("apiServer", "controllerManager", "scheduler"):
        path = ("clusterConfiguration", component)
        were = (_at(before, *path) or {}).get("extraVolumes", [])
        for volume, was in _paired((_at(out, *path) or {}).get("extraVolumes", []), were, "hostPath"):
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
        holder = _at(spec, *path)
        if holder is not None and holder.get(key) is not None:
            yield holder, key


def _status_to_v1beta1(status: Manifest) -> Manifest:
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
    return _old(out, v1beta1.KubeadmConfigStatus)


def _status_to_v1beta2(status: Manifest, restored: Manifest | None) -> Manifest:
    """``restored`` is None where there was no annotation."""
    given = _old(status, v1beta1.KubeadmConfigStatus)
    before = _new(restored or {}, config.KubeadmConfigStatus)
    if restored is not None and _status_to_v1beta1(before) == given:
        return before
    created: bool | None = True if given["ready"] else None
    if created is None and before.get("initialization", {}).get("dataSecretCreated") is False:
        created = False
    out = {
        "conditions": given.get("v1beta2", {}).get("conditions", []),
        "initialization": {"dataSecretCreated": created},
        "dataSecretName": given.get("dataSecretName", ""),
        "observedGeneration": given.get("observedGeneration", 0),
        "deprecated": {"v1beta1": {key: given[key] for key in ("conditions", "failureReason", "failureMessage") if key in given}},
    }
    return _new(out, config.KubeadmConfigStatus)


def _at(content: Manifest, *path: str) -> Manifest | None:
    """The object at a path, or None where the path ends before."""
    here: Manifest = content
    for depth, key in enumerate(path, 1):
        found = here.get(key)
        if not found:
            return found if isinstance(found, dict) and depth == len(path) else None
        if not isinstance(found, dict):
            raise ConversionError(f"{_named(content)}: {'.'.join(path[:depth])} is no object")
        here = found
    return here


def _within(content: Manifest, *path: str) -> Manifest:
    """What is at a path, which is made where it ends."""
    for key in path:
        if content.get(key) is None:
            content[key] = {}
        content = content[key]
    return content


def _paired(rows: list[Manifest], were: list[Manifest], key: str) -> Iterator[tuple[Manifest, Manifest]]:
    """Each row with the one that it was: that of the same key, and of several the one that comes as late."""
    left: dict[Any, deque[Manifest]] = {}
    for each in were:
        left.setdefault(each.get(key), deque()).append(each)
    for row in rows:
        same = left.get(row.get(key))
        yield row, same.popleft() if same else {}


def _duration(seconds: int) -> str:
    return str(Duration.of(seconds=seconds))


def _seconds(text: str) -> int:
    """Whole seconds, towards zero, as many as 32 bits hold."""
    try:
        duration = Duration.parse(text)
    except ValueError as error:
        raise ConversionError(f"a duration of {v1beta1.API_VERSION} cannot be read: {error}") from error
    whole = abs(duration) // _SECOND
    return min(whole, _MOST_SECONDS) if duration >= 0 else -whole
