"""Making a Machine with all that belongs to it: first its bootstrap configuration, then its infrastructure, then itself.

Where one cannot be made, those before it are deleted again; what a process that was killed in between left behind is found by its owner
reference, and deleted by the next reconcile.

Labels and annotations of the clones have a field manager of their own, so that one that is taken from the template goes.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.kinds import MACHINE
from slipway.api.cluster.meta import ContractVersionedObjectReference as Reference
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.templates import clone
from slipway.fleet.machines.machineset import desired
from slipway.kube.errors import UnreachableError
from slipway.runtime.logs import fields

if TYPE_CHECKING:
    from slipway.api.cluster.core.machineset import MachineSet
    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.references import References
    from slipway.fleet.machines.propagation import Propagation
    from slipway.kube.aio import AsyncClient

_log = logging.getLogger("slipway.fleet.machines.machineset")

# Reasons of yesterday's MachinesCreated.
BOOTSTRAP_FAILED = "BootstrapTemplateCloningFailed"
INFRASTRUCTURE_FAILED = "InfrastructureTemplateCloningFailed"
MACHINE_FAILED = "MachineCreationFailed"


class CreationError(OperatorError):
    """A Machine could not be made; ``reason`` says which part of it, and ``cause`` why."""

    def __init__(self, message: str, reason: str, cause: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.cause = cause


def _failed(what: str, reason: str, error: OperatorError) -> CreationError:
    return CreationError(f"a Machine could not be made: {what}: {error.message}", reason, error.message)


class Clone(NamedTuple):
    kind: Kind
    manifest: Manifest

    @property
    def reference(self) -> Manifest:
        return {"apiGroup": self.kind.group, "kind": self.kind.kind, "name": self.manifest["metadata"]["name"]}


class Creator:
    """``machines`` applies what a MachineSet owns, ``metadata`` the labels and annotations of clones."""

    def __init__(self, client: AsyncClient, references: References, machines: Propagation, metadata: Propagation) -> None:
        self._client = client
        self._references = references
        self._machines, self._metadata = machines, metadata

    def name(self, manifest: Manifest) -> str:
        """That of one more Machine."""
        try:
            return desired.machine_name(manifest)
        except OperatorError as error:
            raise _failed("the Machine itself", MACHINE_FAILED, error) from error

    async def create(self, manifest: Manifest, machine_set: MachineSet, name: str) -> Manifest:
        """One more Machine, of that name."""
        made: list[Clone] = []
        reason = MACHINE_FAILED
        spec = machine_set.spec.template.spec
        try:
            reason, bootstrap = BOOTSTRAP_FAILED, None
            if spec.bootstrap.config_ref:
                bootstrap = await self._clone(manifest, spec.bootstrap.config_ref, name)
                made.append(bootstrap)
            reason = INFRASTRUCTURE_FAILED
            infrastructure = await self._clone(manifest, spec.infrastructure_ref, name)
            made.append(infrastructure)
            reason = MACHINE_FAILED
            wanted = desired.new_machine(
                manifest, name, bootstrap=bootstrap.reference if bootstrap is not None else None, infrastructure=infrastructure.reference
            )
            return await self._machines.create(MACHINE, wanted)
        except OperatorError as error:
            await self._undo(made, error)
            what = {
                BOOTSTRAP_FAILED: f"its bootstrap configuration from {spec.bootstrap.config_ref.kind} {spec.bootstrap.config_ref.name}",
                INFRASTRUCTURE_FAILED: f"its infrastructure from {spec.infrastructure_ref.kind} {spec.infrastructure_ref.name}",
                MACHINE_FAILED: "the Machine itself",
            }[reason]
            raise _failed(what, reason, error) from error

    async def _clone(self, machine_set: Manifest, reference: Reference, name: str) -> Clone:
        namespace = machine_set["metadata"]["namespace"]
        template = await self._references.find(reference, namespace)
        if template is None:
            raise OperatorError(f"the {reference.kind} {namespace}/{reference.name} does not exist")
        wanted = clone(
            template,
            name=name,
            namespace=namespace,
            cluster=machine_set["spec"]["clusterName"],
            labels={},
            annotations={},
            owners=[desired.set_reference(machine_set)],
        )
        kind = await self._references.kind(Reference(kind=wanted["kind"], name=name, api_group=reference.api_group))
        wanted["apiVersion"] = kind.api_version
        written = await self._machines.create(kind, wanted)
        made = Clone(kind, written)
        try:
            await self._metadata.apply(kind, desired.clone_metadata(machine_set, written), written)
        except OperatorError as error:
            await self._undo([made], error)
            raise
        return made

    async def _undo(self, made: list[Clone], error: OperatorError) -> None:
        if isinstance(error, UnreachableError):
            # The Machine may have been made all the same: the next reconcile sees whether its clones are to go.
            return
        for one in reversed(made):
            metadata = one.manifest["metadata"]
            try:
                await self._client.delete(one.kind, metadata["name"], metadata["namespace"], uid=metadata["uid"])
            except OperatorError as second:
                # The next reconcile finds it by its owner reference.
                _log.warning(
                    "A clone could not be deleted after its Machine could not be made",
                    extra=fields(kind=one.kind.kind, object=metadata["name"], err=second.message, because=error.message),
                )
