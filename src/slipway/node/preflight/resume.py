"""What an earlier run of the same init or join left, and this run may go on with.

A run that was killed leaves files, and perhaps processes that hold ports.  They are recognised by what they are, not by a
record of the run: a manifest that says what this run would write, a port held by the component of such a manifest, a
kubeconfig that leads this very node into this very cluster.  Anything else is foreign and stays an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.host.progress import WarningsOnly
from slipway.kube import kubeconfig
from slipway.node import paths
from slipway.node.etcd import pod as etcd
from slipway.node.staticpods import components as staticpods
from slipway.node.staticpods import patches
from slipway.node.staticpods import pod as componentpod

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.kubeadm.internal import InitConfiguration, JoinConfiguration
    from slipway.api.machinery.objects import Manifest
    from slipway.host.interface import Host
    from slipway.host.progress import Progress
    from slipway.node.context import NodeContext

SCHEDULER_PORT, CONTROLLER_MANAGER_PORT, KUBELET_PORT = 10259, 10257, 10250
ETCD_PORTS = (2379, 2380)
_KERNEL_NAME_LENGTH = 15
# A member that joins is told the members of the moment; those may be others when it is run again.
_FLAGS_OF_THE_MOMENT = ("--initial-cluster=", "--initial-cluster-state=")


class Earlier(msgspec.Struct, frozen=True, kw_only=True):
    """What was recognised."""

    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    ports: dict[int, str] = msgspec.field(default_factory=dict)
    """The process that may hold a port, as the kernel names it."""

    def __bool__(self) -> bool:
        return bool(self.files)

    def tell(self, progress: Progress, command: str) -> None:
        """One line about everything that is gone on with; nothing where there is nothing."""
        if self.files:
            found = ", ".join((*self.files, *(f"the data in {folder}" for folder in self.folders)))
            progress.say(f"[preflight] Going on with an earlier {command}: {found}")


NOTHING = Earlier()


def of_control_plane(ctx: NodeContext, machine: Host, *, joining: bool = False) -> Earlier:
    """What an earlier init left, or an earlier join of a control plane."""
    there = {name: path for name in (*staticpods.COMPONENTS, "etcd") if machine.exists(path := staticpods.path_of(name))}
    if ctx.config.cluster.etcd.external is not None:
        there.pop("etcd", None)
    quiet = msgspec.structs.replace(ctx, host=machine, progress=WarningsOnly())
    same = []
    for name, path in there.items():
        wanted = etcd.manifest(quiet) if name == "etcd" else staticpods.manifest(name, quiet)
        found = _manifest(machine, path)
        if found is not None and same_pod(
            patches.patch(quiet, name, wanted), found, joining=joining, rootless=componentpod.without_root(ctx)
        ):
            same.append(name)
    return recognised(same, ctx.config)


def recognised(components: list[str], config: InitConfiguration) -> Earlier:
    """What comes with the manifests of components: their ports, etcd's data, and the kubelet that runs them."""
    ports = {
        "kube-apiserver": (config.local_api_endpoint.bind_port,),
        "kube-controller-manager": (CONTROLLER_MANAGER_PORT,),
        "kube-scheduler": (SCHEDULER_PORT,),
        "etcd": ETCD_PORTS,
    }
    local = config.cluster.etcd.local
    return Earlier(
        files=tuple(f"{paths.MANIFESTS_DIR}/{name}.yaml" for name in components),
        folders=(local.data_dir,) if local is not None and "etcd" in components else (),
        ports={
            **{port: name[:_KERNEL_NAME_LENGTH] for name in components for port in ports[name]},
            **({KUBELET_PORT: "kubelet"} if components else {}),
        },
    )


def same_pod(wanted: Manifest, found: Manifest, *, joining: bool = False, rootless: bool = False) -> bool:
    """Whether a manifest is what this run would write, whoever wrote it.

    ``joining`` forgives the list of etcd members, and ``rootless`` the users, who are made when the manifest is written.
    """
    return bool(_comparable(wanted, joining, rootless) == _comparable(found, joining, rootless))


