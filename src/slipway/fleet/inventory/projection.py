"""What an inventory's status says of its host, from the plan Secret: a pure function of both.

An outcome counts by the checksum of the plan that it is of, which :mod:`slipway.api.elemental.plan` compares; the state alone says nothing.
"""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.api.cluster.infrastructure import names as infrastructure
from slipway.api.elemental import names, plan, staging
from slipway.api.elemental.inventory import HostFacts
from slipway.fleet.contract.conditions import FALSE, TRUE
from slipway.runtime.objects import fitted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slipway.api.elemental.plan import SecretState
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.status import Status

STORAGE_UNSUPPORTED_REASON = "StorageUnsupported"
DUPLICATE_IDENTITY_REASON = "DuplicateIdentity"
RESETTING_REASON = "Resetting"
IN_USE_REASON = "InUse"
ADOPTED_REASON = "SuccessfullyAdopted"
UNSUPPORTED_CONFIGURATOR_REASON = "UnsupportedConfigurator"
OWNED_CONDITIONS = (names.READY_CONDITION, names.ADOPTION_READY_CONDITION, names.NETWORK_CONFIG_READY_CONDITION)
# As long as the type of status.plan.message takes it.
_LONGEST_OUTPUT = 4096
LONGEST_SHOWN = 1024
"""Of what a host printed, in a condition."""
_LONGEST_FACTS = 64 << 10


class PlanFacts(msgspec.Struct, frozen=True):
    """What of a plan Secret matters to its inventory: small, where a plan may be half a megabyte and what it printed even more."""

    state: SecretState
    """Without its output."""
    printed: str = ""
    """The end of that, on one line."""
    type: str = ""
    facts: bytes = b""
    """As JSON, which is the smallest form of it."""
    facts_problem: str = ""
    wants_token: bool = False


def facts_of(secret: Manifest) -> PlanFacts:
    """What a plan Secret says.  What the host says of itself may be anything: it is taken only where it has the shape of facts."""
    annotations: Mapping[str, str] = secret["metadata"].get("annotations") or {}
    data = secret.get("data") or {}
    state = plan.read(data)
    type_ = state.type or annotations.get(infrastructure.PLAN_TYPE_ANNOTATION) or annotations.get(names.PLAN_TYPE_ANNOTATION) or ""
    facts, problem = _host_facts(plan.plain({plan.HOST_FACTS: data.get(plan.HOST_FACTS, "")})[plan.HOST_FACTS])
    return PlanFacts(
        # Most hosts have the same plan, which is none.
        msgspec.structs.replace(state, output={}, plan_checksum=sys.intern(state.plan_checksum)),
        # Of a success nobody is told it.
        "" if state.outcome == "applied" else output(state.output)[-_LONGEST_OUTPUT:],
        type_[:63],
        facts,
        problem,
        # Not beside a plan: who writes to the Secret then is in the agent's way.
        wants_token=bool(data.get(plan.TOKEN_REQUEST)) and not data.get(plan.TOKEN) and not state.in_flight,
    )


def _host_facts(raw: bytes) -> tuple[bytes, str]:
    if not raw:
        return b"", ""
    if len(raw) > _LONGEST_FACTS:
        return b"", f"the host's facts have {len(raw)} bytes, more than the {_LONGEST_FACTS} that are taken"
    try:
        decoded = msgspec.json.decode(raw, type=HostFacts)
    except (msgspec.DecodeError, RecursionError) as error:
        return b"", f"the host's facts cannot be read: {error}"
    registry = decoded.registry
    if registry is not None:
        registry.message = registry.message[:1024]
    staged = decoded.staging
    if staged is not None:
        staged.message = staged.message[:1024]
        if staged.state not in ("", *staging.STATES) or staged.bytes < 0 or len(staged.image) > 1024:
            # As with a time that is none: the host's other facts are worth having.
            decoded.staging = None
    if decoded.observed_at and not _is_time(decoded.observed_at):
        # The API server would refuse the whole status for it.
        return b"", f'the host\'s facts cannot be read: observedAt is "{decoded.observed_at[:64]}", and no time'
    return fitted(msgspec.json.encode(decoded)), ""


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def tell(
    status: Status,
    manifest: Manifest,
    told: PlanFacts | None,
    *,
    problem: str = "",
    twins: Sequence[str] = (),
) -> None:
    """Write the status of an inventory.  ``problem``: why the host has no Secret or account; ``twins``: others with its identity."""
    metadata, spec = manifest["metadata"], manifest.get("spec") or {}
    _tell_plan(status.fields, metadata, told)
    _tell_adoption(status, metadata.get("annotations") or {})
    _tell_network(status, spec.get("network") or {})
    status.set(names.READY_CONDITION, *_ready(spec, told, problem, twins))
    status.observed()


