"""The address that hosts call: a GET tells how to register, a WebSocket registers.

Whoever reaches it can send anything, as often as they like: a conversation has ten seconds in all, so many go on at a time, and of
none more is kept than its frames.  Every replica serves it; what is written goes to the API server with preconditions.
"""

from __future__ import annotations

import asyncio
import logging
import time
from base64 import b64decode
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from aiohttp import WSCloseCode, WSMsgType, web

from slipway.api.cluster.kinds import MACHINE_INVENTORY, MACHINE_REGISTRATION, SECRET
from slipway.api.elemental import names, protocol
from slipway.api.elemental.protocol import Frame, ProtocolError
from slipway.api.elemental.registration import MachineRegistration
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.facts import read
from slipway.fleet.inventory import accounts, hosts
from slipway.fleet.inventory.accounts import TakenError
from slipway.fleet.inventory.registration import configuration, identity
from slipway.fleet.inventory.registration.commit import RefusedError, commit
from slipway.fleet.inventory.registration.configuration import Access
from slipway.fleet.inventory.registration.reconciler import TOKEN_INDEX, add_indices
from slipway.fleet.inventory.registration.session import Commit, Refusal, Session
from slipway.runtime.logs import fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.inventory.registration.configuration import ApiServer
    from slipway.fleet.inventory.registration.draft import Identity
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache

_log = logging.getLogger("slipway.fleet.inventory.registration")

MOST_AT_ONCE = 64
MOST_HOSTS = 20_000
"""Who knows a token can be as many hosts as they like: so many are taken in all, which is twice what has been measured."""
TPM_AUTHORITIES = "tpm-ca"
"""The optional Secret of a registration's namespace with the authorities that must vouch for TPMs."""
# A frame that is too long is read to the end, up to this, so that the host can be told.
_LARGEST_MESSAGE = 2 * protocol.MAX_FRAME
# Seconds for which the authorities of TPMs are not asked for again, and an inventory that was just written is looked for by its name.
_AUTHORITIES_LIFE = 10.0
_RECENT = 30.0
_MOST_RECENT = 1000
# What a close frame has room for.
_LONGEST_REASON = 123
_CLOSING = 1.0


# How a call can end, as ``called`` is told it.
NEW, KNOWN, REFUSED, BUSY, GONE, ERROR = "new", "known", "refused", "busy", "gone", "error"
ENDINGS = (NEW, KNOWN, REFUSED, BUSY, GONE, ERROR)


