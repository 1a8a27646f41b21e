"""What is done next about the image that the host is to have ahead: a pure function of what is wanted, what is there, and the time.

Nothing is remembered that a power cut would take: an image is there once its folder has a record, and every other folder is a rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.api.elemental import staging

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.elemental.staging import Wanted

CHECK_SECONDS = 300.0
"""How long a tag is believed to name what was fetched by it."""
_FIRST_RETRY, _LAST_RETRY = 60.0, 900.0


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """An image that is there, as its folder has it written down."""

    reference: str
    digest: str
    bytes: int = 0
    version: str = ""
    """Of its kubelet; empty where that does not say."""


class Failure(msgspec.Struct, frozen=True):
    """Why an image could not be had, for how many times by now, and when that was last so."""

    image: str
    message: str
    at: float
    times: int = 1


class Drop(msgspec.Struct, frozen=True):
    """Remove what nobody wants: these names in the folder of images."""

    names: tuple[str, ...]


class Fetch(msgspec.Struct, frozen=True):
    """Fetch an image, unless what is there has the digest that its registry names."""

    wanted: Wanted
    unless: str = ""


class Rest(msgspec.Struct, frozen=True):
    """Nothing to do, for so many seconds or until something else is wanted."""

    seconds: float | None = None


Job = Drop | Fetch | Rest


def next_job(
    wanted: Wanted | None, found: Mapping[str, Record | None], failure: Failure | None, checked: float | None, now: float
) -> Drop | Fetch | Rest:
    """``found`` are the names in the folder with their records, ``checked`` is when the image was last compared with its registry."""
    name = _name(wanted.image) if wanted is not None else ""
    record = found.get(name)
    if unwanted := tuple(sorted(other for other, known in found.items() if other != name or known is None)):
        return Drop(unwanted)
    if wanted is None:
        return Rest()
    if failure is not None and failure.image == wanted.image:
        pause = min(_FIRST_RETRY * 2 ** (failure.times - 1), _LAST_RETRY)
        # A clock that was set back does not make it longer.
        if 0 <= (passed := now - failure.at) < pause:
            return Rest(pause - passed)
    if record is None:
        return Fetch(wanted)
    if "@" in wanted.image:
        return Rest()
    if checked is not None and 0 <= (passed := now - checked) < CHECK_SECONDS:
        return Rest(CHECK_SECONDS - passed)
    return Fetch(wanted, record.digest)


def is_other_version(wanted: str, told: str) -> bool:
    """Whether a kubelet is not of the version that is wanted; a distribution's own mark, as in v1.33.7-2, need not be in what it says."""
    return bool(wanted and told) and told not in (wanted, wanted.partition("+")[0].partition("-")[0])


def facts(wanted: Wanted | None, record: Record | None, failure: Failure | None) -> dict[str, object] | None:
    """What the host says of it; None where nothing is wanted."""
    if wanted is None:
        return None
    if record is not None:
        return {
            "image": wanted.image,
            "state": staging.STAGED,
            "digest": record.digest,
            "version": record.version,
            "bytes": record.bytes,
        }
    if failure is not None and failure.image == wanted.image:
        return {"image": wanted.image, "state": staging.FAILED, "message": failure.message}
    return {"image": wanted.image, "state": staging.FETCHING}


def _name(image: str) -> str:
    return staging.place(image).rpartition("/")[2]
