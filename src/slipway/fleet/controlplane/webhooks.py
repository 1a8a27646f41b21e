"""What the API server asks before it stores a KubeadmControlPlane or a KubeadmControlPlaneTemplate, or before it scales one.

The rules and their texts are those of Cluster API 1.14, whose gates for ClusterClass, Ignition and taints are always open here.
Beyond them, which versions it may be given: see :mod:`slipway.fleet.controlplane.versions`; and a slip of the keyboard is no number of
replicas.
"""

from __future__ import annotations

import re
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from slipway.api.cluster import names
from slipway.api.cluster.controlplane.kubeadmcontrolplane import KubeadmControlPlane, KubeadmControlPlaneTemplate
from slipway.api.cluster.kinds import KUBEADM_CONTROL_PLANE, KUBEADM_CONTROL_PLANE_TEMPLATE
from slipway.api.cluster.meta import Type, manifest
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.fieldpath import FieldError, Fields, Path, forbidden, invalid, required
from slipway.api.machinery.version import Version
from slipway.fleet.contract.admission import (
    metadata_errors,
    naming_errors,
    problems,
    read,
    readable,
    stored,
    taint_errors,
    version_errors,
    with_prefix,
    without_prerelease,
)
from slipway.fleet.controlplane.versions import hold_version, upgrade_errors
from slipway.fleet.kubeadm.validation import validate_spec, with_former_defaults
from slipway.runtime.webhook.admission import Defaulter, Validator, Verdict
from slipway.workload import corefile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from slipway.api.cluster.bootstrap.kubeadm_cluster import ClusterConfiguration
    from slipway.api.cluster.controlplane.kubeadmcontrolplane import (
        KubeadmControlPlaneRolloutSpec,
        KubeadmControlPlaneSpec,
        KubeadmControlPlaneTemplateResourceSpec,
    )
    from slipway.api.machinery.objects import Manifest
    from slipway.runtime.webhook.admission import AdmissionRequest

ROLLING_UPDATE = "RollingUpdate"
_LEAST_FOR_SCALE_IN = 3
# No control plane has so many: the more members, the slower is every write to etcd.
_MOST_REPLICAS = 99
# As long as the certificate authorities live that are generated.
_CA_DAYS = 3650
_NOT_IN_A_TAG = re.compile(r"[^-a-zA-Z0-9_.]")
_NAMING_VALUES = {"kubeadmControlPlane": {"name": "kubeadmcontrolplane"}}

# What may change, by path: a star allows everything below, and a path without one allows that what is there goes.
_CHANGEABLE = (
    "metadata.*",
    "spec.replicas",
    "spec.version",
    "spec.remediation",
    "spec.remediation.*",
    "spec.machineNaming",
    "spec.machineNaming.*",
    "spec.rollout",
    "spec.rollout.*",
    "spec.machineTemplate.metadata",
    "spec.machineTemplate.metadata.*",
    "spec.machineTemplate.spec",
    "spec.machineTemplate.spec.*",
    *(
        f"spec.kubeadmConfigSpec.{path}"
        for path in (
            *("bootCommands", "preKubeadmCommands", "postKubeadmCommands", "files", "verbosity", "users", "format", "mounts"),
            *("ntp", "ntp.*", "ignition", "ignition.*", "diskSetup", "diskSetup.*"),
            *(
                f"clusterConfiguration.{each}"
                for each in (
                    *("etcd", "etcd.*", "dns", "dns.*", "imageRepository", "featureGates", "featureGates.*"),
                    *("apiServer", "apiServer.*", "controllerManager", "controllerManager.*", "scheduler", "scheduler.*"),
                    *("certificateValidityPeriodDays", "encryptionAlgorithm"),
                )
            ),
            *(
                f"{configuration}.{each}"
                for configuration in ("initConfiguration", "joinConfiguration")
                for each in (
                    "nodeRegistration",
                    "nodeRegistration.*",
                    "patches",
                    "patches.directory",
                    "skipPhases",
                    "timeouts",
                    "timeouts.*",
                )
            ),
            *(f"initConfiguration.{each}" for each in ("bootstrapTokens", "localAPIEndpoint", "localAPIEndpoint.*")),
            *(f"joinConfiguration.{each}" for each in ("caCertPath", "controlPlane", "controlPlane.*", "discovery", "discovery.*")),
        )
    ),
)


