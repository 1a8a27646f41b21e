"""``status.versions``: how many machines run which version, in Cluster API's order."""

from __future__ import annotations

from functools import cmp_to_key
from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.version import Version

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.machinery.objects import Manifest


class StatusVersion(msgspec.Struct, gc=False):
    """How many machines have a version."""

    version: str = ""
    replicas: int = 0


def added_up(found: Iterable[StatusVersion]) -> list[Manifest]:
    """By version, the oldest one first; what is no version comes last.

    Versions that differ in words of their build metadata alone have no order: they stay as they came.
    """
    counted: dict[str, int] = {}
    for one in found:
        if one.version:
            counted[one.version] = counted.get(one.version, 0) + one.replicas
    return [{"version": version, "replicas": counted[version]} for version in sorted(counted, key=cmp_to_key(_compare))]


def _compare(one: str, other: str) -> int:
    first, second = _parsed(one), _parsed(other)
    if first is not None and second is not None:
        if first != second:
            return -1 if first < second else 1
        builds = compared_builds(first.build, second.build)
        if builds is None:
            # Neither is older: they stay as they came.
            return 0
        if builds:
            return builds
    elif first is not None or second is not None:
        return -1 if first is not None else 1
    return (one > other) - (one < other)


def compared_builds(one: str, other: str) -> int | None:
    """As Cluster API compares build metadata: part by part; numbers as such, numbers before words; words that differ have no order."""
    parts, others = one.split(".") if one else [], other.split(".") if other else []
    for part, its in zip(parts, others, strict=False):
        if part.isdecimal() and its.isdecimal():
            if int(part) != int(its):
                return -1 if int(part) < int(its) else 1
        elif part.isdecimal() != its.isdecimal():
            return -1 if part.isdecimal() else 1
        elif part != its:
            return None
    return (len(parts) > len(others)) - (len(parts) < len(others))


def _parsed(text: str) -> Version | None:
    try:
        return Version.tolerant(text)
    except ValueError:
        return None
