"""The Secret that carries a plan to a host and its outcome back, as system-agent has it.  A plan itself is in ``plancodec``.

A plan is known by the SHA-256 of its bytes.  Everything in the Secret that says what became of a plan names that checksum,
or is not of this plan: ``read`` judges by it alone, so that an outcome that an earlier plan left behind says nothing.

``read`` and ``written`` speak of a Secret's ``data`` as it is on the wire: values are base64.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from base64 import b64encode
from typing import TYPE_CHECKING, Literal

import msgspec

from slipway.api.elemental.plancodec import (
    DEFAULT_PERIOD_SECONDS,
    DELETE,
    DIRECTORY_PERMISSIONS,
    EMPTY,
    FILE_PERMISSIONS,
    HTTPGet,
    Instruction,
    PeriodicInstruction,
    Plan,
    PlanError,
    PlanFile,
    Probe,
    decode,
    encode,
    from_base64,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "DEFAULT_PERIOD_SECONDS",
    "DELETE",
    "DIRECTORY_PERMISSIONS",
    "EMPTY",
    "FILE_PERMISSIONS",
    "HTTPGet",
    "Instruction",
    "PeriodicInstruction",
    "Plan",
    "PlanError",
    "PlanFile",
    "Probe",
    "Progress",
    "SecretState",
    "checksum",
    "decode",
    "encode",
    "pack_output",
    "plain",
    "progress",
    "read",
    "unpack_output",
    "wire",
    "written",
]

# The keys of a plan Secret's data.
PLAN = "plan"
APPLIED_CHECKSUM = "applied-checksum"
APPLIED_OUTPUT = "applied-output"
APPLIED_PERIODIC_OUTPUT = "applied-periodic-output"
FAILED_CHECKSUM = "failed-checksum"
FAILED_OUTPUT = "failed-output"
FAILURE_COUNT = "failure-count"
MAX_FAILURES = "max-failures"
SUCCESS_COUNT = "success-count"
LAST_APPLY_TIME = "last-apply-time"
PROBE_STATUSES = "probe-statuses"
PROBE_PERIOD_SECONDS = "probe-period-seconds"
PLAN_STATE = "plan-state"
PLAN_REVISION = "plan-revision"
PLAN_CHECKPOINT = "plan-checkpoint"
# Slipway's own: what the plan is for, which goes and comes with the plan itself; and what the host says of itself.
PLAN_TYPE = "slipway-plan-type"
HOST_FACTS = "slipway-host-facts"
PROGRESS = "slipway-progress"
# That the host's token is to be renewed, and the one that it gets; each is blank where there is nothing to be done.
TOKEN_REQUEST = "slipway-token-request"
TOKEN = "slipway-token"

# Of plan-state.
PENDING = "pending"
IN_PROGRESS = "in-progress"
SUCCEEDED = "succeeded"
FAILED = "failed"
CANCELED = "canceled"
PAUSED = "paused"

# More than a Secret can hold when it is packed well; what is longer was made to hurt.
_LONGEST_OUTPUT = 16 * 2**20

Outcome = Literal["none", "pending", "in-progress", "applied", "failed"]


def checksum(raw: bytes) -> str:
    """What a plan is known by: the SHA-256 of its bytes, in hexadecimal digits."""
    return hashlib.sha256(raw).hexdigest()


class SecretState(msgspec.Struct, frozen=True):
    """What a Secret says of the plan that it has now."""

    plan_checksum: str
    """Empty where there is no plan."""
    outcome: Outcome
    """``failed`` is said once no attempt is left; until then a plan that failed is in progress."""
    failures: int = 0
    """How often this plan has failed so far."""
    output: dict[str, str] = {}
    """What the instructions printed, by their names: of the failure where there is one, else of the success."""
    type: str = ""
    """What the plan is for, as its writer said."""
    plan_state: str = ""
    """What a newer agent says, of whichever plan; for people."""

    @property
    def in_flight(self) -> bool:
        """Whether the host may be working on the plan: a writer leaves such a Secret alone."""
        return self.outcome in ("pending", "in-progress")


def read(data: Mapping[str, str] | None) -> SecretState:
    """What a Secret's data, as it is on the wire, says of its plan."""
    values = plain(data)
    raw = values.get(PLAN, b"")
    if not raw:
        return SecretState("", "none")
    current = checksum(raw)
    failed_once = _text(values, FAILED_CHECKSUM) == current
    applied = _text(values, APPLIED_CHECKSUM) == current
    failures = _number(values, FAILURE_COUNT) if failed_once else 0
    state = _text(values, PLAN_STATE)
    outcome: Outcome
    if failed_once:
        # A success blanks the keys of a failure: where both name the plan, the failure is the newer one.
        most = _number(values, MAX_FAILURES)
        outcome = "failed" if most <= 0 or failures >= most or state == FAILED else "in-progress"
    elif applied:
        outcome = "applied"
    else:
        outcome = "in-progress" if state == IN_PROGRESS else "pending"
    packed = values.get(FAILED_OUTPUT, b"") if failed_once else values.get(APPLIED_OUTPUT, b"") if applied else b""
    return SecretState(current, outcome, failures, unpack_output(packed), _text(values, PLAN_TYPE), state)


