"""The system accounts that a control plane without root runs as, in the texts of /etc/passwd and /etc/group.

Only texts are read and made here.  The feature gate RootlessControlPlane is what asks for them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from slipway.api.machinery.errors import OperatorError

ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER = "kubeadm-etcd", "kubeadm-kas", "kubeadm-kcm", "kubeadm-ks"
KEY_READERS = "kubeadm-sa-key-readers"
_USERS = (ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER)
_GROUPS = {**{name: (name,) for name in _USERS}, KEY_READERS: (API_SERVER, CONTROLLER_MANAGER)}
_NO_SHELL = "/bin/false"
_LIMITS = {"SYS_UID_MIN": 100, "SYS_UID_MAX": 999, "SYS_GID_MIN": 100, "SYS_GID_MAX": 999}


class Accounts(NamedTuple):
    """The ids by name, and the files with the accounts in them."""

    users: dict[str, int]
    groups: dict[str, int]
    passwd: str
    group: str


def ensured(login_defs: str, passwd: str, group: str) -> Accounts:
    """Add what is missing, within the limits for system accounts; what is there must be as it would have been made."""
    limits = _limits(login_defs)
    uid_range = range(limits["SYS_UID_MIN"], limits["SYS_UID_MAX"] + 1)
    gid_range = range(limits["SYS_GID_MIN"], limits["SYS_GID_MAX"] + 1)
    users, groups = _entries(passwd, 7, "/etc/passwd"), _entries(group, 4, "/etc/group")
    _check_groups(groups, gid_range)
    _check_users(users, groups, uid_range)

    missing_groups = [name for name in _GROUPS if name not in groups]
    gids = {name: int(fields[2]) for name, fields in groups.items()}
    gids |= dict(zip(missing_groups, _free(gid_range, set(gids.values()), len(missing_groups)), strict=True))
    missing_users = [name for name in _USERS if name not in users]
    uids = {name: int(fields[2]) for name, fields in users.items()}
    uids |= dict(zip(missing_users, _free(uid_range, set(uids.values()), len(missing_users)), strict=True))
    return Accounts(
        {name: uids[name] for name in _USERS},
        {name: gids[name] for name in _GROUPS},
        _appended(passwd, [f"{name}:x:{uids[name]}:{gids[name]}:::{_NO_SHELL}" for name in missing_users]),
        _appended(group, [f"{name}:x:{gids[name]}:{','.join(_GROUPS[name])}" for name in missing_groups]),
    )


def removed(passwd: str, group: str) -> tuple[str, str]:
    """The two files without the accounts."""
    return _without(passwd, _USERS), _without(group, tuple(_GROUPS))


def _without(text: str, names: tuple[str, ...]) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if line.partition(":")[0] not in names)


def _limits(login_defs: str) -> dict[str, int]:
    limits = dict(_LIMITS)
    for number, line in enumerate(login_defs.split("\n"), 1):
        name = next((name for name in limits if line.startswith(name)), None)
        if name is not None:
            value = line.removeprefix(name).strip()
            if not re.fullmatch(r"[+-]?[0-9]+", value):
                raise OperatorError(f'/etc/login.defs, line {number}: "{value}" is not a number for {name}')
            limits[name] = int(value)
    return limits


def _entries(text: str, fields: int, source: str) -> dict[str, list[str]]:
    entries: dict[str, list[str]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        entry = line.strip().split(":")
        if entry == [""]:
            continue
        if len(entry) != fields:
            raise OperatorError(f"{source}, line {number}: an entry must have {fields} fields separated by ':', this one has {len(entry)}")
        for id_field in entry[2 : 4 if fields == 7 else 3]:
            if not id_field.isdecimal():
                raise OperatorError(f'{source}, line {number}: "{id_field}" is not a numeric id')
        entries.setdefault(entry[0], entry)
    return entries


def _check_users(users: dict[str, list[str]], groups: dict[str, list[str]], allowed: range) -> None:
    names = {fields[2]: name for name, fields in reversed(groups.items())}
    for name in _USERS:
        if name not in users:
            continue
        _, _, uid, gid, _, _, shell = users[name]
        if int(uid) not in allowed:
            raise OperatorError(f'UID {uid} for user "{name}" is outside the system UID range: {allowed[0]} - {allowed[-1]}')
        if shell != _NO_SHELL:
            raise OperatorError(f'user "{name}" has unexpected shell "{shell}"; expected "{_NO_SHELL}"')
        if gid not in names:
            raise OperatorError(f'could not find group with GID {gid} for user "{name}"')
        if names[gid] != name:
            raise OperatorError(f'user "{name}" has GID {gid} but the group with that GID is named "{names[gid]}"')


def _check_groups(groups: dict[str, list[str]], allowed: range) -> None:
    for name, members in _GROUPS.items():
        if name not in groups:
            continue
        _, _, gid, listed = groups[name]
        if int(gid) not in allowed:
            raise OperatorError(f'GID {gid} for group "{name}" is outside the system GID range: {allowed[0]} - {allowed[-1]}')
        if listed != ",".join(members):
            raise OperatorError(f'expected users "{",".join(members)}" for group "{name}"; got "{listed}"')


def _free(allowed: range, taken: set[int], count: int) -> list[int]:
    free = [number for number in allowed if number not in taken][:count]
    if len(free) < count:
        raise OperatorError(f"could not allocate {count} ids: too few are free from {allowed.start} to {allowed.stop - 1}")
    return free


def _appended(text: str, lines: list[str]) -> str:
    if not lines:
        return text
    return text + ("" if text.endswith("\n") else "\n") + "\n".join(lines) + "\n"
