"""The SeedImage controller: makes an image once, keeps it for a while, and makes it again only when it is asked to.

What is next is decided by :func:`decide`; each state is written before what follows from it is done.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.kinds import MACHINE_REGISTRATION, SECRET, SEED_IMAGE
from slipway.api.elemental import names, protocol
from slipway.api.elemental.registration import MachineRegistration
from slipway.api.elemental.seedimage import ISO, SeedImage
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.conditions import FALSE, TRUE
from slipway.fleet.contract.facts import read
from slipway.fleet.contract.scope import Patcher
from slipway.fleet.contract.status import Status
from slipway.fleet.inventory.options import SECRET as SERVING_SECRET
from slipway.fleet.inventory.registration import configuration
from slipway.fleet.inventory.seed import content, download, iso, storage
from slipway.kube.errors import ApiError, UnreachableError
from slipway.runtime.cache.cache import ON_ITS_WAY
from slipway.runtime.controller import Watch
from slipway.runtime.objects import DONE, Object, Request, Result, timestamp
from slipway.runtime.rbac import READ, rule
from slipway.runtime.webhook.store import from_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.inventory.registration.certificate import Given
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache

_log = logging.getLogger("slipway.fleet.inventory.seed")

NAME = "seedimage"
_BY_REGISTRATION = "registrationRef"
# The first replica that serves the registration makes its certificate.
_RETRY = 5.0

RULES = (
    rule(SEED_IMAGE, *READ, "patch"),
    rule(SEED_IMAGE, "patch", subresource="status"),
    rule(MACHINE_REGISTRATION, *READ),
    rule(SECRET, "get", "create", "update"),
)


class Step(Enum):
    RESTART = "taking the build back"
    WAIT = "waiting for the registration"
    INITIALIZE = "choosing the address"
    BUILD = "building"
    KEEP = "keeping the image"
    CLEAN_UP = "cleaning up"
    REST = "done"


class Moment(NamedTuple):
    """When a state ends by itself; None where it does not."""

    step: Step
    at: datetime | None = None


def decide(image: SeedImage, registration: MachineRegistration | None, now: datetime) -> Moment:
    """What is next."""
    state = image.status.state
    if image.spec.retrigger_build:
        return Moment(Step.RESTART)
    if state in ("", names.SEED_IMAGE_NOT_STARTED):
        return Moment(Step.INITIALIZE if registration is not None and registration.status.registration_url else Step.WAIT)
    if state in (names.SEED_IMAGE_INITIALIZED, names.SEED_IMAGE_STARTED):
        return Moment(Step.BUILD if registration is not None else Step.WAIT)
    if state != names.SEED_IMAGE_COMPLETED or not image.status.download_url or not image.spec.cleanup_after_minutes:
        return Moment(Step.REST)
    ends = _completed_at(image, now) + timedelta(minutes=image.spec.cleanup_after_minutes)
    return Moment(Step.CLEAN_UP) if now >= ends else Moment(Step.KEEP, ends)


def _completed_at(image: SeedImage, now: datetime) -> datetime:
    for condition in image.status.conditions:
        if condition.type == names.SEED_IMAGE_READY_CONDITION and condition.status == TRUE:
            return datetime.fromisoformat(condition.last_transition_time)
    return now


def registrations(found: Object) -> Iterable[str]:
    reference = read(found, SeedImage).spec.registration_ref
    return (f"{reference.namespace or found.namespace}/{reference.name}",)


async def of_registration(found: Object, cache: Cache) -> Iterable[Request]:
    return [each.request for each in await cache.list(SEED_IMAGE, index=(_BY_REGISTRATION, f"{found.namespace}/{found.name}"))]


WATCHES = (Watch(SEED_IMAGE), Watch(MACHINE_REGISTRATION, of_registration))


class SeedImageReconciler:
    """``home`` is where the certificate of the registration is kept, where the manager has not been given one."""

    name = NAME
    watches = WATCHES
    rules = RULES

    def __init__(
        self,
        client: AsyncClient,
        cache: Cache,
        server_url: str,
        home: str,
        *,
        given: Given | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._cache = cache
        self._server_url = server_url
        self._home, self._given = home, given
        self._clock = clock
        cache.add_index(SEED_IMAGE, _BY_REGISTRATION, registrations)

    async def reconcile(self, request: Request) -> Result:
        found = await self._cache.get(SEED_IMAGE, request.name, request.namespace)
        if found is None or found.metadata.deletion_timestamp:
            return DONE
        if self._cache.is_behind(SEED_IMAGE, request.name, request.namespace):
            return Result(ON_ITS_WAY)
        manifest, image, now = found.content(), read(found, SeedImage), self._clock()
        registration = await self._registration(found, image)
        step, ends = decide(image, registration, now)
        patcher = Patcher(self._client, SEED_IMAGE, manifest, owned_conditions=(names.SEED_IMAGE_READY_CONDITION,))
        status = Status(manifest, now)
        result = DONE
        match step:
            case Step.RESTART:
                manifest["spec"] = {**manifest["spec"], "retriggerBuild": False}
                self._set(status, names.SEED_IMAGE_NOT_STARTED, names.BUILD_NOT_STARTED_REASON, "The image is made again")
            case Step.WAIT:
                reference = image.spec.registration_ref
                why = f"Waiting for the MachineRegistration {reference.name} of this namespace to be there and Ready"
                self._set(status, names.SEED_IMAGE_NOT_STARTED, names.BUILD_NOT_STARTED_REASON, why)
            case Step.INITIALIZE:
                self._initialize(status, image, now)
            case Step.BUILD if registration is not None:
                result = await self._make(patcher, status, manifest, image, registration)
            case Step.KEEP if ends is not None:
                return Result(max((ends - now).total_seconds(), 1.0))
            case Step.CLEAN_UP:
                await storage.store(self._client, manifest, None)
                status.fields["downloadURL"] = status.fields["checksumURL"] = ""
                why = f"The image was kept for {image.spec.cleanup_after_minutes} minutes. Set spec.retriggerBuild to have it made again"
                status.set(names.SEED_IMAGE_READY_CONDITION, FALSE, names.CLEANED_UP_REASON, why)
            case _:
                return DONE
        status.observed()
        await patcher.save(manifest, self._cache)
        return result

    async def _registration(self, found: Object, image: SeedImage) -> MachineRegistration | None:
        reference = image.spec.registration_ref
        if (reference.namespace or found.namespace) != found.namespace:
            # Who may make images here may not read tokens there.
            return None
        known = await self._cache.get(MACHINE_REGISTRATION, reference.name, found.namespace)
        return None if known is None or known.metadata.deletion_timestamp else read(known, MachineRegistration)

    def _initialize(self, status: Status, image: SeedImage, now: datetime) -> None:
        token = protocol.generate_token()
        file = f"{image.spec.registration_ref.name}-{timestamp(now)}.{image.spec.type or ISO}"
        url = f"{self._server_url}{download.PATH}{token}/{file}"
        status.fields.update({"downloadToken": token, "downloadURL": url, "checksumURL": url + download.CHECKSUM_SUFFIX})
        self._set(status, names.SEED_IMAGE_INITIALIZED, names.BUILD_ONGOING_REASON, "The address of the image is chosen", keep=True)

    async def _make(
        self, patcher: Patcher, status: Status, manifest: Manifest, image: SeedImage, registration: MachineRegistration
    ) -> Result:
        authorities = await self._authorities()
        if not authorities:
            why = (
                f"Waiting for the certificate of the registration in the Secret {self._home}/{SERVING_SECRET}: the manager serves none yet"
            )
            self._set(status, names.SEED_IMAGE_INITIALIZED, names.BUILD_ONGOING_REASON, why, keep=True)
            return Result(_RETRY)
        self._set(status, names.SEED_IMAGE_STARTED, names.BUILD_ONGOING_REASON, "The image is being made", keep=True)
        written = await patcher.patch(manifest)
        manifest["metadata"] = written["metadata"]
        try:
            files = content.files(configuration.client_config(registration, authorities), image.spec.cloud_config)
            await storage.store(self._client, manifest, await iso.build(files))
        except (ApiError, UnreachableError):
            # Nothing is wrong with the image: it is made again.
            raise
        except OperatorError as error:
            _log.warning("An image could not be made: %s", error.message)
            self._set(status, names.SEED_IMAGE_FAILED, names.BUILD_FAILED_REASON, error.message)
            return DONE
        status.fields["state"] = names.SEED_IMAGE_COMPLETED
        status.set(names.SEED_IMAGE_READY_CONDITION, TRUE, names.BUILD_SUCCEEDED_REASON, "The image can be downloaded")
        return Result(_RETRY) if image.spec.cleanup_after_minutes else DONE

    async def _authorities(self) -> bytes:
        if self._given is not None:
            return self._given.authorities()
        found = await self._client.find(SECRET, SERVING_SECRET, self._home)
        known = from_secret(found) if found is not None else None
        return known.authorities if known is not None else b""

    def _set(self, status: Status, state: str, reason: str, message: str, *, keep: bool = False) -> None:
        status.fields["state"] = state
        if not keep:
            status.fields["downloadURL"] = status.fields["checksumURL"] = status.fields["downloadToken"] = ""
        status.set(names.SEED_IMAGE_READY_CONDITION, FALSE, reason, message)
