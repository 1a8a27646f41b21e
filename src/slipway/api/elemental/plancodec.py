"""A plan that a host runs, and its JSON, as system-agent has both."""

from __future__ import annotations

import binascii
import json
from base64 import b64decode, b64encode
from typing import Annotated, Any

import msgspec

from slipway.api.machinery.errors import OperatorError

EMPTY = b"{}"
FILE_PERMISSIONS, DIRECTORY_PERMISSIONS = "0600", "0755"
DELETE = "delete"
DEFAULT_PERIOD_SECONDS = 600


class PlanError(OperatorError):
    """A plan that cannot be read."""


class PlanFile(msgspec.Struct, frozen=True):
    """A file or folder that is there, or gone, before the first instruction runs."""

    path: str
    content: bytes = b""
    permissions: str = FILE_PERMISSIONS
    uid: int = 0
    gid: int = 0
    directory: bool = False
    action: str = ""


class Instruction(msgspec.Struct, frozen=True):
    """A command that is run once.  Without a command it is ``run.sh`` of the image."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    image: str = ""
    save_output: bool = True


class PeriodicInstruction(msgspec.Struct, frozen=True):
    """A command that is run again and again once the plan is applied."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    image: str = ""
    period_seconds: int = DEFAULT_PERIOD_SECONDS
    save_stderr: bool = False


class HTTPGet(msgspec.Struct, frozen=True):
    """A request that a probe makes; certificates and the key are paths on the host."""

    url: str
    insecure: bool = False
    client_cert: str = ""
    client_key: str = ""
    ca_cert: str = ""


class Probe(msgspec.Struct, frozen=True):
    """How a host finds out whether something on it is well."""

    http_get: HTTPGet
    initial_delay_seconds: int = 0
    timeout_seconds: int = 0
    success_threshold: int = 0
    failure_threshold: int = 0


class Plan(msgspec.Struct, frozen=True):
    """What a host is to do: first the files, then the instructions, in order."""

    files: tuple[PlanFile, ...] = ()
    instructions: tuple[Instruction, ...] = ()
    periodic_instructions: tuple[PeriodicInstruction, ...] = ()
    probes: dict[str, Probe] = {}


def encode(plan: Plan) -> bytes:
    """The plan as it is in a Secret: always the same bytes for the same plan, and what is empty left out."""
    made = {
        "files": [_file(each) for each in plan.files],
        "instructions": [_instruction(each) | _given(saveOutput=each.save_output) for each in plan.instructions],
        "periodicInstructions": [
            _instruction(each) | _given(periodSeconds=each.period_seconds, saveStderrOutput=each.save_stderr)
            for each in plan.periodic_instructions
        ],
        "probes": {name: _probe(each) for name, each in plan.probes.items()},
    }
    return json.dumps(_given(**made), sort_keys=True, separators=(",", ":")).encode()