class Progress(msgspec.Struct, frozen=True):
    """What a host is doing of its plan at the moment."""

    instruction: str = ""
    index: int = 0
    of: int = 0
    started: str = ""


def progress(data: Mapping[str, str] | None) -> Progress | None:
    """None where the host does nothing, or does not say."""
    found = from_base64((data or {}).get(PROGRESS, ""))
    try:
        return msgspec.json.decode(found, type=Progress) if found else None
    except msgspec.DecodeError:
        return None


def written(plan: Plan | bytes, type_: str, max_failures: int) -> dict[str, str]:
    """The data, as it is on the wire, with which a Secret gets a new plan; what became of the last one is blanked.

    Keys that are not here stay as they are: an update merges this into the data that it read.
    """
    raw = plan if isinstance(plan, bytes) else encode(plan)
    return wire(
        {
            PLAN: raw,
            PLAN_TYPE: type_,
            PLAN_STATE: PENDING,
            MAX_FAILURES: str(max_failures),
            **dict.fromkeys(
                (
                    APPLIED_CHECKSUM,
                    APPLIED_OUTPUT,
                    APPLIED_PERIODIC_OUTPUT,
                    FAILED_CHECKSUM,
                    FAILED_OUTPUT,
                    FAILURE_COUNT,
                    SUCCESS_COUNT,
                    LAST_APPLY_TIME,
                    PROBE_STATUSES,
                    PLAN_CHECKPOINT,
                ),
                "",
            ),
        }
    )


def plain(data: Mapping[str, str] | None) -> dict[str, bytes]:
    """A Secret's data without base64; a value that is none is taken for empty, as nobody can have meant it."""
    return {key: from_base64(value) or b"" for key, value in (data or {}).items()}


def wire(values: Mapping[str, bytes | str]) -> dict[str, str]:
    """Values as a Secret's data has them."""
    return {key: b64encode(value if isinstance(value, bytes) else value.encode()).decode() for key, value in values.items()}


def pack_output(output: Mapping[str, bytes]) -> bytes:
    """What instructions printed, by their names, as system-agent stores it: gzipped JSON of base64."""
    text = json.dumps({name: b64encode(each).decode() for name, each in output.items()}, sort_keys=True, separators=(",", ":"))
    packer = zlib.compressobj(wbits=31)
    return packer.compress(text.encode()) + packer.flush()


def unpack_output(packed: bytes) -> dict[str, str]:
    """What instructions printed.  What cannot be read is said in its place: the outcome counts, whatever was printed."""
    if not packed:
        return {}
    try:
        reader = zlib.decompressobj(wbits=31)
        text = reader.decompress(packed, _LONGEST_OUTPUT)
        if reader.unconsumed_tail:
            return {"output": f"(the host printed more than {_LONGEST_OUTPUT // 2**20} MiB, which is not shown)"}
        found = msgspec.json.decode(text, type=dict[str, str])
    except (zlib.error, msgspec.DecodeError) as error:
        return {"output": f"(what the host printed cannot be read: {error})"}
    return {name: _printed(each) for name, each in found.items()}


def _printed(text: str) -> str:
    """system-agent has base64; others have the text itself, which may look like base64 by chance but then makes no sense."""
    found = from_base64(text)
    try:
        return text if found is None else found.decode()
    except UnicodeDecodeError:
        return text


def _text(values: Mapping[str, bytes], key: str) -> str:
    return values.get(key, b"").decode(errors="replace").strip()


def _number(values: Mapping[str, bytes], key: str) -> int:
    text = _text(values, key)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
