"""Clients of workload clusters, made from the kubeconfig that each Cluster has as a Secret, and kept while it stays the same.

A kubeconfig is read again when it is older than a minute, and at once when the workload cluster does not accept what it says.  A cluster
that did not answer is not asked again for a while, unless its kubeconfig changes: who waits for it holds up the machines of others.
"""

from __future__ import annotations

import asyncio
import errno
import time
from base64 import b64decode
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from slipway.api.cluster.kinds import SECRET
from slipway.api.machinery.errors import ConfigurationError, OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.kube.aio import AsyncClient
from slipway.kube.connection import from_kubeconfig
from slipway.kube.errors import UnauthorizedError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from slipway.kube.connection import Connection

_FRESH = 60.0
# More clusters than a manager talks to within a minute; the one that was not used for longest goes first.
_KEPT = 200
_TIMEOUT = 10.0
_LEFT_ALONE = 20.0


def secret_name(cluster: str) -> str:
    return f"{cluster}-kubeconfig"


def connection_from(secret: Mapping[str, Any]) -> Connection:
    """The connection of a kubeconfig Secret.  It cannot name files: they would be those of the manager."""
    metadata = secret["metadata"]
    source = f"of Secret {metadata['namespace']}/{metadata['name']}"
    value = (secret.get("data") or {}).get("value")
    if not value:
        raise OperatorError(f'the Secret {metadata["namespace"]}/{metadata["name"]} has no kubeconfig: its key "value" is missing or empty')
    try:
        documents = goyaml.load(b64decode(value).decode(), f"the kubeconfig {source}")
    except (ValueError, ConfigurationError) as error:
        raise OperatorError(f"the kubeconfig {source} cannot be read: {error}") from None
    document = documents[0].value if documents else None
    if not isinstance(document, dict):
        raise OperatorError(f"the kubeconfig {source} is not a YAML mapping")
    return from_kubeconfig(document, _no_files, source=source)


class _Entry:
    """A client and who uses it: one that was replaced is closed when the last user leaves."""

    def __init__(self, client: AsyncClient, revision: tuple[str, str], now: float) -> None:
        self.client = client
        self.revision = revision
        self.checked = now
        self.users = 0
        self.retired = False

    async def close_if_unused(self) -> None:
        if self.retired and not self.users:
            await self.client.close()


class _Silence(NamedTuple):
    """A cluster that did not answer: until when it is left alone, with which kubeconfig it was asked, and what happened."""

    until: float
    revision: tuple[str, str]
    why: str


class WorkloadClusters:
    """The clients, by namespace and name of the Cluster."""

    def __init__(
        self,
        management: AsyncClient,
        *,
        clock: Callable[[], float] = time.monotonic,
        on_request: Callable[[str, int, float], None] | None = None,
    ) -> None:
        self._management = management
        self._clock = clock
        self._on_request = on_request
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._opening: dict[tuple[str, str], asyncio.Lock] = {}
        self._silent: dict[tuple[str, str], _Silence] = {}

    @asynccontextmanager
    async def client(self, namespace: str, cluster: str) -> AsyncIterator[AsyncClient]:
        """A client for the time of the block.  What it fails with decides whether the kubeconfig is read anew the next time."""
        entry = await self._entry((namespace, cluster))
        entry.users += 1
        try:
            yield entry.client
        except UnauthorizedError:
            self._retire((namespace, cluster), entry)
            raise
        except UnreachableError as error:
            self._retire((namespace, cluster), entry)
            self._silent[namespace, cluster] = _Silence(self._clock() + _LEFT_ALONE, entry.revision, error.message)
            raise
        finally:
            entry.users -= 1
            await entry.close_if_unused()

    async def close(self) -> None:
        for key, entry in list(self._entries.items()):
            self._retire(key, entry)
            await entry.close_if_unused()

    async def _entry(self, key: tuple[str, str]) -> _Entry:
        entry = self._entries.get(key)
        if entry is None or self._clock() - entry.checked > _FRESH:
            # Workers that need the same cluster wait for one of them.
            async with self._opening.setdefault(key, asyncio.Lock()):
                entry = self._entries.get(key)
                if entry is None or self._clock() - entry.checked > _FRESH:
                    entry = await self._open(key, entry)
        # Last used, last to go.
        self._entries[key] = self._entries.pop(key, entry)
        return entry

    async def _open(self, key: tuple[str, str], known: _Entry | None) -> _Entry:
        namespace, cluster = key
        secret = await self._management.find(SECRET, secret_name(cluster), namespace)
        if secret is None:
            if known is not None:
                self._retire(key, known)
                await known.close_if_unused()
            raise OperatorError(
                f"cannot reach the workload cluster {namespace}/{cluster}: there is no Secret {namespace}/{secret_name(cluster)} with its "
                "kubeconfig yet; the control-plane provider makes it"
            )
        metadata = secret["metadata"]
        revision = (metadata.get("uid", ""), metadata.get("resourceVersion", ""))
        silence = self._silent.get(key)
        if silence is not None:
            if silence.revision == revision and self._clock() < silence.until:
                raise UnreachableError(f"the workload cluster {namespace}/{cluster} did not answer a moment ago: {silence.why}")
            del self._silent[key]
        if known is not None and known.revision == revision:
            known.checked = self._clock()
            return known
        connection = connection_from(secret)
        if known is not None:
            self._retire(key, known)
            await known.close_if_unused()
        # The next reconcile asks again; a cluster that does not answer must not hold up the others for long.
        entry = _Entry(AsyncClient(connection, timeout=_TIMEOUT, on_request=self._on_request), revision, self._clock())
        self._entries[key] = entry
        while len(self._entries) > _KEPT:
            oldest = next(iter(self._entries))
            out = self._entries[oldest]
            self._retire(oldest, out)
            await out.close_if_unused()
        return entry

    def _retire(self, key: tuple[str, str], entry: _Entry) -> None:
        entry.retired = True
        if self._entries.get(key) is entry:
            del self._entries[key]


def _no_files(path: str) -> NoReturn:
    raise OSError(errno.EPERM, f"a kubeconfig in a Secret must hold its certificates and tokens itself, and cannot name {path}")
