"""How ``reset`` takes this node's member out of etcd.

What there is to remove is read from the static Pods of the node, so that a member can leave while the API server is
gone; where etcd cannot be asked either, the operator is told which member is left in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from slipway.api.kubeadm.addresses import join_host_port
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.host import waiting
from slipway.node import paths
from slipway.node.etcd import membership, wal
from slipway.node.staticpods import components

if TYPE_CHECKING:
    from slipway.host.interface import Host
    from slipway.node.reset.options import ResetRun

_ETCD, _API_SERVER = f"{paths.MANIFESTS_DIR}/etcd.yaml", f"{paths.MANIFESTS_DIR}/kube-apiserver.yaml"
_PEER_PORT = 2380
_ETCD_CALL = 120.0
# Without the API server it is not known whether there is an etcd to wait for.
_DIRECT_CALL = 10.0
_POD_PATIENCE = 3.0
_EMPTYING_TRIES = 3


class LocalMember(NamedTuple):
    """This node's member of etcd, as its static Pods tell."""

    peer_url: str
    endpoints: tuple[str, ...]
    """Client URLs of all members that the node knew when it joined, its own last."""
    certificates_dir: str


def remove_etcd_member(state: ResetRun) -> None:
    """The member leaves, its static Pod goes, its data folder is emptied; what cannot be done is a warning."""
    data_dir = _announced_data_dir(state)
    if data_dir is None:
        return
    _leave(state, data_dir)
    _empty(state, data_dir)
    # A kubelet that still runs would start etcd anew, as the first member of a cluster of its own.
    state.host.remove(_ETCD)
    state.etcd_data_dir = data_dir


def would_remove_etcd_member(state: ResetRun) -> None:
    """Where there is a member, kubeadm says nothing of what would become of it."""
    _announced_data_dir(state)


def _announced_data_dir(state: ResetRun) -> str | None:
    """The data folder of this node's member; None, and advice, where it has none."""
    host, progress = state.host, state.progress
    configured = state.cluster_config
    data_dir = configured.etcd.local.data_dir if configured is not None and configured.etcd.local is not None else None
    if data_dir is None:
        progress.warn("[reset] No kubeadm config, using etcd pod spec to get data directory")
        data_dir = etcd_data_dir(host)
    if data_dir is None or (configured is not None and configured.etcd.external is not None):
        progress.say("[reset] No etcd config found. Assuming external etcd")
        progress.say("[reset] Please, manually reset etcd to prevent further issues")
        return None
    return data_dir


def etcd_data_dir(host: Host) -> str | None:
    """The data folder of the local etcd by its manifest, the default one without a manifest; None where it has none."""
    pod = _pod(host, _ETCD)
    if pod is None:
        return paths.ETCD_DATA_DIR
    volumes = (pod.get("spec") or {}).get("volumes") or []
    found = [volume["hostPath"]["path"] for volume in volumes if volume.get("name") == "etcd-data" and volume.get("hostPath")]
    return str(found[0]) if found else None


def local_member(host: Host) -> LocalMember | None:
    """None on a node that has no control plane.  A join that was killed early has announced a member without a manifest."""
    flags = _flags(_pod(host, _ETCD))
    if flags is not None and flags.get("initial-advertise-peer-urls"):
        own = tuple(filter(None, flags.get("advertise-client-urls", "").split(",")))
        peers = [pair.partition("=")[2] for pair in flags.get("initial-cluster", "").split(",")]
        others = [_client_url(peer) for peer in peers if peer]
        ordered = tuple(dict.fromkeys(url for url in (*others, *own) if url not in own)) + own
        folder = paths.join(flags.get("trusted-ca-file", f"{paths.PKI_DIR}/etcd/ca.crt"), "..", "..")
        return LocalMember(flags["initial-advertise-peer-urls"].split(",")[0], ordered, folder)
    flags = _flags(_pod(host, _API_SERVER))
    if flags is None or not flags.get("advertise-address") or not flags.get("etcd-servers", "").startswith(_LOOPBACK):
        return None
    address = flags["advertise-address"]
    folder = paths.join(flags.get("etcd-cafile", f"{paths.PKI_DIR}/etcd/ca.crt"), "..", "..")
    return LocalMember(
        f"https://{join_host_port(address, _PEER_PORT)}", (f"https://{join_host_port(address, components.ETCD_CLIENT_PORT)}",), folder
    )