def _ready(spec: Manifest, told: PlanFacts | None, problem: str, twins: Sequence[str]) -> tuple[Any, str, str]:
    if spec.get("storage"):
        why = "spec.storage declares data volumes, which are not managed here: nothing on a host's disks outlives a reprovisioning"
        return FALSE, STORAGE_UNSUPPORTED_REASON, f"{why}. Remove spec.storage"
    if problem:
        return FALSE, names.PLAN_CREATION_FAILURE_REASON, problem
    if twins:
        why = f"{', '.join(twins)} registered with the same identity before"
        return (
            FALSE,
            DUPLICATE_IDENTITY_REASON,
            f"{why}. Give each host a key of its own, and delete the inventory of the host that has none",
        )
    if told is None or told.state.outcome == "none":
        return FALSE, names.WAITING_FOR_PLAN_REASON, "The host has no plan yet"
    kind = f"the {told.type} plan" if told.type else "its plan"
    if told.state.outcome == "applied":
        return TRUE, names.PLAN_SUCCESSFULLY_APPLIED_REASON, f"The host applied {kind} {told.state.plan_checksum[:12]}"
    if told.state.outcome == "failed":
        times = "once" if told.state.failures <= 1 else f"{told.state.failures} times"
        shown = told.printed[-LONGEST_SHOWN:]
        return FALSE, names.PLAN_FAILURE_REASON, f"On the host {kind} failed {times}{f': {shown}' if shown else ' and printed nothing'}"
    doing = "works on" if told.state.outcome == "in-progress" else "has not begun with"
    hint = "" if told.state.outcome == "in-progress" else ": see that the host is on, and that its agent runs and reaches this cluster"
    return FALSE, names.WAITING_FOR_PLAN_REASON, f"The host's agent {doing} {kind} {told.state.plan_checksum[:12]}{hint}"


def _tell_plan(fields: Manifest, metadata: Manifest, told: PlanFacts | None) -> None:
    if told is None:
        fields["plan"] = {}
        fields.pop("hostFacts", None)
        return
    found: Manifest = {
        "secretRef": {"apiVersion": "v1", "kind": "Secret", "namespace": metadata["namespace"], "name": metadata["name"]},
        "checksum": told.state.plan_checksum,
        "type": told.type,
        "failures": told.state.failures,
    }
    if told.state.outcome == "applied":
        found["state"] = names.PLAN_APPLIED
    elif told.state.outcome == "failed":
        found["state"] = names.PLAN_FAILED
        found["message"] = told.printed
    fields["plan"] = {key: value for key, value in found.items() if value}
    if told.facts:
        fields["hostFacts"] = msgspec.json.decode(told.facts)


def _tell_adoption(status: Status, annotations: Mapping[str, str]) -> None:
    owner = annotations.get(infrastructure.OWNER_BAREMETAL_MACHINE_ANNOTATION)
    if owner:
        status.set(names.ADOPTION_READY_CONDITION, TRUE, ADOPTED_REASON, f"The BaremetalMachine {owner} has this host")
    else:
        status.set(names.ADOPTION_READY_CONDITION, FALSE, names.NOT_ADOPTED_REASON, "No BaremetalMachine has this host")


def _tell_network(status: Status, network: Manifest) -> None:
    configurator = network.get("configurator") or "none"
    if configurator == "none":
        status.set(names.NETWORK_CONFIG_READY_CONDITION, TRUE, names.NO_NETWORK_CONFIG_REASON, "The host configures its network by itself")
        return
    why = f'The configurator "{configurator}" is not carried out here'
    what = "a host gets the network that it observed when it registered. Set spec.network.configurator to none"
    status.set(names.NETWORK_CONFIG_READY_CONDITION, FALSE, UNSUPPORTED_CONFIGURATOR_REASON, f"{why}: {what}")


def output(printed: Mapping[str, str]) -> str:
    """What instructions printed, on one line for each of them."""
    return "; ".join(f"{name}: {' '.join(text.split())}" for name, text in printed.items() if text.strip())
