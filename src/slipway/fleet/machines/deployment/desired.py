"""What a MachineDeployment wants a MachineSet to be: the whole of it, for server-side apply.

What needs other machines stays as the MachineSet has it; everything else follows the MachineDeployment in place, on old MachineSets too.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from slipway.api.cluster import names
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract import naming
from slipway.runtime import owners

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from slipway.api.machinery.objects import Manifest

REVISION_HISTORY = "machinedeployment.clusters.x-k8s.io/revision-history"
# Those of a MachineDeployment that mean nothing on a MachineSet.
_NOT_COPIED = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        names.REVISION_ANNOTATION,
        REVISION_HISTORY,
        names.DESIRED_REPLICAS_ANNOTATION,
        names.MAX_REPLICAS_ANNOTATION,
        names.CONVERSION_DATA_ANNOTATION,
    }
)
_ROLLOUT_FIELDS = ("version", "bootstrap", "infrastructureRef", "failureDomain")
_IN_PLACE_FIELDS = ("minReadySeconds", "readinessGates", "taints")
_TIMEOUTS = ("nodeDrainTimeoutSeconds", "nodeVolumeDetachTimeoutSeconds", "nodeDeletionTimeoutSeconds")


class Revision(NamedTuple):
    number: str
    annotations: Mapping[str, str]


def revision_of(machine_set: Mapping[str, Any]) -> int:
    """The number of a MachineSet among those of its MachineDeployment; 0 where it has none that can be read."""
    return _number((machine_set["metadata"].get("annotations") or {}).get(names.REVISION_ANNOTATION, "0")) or 0


def next_revision(current: Mapping[str, Any] | None, old: Iterable[Mapping[str, Any]]) -> Revision:
    """The number of the current MachineSet: above that of all others, and never lower than it was; numbers that it had are kept."""
    number = max(map(revision_of, old), default=0) + 1
    had = ((current or {"metadata": {}})["metadata"].get("annotations") or {}).get(names.REVISION_ANNOTATION)
    annotations = kept_revision(current) if current is not None else {}
    if had is not None:
        before = _number(had)
        if before is None:
            raise OperatorError(f'the revision "{had}" of the MachineSet {current["metadata"]["name"] if current else ""} is not a number')
        number = max(number, before)
        if str(number) != had:
            annotations[REVISION_HISTORY] = ",".join(part for part in (annotations.get(REVISION_HISTORY), had) if part)
    annotations[names.REVISION_ANNOTATION] = str(number)
    return Revision(str(number), annotations)


def kept_revision(machine_set: Mapping[str, Any]) -> dict[str, str]:
    """What an old MachineSet keeps of its numbers."""
    had = machine_set["metadata"].get("annotations") or {}
    return {key: had[key] for key in (names.REVISION_ANNOTATION, REVISION_HISTORY) if key in had}


def machine_set(
    deployment: Manifest, current: Manifest | None, replicas: int, annotations: Mapping[str, str], *, suffix: str = ""
) -> Manifest:
    """``annotations`` are those of the revision and of the rollout's step; ``suffix`` is the random end of a new one's name."""
    spec = deployment["spec"]
    template = spec["template"].get("spec") or {}
    metadata: Manifest = {"namespace": deployment["metadata"]["namespace"], "ownerReferences": [owners.reference(deployment)]}
    if current is None:
        metadata["name"] = f"{deployment['metadata']['name']}-"[: naming.LONGEST - len(suffix)] + suffix
        unique = f"{template_hash(template)}-{suffix}"
        rollout = template
    else:
        metadata["name"] = current["metadata"]["name"]
        if current["metadata"].get("finalizers"):
            metadata["finalizers"] = current["metadata"]["finalizers"]
        unique = (current["metadata"].get("labels") or {}).get(names.TEMPLATE_HASH_LABEL, "")
        if not unique:
            raise OperatorError(
                f"the MachineSet {metadata['namespace']}/{metadata['name']} has no label {names.TEMPLATE_HASH_LABEL}: "
                "its Machines cannot be told from those of others"
            )
        rollout = current["spec"]["template"].get("spec") or {}
    labels = {**(((spec["template"].get("metadata")) or {}).get("labels") or {}), names.TEMPLATE_HASH_LABEL: unique}
    metadata["labels"] = {**labels, names.DEPLOYMENT_NAME_LABEL: deployment["metadata"]["name"]}
    copied = {key: value for key, value in (deployment["metadata"].get("annotations") or {}).items() if key not in _NOT_COPIED}
    metadata["annotations"] = {**copied, **annotations}
    selector = spec.get("selector") or {}
    wanted: Manifest = {
        "clusterName": spec["clusterName"],
        "replicas": replicas,
        "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), names.TEMPLATE_HASH_LABEL: unique}},
        "template": {
            "metadata": {"labels": labels, **_if("annotations", (spec["template"].get("metadata") or {}).get("annotations"))},
            "spec": _machine_spec(template, rollout),
        },
        **_if("machineNaming", spec.get("machineNaming")),
        **_if("deletion", _only(spec.get("deletion") or {}, ("order",))),
    }
    return {"metadata": metadata, "spec": wanted}


def template_hash(template: Mapping[str, Any]) -> int:
    """A number for what needs other machines; it only has to tell MachineSets apart, and who reads it compares templates."""
    return crc32(json.dumps(_only(template, _ROLLOUT_FIELDS), sort_keys=True).encode())


def _machine_spec(template: Mapping[str, Any], rollout: Mapping[str, Any]) -> Manifest:
    """The rollout fields and all others of one, the in-place fields of the other."""
    kept = {field: value for field, value in rollout.items() if field not in _IN_PLACE_FIELDS}
    deletion = {field: value for field, value in (kept.pop("deletion", None) or {}).items() if field not in _TIMEOUTS}
    deletion |= _only(template.get("deletion") or {}, _TIMEOUTS)
    return {**kept, **_only(template, _IN_PLACE_FIELDS), **_if("deletion", deletion)}


def _only(found: Mapping[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    return {field: found[field] for field in fields if found.get(field) is not None}


def _if(field: str, value: Any) -> dict[str, Any]:
    return {field: value} if value else {}


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
