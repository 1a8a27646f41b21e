"""Whose data an etcd data folder holds: the member and the cluster, as the head of its write-ahead log tells.

etcd writes both ids at the start of every segment of the log (server/storage/wal of etcd): a record with a checksum,
then a record with the metadata.  That is enough to tell the left-over of a member that was removed from the data of
another cluster, which nobody but its owner may delete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.errors import OperatorError
from slipway.node import paths

if TYPE_CHECKING:
    from slipway.host.interface import Host

_METADATA = 1
_HEAD_SIZE = 8


class Owner(NamedTuple):
    """The member that wrote a data folder."""

    member_id: int
    cluster_id: int


def owner(host: Host, data_dir: str) -> Owner | None:
    """Who wrote the folder; None where no member ever ran with it.  OperatorError where there is data that tells nothing."""
    if not host.list_dir(f"{data_dir}/member"):
        return None
    folder = f"{data_dir}/member/wal"
    segments = [name for name in host.list_dir(folder) if name.endswith(".wal")]
    if not segments:
        # etcd makes the log under another name and renames it; one that was killed before has stored nothing.
        return None
    path = paths.join(folder, segments[0])
    try:
        return _owner(host.read(path))
    except (ValueError, IndexError) as error:
        raise OperatorError(
            f"{path} is not a write-ahead log of etcd: move {data_dir} away, or run `kubeadm reset` on this node"
        ) from error


def _owner(log: bytes) -> Owner:
    position = 0
    while position + _HEAD_SIZE <= len(log):
        head = int.from_bytes(log[position : position + _HEAD_SIZE], "little")
        # The lower 56 bits are the size of the record; where the highest bit is set, three more tell how it is padded.
        size = head & ((1 << 56) - 1)
        padding = (head >> 56) & 0x7 if head >> 63 else 0
        position += _HEAD_SIZE
        record = _fields(log[position : position + size])
        if size == 0 or len(log) < position + size:
            break
        if record.get(1, 0) == _METADATA:
            data = record.get(3)
            metadata = _fields(data) if isinstance(data, bytes) else {}
            member_id, cluster_id = metadata.get(1, 0), metadata.get(2, 0)
            if isinstance(member_id, int) and isinstance(cluster_id, int):
                return Owner(member_id, cluster_id)
        position += size + padding
    raise ValueError("no metadata")


def _fields(message: bytes) -> dict[int, int | bytes]:
    """The fields of a protobuf message that has numbers and bytes only."""
    found: dict[int, int | bytes] = {}
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        value, position = _varint(message, position)
        if tag & 7 == 2:
            found[tag >> 3] = message[position : position + value]
            position += value
        elif tag & 7 == 0:
            found[tag >> 3] = value
        else:
            raise ValueError(f"unexpected wire type {tag & 7}")
    return found


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position
