"""What a Machine gives to its Node: labels of the domains that are Cluster API's, annotations, and taints.

What was given before is written down on the Node, so that it goes again when the Machine has it no more; nothing else of a Node is touched.
Taints of the Machine's spec are behind a gate upstream, which writes their list onto every Node; here a Node has that list once its Machine
has taints.  Taints for the initialization are given to Nodes that no Machine controller has seen before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.cluster import names
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.machines.options import NOTHING_MORE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from slipway.api.cluster.core.machine import Machine, MachineTaint
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.machines.options import MachinesOptions

# Every Node has these, so they are not written down.
_COMMON = (
    names.NODE_CLUSTER_NAME_ANNOTATION,
    names.NODE_CLUSTER_NAMESPACE_ANNOTATION,
    names.NODE_MACHINE_ANNOTATION,
    names.NODE_OWNER_KIND_ANNOTATION,
    names.NODE_OWNER_NAME_ANNOTATION,
)
_LABELS, _ANNOTATIONS, _TAINTS = (
    names.NODE_LABELS_FROM_MACHINE_ANNOTATION,
    names.NODE_ANNOTATIONS_FROM_MACHINE_ANNOTATION,
    names.NODE_TAINTS_FROM_MACHINE_ANNOTATION,
)

UNINITIALIZED: Manifest = {"key": names.UNINITIALIZED_TAINT, "effect": "NoSchedule"}
OUTDATED: Manifest = {"key": names.OUTDATED_REVISION_TAINT, "effect": "PreferNoSchedule"}
OUT_OF_SERVICE: Manifest = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


class Given(NamedTuple):
    """What a Machine gives to its Node at present."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: Sequence[MachineTaint] = ()
    outdated: bool = False


def given(
    machine: Machine,
    *,
    interruptible: bool = False,
    revisions: tuple[str, str] | None = None,
    more: MachinesOptions = NOTHING_MORE,
) -> Given:
    """``revisions`` are those of the MachineSet and of the MachineDeployment, where there are both; ``more`` is what people want beside."""
    metadata = machine.metadata
    labels = {
        key: value
        for key, value in (metadata.get("labels") or {}).items()
        if is_label_of_node(key) or any(pattern.search(key) for pattern in more.node_labels)
    }
    if interruptible:
        labels[names.INTERRUPTIBLE_LABEL] = ""
    annotations = {
        names.NODE_CLUSTER_NAME_ANNOTATION: machine.spec.cluster_name,
        names.NODE_CLUSTER_NAMESPACE_ANNOTATION: metadata.get("namespace", ""),
        names.NODE_MACHINE_ANNOTATION: metadata["name"],
    }
    owner = next((owner for owner in metadata.get("ownerReferences") or () if owner.get("controller")), None)
    if owner is not None:
        annotations |= {names.NODE_OWNER_KIND_ANNOTATION: owner["kind"], names.NODE_OWNER_NAME_ANNOTATION: owner["name"]}
    annotations |= {
        key: value
        for key, value in (metadata.get("annotations") or {}).items()
        if _within(key, names.MANAGED_NODE_ANNOTATION_DOMAIN) or any(pattern.search(key) for pattern in more.node_annotations)
    }
    return Given(labels, annotations, machine.spec.taints, revisions is not None and is_outdated(*revisions))


def is_label_of_node(key: str) -> bool:
    if key.partition("/")[0] == names.NODE_ROLE_LABEL_PREFIX:
        return True
    return _within(key, names.NODE_RESTRICTION_LABEL_DOMAIN) or _within(key, names.MANAGED_NODE_LABEL_DOMAIN)


def is_outdated(of_set: str, of_deployment: str) -> bool:
    """Whether the MachineDeployment has gone on since the MachineSet was made."""
    return _revision(of_set) < _revision(of_deployment)


