"""Whether a control plane is rolled only after a snapshot of its etcd, as its annotations want it, and whether there is one to rely on.

A rollout relies on one snapshot, which is noted on the KubeadmControlPlane with the generation of the spec that is being rolled out.  When
no machine is outdated any more, the note is marked as ended: a rollout without a change of the spec, such as one because certificates
expire, has another one taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.api.cluster.names import SNAPSHOT_BEFORE_ROLLOUT_CONDITION
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.snapshots import places

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.fleet.snapshots.places import Place
    from slipway.fleet.snapshots.record import Snapshot

BEFORE_ANNOTATION = "slipway.io/snapshot-before-rollout"
"""``default`` for the manager's own store, or ``s3://BUCKET[/PREFIX]``."""
SECRET_ANNOTATION = "slipway.io/snapshot-secret"
KEEP_ANNOTATION = "slipway.io/snapshot-keep"
NOTE_ANNOTATION = "slipway.io/rollout-snapshot"
CONDITION = SNAPSHOT_BEFORE_ROLLOUT_CONDITION
"""Whether there is a snapshot that the rollout relies on, or no rollout; why not, and what to do."""
DEFAULT = "default"


class Wish(NamedTuple):
    """``place`` is None where the manager's own store is meant, and ``keep`` where as many are kept as there."""

    place: Place | None
    keep: int | None


class Note(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The snapshot that a rollout relies on."""

    name: str
    revision: int
    size: int
    sha256: str
    store: str
    generation: int
    ended: bool = False

    def text(self) -> str:
        return msgspec.json.encode(self).decode()

    def __str__(self) -> str:
        return f"{self.name} (revision {self.revision}, {self.size} bytes, sha256 {self.sha256}) in {self.store}"


def wish_from(annotations: Mapping[str, str]) -> Wish | None:
    """What the annotations of a control plane want; None where they want nothing, OperatorError where nobody can know."""
    text = annotations.get(BEFORE_ANNOTATION)
    if text is None:
        return None
    try:
        keep = None if (number := annotations.get(KEEP_ANNOTATION)) is None else places.kept(number)
    except OperatorError as error:
        raise OperatorError(f"the annotation {KEEP_ANNOTATION}: {error.message}") from None
    if text == DEFAULT:
        return Wish(None, keep)
    if not text.startswith("s3://"):
        # A folder would be one of the manager's own, whoever may write the annotation.
        raise OperatorError(f'the annotation {BEFORE_ANNOTATION} is "{text}": write {DEFAULT}, or s3://BUCKET[/PREFIX]')
    try:
        return Wish(places.place(text, annotations.get(SECRET_ANNOTATION, "")), keep)
    except OperatorError as error:
        raise OperatorError(f"the annotations {BEFORE_ANNOTATION} and {SECRET_ANNOTATION}: {error.message}") from None


def note_from(annotations: Mapping[str, str]) -> Note | None:
    """The snapshot that was noted last; one that cannot be read is none, and another one is taken."""
    text = annotations.get(NOTE_ANNOTATION)
    try:
        return None if text is None else msgspec.json.decode(text, type=Note)
    except msgspec.DecodeError:
        return None


def note_of(snapshot: Snapshot, store: str, generation: int) -> Note:
    return Note(snapshot.name, snapshot.revision, snapshot.size, snapshot.sha256, store, generation)


def is_relied_on(note: Note | None, generation: int) -> bool:
    """Whether what was noted is a snapshot of before this rollout."""
    return note is not None and not note.ended and note.generation == generation


def ended(note: Note | None) -> Note | None:
    """What to note when no machine is outdated any more; None where it stays as it is."""
    return msgspec.structs.replace(note, ended=True) if note is not None and not note.ended else None