class _ScaleSpec(Type):
    replicas: int = 0


class _Scale(Type):
    """What is read of autoscaling/v1's Scale."""

    spec: _ScaleSpec = msgspec.field(default_factory=_ScaleSpec)


def webhooks(find: Callable[[str, str], Manifest | None]) -> list[Validator | Defaulter]:
    """``find`` gives the control plane of a namespace and a name: who scales one says nothing of the rest of it."""
    return [
        Defaulter(KUBEADM_CONTROL_PLANE, _default),
        Validator(KUBEADM_CONTROL_PLANE, _judge),
        Validator(KUBEADM_CONTROL_PLANE, partial(_judge_scale, find), operations=("UPDATE",), subresource="scale"),
        Validator(KUBEADM_CONTROL_PLANE_TEMPLATE, _judge_template),
    ]


def _judge(request: AdmissionRequest) -> Verdict:
    if request.object is None:
        return Verdict()
    new = read(request.object, KubeadmControlPlane)
    if isinstance(new, FieldError):
        return Verdict(problems([new]))
    found = spec_errors(new.spec, Path("spec"))
    configuration, place = new.spec.kubeadm_config_spec.cluster_configuration, Path("spec", "kubeadmConfigSpec", "clusterConfiguration")
    old = stored(request.old, KubeadmControlPlane)
    if old is None:
        found += configuration_errors(configuration, None, place)
    else:
        found += [forbidden(Path(*path), "cannot be modified") for path in changed(manifest(old), manifest(new)) if not is_changeable(path)]
        found += upgrade_errors(new, old)
        found += configuration_errors(configuration, old.spec.kubeadm_config_spec.cluster_configuration, place)
        found += dns_errors(new, old)
    return Verdict(problems([*found, *validate_spec(new.spec.kubeadm_config_spec, Path("spec", "kubeadmConfigSpec"))]))


def _judge_template(request: AdmissionRequest) -> Verdict:
    if request.object is None:
        return Verdict()
    new = read(request.object, KubeadmControlPlaneTemplate)
    if isinstance(new, FieldError):
        return Verdict(problems([new]))
    path, spec = Path("spec", "template", "spec"), new.spec.template.spec
    if request.old is not None:
        old = stored(request.old, KubeadmControlPlaneTemplate)
        before = None if old is None else old.spec.template.spec
        same = before is None or _immutable(before, before) == _immutable(spec, before)
        detail = "KubeadmControlPlaneTemplate spec.template.spec field is immutable. Please create new resource instead."
        return Verdict() if same else Verdict(problems([invalid(path, Fields(manifest(spec)), detail)]))
    found = rollout_errors(spec.rollout, spec.kubeadm_config_spec.cluster_configuration, None, path)
    found += naming_errors(spec.machine_naming.template, _NAMING_VALUES, path.child("machineNaming", "template"))
    found += taint_errors(spec.machine_template.spec.taints, path.child("machineTemplate", "spec", "taints"))
    found += metadata_errors(spec.machine_template.metadata, path.child("machineTemplate", "metadata"))
    configuration = path.child("kubeadmConfigSpec", "clusterConfiguration")
    found += configuration_errors(spec.kubeadm_config_spec.cluster_configuration, None, configuration)
    found += validate_spec(spec.kubeadm_config_spec, path.child("kubeadmConfigSpec"))
    return Verdict(problems([*found, *metadata_errors(new.spec.template.metadata, Path("spec", "template", "metadata"))]))


def _immutable(spec: KubeadmControlPlaneTemplateResourceSpec, old: KubeadmControlPlaneTemplateResourceSpec) -> Manifest:
    """What may not change, with what earlier versions filled in and no version does today."""
    out = manifest(spec)
    out["kubeadmConfigSpec"] = with_former_defaults(out.get("kubeadmConfigSpec") or {})
    former = manifest(old.rollout).get("strategy", {})
    if former == {"type": ROLLING_UPDATE, "rollingUpdate": {"maxSurge": 1}} and not spec.rollout.strategy:
        out["rollout"] = {**out.get("rollout", {}), "strategy": former}
    return out


