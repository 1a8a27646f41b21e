"""The base of every configuration type: plain declarations, with Go's rules for what is printed.

A field is printed when its value differs from its default, as Go's ``omitempty`` does it: pointers are optional types
with the default None, so that an explicit false or 0s is kept; nested objects are never left out.  Fields without
``omitempty`` are named in ``always_printed``.  Names on the wire come from ``msgspec.field(name=…)`` or from
``rename="camel"``.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

Manifest = dict[str, Any]
"""An object as its JSON is, of whatever kind."""


class Object(msgspec.Struct, kw_only=True, rename="camel"):
    """A structured value of an API.  ``always_printed`` holds attribute names, not wire names."""

    always_printed: ClassVar[frozenset[str]] = frozenset()
