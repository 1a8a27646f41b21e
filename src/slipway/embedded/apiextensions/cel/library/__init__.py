"""All functions that an expression may call, and the names of types: the environment of Kubernetes 1.35."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.embedded.apiextensions.cel import types
from slipway.embedded.apiextensions.cel.library import authorization, formats, lists, network, operators, quantities, standard, strings

if TYPE_CHECKING:
    from slipway.embedded.apiextensions.cel.functions import Overload

OVERLOADS: dict[str, list[Overload]] = {}
for _library in (operators, standard, strings, lists, network, quantities, formats, authorization):
    for _name, _overloads in _library.FUNCTIONS.overloads.items():
        OVERLOADS[_name] = OVERLOADS.get(_name, []) + _overloads

TYPES: dict[str, types.Type] = {
    **{each.kind: each for each in (types.BOOL, types.INT, types.UINT, types.DOUBLE, types.STRING, types.BYTES, types.NULL, types.TYPE)},
    "list": types.list_of(types.DYN),
    "map": types.map_of(types.DYN, types.DYN),
    "google.protobuf.Timestamp": types.TIMESTAMP,
    "google.protobuf.Duration": types.DURATION,
    "optional_type": types.optional_of(types.DYN),
    **{each.kind: each for each in (types.URL, types.QUANTITY, types.IP, types.CIDR, types.FORMAT, types.SEMVER)},
}