def _judge_scale(find: Callable[[str, str], Manifest | None], request: AdmissionRequest) -> Verdict:
    if request.object is None:
        return Verdict()
    path = Path("spec", "replicas")
    scale = read(request.object, _Scale)
    if isinstance(scale, FieldError):
        return Verdict(problems([scale]))
    replicas, plane = scale.spec.replicas, stored(find(request.namespace, request.name), KubeadmControlPlane)
    if replicas <= 0:
        return Verdict(problems([forbidden(path, "replicas should be greater than zero")]))
    if replicas > _MOST_REPLICAS:
        return Verdict(problems([_too_many(path, replicas)]))
    if plane is None:
        detail = f"failed to get KubeadmControlPlane {request.namespace}/{request.name}: try again"
        return Verdict(problems([forbidden(path, detail)]))
    if replicas % 2 == 0 and not plane.spec.kubeadm_config_spec.cluster_configuration.etcd.external:
        return Verdict(problems([forbidden(path, "replicas cannot be an even number when etcd is stacked")]))
    return Verdict()


# Defaults.


def _default(request: AdmissionRequest) -> Manifest:
    readable(request.object or {}, KubeadmControlPlane)
    out = deepcopy(request.object or {})
    spec: Manifest = out.setdefault("spec", {})
    if spec.get("replicas") is None:
        spec["replicas"] = 1
    spec["version"] = with_prefix(spec.get("version") or "v")
    rollout = spec["rollout"] = spec.get("rollout") or {}
    strategy = rollout["strategy"] = (rollout.get("strategy") or {}) | {"type": ROLLING_UPDATE}
    rolling = strategy["rollingUpdate"] = strategy.get("rollingUpdate") or {}
    if rolling.get("maxSurge") is None:
        rolling["maxSurge"] = 1
    old = stored(request.old, KubeadmControlPlane)
    if old is not None:
        hold_version(out, old)
    return out


# Rules.


def _too_many(path: Path, replicas: int) -> FieldError:
    return invalid(path, replicas, f"a control plane has {_MOST_REPLICAS} replicas at most")