def decode(raw: bytes) -> Plan:
    """The plan that these bytes are; PlanError says where they are none.  What nobody knows is passed over, as system-agent does."""
    try:
        content = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise PlanError(f"the plan is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise PlanError(f"the plan is to be a JSON object, and is {_named(content)}")
    try:
        wire = msgspec.convert(_without_nulls(content), _Plan)
    except (msgspec.ValidationError, RecursionError) as error:
        raise PlanError(f"the plan cannot be read: {error}") from None
    return Plan(
        files=tuple(_read_file(each, number) for number, each in enumerate(wire.files)),
        instructions=tuple(
            Instruction(each.name, each.command, tuple(each.args), tuple(each.env), each.image, each.save_output)
            for each in wire.instructions
        ),
        periodic_instructions=tuple(
            PeriodicInstruction(
                each.name,
                each.command,
                tuple(each.args),
                tuple(each.env),
                each.image,
                each.period_seconds if each.period_seconds > 0 else DEFAULT_PERIOD_SECONDS,
                each.save_stderr_output,
            )
            for each in wire.periodic_instructions
        ),
        probes={
            name: Probe(
                HTTPGet(
                    each.http_get.url, each.http_get.insecure, each.http_get.client_cert, each.http_get.client_key, each.http_get.ca_cert
                ),
                each.initial_delay_seconds,
                each.timeout_seconds,
                each.success_threshold,
                each.failure_threshold,
            )
            for name, each in wire.probes.items()
        },
    )


class _File(msgspec.Struct, rename="camel"):
    path: str = ""
    content: str = ""
    permissions: str = ""
    uid: int = 0
    gid: int = 0
    directory: bool = False
    action: str = ""


class _Common(msgspec.Struct, rename="camel"):
    name: str = ""
    command: str = ""
    args: list[str] = []
    env: list[str] = []
    image: str = ""


class _Once(_Common, rename="camel"):
    save_output: bool = False


class _Again(_Common, rename="camel"):
    period_seconds: int = 0
    save_stderr_output: bool = False


class _HTTPGet(msgspec.Struct, rename="camel"):
    url: str = ""
    insecure: bool = False
    client_cert: str = ""
    client_key: str = ""
    ca_cert: str = ""


class _Probe(msgspec.Struct, rename="camel"):
    http_get: _HTTPGet = msgspec.field(default_factory=_HTTPGet)
    initial_delay_seconds: Annotated[int, msgspec.Meta(ge=0)] = 0
    timeout_seconds: Annotated[int, msgspec.Meta(ge=0)] = 0
    success_threshold: Annotated[int, msgspec.Meta(ge=0)] = 0
    failure_threshold: Annotated[int, msgspec.Meta(ge=0)] = 0


class _Plan(msgspec.Struct, rename="camel"):
    files: list[_File] = []
    instructions: list[_Once] = []
    periodic_instructions: list[_Again] = []
    probes: dict[str, _Probe] = {}


def _read_file(file: _File, number: int) -> PlanFile:
    if not file.path:
        raise PlanError(f"the plan cannot be read: files[{number}] has no path")
    content = from_base64(file.content)
    if content is None:
        raise PlanError(f"the plan cannot be read: the content of {file.path} (files[{number}]) is not base64")
    permissions = file.permissions or (DIRECTORY_PERMISSIONS if file.directory else FILE_PERMISSIONS)
    if not (permissions.isascii() and permissions.isdigit() and len(permissions) <= 5 and set(permissions) <= set("01234567")):
        raise PlanError(f'the plan cannot be read: the permissions of {file.path} (files[{number}]) are "{permissions}", not octal digits')
    return PlanFile(file.path, content, permissions, file.uid, file.gid, file.directory, file.action)


def _file(file: PlanFile) -> dict[str, Any]:
    return {"path": file.path} | _given(
        content=b64encode(file.content).decode(),
        permissions=file.permissions,
        uid=file.uid,
        gid=file.gid,
        directory=file.directory,
        action=file.action,
    )


def _instruction(each: Instruction | PeriodicInstruction) -> dict[str, Any]:
    return _given(name=each.name, command=each.command, args=list(each.args), env=list(each.env), image=each.image)


def _probe(each: Probe) -> dict[str, Any]:
    get = each.http_get
    asked = _given(url=get.url, insecure=get.insecure, clientCert=get.client_cert, clientKey=get.client_key, caCert=get.ca_cert)
    return _given(
        httpGet=asked,
        initialDelaySeconds=each.initial_delay_seconds,
        timeoutSeconds=each.timeout_seconds,
        successThreshold=each.success_threshold,
        failureThreshold=each.failure_threshold,
    )


def from_base64(value: str) -> bytes | None:
    """The bytes, or None where the text is not base64."""
    try:
        return b64decode(value, validate=True)
    except (binascii.Error, ValueError, TypeError):
        return None


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def _without_nulls(value: Any) -> Any:
    """Without null, which Go reads as if it were not there."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def _named(content: object) -> str:
    names = {str: "a string", bool: "true or false", int: "a number", float: "a number", list: "a list", type(None): "null"}
    return names[type(content)]
