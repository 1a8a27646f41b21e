"""Between the versions of a file and the internal form.

Types of the same name are converted attribute by attribute; what has another shape in another version is said in
``_ADJUSTMENTS``, one short function a type.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from slipway.api.kubeadm import defaults, internal, v1beta3, v1beta4
from slipway.api.machinery import strict
from slipway.api.machinery.duration import Duration
from slipway.api.machinery.objects import Object
from slipway.api.releases import Release

if TYPE_CHECKING:
    from types import ModuleType

T = TypeVar("T", bound=Object)
Fields = dict[str, Any]


def to_internal(source: Object, target: type[T], release: Release) -> T:
    """The internal form of a v1beta3 or v1beta4 object that has its defaults."""
    converted = _convert(source, internal, release)
    assert isinstance(converted, target)
    return converted


def to_version(source: Object, target: type[T], release: Release) -> T:
    """The form of an internal object in the version that ``target`` belongs to."""
    converted = _convert(source, sys.modules[target.__module__], release)
    assert isinstance(converted, target)
    return converted


def args_from_map(arguments: dict[str, str]) -> list[internal.Arg]:
    """v1beta3 and older have a map of flags: the list is sorted by name."""
    return [internal.Arg(name=name, value=value) for name, value in sorted(arguments.items())]


def args_to_map(arguments: list[internal.Arg]) -> dict[str, str]:
    """Of a flag that is given more than once only the last value is left."""
    return {argument.name: argument.value for argument in arguments}


def utc_time(text: str) -> str:
    """RFC 3339 in UTC and whole seconds, as Go prints it; ValueError where it is no such time."""
    if not re.fullmatch(r"[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}([.,][0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})", text):
        raise ValueError(f'parsing time "{text}": not of the form "2006-01-02T15:04:05Z07:00"')
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(re.sub(r"[.,][0-9]+", "", text)).astimezone(UTC)
    except OverflowError:
        raise ValueError(f'parsing time "{text}": in UTC it is outside of the years 1 to 9999') from None
    except ValueError as error:
        raise ValueError(f'parsing time "{text}": {error}') from None
    return moment.replace(tzinfo=None).isoformat() + "Z"


def canonical_divisor(value: object) -> str:
    """A quantity, which may be written as a number, as Kubernetes prints it; ValueError where it is none."""
    from slipway.api.machinery import quantity

    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError("a quantity is text such as 1Mi, or a number")
    return quantity.canonical(str(value))


def _convert(value: Any, module: ModuleType, release: Release) -> Any:
    if isinstance(value, list):
        return [_convert(item, module, release) for item in value]
    if isinstance(value, dict):
        return dict(value)
    target = getattr(module, type(value).__name__, None) if isinstance(value, Object) else None
    if target is None:
        # A plain value, or a type without a counterpart, which an adjustment replaces.
        return value
    # What is unset stays at the default of the target, which may be an empty object instead of a null pointer.
    fields = {
        name: _convert(content, module, release) for name in target.__struct_fields__ if (content := getattr(value, name, None)) is not None
    }
    adjust = _ADJUSTMENTS.get((type(value), module.__name__))
    if adjust is not None:
        adjust(value, fields, release)
    return target(**fields)


def _extra_args_to_list(source: Any, fields: Fields, release: Release) -> None:
    fields["extra_args"] = args_from_map(source.extra_args)


def _extra_args_to_map(source: Any, fields: Fields, release: Release) -> None:
    fields["extra_args"] = args_to_map(source.extra_args)


def _cluster_from_v1beta3(source: v1beta3.ClusterConfiguration, fields: Fields, release: Release) -> None:
    fields["encryption_algorithm"] = defaults.ENCRYPTION_ALGORITHM
    fields["certificate_validity_period"] = defaults.CERTIFICATE_VALIDITY
    fields["ca_certificate_validity_period"] = defaults.CA_CERTIFICATE_VALIDITY


def _cluster_from_v1beta4(source: v1beta4.ClusterConfiguration, fields: Fields, release: Release) -> None:
    fields["api_server"].timeout_for_control_plane = Duration(0)


def _external_etcd_from_v1beta3(source: v1beta3.ExternalEtcd, fields: Fields, release: Release) -> None:
    if release.http_etcd_endpoints:
        fields["http_endpoints"] = list(source.endpoints or ())


def _external_etcd_to_version(source: internal.ExternalEtcd, fields: Fields, release: Release) -> None:
    fields["endpoints"] = list(source.endpoints) or None


def _node_registration_from_v1beta3(source: v1beta3.NodeRegistrationOptions, fields: Fields, release: Release) -> None:
    fields["kubelet_extra_args"] = args_from_map(source.kubelet_extra_args)
    fields["image_pull_serial"] = True


def _node_registration_to_v1beta3(source: internal.NodeRegistrationOptions, fields: Fields, release: Release) -> None:
    fields["kubelet_extra_args"] = args_to_map(source.kubelet_extra_args)


def _init_from_v1beta3(source: v1beta3.InitConfiguration, fields: Fields, release: Release) -> None:
    fields["timeouts"] = internal.Timeouts(**defaults.TIMEOUTS)


def _join_from_v1beta3(source: v1beta3.JoinConfiguration, fields: Fields, release: Release) -> None:
    fields["timeouts"] = internal.Timeouts(**defaults.TIMEOUTS)
    fields["timeouts"].discovery = source.discovery.timeout


def _join_to_v1beta3(source: internal.JoinConfiguration, fields: Fields, release: Release) -> None:
    fields["discovery"].timeout = source.timeouts.discovery


def _join_from_v1beta4(source: v1beta4.JoinConfiguration, fields: Fields, release: Release) -> None:
    fields["discovery"].timeout = source.timeouts.discovery if source.timeouts is not None else None


def _bootstrap_token_to_internal(source: Any, fields: Fields, release: Release) -> None:
    if source.expires is not None:
        fields["expires"] = utc_time(source.expires)


def _bootstrap_token_to_version(source: internal.BootstrapToken, fields: Fields, release: Release) -> None:
    fields["token"] = source.token or None


def _taint_to_internal(source: Any, fields: Fields, release: Release) -> None:
    if source.time_added is not None:
        fields["time_added"] = utc_time(source.time_added)


def _env_var_from_v1beta4(source: v1beta4.EnvVar, fields: Fields, release: Release) -> None:
    if source.value_from is not None:
        value_from = strict.encode(source.value_from)
        if "resourceFieldRef" in value_from:
            value_from["resourceFieldRef"]["divisor"] = _canonical_quantity(source.value_from.resource_field_ref)
        fields["value_from"] = value_from


def _env_var_to_v1beta4(source: internal.EnvVar, fields: Fields, release: Release) -> None:
    if source.value_from is not None:
        fields["value_from"] = msgspec.convert(source.value_from, v1beta4.EnvVarSource)


def _canonical_quantity(reference: v1beta4.ResourceFieldRef | None) -> str:
    return canonical_divisor(reference.divisor) if reference is not None and reference.divisor is not None else "0"


_Adjustment = Callable[[Any, Fields, Release], None]
_INTERNAL, _V1BETA3, _V1BETA4 = internal.__name__, v1beta3.__name__, v1beta4.__name__

_ADJUSTMENTS: dict[tuple[type[Object], str], _Adjustment] = {
    (v1beta3.ControlPlaneComponent, _INTERNAL): _extra_args_to_list,
    (v1beta3.APIServer, _INTERNAL): _extra_args_to_list,
    (v1beta3.LocalEtcd, _INTERNAL): _extra_args_to_list,
    (internal.ControlPlaneComponent, _V1BETA3): _extra_args_to_map,
    (internal.APIServer, _V1BETA3): _extra_args_to_map,
    (internal.LocalEtcd, _V1BETA3): _extra_args_to_map,
    (v1beta3.ClusterConfiguration, _INTERNAL): _cluster_from_v1beta3,
    (v1beta4.ClusterConfiguration, _INTERNAL): _cluster_from_v1beta4,
    (v1beta3.ExternalEtcd, _INTERNAL): _external_etcd_from_v1beta3,
    (internal.ExternalEtcd, _V1BETA3): _external_etcd_to_version,
    (internal.ExternalEtcd, _V1BETA4): _external_etcd_to_version,
    (v1beta3.NodeRegistrationOptions, _INTERNAL): _node_registration_from_v1beta3,
    (internal.NodeRegistrationOptions, _V1BETA3): _node_registration_to_v1beta3,
    (v1beta3.InitConfiguration, _INTERNAL): _init_from_v1beta3,
    (v1beta3.JoinConfiguration, _INTERNAL): _join_from_v1beta3,
    (internal.JoinConfiguration, _V1BETA3): _join_to_v1beta3,
    (v1beta4.JoinConfiguration, _INTERNAL): _join_from_v1beta4,
    (v1beta3.BootstrapToken, _INTERNAL): _bootstrap_token_to_internal,
    (v1beta4.BootstrapToken, _INTERNAL): _bootstrap_token_to_internal,
    (internal.BootstrapToken, _V1BETA3): _bootstrap_token_to_version,
    (internal.BootstrapToken, _V1BETA4): _bootstrap_token_to_version,
    (v1beta3.Taint, _INTERNAL): _taint_to_internal,
    (v1beta4.Taint, _INTERNAL): _taint_to_internal,
    (v1beta4.EnvVar, _INTERNAL): _env_var_from_v1beta4,
    (internal.EnvVar, _V1BETA4): _env_var_to_v1beta4,
}
