"""The embedded API server: start it, connect to it, stop it.

::

    async with EmbeddedServer() as server:
        async with AsyncClient(server.connection()) as client:
            ...
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from aiohttp import web

from slipway.api.machinery.errors import OperatorError
from slipway.embedded import bootstrap
from slipway.embedded.access.authentication import MASTERS, Authenticator, User, with_authenticated
from slipway.embedded.access.authorization import Authorizer
from slipway.embedded.apiextensions.definitions import Definitions
from slipway.embedded.controllers.loop import Controllers
from slipway.embedded.endpoints.handler import Handler, make_request
from slipway.embedded.endpoints.pages import Pages
from slipway.embedded.pki import Identity
from slipway.embedded.registry.resources import Catalog
from slipway.embedded.registry.write import Registry
from slipway.embedded.storage.sqlite import Database
from slipway.embedded.storage.store import Store
from slipway.embedded.webhooks.admission import Admission
from slipway.embedded.webhooks.client import WebhookCaller
from slipway.embedded.webhooks.conversion import Converter
from slipway.kube.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from slipway.credentials import x509
    from slipway.embedded.registry.resources import Resource
    from slipway.embedded.storage.watch import Watch

VERSION = "v1.35.4"
"""The release of Kubernetes whose behaviour this is."""


_ITSELF = with_authenticated(User("system:kube-controller-manager", (MASTERS,)))
_now = partial(datetime.now, UTC)


class EmbeddedServer:
    """An API server in this process, on real HTTPS (or plain HTTP with ``tls=False``, where everybody is an administrator).

    ``database`` keeps the objects, the resourceVersions and the certificate authority beyond the process; without it they live in
    memory.  ``tokens`` are bearer tokens and whom they stand for.  ``history`` is how many changes of a resource a watch can
    go back, and :meth:`compact` forgets them all, so that clients meet 410 Gone.  ``bookmark_seconds`` is how often watches get
    a bookmark.  ``version`` is what ``/version`` says.
    """

    def __init__(
        self,
        *,
        address: str = "127.0.0.1",
        port: int = 0,
        database: Path | None = None,
        tls: bool = True,
        clock: Callable[[], datetime] = _now,
        tokens: Mapping[str, User] | None = None,
        history: int = 10_000,
        bookmark_seconds: float = 60.0,
        version: str = VERSION,
        names: Sequence[str] = (),
    ) -> None:
        self.address, self.port = address, port
        self._database_path, self._tls, self._clock = database, tls, clock
        self._tokens = dict(tokens or {})
        self._history, self._bookmark_seconds, self._version = history, bookmark_seconds, version
        self._names = tuple(names)
        self._core: Core | None = None
        self._database: Database | None = None
        self._identity: Identity | None = None
        self._handler: Handler | None = None
        self._runner: web.ServerRunner | None = None

    async def __aenter__(self) -> EmbeddedServer:
        await self.start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}"

    @property
    def authority(self) -> x509.Authority:
        """Whose certificates the server takes for those of its users, for who signs some in the place of a control plane."""
        if self._identity is None:
            raise OperatorError("the embedded API server is not running")
        return self._identity.authority

    @property
    def core(self) -> Core:
        """The parts of the running server, for who shares its process."""
        if self._core is None:
            raise OperatorError("the embedded API server is not running")
        return self._core

    async def start(self) -> None:
        """Serve; ``port`` says where, from then on."""
        self._database = Database(self._database_path) if self._database_path is not None else None
        self._identity = Identity.load(self._database, self._clock)
        store = Store(history=self._history, journal=self._database)
        if self._database is not None:
            for resource, raw, version in self._database.objects():
                store.restore(resource, raw, version)
            store.resume(self._database.version)
        bootstrap.populate(store, self._clock)
        # A watch starts from what a list has shown, and no list was ever answered from before.
        store.compact()
        self._core = Core(
            store,
            self._clock,
            tokens=self._tokens,
            version=self._version,
            bookmark_seconds=self._bookmark_seconds,
            ca=self._identity.ca,
        )
        self._core.start()
        self._handler = Handler(self._core, everybody_is_admin=not self._tls)
        await self._listen()

    async def stop(self) -> None:
        """End all watches and connections; what was written stays in the database, if there is one."""
        if self._handler is not None:
            self._handler.end()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        if self._core is not None:
            await self._core.stop()
            self._core = None
        if self._database is not None:
            self._database.close()
            self._database = None

    def connection(self, user: str = "admin", groups: Sequence[str] = (MASTERS,)) -> Connection:
        """How to reach the server as a user; a client certificate says who that is."""
        if not self._tls:
            return Connection(server=self.url)
        identity = self._running_identity()
        certificate, key = identity.client(user, tuple(groups))
        return Connection(server=self.url, ca=identity.ca, client_certificate=certificate, client_key=key)

    def connection_with_token(self, token: str) -> Connection:
        """How to reach the server with a bearer token."""
        return Connection(server=self.url, ca=self._running_identity().ca if self._tls else b"", token=token)

    def kubeconfig(self, user: str = "admin", groups: Sequence[str] = (MASTERS,), *, namespace: str = "") -> str:
        """A kubeconfig of :meth:`connection`, for kubectl, whose context may name a namespace."""
        from slipway.embedded.pki import kubeconfig

        return kubeconfig(self.connection(user, groups), user, namespace=namespace)

    def add_token(self, token: str, user: str, groups: Sequence[str] = ()) -> None:
        """Let a bearer token stand for a user."""
        self._tokens[token] = User(user, tuple(groups))

    def compact(self) -> None:
        """Forget the history: watches and pages from before get 410 Gone."""
        self.core.store.compact()

    def _running_identity(self) -> Identity:
        if self._identity is None or not self.port:
            raise OperatorError("the embedded API server has not been started, so there is nothing to connect to")
        return self._identity

    async def _listen(self) -> None:
        if self._handler is None or self._identity is None:
            raise OperatorError("the embedded API server has no handler")
        context = self._identity.server_context((self.address, *self._names)) if self._tls else None
        # A request whose client is gone ends with it.  A watch ends when it is told to; what is left after this time is cut off.
        server = web.Server(self._handler, request_factory=make_request, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=2.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.address, self.port, ssl_context=context, backlog=1024)
        try:
            await site.start()
        except OSError as error:
            await self.stop()
            raise OperatorError(f"the embedded API server cannot listen on {self.address}:{self.port}: {error.strerror or error}") from None
        self.port = self._runner.addresses[0][1]


class Core:
    """One server's store and everything that works on it."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], datetime],
        *,
        tokens: Mapping[str, User],
        version: str,
        bookmark_seconds: float,
        ca: bytes,
    ) -> None:
        self.store, self.clock, self.bookmark_seconds = store, clock, bookmark_seconds
        self.catalog = Catalog()
        self.caller = WebhookCaller()
        self.converter = Converter(self.caller)
        self.authenticator = Authenticator(store, clock, tokens)
        self.authorizer = Authorizer(store)
        admission = Admission(store, self.caller, self.converter, self.catalog, self.authorizer)
        self.registry = Registry(store, clock, self.converter, admission, self.authorizer)
        self.pages = Pages(self.catalog, version)
        self.definitions = Definitions(self.registry, self.catalog, _ITSELF)
        self.controllers = Controllers(self.registry, self.catalog, self.definitions, _ITSELF, ca)
        self._watches: dict[tuple[str, str, str], set[Watch]] = {}

    def start(self) -> None:
        self.definitions.load()
        self.catalog.changed = self._end_orphaned_watches
        self.controllers.start()

    async def stop(self) -> None:
        await self.controllers.stop()
        await self.caller.close()

    def watched(self, resource: Resource, watch: Watch) -> None:
        self._watches.setdefault((resource.group, resource.version, resource.plural), set()).add(watch)

    def unwatched(self, resource: Resource, watch: Watch) -> None:
        self._watches.get((resource.group, resource.version, resource.plural), set()).discard(watch)

    def _end_orphaned_watches(self) -> None:
        """A resource that is no longer served, or is served otherwise, is no longer watched."""
        for key, watches in self._watches.items():
            if self.catalog.find(*key) is None:
                for watch in watches:
                    watch.end()


async def serve_forever(server: EmbeddedServer) -> None:
    """Serve until the task is cancelled."""
    async with server:
        await asyncio.Event().wait()