class RegistrationEndpoint:
    """``authorities`` are those of the certificate that this endpoint shows, which hosts are given to trust.

    ``called`` is told how each call of a host that wanted to register has ended.
    """

    def __init__(
        self,
        client: AsyncClient,
        cache: Cache,
        *,
        authorities: Callable[[], bytes],
        api_server: ApiServer,
        deadline: float = protocol.DEADLINE_SECONDS,
        most_at_once: int = MOST_AT_ONCE,
        called: Callable[[str], None] | None = None,
    ) -> None:
        self._client = client
        self._cache = cache
        self._authorities = authorities
        self._api_server = api_server
        self._deadline = deadline
        self._places = most_at_once
        self._most_hosts = MOST_HOSTS
        self._called = called or (lambda ending: None)
        self._busy: set[Identity] = set()
        self._recent: dict[Identity, tuple[float, Manifest]] = {}
        self._tpm_authorities: dict[str, tuple[float, bytes]] = {}
        accounts.restrict(cache)
        add_indices(cache)
        hosts.add_indices(cache)

    def add_routes(self, application: web.Application) -> None:
        application.router.add_get(protocol.PATH + "{token}", self.answer)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        try:
            registration = await self._registration(request.match_info["token"])
        except OperatorError as error:
            _log.error("Registrations cannot be read", extra=fields(err=error.message))
            self._called(ERROR)
            return _no_answer()
        if registration is None:
            return web.Response(status=404, text="there is no registration with this token\n")
        if request.headers.get("Upgrade", "").lower() != "websocket":
            config = configuration.client_config(registration, self._authorities())
            return web.Response(body=configuration.as_yaml(config), content_type="application/yaml")
        if self._places <= 0:
            self._called(BUSY)
            return web.Response(status=503, headers={"Retry-After": "1"}, text="too many hosts register at once: try again\n")
        self._places -= 1
        try:
            return await self._upgraded(request, registration)
        finally:
            self._places += 1

    async def _registration(self, token: str) -> MachineRegistration | None:
        for found in await self._cache.list(MACHINE_REGISTRATION, index=(TOKEN_INDEX, token)):
            registration = read(found, MachineRegistration)
            # One that wants the token and does not have it is in the index, too.
            if registration.status.registration_token == token and not found.metadata.deletion_timestamp:
                return registration
        return None

    async def _upgraded(self, request: web.Request, registration: MachineRegistration) -> web.StreamResponse:
        auth = registration.spec.config.elemental.registration.auth or names.AUTH_TPM
        try:
            authorities = await self._authorities_of_tpms(registration.metadata["namespace"]) if auth == names.AUTH_TPM else b""
            claimed = identity.claim(request.headers.get("Authorization", ""), auth, datetime.now(UTC), authorities)
        except ProtocolError as error:
            _log.warning("A host was refused", extra=fields(remote=request.remote, err=str(error)))
            self._called(REFUSED)
            return web.Response(status=401, text=f"{error}\n")
        except OperatorError as error:
            _log.error("The makers of TPMs cannot be read", extra=fields(err=error.message))
            self._called(ERROR)
            return _no_answer()
        socket = web.WebSocketResponse(timeout=_CLOSING, max_msg_size=_LARGEST_MESSAGE, compress=False)
        await socket.prepare(request)
        talk = _Talk(socket, registration, claimed)
        ending = REFUSED
        try:
            async with asyncio.timeout(self._deadline):
                ending = await self._talk(talk)
        except _GoneError:
            ending = GONE
            _log.info("A host went away while it registered", extra=fields(remote=request.remote))
        except (ProtocolError, RefusedError, TakenError) as error:
            await talk.refuse(str(error))
        except TimeoutError:
            await talk.refuse(f"a registration has {self._deadline:g} s in all, and they are over: register again")
        except OperatorError as error:
            _log.error("A registration could not be written down", extra=fields(remote=request.remote, err=error.message))
            ending = ERROR
            await talk.refuse("the management cluster did not take the registration: register again later, or look at the manager's log")
        self._called(ending)
        return socket

    async def _talk(self, talk: _Talk) -> str:
        """The whole conversation, and whether the host was known before."""
        challenge = identity.challenge(talk.claimed)
        if challenge is not None:
            await talk.socket.send_bytes(challenge.message)
            challenge.check(await talk.receive())
        who = talk.claimed.identity
        if who in self._busy:
            raise RefusedError("a registration of this host is under way: register again when it is over")
        self._busy.add(who)
        try:
            await talk.socket.send_bytes(protocol.encode(Frame.READY))
            session = talk.session = Session(talk.registration, who, await self._known(who, talk.registration))
            while True:
                step = session.heard(await talk.receive())
                if isinstance(step, Refusal):
                    raise RefusedError(step.sentence)
                if isinstance(step, Commit):
                    break
                await talk.socket.send_bytes(step.message)
            config = await self._commit(session, updating=step.updating)
            await talk.socket.send_bytes(protocol.encode_config(session.version, configuration.as_yaml(config)))
            await talk.socket.close()
            return NEW if session.known is None else KNOWN
        finally:
            self._busy.discard(who)

    async def _known(self, who: Identity, registration: MachineRegistration) -> Manifest | None:
        """The inventory of an identity; one that was just written may not be in the cache yet."""
        found = await hosts.by_identity(self._cache, who.field, who.hashed)
        if found:
            known = found[0].content()
        else:
            at, known = self._recent.get(who, (0.0, {}))
            if not known or time.monotonic() - at > _RECENT:
                self._require_room()
                return None
        namespace = known["metadata"]["namespace"]
        if namespace != registration.metadata["namespace"]:
            raise RefusedError(
                f"this host is registered in the namespace {namespace} as {known['metadata']['name']}: delete that MachineInventory first"
            )
        return known

    def _require_room(self) -> None:
        there = len(self._cache.informer(MACHINE_INVENTORY).store)
        if there >= self._most_hosts:
            raise RefusedError(
                f"there are {there} hosts, and no more are taken: delete the MachineInventories of hosts that are gone, "
                "and change the token of the MachineRegistration if strangers know it"
            )

    async def _commit(self, session: Session, *, updating: bool) -> Manifest:
        """Write the inventory, give the host what it needs to be told its plans, and say how it gets there."""
        inventory = await commit(self._client, session, updating=updating)
        name, namespace = inventory["metadata"]["name"], inventory["metadata"]["namespace"]
        self._remember(session.identity, inventory)
        await accounts.ensure(self._client, inventory, accounts.cached(self._cache))
        token = await accounts.token(self._client, name, namespace)
        _log.info("A host registered", extra=fields(inventory=f"{namespace}/{name}", update=session.known is not None))
        return configuration.host_config(
            session.registration, self._authorities(), Access(self._api_server, namespace=namespace, secret=name, token=token)
        )

    def _remember(self, who: Identity, inventory: Manifest) -> None:
        self._recent.pop(who, None)
        self._recent[who] = time.monotonic(), {"metadata": {key: inventory["metadata"][key] for key in ("name", "namespace")}}
        while len(self._recent) > _MOST_RECENT:
            del self._recent[next(iter(self._recent))]

    async def _authorities_of_tpms(self, namespace: str) -> bytes:
        at, known = self._tpm_authorities.get(namespace, (-_AUTHORITIES_LIFE, b""))
        if time.monotonic() - at < _AUTHORITIES_LIFE:
            return known
        secret = await self._client.find(SECRET, TPM_AUTHORITIES, namespace) or {}
        # The Secret of a host that somebody named so says nothing of makers.
        data = {} if secret.get("type") == names.PLAN_SECRET_TYPE else secret.get("data") or {}
        found = b"\n".join(b64decode(value) for value in data.values())
        self._tpm_authorities[namespace] = time.monotonic(), found
        return found


