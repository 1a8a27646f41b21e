"""The MachineRegistration controller: gives each registration a token of its own and tells the address at which hosts register."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from slipway.api.cluster.kinds import MACHINE_REGISTRATION
from slipway.api.elemental import names, protocol
from slipway.api.elemental.registration import MachineRegistration
from slipway.fleet.contract.conditions import FALSE, TRUE
from slipway.fleet.contract.facts import read
from slipway.fleet.contract.scope import Patcher
from slipway.fleet.contract.status import Status
from slipway.fleet.inventory.hosts import age
from slipway.runtime.cache.cache import ON_ITS_WAY
from slipway.runtime.controller import Watch
from slipway.runtime.objects import DONE, Request, Result
from slipway.runtime.rbac import READ, rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object

NAME = "machineregistration"
TOKEN_INDEX = "registrationToken"

RULES = (
    rule(MACHINE_REGISTRATION, *READ, "patch"),
    rule(MACHINE_REGISTRATION, "patch", subresource="status"),
)


def tokens(found: Object) -> Iterable[str]:
    """The tokens that a registration has or wants."""
    given = read(found, MachineRegistration)
    return {token for token in (given.spec.token, given.status.registration_token) if token}


async def of_token(found: Object, cache: Cache) -> Iterable[Request]:
    """A registration, and those that want the same token: when one goes, another may have it."""
    others = [each.request for token in tokens(found) for each in await cache.list(MACHINE_REGISTRATION, index=(TOKEN_INDEX, token))]
    return [found.request, *others]


WATCHES = (Watch(MACHINE_REGISTRATION, of_token),)


def add_indices(cache: Cache) -> None:
    cache.add_index(MACHINE_REGISTRATION, TOKEN_INDEX, tokens)


class MachineRegistrationReconciler:
    """``server_url`` is what hosts call."""

    name = NAME
    watches = WATCHES
    rules = RULES

    def __init__(
        self, client: AsyncClient, cache: Cache, server_url: str, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._client = client
        self._cache = cache
        self._server_url = server_url
        self._clock = clock
        add_indices(cache)

    async def reconcile(self, request: Request) -> Result:
        found = await self._cache.get(MACHINE_REGISTRATION, request.name, request.namespace)
        if found is None or found.metadata.deletion_timestamp:
            return DONE
        if self._cache.is_behind(MACHINE_REGISTRATION, request.name, request.namespace):
            return Result(ON_ITS_WAY)
        manifest, given = found.content(), read(found, MachineRegistration)
        patcher = Patcher(self._client, MACHINE_REGISTRATION, manifest, owned_conditions=(names.READY_CONDITION,))
        status = Status(manifest, self._clock())
        token = given.spec.token or given.status.registration_token or protocol.generate_token()
        holder = await self._holder(found, token)
        if holder is not None:
            status.fields["registrationToken"] = status.fields["registrationURL"] = ""
            why = f"The token of spec.token is that of the MachineRegistration {holder.request} already. Choose another one"
            status.set(names.READY_CONDITION, FALSE, names.DUPLICATE_TOKEN_REASON, why)
        else:
            status.fields["registrationToken"] = token
            status.fields["registrationURL"] = f"{self._server_url}{protocol.PATH}{token}"
            status.set(names.READY_CONDITION, TRUE, names.SUCCESSFULLY_CREATED_REASON, "Hosts can register")
        status.observed()
        await patcher.save(manifest, self._cache)
        return DONE

    async def _holder(self, found: Object, token: str) -> Object | None:
        """Who has the token before this one: by age, so that two that look at the same time see the same."""
        others = [
            each
            for each in await self._cache.list(MACHINE_REGISTRATION, index=(TOKEN_INDEX, token))
            if each.metadata.uid != found.metadata.uid and not each.metadata.deletion_timestamp and age(each) < age(found)
        ]
        return min(others, key=age, default=None)
