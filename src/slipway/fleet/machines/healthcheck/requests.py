"""Remediation by somebody else: a request for each unhealthy Machine, made from a template, for a controller that knows the hosts.

A request has the name of its Machine, so that there is one at most, and goes when the Machine is healthy again.  Requests and templates are
watched from the first time that their kind is known to be there: a request that somebody deleted is made again, and a template that was
missing is used as soon as it comes.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from slipway.api.cluster.kinds import MACHINE, Kind
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.references import crd_name
from slipway.fleet.contract.templates import clone, kind_from
from slipway.kube.errors import AlreadyExistsError
from slipway.runtime import finalizers

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.cluster.core.machinehealthcheck import MachineHealthCheck
    from slipway.fleet.machines.healthcheck.observed import Machine
    from slipway.kube.aio import AsyncClient


class TemplateMissingError(OperatorError):
    """The template that requests are made from cannot be read."""


class RequestError(OperatorError):
    """A request could not be made."""


class Requests:
    """``follow`` is called with every kind whose objects are known to be there."""

    def __init__(self, client: AsyncClient, check: MachineHealthCheck, namespace: str, follow: Callable[[Kind], None]) -> None:
        self._client = client
        self._follow = follow
        self._namespace = namespace
        self._template = check.spec.remediation.template_ref
        self._cluster = check.spec.cluster_name
        group, _, version = self._template.api_version.rpartition("/")
        self._template_kind = _kind(group, version, self._template.kind)
        self.kind = _kind(group, version, kind_from(self._template.kind))

    async def ensure(self, machine: Machine) -> bool:
        """Whether a request was made; there may be one already."""
        name = machine.metadata.name
        if await self._client.find(self.kind, name, self._namespace) is not None:
            self._follow(self.kind)
            return False
        template = await self._find_template()
        owner = {"apiVersion": MACHINE.api_version, "kind": MACHINE.kind, "name": name, "uid": machine.metadata.uid}
        wanted = clone(template, name=name, namespace=self._namespace, cluster=self._cluster, labels={}, annotations={}, owners=[owner])
        try:
            await self._client.create(self.kind, wanted)
            self._follow(self.kind)
        except AlreadyExistsError:
            return False
        except OperatorError as error:
            raise RequestError(f"the {self.kind.kind} {self._namespace}/{name} could not be made: {error.message}") from error
        return True

    async def withdraw(self, machine: Machine) -> None:
        """Delete the request of a Machine that is healthy again."""
        name = machine.metadata.name
        found = await self._client.find(self.kind, name, self._namespace)
        if found is not None and not finalizers.is_deleted(found):
            await self._client.delete(self.kind, name, self._namespace, uid=found["metadata"]["uid"])

    async def _find_template(self) -> dict[str, object]:
        where = f"{self._template.kind} {self._namespace}/{self._template.name}"
        try:
            found = await self._client.find(self._template_kind, self._template.name, self._namespace)
        except OperatorError as error:
            raise TemplateMissingError(f"the remediation template {where} cannot be read: {error.message}") from error
        if found is None:
            with suppress(OperatorError):
                # Where there are no such objects at all, nobody can tell when one comes.
                await self._client.list_page(self._template_kind, self._namespace, limit=1)
                self._follow(self._template_kind)
            raise TemplateMissingError(f"there is no remediation template {where}")
        self._follow(self._template_kind)
        return {**found, "apiVersion": self._template.api_version, "kind": self._template.kind}


def _kind(group: str, version: str, kind: str) -> Kind:
    return Kind(group, version, kind, crd_name(group, kind).partition(".")[0])
