"""The files of a plan: which it may write, and how.

A plan is root's by design; what is refused here is what no plan can mean, and what a slip in one would ruin.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from slipway.api.elemental import plan as plans

if TYPE_CHECKING:
    from slipway.agent.machine import Machine
    from slipway.api.elemental.plan import PlanFile

_FORBIDDEN = ("/proc", "/sys")
_FOLDER_MODE = 0o755


class RefusedError(Exception):
    """What a plan asks for is not done, and would not be the next time either; the message is a sentence."""


class FileError(Exception):
    """A file could not be written; the message is a sentence."""


def check(file: PlanFile) -> None:
    """RefusedError says what is wrong with a file of a plan, before any of them is written."""
    path = file.path
    shown = f'the plan\'s file "{path}"'
    if not path.startswith("/") or "\0" in path:
        raise RefusedError(f"{shown} is refused: its path must begin with /")
    if ".." in path.split("/"):
        raise RefusedError(f"{shown} is refused: its path must not have .. in it")
    clean = _clean(path)
    if any(clean == folder or clean.startswith(f"{folder}/") for folder in _FORBIDDEN):
        raise RefusedError(f"{shown} is refused: what is under {' and '.join(_FORBIDDEN)} is the kernel's")
    if clean.count("/") < 2 and not (file.directory and file.action != plans.DELETE):
        raise RefusedError(f"{shown} is refused: plans write into folders below /, and never remove one of those")
    if file.action not in ("", plans.DELETE):
        raise RefusedError(f'{shown} is refused: its action is "{file.action}", and there is only "{plans.DELETE}"')
    if not 0 <= mode(file) <= 0o7777:
        raise RefusedError(f"{shown} is refused: its permissions {file.permissions} are more than 7777")


def _clean(path: str) -> str:
    # POSIX has two slashes at the beginning stand for something of their own; Linux does not.
    return posixpath.normpath("/" + path.lstrip("/"))


def mode(file: PlanFile) -> int:
    return int(file.permissions, 8)


def apply(machine: Machine, file: PlanFile) -> None:
    """Make a file, or a folder, what the plan says; what is there is replaced by a rename, and never seen half-written."""
    host, path = machine.host, _clean(file.path)
    try:
        if file.action == plans.DELETE:
            host.remove(path)
            return
        if file.directory:
            host.make_dir(path, _FOLDER_MODE)
            host.give(path, file.uid, file.gid, mode(file))
            return
        if host.is_dir(path):
            raise FileError(f'the plan\'s file "{path}" cannot be written: there is a folder of that name')
        host.make_dir(posixpath.dirname(path), _FOLDER_MODE)
        known = host.exists(path)
        if known:
            # Owner and mode stay when a file is replaced, so they are set first: nobody else reads the new content in between.
            host.give(path, file.uid, file.gid, mode(file))
        host.write(path, file.content, mode(file))
        if not known:
            host.give(path, file.uid, file.gid, mode(file))
    except OSError as error:
        raise FileError(f'the plan\'s file "{path}" cannot be written: {error.strerror or error}') from None
