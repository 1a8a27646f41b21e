"""Where snapshots are kept, as operators write it: the path of a folder, or ``s3://BUCKET[/PREFIX]`` with a Secret beside it."""

from __future__ import annotations

import re
from base64 import b64decode
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from slipway.api.cluster.kinds import SECRET
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.snapshots.folder import Folder
from slipway.fleet.snapshots.s3 import S3, Bucket
from slipway.fleet.snapshots.sigv4 import Credentials

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.fleet.snapshots.store import Store
    from slipway.kube.aio import AsyncClient

MOST_KEPT = 1000
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_REQUIRED = ("endpoint", "accessKeyID", "secretAccessKey")


class Place(NamedTuple):
    """A folder, or a bucket with the prefix of its keys; of a bucket, the Secret that says where and as whom."""

    folder: str = ""
    bucket: str = ""
    prefix: str = ""
    secret: str = ""

    def __str__(self) -> str:
        return self.folder or f"s3://{'/'.join(filter(None, (self.bucket, self.prefix)))}"


def place(text: str, secret: str = "") -> Place:
    """What a text says; OperatorError with what would be right."""
    if text.startswith("/"):
        return Place(folder=text.rstrip("/") or "/")
    if not text.startswith("s3://"):
        raise OperatorError(f'"{text}" is no place for snapshots: write the path of a folder, from / on, or s3://BUCKET[/PREFIX]')
    bucket, _, prefix = text.removeprefix("s3://").partition("/")
    prefix = prefix.strip("/")
    if not _BUCKET.fullmatch(bucket) or "//" in prefix:
        raise OperatorError(f'"{text}" is no place for snapshots: write s3://BUCKET[/PREFIX], with a bucket of small letters and digits')
    if not secret:
        raise OperatorError(
            f"{text} needs a Secret with the keys {', '.join(_REQUIRED)}, and region, sessionToken and ca.crt where they are needed"
        )
    return Place(bucket=bucket, prefix=prefix, secret=secret)


def kept(text: str) -> int:
    """How many snapshots of a cluster are kept."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST_KEPT:
        raise OperatorError(f'"{text}" is not a number of snapshots to keep: write one from 1 to {MOST_KEPT}')
    return int(text)


def bucket_from(wanted: Place, data: Mapping[str, bytes], where: str) -> Bucket:
    """The bucket of a place, with what its Secret holds; ``where`` names the Secret."""
    try:
        texts = {key: data[key].decode().strip() for key in (*_REQUIRED, "region", "sessionToken", "ca.crt") if key in data}
    except UnicodeDecodeError:
        raise OperatorError(f"the Secret {where} holds something that is no text") from None
    missing = [key for key in _REQUIRED if not texts.get(key)]
    if missing:
        raise OperatorError(f"the Secret {where} of the store {wanted} has no {' and no '.join(missing)}")
    endpoint = texts["endpoint"].rstrip("/")
    if not _is_endpoint(endpoint):
        # It is not repeated: whoever reads a condition or an Event need not be one who may read the Secret.
        raise OperatorError(
            f"the Secret {where} has an endpoint that is none: write http[s]://HOST[:PORT], and nothing before or after that"
        )
    return Bucket(
        endpoint,
        wanted.bucket,
        wanted.prefix,
        Credentials(texts["accessKeyID"], texts["secretAccessKey"], texts.get("sessionToken", "")),
        texts.get("region") or "us-east-1",
        data.get("ca.crt", b""),
    )


def _is_endpoint(text: str) -> bool:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    # A name and a password in it would be shown wherever the store is.
    bare = "@" not in parts.netloc and not parts.path and not parts.query and not parts.fragment
    return parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0 and bare


async def opened(client: AsyncClient, wanted: Place, namespace: str) -> Store:
    """The store of a place, whose Secret is in a namespace."""
    if wanted.folder:
        return Folder(Path(wanted.folder))
    where = f"{namespace}/{wanted.secret}"
    found = await client.find(SECRET, wanted.secret, namespace)
    if found is None:
        raise OperatorError(f"there is no Secret {where} with the credentials of the store {wanted}")
    return S3(bucket_from(wanted, {key: b64decode(value) for key, value in (found.get("data") or {}).items()}, where))
