"""What a manager is told about snapshots on its command line."""

from __future__ import annotations

import msgspec

STORE_FLAG, SECRET_FLAG, KEEP_FLAG = "snapshot-store", "snapshot-secret", "snapshot-keep"
DEFAULT_KEEP = 5


class SnapshotOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The store of control planes that name none; ``namespace`` is the manager's own, where the Secret is."""

    store: str = ""
    secret: str = ""
    keep: int = DEFAULT_KEEP
    namespace: str = ""

    def at(self, namespace: str) -> SnapshotOptions:
        return msgspec.structs.replace(self, namespace=namespace)
