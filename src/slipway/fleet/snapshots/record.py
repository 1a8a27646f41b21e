"""What is known of a snapshot, under which names it is kept, and which are kept: values alone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DATABASE, RECORD, PARTIAL = ".db", ".json", ".part"
_NAME = re.compile(r"(\d{8}T\d{6}Z)-r(\d+)")
# One that was interrupted leaves a file behind; one that is being written now must not be taken for that.
_ABANDONED = timedelta(days=1)


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A snapshot that was taken and checked.  ``sha256`` is that of the whole file, as ``sha256sum`` says it."""

    namespace: str
    cluster: str
    taken: datetime
    revision: int
    size: int
    sha256: str
    etcd_version: str = ""
    kubernetes_version: str = ""
    """The version of the control plane, which is the one to restore with."""

    @property
    def name(self) -> str:
        return name_of(self.taken, self.revision)


def name_of(taken: datetime, revision: int) -> str:
    """It says when and what; names sort by time."""
    return f"{taken.astimezone(UTC):%Y%m%dT%H%M%SZ}-r{revision}"


def taken_at(name: str) -> datetime | None:
    """When the snapshot of a name, or of a file's name, was taken; None where it is none."""
    found = _NAME.match(name)
    try:
        return datetime.strptime(found[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC) if found else None
    except ValueError:
        return None


def written(snapshot: Snapshot) -> bytes:
    return msgspec.json.format(msgspec.json.encode(snapshot)) + b"\n"


def read(content: bytes, where: str) -> Snapshot:
    try:
        return msgspec.json.decode(content, type=Snapshot)
    except msgspec.DecodeError as error:
        raise OperatorError(f"{where} is not the record of a snapshot: {error}") from None


def superfluous(files: Iterable[str], keep: int, now: datetime) -> list[str]:
    """The files of one cluster that are to go, so that the newest ``keep`` snapshots stay.

    Records go before their databases: what is killed in between leaves a database without a record, which is no snapshot, and goes when it
    is a day old.  Files that are not ours stay.
    """
    known = {file: taken for file in files if (taken := taken_at(file)) is not None}
    recorded = sorted((file.removesuffix(RECORD) for file in known if file.endswith(RECORD)), reverse=True)
    kept = set(recorded[:keep])
    going = [
        file
        for file, taken in known.items()
        if (stem := file.partition(".")[0]) not in kept and (stem in recorded or now - taken > _ABANDONED)
    ]
    return sorted(going, key=lambda file: (not file.endswith(RECORD), file))


def chosen(known: Sequence[Snapshot], name: str) -> Snapshot:
    """The snapshot of a name, or the newest one where it is empty."""
    if not known:
        raise OperatorError("there is no snapshot of this cluster: take one with `slipway fleet snapshot CLUSTER`, while it answers")
    if not name:
        return max(known, key=lambda each: each.taken)
    found = next((each for each in known if each.name == name), None)
    if found is None:
        raise OperatorError(f'there is no snapshot "{name}" of this cluster: there are {", ".join(each.name for each in known)}')
    return found
