"""The JSON value of a configuration object, with Go's rules for what is printed (see ``objects``)."""

from __future__ import annotations

from typing import Any

import msgspec

from slipway.api.machinery.duration import Duration
from slipway.api.machinery.objects import Object

# Attribute, name on the wire, default, and whether it is printed even then.
_plans: dict[type[Object], list[tuple[str, str, Any, bool]]] = {}


def encode(value: Object) -> dict[str, Any]:
    """The object as a plain dict with the names of the wire, in the order of its fields."""
    out: dict[str, Any] = {}
    for name, wire, default, always in _plan(type(value)):
        item = getattr(value, name)
        # Go leaves out no struct, and Go's Duration is one.
        if always or isinstance(item, (Object, Duration)) or item != default:
            out[wire] = _encode(item)
    return out


def _encode(value: Any) -> Any:
    if isinstance(value, Object):
        return encode(value)
    if isinstance(value, list):
        return [_encode(item) for item in value]
    if isinstance(value, dict):
        return {key: _encode(item) for key, item in value.items()}
    return str(value) if isinstance(value, Duration) else value


def _plan(cls: type[Object]) -> list[tuple[str, str, Any, bool]]:
    plan = _plans.get(cls)
    if plan is None:
        names = cls.__struct_fields__
        defaults = (msgspec.NODEFAULT,) * (len(names) - len(cls.__struct_defaults__)) + cls.__struct_defaults__
        plan = _plans[cls] = [
            (name, wire, default.factory() if hasattr(default, "factory") else default, name in cls.always_printed)
            for name, wire, default in zip(names, cls.__struct_encode_fields__, defaults, strict=True)
        ]
    return plan