def spec_errors(spec: KubeadmControlPlaneSpec, path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    if spec.replicas is None:
        found.append(required(path.child("replicas"), "is required"))
    elif spec.replicas <= 0:
        found.append(forbidden(path.child("replicas"), "cannot be less than or equal to 0"))
    elif spec.replicas > _MOST_REPLICAS:
        found.append(_too_many(path.child("replicas"), spec.replicas))
    if spec.replicas is not None and spec.replicas % 2 == 0 and not spec.kubeadm_config_spec.cluster_configuration.etcd.external:
        found.append(forbidden(path.child("replicas"), "cannot be an even number when etcd is stacked"))
    template = spec.machine_template
    reference = template.spec.infrastructure_ref
    for name, value in (("apiGroup", reference.api_group), ("kind", reference.kind), ("name", reference.name)):
        if not value:
            found.append(invalid(path.child("machineTemplate", "infrastructure", name), value, "cannot be empty"))
    found += taint_errors(template.spec.taints, path.child("machineTemplate", "spec", "taints"))
    found += metadata_errors(template.metadata, path.child("machineTemplate", "metadata"))
    found += version_errors(spec.version, path.child("version"))
    found += rollout_errors(spec.rollout, spec.kubeadm_config_spec.cluster_configuration, spec.replicas, path)
    return found + naming_errors(spec.machine_naming.template, _NAMING_VALUES, path.child("machineNaming", "template"))


def rollout_errors(
    rollout: KubeadmControlPlaneRolloutSpec, configuration: ClusterConfiguration, replicas: int | None, path: Path
) -> list[FieldError]:
    if not rollout.strategy:
        return []
    found: list[FieldError] = []
    strategy = path.child("rollout", "strategy")
    if rollout.strategy.type != ROLLING_UPDATE:
        found.append(required(strategy.child("type"), f"only {ROLLING_UPDATE} is supported"))
    surge = rollout.strategy.rolling_update.max_surge
    if surge is not None:
        # A text is the number that it is, and else 0, as Go reads it.
        number = surge if isinstance(surge, int) else int(surge) if surge.isdecimal() else 0
        if number == 0 and replicas is not None and replicas < _LEAST_FOR_SCALE_IN:
            detail = "when KubeadmControlPlane is configured to scale-in, replica count needs to be at least 3"
            found.append(required(strategy.child("rollingUpdate"), detail))
        if number not in (0, 1):
            found.append(required(strategy.child("rollingUpdate", "maxSurge"), "value must be 1 or 0"))
    return found + _validity_errors(rollout, configuration, path)


def _validity_errors(rollout: KubeadmControlPlaneRolloutSpec, configuration: ClusterConfiguration, path: Path) -> list[FieldError]:
    days, authority = configuration.certificate_validity_period_days, configuration.ca_certificate_validity_period_days
    if not days:
        return []
    found = []
    if days > (authority or _CA_DAYS):
        limit = "caCertificateValidityPeriodDays" if authority else "the default value of caCertificateValidityPeriodDays"
        place = path.child("kubeadmConfigSpec", "clusterConfiguration", "certificateValidityPeriodDays")
        found.append(invalid(place, days, f"must be less than or equal to {limit} ({authority or _CA_DAYS})"))
    before = rollout.before.certificates_expiry_days
    if before and before >= days:
        place = path.child("rollout", "before", "certificatesExpiryDays")
        found.append(invalid(place, before, f"must be less than certificateValidityPeriodDays ({days})"))
    return found


def configuration_errors(new: ClusterConfiguration, old: ClusterConfiguration | None, path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    tag, local = new.dns.image_tag, new.etcd.local
    if _NOT_IN_A_TAG.search(tag):
        found.append(forbidden(path.child("dns", "imageTag"), f"tag {tag} is invalid"))
    if tag and _dns_version(tag) is None:
        found.append(invalid(Path("dns", "imageTag"), tag, "failed to parse CoreDNS version"))
    if local and _NOT_IN_A_TAG.search(local.image_tag):
        found.append(forbidden(path.child("etcd", "local", "imageTag"), f"tag {local.image_tag} is invalid"))
    if local and new.etcd.external:
        found.append(forbidden(path.child("etcd", "local"), "cannot have both external and local etcd"))
    if old is not None and bool(new.etcd.external) != bool(old.etcd.external):
        found.append(forbidden(path.child("etcd", "external"), "cannot change between external and local etcd"))
    return found


def dns_errors(new: KubeadmControlPlane, old: KubeadmControlPlane) -> list[FieldError]:
    """CoreDNS goes up to versions for which it is known how its Corefile is migrated."""
    path = Path("spec", "kubeadmConfigSpec", "clusterConfiguration", "dns", "imageTag")
    before, after = (plane.spec.kubeadm_config_spec.cluster_configuration.dns.image_tag for plane in (old, new))
    if not before or not after:
        return []
    at, to = _dns_version(before), _dns_version(after)
    if at is None or to is None:
        return [invalid(path, before if at is None else after, f"failed to parse {'current' if at is None else 'target'} CoreDNS version")]
    if without_prerelease(at) == without_prerelease(to) or names.SKIP_COREDNS_ANNOTATION in (new.metadata.get("annotations") or {}):
        return []
    try:
        corefile.steps(str(without_prerelease(at)), str(without_prerelease(to)), newest=corefile.VERSIONS[-1])
    except OperatorError as error:
        return [forbidden(path, f"cannot migrate CoreDNS up to '{to}' from '{at}': {error.message}")]
    return []


def _dns_version(tag: str) -> Version | None:
    try:
        # A tag has no plus sign.
        return Version.tolerant(tag.replace("_", "+"))
    except ValueError:
        return None


def changed(old: Manifest, new: Manifest, *above: str) -> Iterator[tuple[str, ...]]:
    """The paths of what a merge patch from one to the other would say, the status aside."""
    for key in sorted(old.keys() | new.keys()):
        if not above and key == "status":
            continue
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        if isinstance(after, dict) and (isinstance(before, dict) or key not in old):
            yield from changed(before if isinstance(before, dict) else {}, after, *above, key)
        else:
            yield (*above, key)


def is_changeable(path: tuple[str, ...]) -> bool:
    return any(_fits(allowed.split("."), path) for allowed in _CHANGEABLE)


def _fits(allowed: list[str], path: tuple[str, ...]) -> bool:
    if allowed[-1] == "*":
        return len(path) >= len(allowed) and list(path[: len(allowed) - 1]) == allowed[:-1]
    return list(path) == allowed
