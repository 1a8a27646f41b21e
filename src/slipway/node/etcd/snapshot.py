"""A snapshot of etcd before something is changed that might have to be undone.

The file is what ``etcdutl snapshot restore`` takes: the database with its SHA-256 at the end, as etcd sends it.
"""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.errors import OperatorError
from slipway.workload.etcdapi import EtcdError

if TYPE_CHECKING:
    from datetime import datetime

    from slipway.host.interface import Host
    from slipway.workload.etcdclient import EtcdClient

# A database may grow while it is read, and a disk that is full to the last byte stops more than this.
_RESERVE = 1.1


class Snapshot(NamedTuple):
    """A snapshot that was written and checked."""

    path: str
    size: int

    def __str__(self) -> str:
        return f"{self.path} ({self.size / 1024**2:.1f} MiB)"


def save(client: EtcdClient, folder: str, now: datetime, host: Host) -> Snapshot:
    """Write a snapshot into a folder of the host; OperatorError, and no file, where that cannot be done.

    It is written under another name and renamed when it is complete, checked and on the disk, so that a file with the
    name of a snapshot is one.
    """
    path = posixpath.join(folder, f"etcd-snapshot-{now:%Y-%m-%dT%H-%M-%SZ}.db")
    target, partial = host.location(path), host.location(f"{path}.part")
    try:
        # The database holds every Secret of the cluster.
        os.makedirs(host.location(folder), mode=0o700, exist_ok=True)
        _refuse_without_space(client, host.location(folder))
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as handle:
            size = client.snapshot(handle.write)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(partial, target)
    except OSError as error:
        _discard(partial)
        raise OperatorError(
            f"no snapshot of etcd could be written to {host.location(folder)}: {error.strerror}; nothing was changed"
        ) from error
    except BaseException:
        _discard(partial)
        raise
    return Snapshot(path, size)


def _refuse_without_space(client: EtcdClient, folder: str) -> None:
    sizes = [status.db_size for status in client.statuses().values() if not isinstance(status, EtcdError)]
    needed = int(max(sizes, default=0) * _RESERVE)
    free = os.statvfs(folder)
    available = free.f_bavail * free.f_frsize
    if available < needed:
        raise OperatorError(
            f"no snapshot of etcd could be written to {folder}: it takes {needed / 1024**2:.0f} MiB and there are "
            f"{available / 1024**2:.0f} MiB free; nothing was changed"
        )


def _discard(partial: str) -> None:
    if os.path.lexists(partial):
        os.unlink(partial)
