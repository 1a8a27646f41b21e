"""A control plane that does not run as root: who owns its files, and what its containers may do.

kubeadm's feature gate RootlessControlPlane; the accounts themselves are in ``accounts``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.machinery.errors import OperatorError
from slipway.node import paths
from slipway.node.staticpods import accounts

if TYPE_CHECKING:
    from slipway.api.kubeadm.internal import ClusterConfiguration
    from slipway.api.machinery.objects import Manifest
    from slipway.host.interface import Host
    from slipway.node.context import NodeContext
    from slipway.node.staticpods.accounts import Accounts

_USERS = {
    "etcd": accounts.ETCD,
    "kube-apiserver": accounts.API_SERVER,
    "kube-controller-manager": accounts.CONTROLLER_MANAGER,
    "kube-scheduler": accounts.SCHEDULER,
}
_LOGIN_DEFS, _PASSWD, _GROUP = "/etc/login.defs", "/etc/passwd", "/etc/group"


class Owned(NamedTuple):
    """A file, or with an empty mode a whole folder, and whose it becomes."""

    path: str
    user: int
    group: int
    mode: str = "600"


def wanted(ctx: NodeContext) -> bool:
    return ctx.release.gate(ctx.config.cluster.feature_gates, "RootlessControlPlane")


def apply(ctx: NodeContext, component: str, pod: Manifest) -> Manifest:
    """Make the accounts and hand over the component's files; the Pod that runs with them."""
    made = accounts.ensured(*(_read(ctx, path) for path in (_LOGIN_DEFS, _PASSWD, _GROUP)))
    for path, text in ((_PASSWD, made.passwd), (_GROUP, made.group)):
        if text != _read(ctx, path):
            ctx.host.write(path, text.encode(), 0o644)
    for owned in files(component, ctx.config.cluster, made, external_ca=not ctx.host.exists(_pki(ctx.config.cluster, "ca.key"))):
        _hand_over(ctx, owned)
    return secured(component, pod, made)


def remove_accounts(host: Host) -> None:
    """Take the accounts out again; OSError where the files cannot be read or written."""
    texts = [host.read(path).decode() for path in (_PASSWD, _GROUP)]
    for path, before, after in zip((_PASSWD, _GROUP), texts, accounts.removed(*texts), strict=True):
        if after != before:
            host.write(path, after.encode(), 0o644)


def secured(component: str, pod: Manifest, made: Accounts) -> Manifest:
    """The Pod with the user, the groups and the capabilities of its component."""
    user = _USERS[component]
    context: dict[str, Any] = {"runAsUser": made.users[user], "runAsGroup": made.groups[user]}
    if component in ("kube-apiserver", "kube-controller-manager"):
        context["supplementalGroups"] = [made.groups[accounts.KEY_READERS]]
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
    shared_key = Owned(_pki(cluster, "sa.key"), 0, made.groups[accounts.KEY_READERS], "640")
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
            data = [] if cluster.etcd.local is None else [Owned(cluster.etcd.local.data_dir, user, group, "")]
            return [*data, *(Owned(_pki(cluster, f"etcd/{key}"), user, group) for key in ("server.key", "peer.key"))]


def _hand_over(ctx: NodeContext, owned: Owned) -> None:
    location, owner = ctx.host.location(owned.path), f"{owned.user}:{owned.group}"
    commands = [("chown", owner, location), ("chmod", owned.mode, location)] if owned.mode else [("chown", "-R", owner, location)]
    for command in commands:
        result = ctx.host.run(*command)
        if result.code:
            raise OperatorError(f'failed to update owner and permissions of "{location}": {result.stderr.strip()}')


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
