"""A control plane that does not run as root: its system accounts, who owns its files, and what its containers may do.

kubeadm's feature gate RootlessControlPlane.  The accounts are decided on the texts of /etc/passwd and /etc/group.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.machinery.errors import OperatorError
from slipway.node import paths

if TYPE_CHECKING:
    from slipway.api.kubeadm.internal import ClusterConfiguration
    from slipway.api.machinery.objects import Manifest
    from slipway.host.interface import Host
    from slipway.node.context import NodeContext

ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER = "kubeadm-etcd", "kubeadm-kas", "kubeadm-kcm", "kubeadm-ks"
KEY_READERS = "kubeadm-sa-key-readers"
_ACCOUNTS = (ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER)
_GROUPS = {**{name: (name,) for name in _ACCOUNTS}, KEY_READERS: (API_SERVER, CONTROLLER_MANAGER)}
_NO_SHELL = "/bin/false"
_LIMITS = {"SYS_UID_MIN": 100, "SYS_UID_MAX": 999, "SYS_GID_MIN": 100, "SYS_GID_MAX": 999}
_USERS = {
    "etcd": ETCD,
    "kube-apiserver": API_SERVER,
    "kube-controller-manager": CONTROLLER_MANAGER,
    "kube-scheduler": SCHEDULER,
}
_LOGIN_DEFS, _PASSWD, _GROUP = "/etc/login.defs", "/etc/passwd", "/etc/group"


class Accounts(NamedTuple):
    """The ids by name, and the files with the accounts in them."""

    users: dict[str, int]
    groups: dict[str, int]
    passwd: str
    group: str


class Owned(NamedTuple):
    """A file, or without a mode a whole folder, and whose it becomes."""

    path: str
    user: int
    group: int
    mode: int | None = 0o600


def apply(ctx: NodeContext, component: str, pod: Manifest) -> Manifest:
    """Make the accounts and hand over the component's files; the Pod that runs with them."""
    made = ensured(*(_read(ctx, path) for path in (_LOGIN_DEFS, _PASSWD, _GROUP)))
    for path, text in ((_PASSWD, made.passwd), (_GROUP, made.group)):
        if text != _read(ctx, path):
            ctx.host.write(path, text.encode(), 0o644)
    for owned in files(component, ctx.config.cluster, made, external_ca=not ctx.host.exists(_pki(ctx.config.cluster, "ca.key"))):
        _hand_over(ctx, owned)
    return secured(component, pod, made)


def remove_accounts(host: Host) -> None:
    """Take the accounts out again; OSError where the files cannot be read or written."""
    texts = [host.read(path).decode() for path in (_PASSWD, _GROUP)]
    for path, before, after in zip((_PASSWD, _GROUP), texts, removed(*texts), strict=True):
        if after != before:
            host.write(path, after.encode(), 0o644)


def secured(component: str, pod: Manifest, made: Accounts) -> Manifest:
    """The Pod with the user, the groups and the capabilities of its component."""
    user = _USERS[component]
    context: dict[str, Any] = {"runAsUser": made.users[user], "runAsGroup": made.groups[user]}
    if component in ("kube-apiserver", "kube-controller-manager"):
        context["supplementalGroups"] = [made.groups[KEY_READERS]]
    capabilities: dict[str, Any] = {"capabilities": {"drop": ["ALL"]}}
    if component == "kube-apiserver":
        # Its binary carries this file capability, so it does not start without it.
        capabilities["capabilities"]["add"] = ["NET_BIND_SERVICE"]
    else:
        capabilities["allowPrivilegeEscalation"] = False
    spec = pod["spec"]
    (container,) = spec["containers"]
    return {
        **pod,
        "spec": {
            **spec,
            "containers": [{**container, "securityContext": capabilities}],
            "securityContext": {**spec["securityContext"], **context},
        },
    }


def files(component: str, cluster: ClusterConfiguration, made: Accounts, *, external_ca: bool) -> list[Owned]:
    """The files that a component reads for itself alone, and the key that two of them share."""
    name = _USERS[component]
    user, group = made.users[name], made.groups[name]
    shared_key = Owned(_pki(cluster, "sa.key"), 0, made.groups[KEY_READERS], 0o640)
    match component:
        case "kube-apiserver":
            keys = ["apiserver.key", "apiserver-kubelet-client.key", "front-proxy-client.key"]
            if cluster.etcd.external is None:
                keys.append("apiserver-etcd-client.key")
            return [Owned(_pki(cluster, "sa.pub"), user, group), shared_key, *(Owned(_pki(cluster, key), user, group) for key in keys)]
        case "kube-controller-manager":
            signing = [] if external_ca else [Owned(_pki(cluster, "ca.key"), user, group)]
            return [Owned(paths.CONTROLLER_MANAGER_CONF, user, group), shared_key, *signing]
        case "kube-scheduler":
            return [Owned(paths.SCHEDULER_CONF, user, group)]
        case _:
            data = [] if cluster.etcd.local is None else [Owned(cluster.etcd.local.data_dir, user, group, None)]
            return [*data, *(Owned(_pki(cluster, f"etcd/{key}"), user, group) for key in ("server.key", "peer.key"))]


def _hand_over(ctx: NodeContext, owned: Owned) -> None:
    try:
        ctx.host.give(owned.path, owned.user, owned.group, owned.mode)
    except OSError as error:
        location = ctx.host.location(owned.path)
        raise OperatorError(f'failed to update owner and permissions of "{location}": {error.strerror or error}') from error


def _read(ctx: NodeContext, path: str) -> str:
    """A file of accounts; login.defs may be missing, and then the usual limits hold."""
    try:
        return ctx.host.read(path).decode()
    except FileNotFoundError:
        if path == _LOGIN_DEFS:
            return ""
        raise OperatorError(f"failed to create users and groups: there is no {path}") from None


def _pki(cluster: ClusterConfiguration, name: str) -> str:
    return paths.join(cluster.certificates_dir, name)


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
    missing_users = [name for name in _ACCOUNTS if name not in users]
    uids = {name: int(fields[2]) for name, fields in users.items()}
    uids |= dict(zip(missing_users, _free(uid_range, set(uids.values()), len(missing_users)), strict=True))
    return Accounts(
        {name: uids[name] for name in _ACCOUNTS},
        {name: gids[name] for name in _GROUPS},
        _appended(passwd, [f"{name}:x:{uids[name]}:{gids[name]}:::{_NO_SHELL}" for name in missing_users]),
        _appended(group, [f"{name}:x:{gids[name]}:{','.join(_GROUPS[name])}" for name in missing_groups]),
    )


def removed(passwd: str, group: str) -> tuple[str, str]:
    """The two files without the accounts."""
    return _without(passwd, _ACCOUNTS), _without(group, tuple(_GROUPS))


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
    for name in _ACCOUNTS:
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
