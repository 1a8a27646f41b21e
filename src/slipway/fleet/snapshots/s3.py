"""Snapshots in a bucket of an S3-compatible store.

The store is asked in path style, which all of them understand.  An object appears when the whole of it has come and its SHA-256 is the one
that was signed.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit
from xml.etree import ElementTree

import aiohttp
from yarl import URL

from slipway.api.machinery.errors import OperatorError
from slipway.credentials import tls
from slipway.fleet.snapshots import record, sigv4
from slipway.fleet.snapshots.record import DATABASE, PARTIAL
from slipway.fleet.snapshots.sigv4 import Credentials, Request

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Mapping

    from slipway.fleet.snapshots.record import Snapshot
    from slipway.fleet.snapshots.store import Progress

LARGEST = 5 << 30
"""What S3 takes as one object in one request."""
_BLOCK = 1 << 18
# A record and a page of a list are small; nothing else is read as a whole.
_SMALL = 16 << 20
# Each has up to 1,000 keys.  Where the store is, a user says: it need not be one.
_MOST_PAGES = 1000
_CONNECT, _SILENCE = 15.0, 60.0


class Bucket(NamedTuple):
    """Where, and as whom.  ``endpoint`` is ``http[s]://HOST[:PORT]``; ``prefix`` has no slash at its ends."""

    endpoint: str
    bucket: str
    prefix: str
    credentials: Credentials
    region: str = "us-east-1"
    ca: bytes = b""


