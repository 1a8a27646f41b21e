"""Looks after bootstrap data that was made: its Secret, its token, and whether it is still for the version of the control plane.

Most events are about something else.  So tokens are remembered for a while, the cache has the metadata of Secrets, and an event in that
time costs no request; the memory is a convenience and nothing is lost with it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from slipway.api.cluster.kinds import SECRET
from slipway.api.machinery.errors import OperatorError
from slipway.credentials import tokens
from slipway.fleet.bootstrap import tokens as workloadtokens
from slipway.fleet.bootstrap import version
from slipway.fleet.bootstrap.data import discovery
from slipway.fleet.bootstrap.data.data import KEYS, Rendering, config_reference, rendering_of
from slipway.fleet.bootstrap.decision import data_secret_status, rendered_anew, token_discovery
from slipway.fleet.bootstrap.tokens import Care, Holder, Token
from slipway.fleet.contract import conditions, secrets
from slipway.runtime.logs import fields
from slipway.runtime.objects import DONE, Result

if TYPE_CHECKING:
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.bootstrap.maker import Made, Maker
    from slipway.fleet.bootstrap.options import BootstrapOptions
    from slipway.fleet.bootstrap.status import Scope
    from slipway.fleet.bootstrap.version import ControlPlaneVersions
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.events import EventRecorder
    from slipway.runtime.objects import Request

_log = logging.getLogger("slipway.fleet.bootstrap")


class Memory(msgspec.Struct):
    """A token of ours that may still be in the workload cluster, and when it ends, since this process began."""

    uid: str
    cluster: str = ""
    token: Token | None = None


class Upkeep:
    def __init__(
        self,
        client: AsyncClient,
        cache: Cache,
        options: BootstrapOptions,
        maker: Maker,
        versions: ControlPlaneVersions,
        workload: WorkloadClusters,
        events: EventRecorder,
    ) -> None:
        self._client = client
        self._cache = cache
        self._options = options
        self._maker = maker
        self._versions = versions
        self._workload = workload
        self._events = events
        self._memory: dict[Request, Memory] = {}

    def recall(self, request: Request, uid: str) -> Memory:
        """What is known of the KubeadmConfig; another one of the same name is another one."""
        known = self._memory.get(request)
        if known is None or known.uid != uid:
            known = self._memory[request] = Memory(uid)
        return known

    async def gone(self, request: Request) -> None:
        """The KubeadmConfig is deleted: a token that no node has used has no more use."""
        known = self._memory.pop(request, None)
        if known is not None and known.token is not None:
            await self._end_token(Holder(known.uid, *request), known)

    async def data_lost(self, config: Manifest) -> bool:
        """Whether the status names a data Secret of ours that is not there."""
        metadata = config["metadata"]
        created, name = data_secret_status(config)
        if not created or name != metadata["name"]:
            # Not made here, or not yet.
            return False
        return await self._cache.get(SECRET, name, metadata["namespace"]) is None

    async def adopt(self, scope: Scope) -> None:
        """The data Secret is the KubeadmConfig's, also after a move to another management cluster."""
        if (data_secret_status(scope.manifest)[1] or scope.owner.data_secret_name) != scope.name:
            # Not made here.
            return
        owner = config_reference(scope.manifest)
        known = await self._cache.get(SECRET, scope.name, scope.namespace)
        if known is None or secrets.owner_of(known, owner):
            return
        written = await secrets.adopt(self._client, scope.name, scope.namespace, owner, KEYS)
        if written is not None:
            self._cache.wrote(SECRET, written)

    async def _rendering(self, scope: Scope) -> Rendering:
        """What the data in the Secret was rendered with."""
        known = await self._cache.get(SECRET, scope.name, scope.namespace)
        return Rendering() if known is None else rendering_of(known.metadata.annotations)

    async def refresh(self, scope: Scope, memory: Memory) -> Result:
        """While no node has used the token, it must not end."""
        text = token_discovery(scope.manifest).get("token") or ""
        if not text:
            return await self._outdated(scope, memory)
        if not self._believed(memory, text, scope.now, rotate=False):
            token = await self._extended(scope, text)
            if token is None:
                # The nodes of a pool do not share a token for ever anyway.
                return await self._replace(scope, memory, text)
            self._remember(scope, memory, token)
        return await self._outdated(scope, memory)

    async def rotate(self, scope: Scope, memory: Memory) -> Result:
        """A pool whose nodes have joined gets a new token before the old one is too old for the next node."""
        text = token_discovery(scope.manifest).get("token") or ""
        if not self._believed(memory, text, scope.now, rotate=True):
            async with self._workload.client(scope.cluster.namespace, scope.cluster.name) as client:
                token = await workloadtokens.find(client, text)
            if token is None or workloadtokens.care_for(token.expires, scope.now, self._options.token_ttl, rotate=True) is Care.REPLACE:
                return await self._replace(scope, memory, text)
            memory.token = token
        return await self._outdated(scope, memory)

    async def keep(self, scope: Scope, memory: Memory) -> Result:
        """The node has joined, so its token has no more use; one that an earlier process knew of ends by itself."""
        if scope.owner.joined and memory.token is not None:
            await self._end_token(scope.holder, memory)
        return DONE

    def made(self, scope: Scope, memory: Memory, made: Made) -> Result:
        """New data was stored."""
        if made.token is not None:
            self._remember(scope, memory, made.token)
        return Result(made.requeue_after)

    async def _outdated(self, scope: Scope, memory: Memory) -> Result:
        """Render the data anew where the control plane has changed and no host has used the data."""
        again = Result(workloadtokens.check_interval(self._options.token_ttl).total_seconds())
        rendering = await self._rendering(scope)
        before = rendering.control_plane_version
        if not before or scope.owner.consumed or scope.owner.control_plane or scope.cluster.deleting:
            return again
        if not (token_discovery(scope.manifest).get("token") or "").startswith(rendering.token_id):
            # A rotation that was killed between its token and its data.
            return await self._render(scope, memory, before)
        current = await self._versions.last_known(scope.cluster)
        if not rendered_anew(before, current, scope.owner):
            if not conditions.is_true(conditions.of(scope.manifest), version.CONDITION):
                # After the version could not be read, the condition is true again; else it keeps what it says of the last rendering.
                scope.outcome.version = await self._maker.join_version(scope, current)
            return again
        note = f"; rendered anew, as the control plane had {before} before and no host had used the data yet"
        result = await self._render(scope, memory, before, note)
        message = f"The control plane changed from {before} to {current}: bootstrap data was rendered anew"
        self._events.event(scope.manifest, "Normal", "BootstrapDataRenderedAnew", message)
        _log.info("Rendered the bootstrap data anew", extra=fields(before=before, now=current))
        return result

    async def _render(self, scope: Scope, memory: Memory, before: str, note: str = "") -> Result:
        """New data in the place of that which was made for ``before``."""
        scope.outcome.standing = before
        return self.made(scope, memory, await self._maker.join_worker(scope, note=note))

    async def _extended(self, scope: Scope, text: str) -> Token | None:
        """The token with a life before it; None for one that a pool has to replace."""
        ttl, holder = self._options.token_ttl, scope.holder
        async with self._workload.client(scope.cluster.namespace, scope.cluster.name) as client:
            token = await workloadtokens.extend(client, text, ttl, scope.now)
            if token is not None or scope.owner.is_pool:
                return token
            if not workloadtokens.is_own(holder, text):
                raise OperatorError(
                    f"failed to get bootstrap token secret in order to refresh it: the workload cluster {scope.cluster.name} has no Secret "
                    f"{tokens.NAMESPACE}/{tokens.secret_name(text.partition('.')[0])}, and the token of spec.joinConfiguration is "
                    "not one that was made here"
                )
            # It ended while nobody looked after it.  A host may have it in its data, so it must be the same one.
            token = await workloadtokens.restore(client, holder, text, ttl, scope.now)
        self._events.event(
            scope.manifest, "Normal", "BootstrapTokenRestored", f"The bootstrap token {token.token_id} had ended and is valid again"
        )
        return token

    async def _replace(self, scope: Scope, memory: Memory, previous: str) -> Result:
        """A new token for a pool, and data with it."""
        token = await self._maker.new_token(scope, previous.partition(".")[0])
        join = scope.section("joinConfiguration")
        scope.set_section("joinConfiguration", {**join, "discovery": discovery.with_token(join.get("discovery") or {}, token.text)})
        before = (await self._rendering(scope)).control_plane_version
        result = await self._render(scope, memory, before)
        self._remember(scope, memory, token)
        _log.info("Replaced the bootstrap token of the pool", extra=fields(token=token.token_id))
        return result

    def _believed(self, memory: Memory, text: str, now: datetime, *, rotate: bool) -> bool:
        token = memory.token
        if token is None or token.text != text:
            return False
        return workloadtokens.care_for(token.expires, now, self._options.token_ttl, rotate=rotate) is Care.NOTHING

    def _remember(self, scope: Scope, memory: Memory, token: Token) -> None:
        memory.token, memory.cluster = token, scope.cluster.name

    async def _end_token(self, holder: Holder, memory: Memory) -> None:
        token, memory.token = memory.token, None
        assert token is not None
        if not workloadtokens.is_own(holder, token.text):
            return
        try:
            async with self._workload.client(holder.namespace, memory.cluster) as client:
                await workloadtokens.forget(client, holder, token.token_id)
        except OperatorError as error:
            # It ends by itself, and a cluster that is being deleted is not there to ask.
            _log.debug("The bootstrap token is left to end by itself", extra=fields(token=token.token_id, err=error.message))
