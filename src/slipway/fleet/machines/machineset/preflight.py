"""The checks before a MachineSet makes a Machine: whether one of its version can join the control plane as that is now.

They are Cluster API's, by name and message, with one difference: ``KubeadmVersionSkew`` is not run.  That check is about the kubeadm
program, which joins only a control plane of its own minor version; our bootstrap provider, whose templates are of the same kind as
upstream's, joins every kubelet that the skew policy of Kubernetes allows, and with the check an older worker could never join again.  Where
upstream's bootstrap provider runs, ``kubeadm_joins_any_version`` is false.

A check is skipped by the annotation ``machineset.cluster.x-k8s.io/skip-preflight-checks`` of the MachineSet or of its bootstrap template.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster import names
from slipway.api.cluster.kinds import BOOTSTRAP_GROUP
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.fleet.machines.machineset.versions import is_newer

if TYPE_CHECKING:
    from collections.abc import Collection

    from slipway.api.cluster.meta import ContractVersionedObjectReference
    from slipway.api.machinery.objects import Manifest

RETRY = 15.0
# Kubelets may be so many minor versions older than their API server.
_SKEW = 3
KUBEADM_CONFIG_TEMPLATE = "KubeadmConfigTemplate"


class ControlPlane(NamedTuple):
    """What is read of the object that a Cluster's controlPlaneRef leads to."""

    kind: str
    namespace: str
    name: str
    version: str
    statuses: tuple[str, ...] = ()
    """The versions that its machines have, the lowest first."""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def provisioning(self) -> bool:
        return not self.statuses or not self.statuses[0]

    @property
    def upgrading(self) -> bool:
        wanted = _parsed(self.version, str(self))
        return any(status and is_newer(wanted, _parsed(status, f"a machine of {self}")) for status in self.statuses)


class Topology(NamedTuple):
    """What a Cluster with a topology, which only upstream reconciles, wants of its control plane."""

    version: str
    step: str = ""


def control_plane_from(manifest: Manifest) -> ControlPlane | None:
    """None where it has no version: then there is nothing to compare with."""
    version = (manifest.get("spec") or {}).get("version")
    if not version:
        return None
    status = manifest.get("status") or {}
    versions = [str(one.get("version") or "") for one in status.get("versions") or ()]
    if not versions and status.get("version"):
        versions = [str(status["version"])]
    metadata = manifest["metadata"]
    return ControlPlane(manifest["kind"], metadata["namespace"], metadata["name"], str(version), tuple(versions))


def skip_annotation(manifest: Manifest) -> str:
    return str((manifest["metadata"].get("annotations") or {}).get(names.SKIP_PREFLIGHT_CHECKS_ANNOTATION) or "")


def skipped(annotation: str) -> frozenset[str]:
    """The checks that an annotation names."""
    return frozenset(part.strip() for part in annotation.split(",")) if annotation else frozenset()


def failed_checks(
    control_plane: ControlPlane | None,
    version: str,
    bootstrap: ContractVersionedObjectReference,
    skip: Collection[str] = (),
    *,
    topology: Topology | None = None,
    kubeadm_joins_any_version: bool = True,
) -> list[str]:
    """What forbids to make a Machine of this version now; a sentence for each check that failed."""
    if control_plane is None or names.PREFLIGHT_ALL in skip:
        return []
    theirs = _parsed(control_plane.version, f"ControlPlane {control_plane.namespace}/{control_plane.name}")
    found = [_unstable(control_plane, topology)] if names.PREFLIGHT_CONTROL_PLANE_IS_STABLE not in skip else []
    if version:
        ours = _parsed(version, "the MachineSet")
        if names.PREFLIGHT_KUBERNETES_VERSION_SKEW not in skip:
            found.append(_kubernetes_skew(theirs, ours))
        is_kubeadm = (bootstrap.api_group, bootstrap.kind) == (BOOTSTRAP_GROUP, KUBEADM_CONFIG_TEMPLATE)
        if is_kubeadm and not kubeadm_joins_any_version and names.PREFLIGHT_KUBEADM_VERSION_SKEW not in skip:
            found.append(_kubeadm_skew(theirs, ours))
        if topology is not None and version != control_plane.version and names.PREFLIGHT_CONTROL_PLANE_VERSION_SKEW not in skip:
            found.append(
                f"MachineSet version ({version}) is not yet the same as the ControlPlane version ({control_plane.version}), "
                f"waiting for version to be propagated to the MachineSet{_check(names.PREFLIGHT_CONTROL_PLANE_VERSION_SKEW)}"
            )
    return [message for message in found if message]


def _unstable(control_plane: ControlPlane, topology: Topology | None) -> str:
    check = _check(names.PREFLIGHT_CONTROL_PLANE_IS_STABLE)
    if topology is not None and control_plane.version not in (topology.version, topology.step):
        return f"{control_plane} has a pending version upgrade to {topology.step or topology.version}{check}"
    if control_plane.provisioning:
        return f"{control_plane} is provisioning{check}"
    return f"{control_plane} is upgrading{check}" if control_plane.upgrading else ""


def _kubernetes_skew(theirs: Version, ours: Version) -> str:
    said = f"MachineSet version ({ours}) and ControlPlane version ({theirs}) do not conform to the kubernetes version skew policy"
    check = _check(names.PREFLIGHT_KUBERNETES_VERSION_SKEW)
    if ours.minor > theirs.minor:
        return f"{said} as MachineSet version is higher than ControlPlane version{check}"
    if ours.minor < theirs.minor - _SKEW:
        return f"{said} as MachineSet version is more than {_SKEW} minor versions older than the ControlPlane version{check}"
    return ""


def _kubeadm_skew(theirs: Version, ours: Version) -> str:
    if ours.minor == theirs.minor:
        return ""
    return (
        f"MachineSet version ({ours}) and ControlPlane version ({theirs}) do not conform to kubeadm version skew policy as kubeadm only "
        f"supports joining with the same major+minor version as the control plane{_check(names.PREFLIGHT_KUBEADM_VERSION_SKEW)}"
    )


def _check(name: str) -> str:
    return f' ("{name}" preflight check failed)'


def _parsed(version: str, of: str) -> Version:
    try:
        return Version.tolerant(version)
    except ValueError:
        raise OperatorError(f'the version "{version}" of {of} is not one') from None