def _comparable(pod: Manifest, joining: bool, rootless: bool) -> Any:
    spec = pod.get("spec") or {}
    containers = []
    for container in spec.get("containers") or []:
        command = container.get("command") or []
        if joining:
            command = [word for word in command if not str(word).startswith(_FLAGS_OF_THE_MOMENT)]
        containers.append({**_without_users(container, rootless), "command": command})
    metadata = {name: value for name, value in (pod.get("metadata") or {}).items() if value is not None}
    return {"metadata": metadata, "spec": {**_without_users(spec, rootless), "containers": containers}}


def _without_users(part: Manifest, rootless: bool) -> Manifest:
    return {name: value for name, value in part.items() if not (rootless and name == "securityContext")}


def join_traces(config: JoinConfiguration, machine: Host) -> list[str]:
    """The files in the way of a join; where there are any, the cluster has to be known before they can be judged."""
    files = [paths.KUBELET_CONF, paths.BOOTSTRAP_KUBELET_CONF]
    if config.control_plane is None:
        files.append(config.ca_cert_path)
    return [path for path in files if machine.exists(path)]


def of_join(config: JoinConfiguration, machine: Host, ca: bytes) -> Earlier:
    """What an earlier join of this node into the cluster with this CA left."""
    name = config.node_registration.name
    files = [path for path in join_traces(config, machine) if _leads(machine, path, config.ca_cert_path, ca, name)]
    credentials = any(path != config.ca_cert_path for path in files)
    return Earlier(files=tuple(files), ports={KUBELET_PORT: "kubelet"} if credentials else {})


def _leads(machine: Host, path: str, ca_path: str, ca: bytes, node: str) -> bool:
    """Whether a file is of this node's way into the cluster with this CA."""
    content = machine.read(path)
    if path == ca_path:
        return same_certificates(content, ca)
    try:
        document = kubeconfig.load(content, path)
        trusted, user = credentials_of(document)
    except OperatorError:
        return False
    if not same_certificates(trusted, ca):
        return False
    return path == paths.BOOTSTRAP_KUBELET_CONF or _is_node(machine, user, node)


def credentials_of(document: Mapping[str, Any]) -> tuple[bytes, Mapping[str, Any]]:
    """The CA that a kubeconfig's current context trusts, and its user."""
    config = dict(document)
    context = kubeconfig.named(config, "context", str(config.get("current-context") or "")) or {}
    cluster = kubeconfig.named(config, "cluster", str(context.get("cluster") or "")) or {}
    user = kubeconfig.named(config, "user", str(context.get("user") or "")) or {}
    return kubeconfig.decoded(cluster.get("certificate-authority-data"), "certificate-authority-data"), user


def same_certificates(one: bytes, other: bytes) -> bool:
    """Whether two PEM texts hold the same certificates."""
    from slipway.credentials import x509

    try:
        return {*x509.parse(one)} == {*x509.parse(other)}
    except ValueError:
        return False


def _is_node(machine: Host, user: Mapping[str, Any], node: str) -> bool:
    path = str(user.get("client-certificate") or "")
    if path and not machine.exists(path):
        # The kubelet writes the file first, and then waits for the certificate that the file names.
        return True
    pem = machine.read(path) if path else kubeconfig.decoded(user.get("client-certificate-data"), "client-certificate-data")
    return common_name(pem) == f"system:node:{node}"


def common_name(pem: bytes) -> str:
    """Of the first certificate in a PEM text; empty where there is none."""
    from cryptography.x509.oid import NameOID

    from slipway.credentials import x509

    try:
        names = x509.parse(pem)[0].subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    except ValueError:
        return ""
    return str(names[0].value) if names else ""


def _manifest(machine: Host, path: str) -> Manifest | None:
    """The Pod in a file; None where it holds none."""

    try:
        documents = goyaml.load(machine.read(path).decode(errors="replace"), path)
    except OperatorError:
        return None
    value = documents[0].value if documents else None
    return value if isinstance(value, dict) else None
