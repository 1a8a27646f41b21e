"""The version contract: which Kubernetes version the data of a joining node is made for, and how a node is told of it.

kubeadm wants the joining kubeadm to match the control plane.  So the version is read from the object that Cluster.spec.controlPlaneRef
names, and not from the Machine, which may be older.  Where that object cannot be read, nothing is guessed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.cluster.kinds import KUBEADM_CONTROL_PLANE
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from slipway.api.cluster.meta import ContractVersionedObjectReference as Reference
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.bootstrap.options import JoinVersionSource
    from slipway.fleet.contract.facts import ClusterFacts
    from slipway.fleet.contract.references import References

VERSION_FILE = "/run/cluster-api/kubeadm-version/version"

CONDITION = "ControlPlaneKubernetesVersionAvailable"
FROM_CONTROL_PLANE = "VersionFromControlPlane"
FROM_MACHINE = "VersionFromMachine"
UNREADABLE = "ControlPlaneVersionUnreadable"
NOT_RENDERED = "RenderingFailed"

WATCHABLE = frozenset({(KUBEADM_CONTROL_PLANE.group, KUBEADM_CONTROL_PLANE.kind)})
"""Control planes whose changes are watched.  Others are read now and then: permission to watch them is not ours to take."""


class VersionUnreadableError(OperatorError):
    """The version cannot be known: the control plane cannot be read, or what it says is no version."""


class JoinVersion(NamedTuple):
    """The version that join data is made for, where it comes from, and that of the control plane if it has one."""

    version: str
    reason: str
    message: str
    control_plane: str = ""

    @property
    def shown(self) -> str:
        """What a node is told: the control plane's version where there is one, whatever the configuration is made for."""
        return self.control_plane or self.version


def normalized(text: str) -> str:
    """``v`` and a whole semantic version: 1.35 is v1.35.0."""
    return f"v{Version.tolerant(text)}"


def choose(source: JoinVersionSource, reference: Reference | None, control_plane: str, machine: str, owner_kind: str) -> JoinVersion:
    """The version of a joining worker.  ``control_plane`` is empty where there is no control-plane object or it has no version."""
    if source == "machine" or not control_plane:
        try:
            version = normalized(machine)
        except ValueError as error:
            raise VersionUnreadableError(f'failed to parse kubernetes version "{machine}" of the {owner_kind}: {error}') from None
        if source == "machine":
            return JoinVersion(version, FROM_MACHINE, f"Join data is for Kubernetes {version} of the {owner_kind}", control_plane)
        why = f"{reference.kind} {reference.name} has no version" if reference is not None else "the Cluster has no controlPlaneRef"
        return JoinVersion(version, FROM_MACHINE, f"Join data is for Kubernetes {version} of the {owner_kind}, because {why}")
    assert reference is not None
    message = f"Join data is for Kubernetes {control_plane}, read from {reference.kind} {reference.name}"
    return JoinVersion(control_plane, FROM_CONTROL_PLANE, message, control_plane)


def version_file(version: str) -> dict[str, str]:
    """Tells scripts on the node which kubeadm to fetch."""
    return {"path": VERSION_FILE, "owner": "root:root", "permissions": "0644", "content": f"{version}\n"}


def with_file_after_boot(spec: Mapping[str, Any], version: str) -> Mapping[str, Any]:
    """A spec whose first command writes the version file where it is missing.

    Ignition writes files before the host's /run is mounted over them; cloud-init writes them afterwards and needs nothing.
    """
    if spec.get("format") != "ignition":
        return spec
    folder = VERSION_FILE.rpartition("/")[0]
    command = f"test -e {VERSION_FILE} || {{ mkdir -p {folder} && echo {version} > {VERSION_FILE}; }}"
    return {**spec, "preKubeadmCommands": [command, *(spec.get("preKubeadmCommands") or ())]}


def template_data(join_version: str, control_plane: str) -> dict[str, Any]:
    """What templates in spec.files may use: ``.KubernetesVersion``, and ``.controlPlane.version`` where there is one."""
    data: dict[str, Any] = {"KubernetesVersion": join_version}
    if control_plane:
        data["controlPlane"] = {"version": control_plane}
    return data


class ControlPlaneVersions:
    """Reads versions of control planes."""

    def __init__(self, references: References) -> None:
        self._references = references

    async def read(self, cluster: ClusterFacts) -> str:
        """The version, normalized, from the API server; empty where the cluster has no control-plane object or that has no version."""
        return await self._version(cluster, self._references.read)

    async def last_known(self, cluster: ClusterFacts) -> str:
        """The version as the watch has it, where there is one; for data that is there, that is soon enough."""
        return await self._version(cluster, self._references.last_known)

    async def _version(self, cluster: ClusterFacts, read: Callable[[Reference, str], Awaitable[Manifest]]) -> str:
        reference = cluster.control_plane_ref
        if reference is None:
            return ""
        where = f"{reference.kind} {cluster.namespace}/{reference.name}"
        try:
            manifest = await read(reference, cluster.namespace)
        except OperatorError as error:
            raise VersionUnreadableError(f"failed to read control plane version from {where}: {error}") from error
        return version_of(manifest, where)


def version_of(control_plane: Mapping[str, Any], where: str) -> str:
    """spec.version of a control plane, normalized; empty where it has none."""
    version = (control_plane.get("spec") or {}).get("version")
    if version is None or version == "":
        return ""
    try:
        if not isinstance(version, str):
            raise ValueError("it is not a text")
        return normalized(version)
    except ValueError as error:
        raise VersionUnreadableError(f'failed to parse control plane version "{version}" of {where}: {error}') from None