class S3:
    def __init__(self, bucket: Bucket, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._bucket = bucket
        self._clock = clock

    @property
    def shown(self) -> str:
        return f"s3://{'/'.join(filter(None, (self._bucket.bucket, self._bucket.prefix)))} at {self._bucket.endpoint}"

    @property
    def authority(self) -> bytes:
        """The certificate authority of the store, where it is not a public one."""
        return self._bucket.ca

    def spool(self, namespace: str, cluster: str) -> Path:
        folder = Path(tempfile.gettempdir())
        # What a killed manager left stays as long as its Pod does, and holds every Secret of a cluster.
        with suppress(OSError):
            for file in record.superfluous((each for each in os.listdir(folder) if each.endswith(PARTIAL)), 0, self._clock()):
                (folder / file).unlink(missing_ok=True)
        return folder

    async def clusters(self) -> list[tuple[str, str]]:
        start = f"{self._bucket.prefix}/" if self._bucket.prefix else ""
        parts = [key.removeprefix(start).split("/") for key in await self._keys(start)]
        return sorted({(found[0], found[1]) for found in parts if len(found) == 3})

    async def files(self, namespace: str, cluster: str) -> list[str]:
        start = self._key(namespace, cluster, "")
        return [key.removeprefix(start) for key in await self._keys(start) if "/" not in key.removeprefix(start)]

    async def read(self, namespace: str, cluster: str, file: str) -> bytes:
        async with self._answer("GET", self._key(namespace, cluster, file)) as answer:
            return await _whole(answer, self.shown)

    async def write(self, namespace: str, cluster: str, file: str, content: bytes) -> None:
        import hashlib

        headers = {"content-length": str(len(content))}
        async with self._answer(
            "PUT", self._key(namespace, cluster, file), headers=headers, payload=hashlib.sha256(content).hexdigest(), body=content
        ):
            return

    async def put(self, snapshot: Snapshot, file: Path, progress: Progress | None = None) -> None:
        if snapshot.size > LARGEST:
            raise OperatorError(
                f"the snapshot has {snapshot.size} bytes, and {self.shown} takes {LARGEST} as one object: "
                "compact and defragment etcd, or keep its snapshots in a folder"
            )

        async def body() -> AsyncIterator[bytes]:
            done = 0
            with file.open("rb") as source:
                while block := await asyncio.to_thread(source.read, _BLOCK):
                    yield block
                    done += len(block)
                    if progress is not None:
                        progress(done, snapshot.size)

        key = self._key(snapshot.namespace, snapshot.cluster, snapshot.name + DATABASE)
        headers = {"content-length": str(snapshot.size)}
        async with self._answer("PUT", key, headers=headers, payload=snapshot.sha256, body=body()):
            pass
        file.unlink()

    async def fetch(self, snapshot: Snapshot, into: Path, progress: Progress | None = None) -> None:
        key = self._key(snapshot.namespace, snapshot.cluster, snapshot.name + DATABASE)
        done = 0
        async with self._answer("GET", key) as answer:
            with into.open("wb") as target:
                async for block in answer.content.iter_chunked(_BLOCK):
                    await asyncio.to_thread(target.write, block)
                    done += len(block)
                    if progress is not None:
                        progress(done, snapshot.size)

    async def delete(self, namespace: str, cluster: str, file: str) -> None:
        async with self._answer("DELETE", self._key(namespace, cluster, file)):
            return

    def link(self, snapshot: Snapshot, seconds: int) -> str:
        """Where the database can be fetched without credentials, for so long."""
        key = self._key(snapshot.namespace, snapshot.cluster, snapshot.name + DATABASE)
        request = Request("GET", self._path(key), {}, {"host": self._host()})
        signed = sigv4.presigned(request, self._bucket.credentials, self._bucket.region, self._clock(), seconds)
        return f"{self._bucket.endpoint.rstrip('/')}{signed}"

    async def _keys(self, prefix: str) -> list[str]:
        found: list[str] = []
        query = {"list-type": "2", "prefix": prefix}
        for _ in range(_MOST_PAGES):
            async with self._answer("GET", "", query=query) as answer:
                page = _page(await _whole(answer, self.shown), self.shown)
            found += page.keys
            if not page.following:
                return found
            query["continuation-token"] = page.following
        raise OperatorError(f"{self.shown}: its list does not end after {_MOST_PAGES} pages")

    def _key(self, namespace: str, cluster: str, file: str) -> str:
        return "/".join((*filter(None, (self._bucket.prefix,)), namespace, cluster, file))

    def _path(self, key: str) -> str:
        return f"/{self._bucket.bucket}/{key}"

    def _host(self) -> str:
        return urlsplit(self._bucket.endpoint).netloc

    @asynccontextmanager
    async def _answer(
        self,
        method: str,
        key: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        payload: str = sigv4.EMPTY,
        body: bytes | AsyncIterator[bytes] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer to a request that succeeded, for the time of the block."""
        request = Request(method, self._path(key), query or {}, {"host": self._host(), **(headers or {})}, payload)
        signed = sigv4.authorized(request, self._bucket.credentials, self._bucket.region, self._clock())
        path, asked = sigv4.encoded_path(request.path), sigv4.encoded_query(request.query)
        # What is signed is what is sent: nothing is encoded once more.
        url = URL(f"{self._bucket.endpoint.rstrip('/')}{path}{'?' + asked if asked else ''}", encoded=True)
        timeout = aiohttp.ClientTimeout(total=None, connect=_CONNECT, sock_read=_SILENCE)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, auto_decompress=False, trust_env=True) as session,
                session.request(method, url, headers=signed, data=body, ssl=self._tls(), allow_redirects=False) as answer,
            ):
                if answer.status // 100 != 2:
                    raise OperatorError(f"{self.shown}: {method} {path}: {_refusal(answer.status, await _whole(answer, self.shown))}")
                yield answer
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise OperatorError(f"{self.shown}: {method} {path}: {str(error) or type(error).__name__}") from error

    def _tls(self) -> ssl.SSLContext | bool:
        if not self._bucket.ca:
            return True
        return tls.trusting(self._bucket.ca.decode())


async def _whole(answer: aiohttp.ClientResponse, where: str) -> bytes:
    """All of an answer; to be asked for so many bytes, aiohttp gives what has come by then."""
    found = bytearray()
    async for block in answer.content.iter_chunked(_BLOCK):
        found += block
        if len(found) > _SMALL:
            raise OperatorError(f"{where}: an answer has more than {_SMALL} bytes")
    return bytes(found)


class _Page(NamedTuple):
    keys: list[str]
    following: str


def _page(content: bytes, where: str) -> _Page:
    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise OperatorError(f"{where}: its list cannot be read: {error}") from None
    keys = [element.text or "" for element in root.iterfind("{*}Contents/{*}Key")]
    return _Page(keys, root.findtext("{*}NextContinuationToken") or "")


def _refusal(status: int, content: bytes) -> str:
    """What a store says, in its words."""
    try:
        root = ElementTree.fromstring(content)
        told = ": ".join(filter(None, (root.findtext("{*}Code"), root.findtext("{*}Message"))))
    except ElementTree.ParseError:
        told = ""
    return f"HTTP status {status}{f' ({told})' if told else ''}"