def _no_answer() -> web.Response:
    return web.Response(status=503, headers={"Retry-After": "5"}, text="the management cluster does not answer: try again\n")


class _GoneError(Exception):
    """The host closed the connection."""


class _Talk:
    """One connection: what was said last decides how a refusal is told."""

    def __init__(self, socket: web.WebSocketResponse, registration: MachineRegistration, claimed: identity.Claim) -> None:
        self.socket = socket
        self.registration = registration
        self.claimed = claimed
        self.session: Session | None = None

    async def receive(self) -> bytes:
        message = await self.socket.receive()
        if message.type is WSMsgType.BINARY:
            data: bytes = message.data
            return data
        if message.type is WSMsgType.TEXT:
            raise ProtocolError("a text message came, and only binary ones are understood")
        raise _GoneError

    async def refuse(self, sentence: str) -> None:
        """Tell the host why, in the way that it understands, and close."""
        who = self.claimed.identity
        _log.warning("A host was refused", extra=fields(identity=f"{who.auth} {who.hashed[:12]}", err=sentence))
        frame = protocol.encode_error(self.session.version, sentence) if self.session is not None else None
        try:
            async with asyncio.timeout(_CLOSING):
                if frame is not None:
                    await self.socket.send_bytes(frame)
                reason = sentence.encode()[:_LONGEST_REASON].decode(errors="ignore").encode()
                await self.socket.close(code=WSCloseCode.POLICY_VIOLATION, message=reason)
        except (ConnectionError, TimeoutError):
            _log.debug("The host did not wait for the reason")
