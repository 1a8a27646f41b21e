"""The order of Kubernetes versions as catalogs of images have them, and the way from one to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.api.releases import KNOWN_PATCHES

if TYPE_CHECKING:
    from collections.abc import Iterable

KUBELET_SKEW = 3
"""A kubelet may be so many minor versions older than the API server (Kubernetes' version skew policy)."""
_Rank = tuple[int, int, int, int, int]


def rank(version: str) -> _Rank:
    """What versions are compared by.

    A number behind a dash is how distributions count their builds of a release (v1.33.7-2), and so is later than the release; everything
    else there is what comes before it (v1.36.0-rc.1).
    """
    try:
        parsed = Version.tolerant(version)
    except ValueError as error:
        raise OperatorError(str(error)) from None
    build = parsed.prerelease
    stage, number = (1, int(build)) if build.isdecimal() else (0, 0) if not build else (-1, 0)
    return parsed.major, parsed.minor, parsed.patch, stage, number


def minor(version: str) -> int:
    return rank(version)[1]


def is_older(version: str, than: str) -> bool:
    one, other = rank(version), rank(than)
    if one == other and one[3] < 0:
        # Of what comes before a release the rank does not tell which one.
        return Version.tolerant(version) < Version.tolerant(than)
    return one < other


def way(at: str, to: str, known: Iterable[str] | None = None) -> dict[int, str]:
    """The version to go to of each minor that lies between two versions, which a control plane does not leave out.

    ``known`` are those that there are images of: the newest of each minor is taken.  None where any may be had, and then it is the newest
    one that this program knows.
    """
    first, last = rank(at), rank(to)
    if first[0] != last[0]:
        raise OperatorError(f"there is no way from {at} to {to} by one minor version after the other")
    if known is None:
        return {between: f"v{first[0]}.{between}.{KNOWN_PATCHES.get(between, 0)}" for between in range(first[1] + 1, last[1])}
    released = sorted((each for each in known if _is_version(each) and rank(each)[3] >= 0), key=rank)
    newest = {minor(each): each for each in released if rank(each)[0] == first[0]}
    missing = [f"v{first[0]}.{between}" for between in range(first[1] + 1, last[1]) if between not in newest]
    if missing:
        raise OperatorError(
            f"the way from {at} to {to} leads over {', '.join(missing)}, and the image catalog has no image of that: add one, "
            "as a control plane goes up one minor version at a time"
        )
    return {between: newest[between] for between in range(first[1] + 1, last[1])}


def _is_version(text: str) -> bool:
    try:
        Version.tolerant(text)
    except ValueError:
        return False
    return True
