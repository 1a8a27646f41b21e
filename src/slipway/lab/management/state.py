"""What a management plane has on this machine, kept in ``management.json`` so that any later run finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.host.real import RealHost
from slipway.lab.management.ports import LOOPBACK
from slipway.lab.processes import Process  # noqa: TC001 - msgspec reads it

if TYPE_CHECKING:
    from pathlib import Path

FILE_NAME = "management.json"


class State(msgspec.Struct, kw_only=True):
    """A management plane on record; what it names is there, or was about to be."""

    version: str
    """The Kubernetes version that last worked with the data."""
    address: str = LOOPBACK
    """Where the API server listens."""
    ports: dict[str, int] = {}
    processes: dict[str, Process] = {}


def load(folder: Path) -> State | None:
    """What is on record; None where the folder has no management plane."""
    path = folder / FILE_NAME
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise OperatorError(f"cannot read {path}: {error.strerror}") from error
    try:
        return msgspec.json.decode(content, type=State)
    except msgspec.DecodeError as error:
        raise OperatorError(f"{path} is not the record of a management plane ({error}): put the right file back, or remove it") from error


def save(folder: Path, state: State) -> None:
    content = msgspec.json.format(msgspec.json.encode(state), indent=2) + b"\n"
    try:
        RealHost(root=str(folder)).write(f"/{FILE_NAME}", content, 0o600)
    except OSError as error:
        raise OperatorError(f"cannot write {folder / FILE_NAME}: {error.strerror}") from error
