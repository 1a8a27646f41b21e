"""The version contract: which Kubernetes version the data of a joining node is made for, and how a node is told of it.

kubeadm wants the joining kubeadm to match the control plane.  So the version is read from the object that Cluster.spec.controlPlaneRef
names, and not from the Machine, which may be older.  Where that object cannot be read, nothing is guessed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.cluster.kinds import CUSTOM_RESOURCE_DEFINITION, KUBEADM_CONTROL_PLANE, Kind
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.kube.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from slipway.fleet.bootstrap.options import JoinVersionSource
    from slipway.fleet.contract.facts import ClusterFacts, ControlPlaneReference
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache

VERSION_FILE = "/run/cluster-api/kubeadm-version/version"

CONDITION = "ControlPlaneKubernetesVersionAvailable"
FROM_CONTROL_PLANE = "VersionFromControlPlane"
FROM_MACHINE = "VersionFromMachine"
UNREADABLE = "ControlPlaneVersionUnreadable"

WATCHABLE = frozenset({(KUBEADM_CONTROL_PLANE.group, KUBEADM_CONTROL_PLANE.kind)})
"""Control planes whose changes are watched.  Others are read now and then: permission to watch them is not ours to take."""

# The contracts whose objects we understand, the best one first.
_CONTRACTS = ("cluster.x-k8s.io/v1beta2", "cluster.x-k8s.io/v1beta1")
_API_VERSION = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_STABILITY = {"alpha": 0, "beta": 1, None: 2}


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


def choose(
    source: JoinVersionSource, reference: ControlPlaneReference | None, control_plane: str, machine: str, owner_kind: str
) -> JoinVersion:
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


def contract_version(labels: Mapping[str, str], crd: str) -> str:
    """The API version of a CRD that fulfils the newest contract that we know."""
    for contract in _CONTRACTS:
        versions = [version for version in (labels.get(contract) or "").split("_") if version]
        if versions:
            return max(versions, key=_precedence)
    raise VersionUnreadableError(
        f"the CustomResourceDefinition {crd} says by no label which of its versions fulfil the contract of Cluster API: "
        f"one of {', '.join(_CONTRACTS)} is wanted"
    )


def crd_name(group: str, kind: str) -> str:
    """How the contract names CRDs: by the plural of their kind."""
    plural = kind.lower()
    if plural.endswith("y") and plural[-2:-1] not in "aeiou":
        plural = f"{plural[:-1]}ies"
    elif plural.endswith(("s", "x", "z", "ch", "sh")):
        plural += "es"
    else:
        plural += "s"
    return f"{plural}.{group}"


class ControlPlaneVersions:
    """Reads versions of control planes.  Which API version to ask for is remembered.

    ``watch`` is called once for every kind that can be watched: its CRD need not be there before a Cluster refers to it.
    """

    def __init__(self, client: AsyncClient, cache: Cache, watch: Callable[[Kind], None]) -> None:
        self._client = client
        self._cache = cache
        self._watch = watch
        self._kinds: dict[tuple[str, str], Kind] = {}
        self._watched: set[Kind] = set()

    async def read(self, cluster: ClusterFacts) -> str:
        """The version, normalized, from the API server; empty where the cluster has no control-plane object or that has no version."""
        reference = cluster.control_plane_ref
        if reference is None:
            return ""
        where = f"{reference.kind} {cluster.namespace}/{reference.name}"
        try:
            manifest = await self._object(reference, cluster.namespace)
        except OperatorError as error:
            raise VersionUnreadableError(f"failed to read control plane version from {where}: {error}") from error
        return version_of(manifest, where)

    async def last_known(self, cluster: ClusterFacts) -> str:
        """The version as the watch has it, where there is one; for data that is there, that is soon enough."""
        reference = cluster.control_plane_ref
        kind = None if reference is None else self._kinds.get((reference.api_group, reference.kind))
        if reference is None or kind not in self._watched or kind is None or not self._cache.informer(kind).synced.is_set():
            return await self.read(cluster)
        known = await self._cache.get(kind, reference.name, cluster.namespace)
        return await self.read(cluster) if known is None else version_of(known.content(), f"{reference.kind} {known.request}")

    async def kind(self, reference: ControlPlaneReference) -> Kind:
        """The kind that a reference means, in the version of the contract."""
        known = self._kinds.get((reference.api_group, reference.kind))
        if known is None:
            name = crd_name(reference.api_group, reference.kind)
            crd = await self._client.get(CUSTOM_RESOURCE_DEFINITION, name)
            version = contract_version(crd["metadata"].get("labels") or {}, name)
            spec = crd["spec"]
            known = Kind(reference.api_group, version, reference.kind, spec["names"]["plural"], spec.get("scope") != "Cluster")
            self._kinds[reference.api_group, reference.kind] = known
        if known not in self._watched and (known.group, known.kind) in WATCHABLE:
            self._watched.add(known)
            self._watch(known)
        return known

    async def _object(self, reference: ControlPlaneReference, namespace: str) -> Mapping[str, Any]:
        kind = await self.kind(reference)
        try:
            return await self._client.get(kind, reference.name, namespace)
        except NotFoundError:
            # Or the version that was asked for is served no more.
            del self._kinds[reference.api_group, reference.kind]
            raise


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


def _precedence(version: str) -> tuple[int, int, int, str]:
    """Stable versions before beta ones before alpha ones, then by number, as Kubernetes orders them; other names come last."""
    match = _API_VERSION.fullmatch(version)
    if match is None:
        return -1, 0, 0, version
    return _STABILITY[match[2]], int(match[1]), int(match[3] or 0), ""
