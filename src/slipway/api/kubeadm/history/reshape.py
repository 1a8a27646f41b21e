"""Fields of the same name and meaning, taken over from one version's type to the next one's."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from slipway.api.machinery.objects import Object

T = TypeVar("T", bound=Object)


def reshape(old: Object, new: type[T], *, leave_out: tuple[str, ...] = ()) -> T:
    """``old`` as a ``new``, deep; attributes that only one of them has, and those in ``leave_out``, are the caller's to convert."""
    wire_names = zip(new.__struct_fields__, new.__struct_encode_fields__, strict=True)
    fields = {wire: getattr(old, name) for name, wire in wire_names if name not in leave_out and hasattr(old, name)}
    return msgspec.convert(fields, new, from_attributes=True)
