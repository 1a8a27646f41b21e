"""Which Kubernetes version a control plane may be given, beyond upstream's rule that it goes up by one minor version at most.

- A lower ``spec.version`` is refused, as data that a newer version wrote may be unreadable to an older one.  It may be taken back
  as long as no Machine has it: no entry of ``status.versions`` is above what is wanted.
- A jump over a minor version is refused with a sentence.  With the annotation ``slipway.io/multi-step-upgrade: "true"`` it is
  accepted instead, by these rules:

  - What is wanted goes to the annotation ``slipway.io/upgrade-target``, and ``spec.version`` stays where it was.  The controller
    makes every step, the first one too, when the whole control plane is at the step before and well.
  - While there is a target, ``spec.version`` is held until every Machine has it (``status.versions`` names it alone): whoever
    applies the target again and again, as GitOps does, does not overtake the steps.
  - Another version that is too far away replaces the target; so does one beyond it.
  - Without the annotation ``"true"`` there is no target: it is removed, and ``spec.version`` stays at the step it has reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.api.cluster import names
from slipway.api.machinery.fieldpath import FieldError, Path, forbidden, invalid
from slipway.api.machinery.version import Version
from slipway.fleet.contract.admission import without_prerelease

if TYPE_CHECKING:
    from slipway.api.cluster.controlplane.kubeadmcontrolplane import KubeadmControlPlane
    from slipway.api.machinery.objects import Manifest


def hold_version(new: Manifest, old: KubeadmControlPlane) -> None:
    """An upgrade over several minor versions is put down in the new object, and its version held at the step, as the module says."""
    metadata = new.get("metadata") or {}
    annotations: dict[str, Any] = metadata.get("annotations") or {}
    if annotations.get(names.MULTI_STEP_UPGRADE_ANNOTATION) != "true":
        annotations.pop(names.UPGRADE_TARGET_ANNOTATION, None)
        return
    current = old.spec.version
    try:
        wanted, at = Version.tolerant(new["spec"]["version"]), Version.tolerant(current)
        target = Version.tolerant(annotations.get(names.UPGRADE_TARGET_ANNOTATION) or current)
    except ValueError:
        # What is no version is refused by the validation, or said by the controller.
        return
    if wanted.major != at.major or wanted <= at:
        return
    is_far, is_on_its_way = wanted.minor > at.minor + 1, target > at
    if not is_far and (not is_on_its_way or _is_whole(old)):
        return
    if is_far or wanted > target:
        annotations[names.UPGRADE_TARGET_ANNOTATION] = new["spec"]["version"]
    new["spec"]["version"] = current


def _is_whole(plane: KubeadmControlPlane) -> bool:
    """Whether every Machine has the version that is wanted."""
    return [each.version for each in plane.status.versions] == [plane.spec.version]


def upgrade_errors(new: KubeadmControlPlane, old: KubeadmControlPlane) -> list[FieldError]:
    """A version may go up by one minor at most, and not down where a Machine has a higher one."""
    path = Path("spec", "version")
    try:
        at, to = (without_prerelease(Version.tolerant(plane.spec.version)) for plane in (old, new))
    except ValueError as error:
        return [invalid(path, new.spec.version, str(error))]
    if to >= Version(at.major, at.minor + 2):
        detail = f"cannot update Kubernetes version from {old.spec.version} to {new.spec.version}"
        way = (
            f"a control plane goes up one minor version at a time: go to a v{at.major}.{at.minor + 1} first, "
            f'or set the annotation {names.MULTI_STEP_UPGRADE_ANNOTATION}: "true" to have every step made'
        )
        return [forbidden(path, f"{detail}: {way}" if to.major == at.major else detail)]
    if to < at and not _is_untouched(old, to):
        detail = "a control plane cannot be downgraded once a Machine may have the newer version"
        return [forbidden(path, f"cannot update Kubernetes version from {old.spec.version} to {new.spec.version}: {detail}")]
    return []


def _is_untouched(plane: KubeadmControlPlane, version: Version) -> bool:
    """Whether it is known that no Machine has a newer version."""
    try:
        found = [without_prerelease(Version.tolerant(each.version)) for each in plane.status.versions]
    except ValueError:
        return False
    return bool(found) and all(each <= version for each in found)