def patch(node: Manifest, wanted: Given) -> Manifest:
    """The merge patch that gives the Node what is wanted, with the version that it is for; empty where there is nothing to change.

    The lists of what was given are no reason for a patch of their own, as upstream has it.
    """
    metadata = node["metadata"]
    known: dict[str, str] = metadata.get("annotations") or {}
    labels = _changes(metadata.get("labels") or {}, wanted.labels, _names(known.get(_LABELS)))
    annotations = _changes(known, wanted.annotations, [*_names(known.get(_ANNOTATIONS)), *_COMMON])
    taints = list((node.get("spec") or {}).get("taints") or ())
    after, tracked = _with_taints_of(known, taints, wanted.taints)
    after = [taint for taint in after if not _same(taint, UNINITIALIZED)]
    is_there = any(_same(taint, OUTDATED) for taint in after)
    if wanted.outdated and not is_there:
        after.append(OUTDATED)
    elif is_there and not wanted.outdated:
        after = [taint for taint in after if not _same(taint, OUTDATED)]
    if not labels and not annotations and after == taints and tracked in (None, known.get(_TAINTS)):
        return {}
    annotations[_LABELS] = ",".join(sorted(wanted.labels))
    annotations[_ANNOTATIONS] = ",".join(sorted(key for key in wanted.annotations if key not in _COMMON))
    if tracked is not None:
        annotations[_TAINTS] = tracked
    changed: dict[str, Any] = {"resourceVersion": metadata["resourceVersion"], "annotations": annotations}
    if labels:
        changed["labels"] = labels
    return {"metadata": changed, **({"spec": {"taints": after}} if after != taints else {})}


def out_of_service(node: Manifest) -> Manifest:
    """The patch by which Kubernetes may take what is left on the Node for lost; empty where that was said before."""
    taints = list((node.get("spec") or {}).get("taints") or ())
    if any(_same(taint, OUT_OF_SERVICE) for taint in taints):
        return {}
    return {"metadata": {"resourceVersion": node["metadata"]["resourceVersion"]}, "spec": {"taints": [*taints, OUT_OF_SERVICE]}}


def belongs(node: Manifest, machine: Manifest) -> bool:
    """Whether the Node is still the Machine's: hosts keep their names, and another Machine may have the host by now."""
    annotations = node["metadata"].get("annotations") or {}
    owner = [annotations.get(name) for name in (names.NODE_CLUSTER_NAMESPACE_ANNOTATION, names.NODE_MACHINE_ANNOTATION)]
    return not all(owner) or owner == [machine["metadata"]["namespace"], machine["metadata"]["name"]]


def _changes(there: Mapping[str, str], wanted: Mapping[str, str], before: Iterable[str]) -> dict[str, Any]:
    """What to set, and what to take away of what was given before."""
    found: dict[str, Any] = {key: value for key, value in wanted.items() if there.get(key) != value}
    for key in before:
        if key not in wanted and key in there and key not in (_LABELS, _ANNOTATIONS):
            found[key] = None
    return found


def _with_taints_of(known: Mapping[str, str], taints: list[Manifest], wanted: Sequence[MachineTaint]) -> tuple[list[Manifest], str | None]:
    """The taints with those of the Machine, and the list of those that are the Machine's; None where there never were any."""
    listed = known.get(_TAINTS)
    if listed is None and not wanted:
        return list(taints), None
    is_new = listed is None and _LABELS not in known
    after = list(taints)
    for taint in wanted:
        if taint.propagation == "OnInitialization" and not is_new:
            continue
        made: Manifest = {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}
        position = next((index for index, current in enumerate(after) if _same(current, made)), None)
        if position is None:
            after.append(made)
        elif (after[position].get("value") or "") != taint.value:
            after[position] = made
    always = {f"{taint.key}:{taint.effect}" for taint in wanted if taint.propagation == "Always"}
    kept = always | {f"{taint.key}:{taint.effect}" for taint in wanted if taint.propagation == "OnInitialization"}
    for old in set(_names(listed)) - kept:
        key, colon, effect = old.partition(":")
        if not colon or ":" in effect:
            raise OperatorError(f'the annotation {_TAINTS} of the Node cannot be read: "{old}" is not of the form key:effect')
        after = [taint for taint in after if not _same(taint, {"key": key, "effect": effect})]
    return after, ",".join(sorted(always))


def _same(one: Manifest, other: Manifest) -> bool:
    return one.get("key") == other.get("key") and one.get("effect") == other.get("effect")


def _names(listed: str | None) -> list[str]:
    return [name for name in (listed or "").split(",") if name]


def _within(key: str, domain: str) -> bool:
    prefix = key.partition("/")[0]
    return prefix == domain or prefix.endswith(f".{domain}")


def _revision(text: str) -> int:
    if not text:
        return 0
    try:
        return int(text)
    except ValueError:
        raise OperatorError(f'the annotation {names.REVISION_ANNOTATION} is not a number: "{text}"') from None
