"""A snapshot that etcd 3.6.6 sent after 41 writes; ``etcdutl snapshot status`` says that its revision is 42."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

REVISION = 42


@cache
def database() -> bytes:
    return gzip.decompress((Path(__file__).parent / "etcd-3.6.6.db.gz").read_bytes())