_LOOPBACK = ("https://127.0.0.1:", "https://[::1]:")
"""Where the API server of a stacked control plane finds etcd."""


def _leave(state: ResetRun, data_dir: str) -> None:
    member = local_member(state.host)
    if member is None or _never_began(state.host, data_dir):
        return
    try:
        departure = membership.leave(_client(state, member), member.peer_url)
    except OperatorError as error:
        state.progress.warn(
            f"[reset] Failed to remove etcd member: {error.message}, please manually remove this etcd member using etcdctl"
            + _which(state.host, data_dir)
        )
        return
    if departure is membership.Departure.REMOVED:
        state.progress.say(f"[reset] Removed the etcd member with the peer URL {member.peer_url}")


def _never_began(host: Host, data_dir: str) -> bool:
    """Whether the first member of a cluster never ran: then there is no cluster that it could be a member of."""
    flags = _flags(_pod(host, _ETCD))
    return flags is not None and flags.get("initial-cluster-state", "new") == "new" and not host.list_dir(f"{data_dir}/member")


def _client(state: ResetRun, member: LocalMember) -> Any:
    patience = waiting.seconds(state.config.timeouts.etcd_api_call, _ETCD_CALL)
    endpoints = list(member.endpoints)
    if state.cluster is None:
        patience = min(patience, _DIRECT_CALL)
    else:
        try:
            endpoints = [*membership.pod_endpoints(state.cluster, _POD_PATIENCE), *endpoints]
        except OperatorError as error:
            state.progress.warn(f"[reset] {error.message}; asking etcd where this node knew it")
    configured = state.cluster_config
    folder = configured.certificates_dir if configured is not None and configured.certificates_dir else member.certificates_dir
    client = membership.client_of(state.host, folder, list(dict.fromkeys(endpoints)), state.progress, patience)
    client.sync()
    return client


def _which(host: Host, data_dir: str) -> str:
    """The id that is left in etcd, which the data folder tells before it is emptied."""
    try:
        owner = wal.owner(host, data_dir)
    except OperatorError:
        return ""
    return f": `etcdctl member remove {owner.member_id:x}` on a control plane that stays" if owner is not None else ""


def _empty(state: ResetRun, data_dir: str) -> None:
    if not state.host.list_dir(data_dir):
        return
    problem: OSError | None = None
    # An etcd that still runs may make a file in a folder that is just being removed.
    for _ in range(_EMPTYING_TRIES):
        try:
            empty_folder(state.host, data_dir)
        except OSError as error:
            problem = error
        else:
            state.progress.say(f"[reset] Deleted contents of the etcd data directory: {data_dir}")
            state.emptied.append(data_dir)
            return
    state.progress.warn(f'[reset] Failed to delete contents of the etcd directory: "{data_dir}", error: {problem}')


def empty_folder(host: Host, folder: str) -> None:
    """Everything in a folder goes, the folder stays; OSError where something cannot be removed."""
    for name in host.list_dir(folder):
        host.remove(f"{folder}/{name}")


def _pod(host: Host, path: str) -> dict[str, Any] | None:
    """A static Pod; None where there is no manifest, and nothing in it where it is no object."""

    if not host.exists(path):
        return None
    documents = goyaml.load(host.read(path).decode(), path)
    pod = documents[0].value if documents else None
    return pod if isinstance(pod, dict) else {}


def _flags(pod: dict[str, Any] | None) -> dict[str, str] | None:
    """The flags of the first container."""
    if pod is None:
        return None
    containers = (pod.get("spec") or {}).get("containers") or [{}]
    words = [str(word) for word in (*(containers[0].get("command") or ()), *(containers[0].get("args") or ()))]
    return dict(word.removeprefix("--").partition("=")[::2] for word in words if word.startswith("--"))


def _client_url(peer_url: str) -> str:
    address = urlsplit(peer_url).hostname or ""
    return f"https://{join_host_port(address, components.ETCD_CLIENT_PORT)}"
