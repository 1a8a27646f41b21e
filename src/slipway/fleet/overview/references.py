"""Which object is meant: ``KIND/NAME``, ``KIND NAME`` or a name alone, as people type it for kubectl."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    CLUSTER,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    MACHINE_SET,
)
from slipway.api.machinery.errors import OperatorError, UsageError
from slipway.fleet.overview.objects import KINDS
from slipway.fleet.overview.problems import Ref

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.overview.objects import Objects

# Beside the name of the kind, in one and in many, with or without its group.
_SHORT = {
    CLUSTER.kind: ("cl",),
    KUBEADM_CONTROL_PLANE.kind: ("kcp", "control-plane", "controlplane"),
    MACHINE_DEPLOYMENT.kind: ("md",),
    MACHINE_SET.kind: ("ms",),
    MACHINE.kind: ("ma",),
    BAREMETAL_CLUSTER.kind: ("bmc",),
    BAREMETAL_MACHINE.kind: ("bmm",),
    MACHINE_INVENTORY_POOL.kind: ("mip", "pool", "pools"),
    MACHINE_INVENTORY.kind: ("mi", "host", "hosts", "inventory"),
}
FIELDS: Mapping[str, str] = MappingProxyType({kind.kind: field for field, kind in KINDS.items()})
"""The field of Objects that has a kind."""
_WORDS = {word: kind.kind for kind in KINDS.values() for word in (kind.kind.lower(), kind.plural, *_SHORT[kind.kind])}

_ABOVE = (CLUSTER.kind, MACHINE.kind)
_NAMED = 5


def found(objects: Objects, kind: str) -> Sequence[Manifest]:
    """All of a kind."""
    manifests: Sequence[Manifest] = getattr(objects, FIELDS[kind])
    return manifests


def resolve(objects: Objects, words: Sequence[str], namespace: str = "") -> Ref:
    """The object that is meant; an error with a sentence where there is none, or more than one."""
    kind, name = _parsed(words)
    kinds = [kind] if kind else list(FIELDS)
    refs = [
        Ref(each, str(manifest["metadata"].get("namespace") or ""), name)
        for each in kinds
        for manifest in found(objects, each)
        if manifest["metadata"]["name"] == name and namespace in ("", manifest["metadata"].get("namespace"))
    ]
    if not kind:
        # A cluster and its parts often have one name, a Machine and its BaremetalMachine always; what is above leads to what is below.
        above = next((each for each in _ABOVE if any(ref.kind == each for ref in refs)), None)
        refs = [ref for ref in refs if above in (None, ref.kind)]
    if len(refs) == 1:
        return refs[0]
    if refs:
        spaces = {ref.namespace for ref in refs}
        way = "name its namespace with --namespace" if len(spaces) > 1 else f"say which one, such as {refs[0].kind.lower()}/{name}"
        raise OperatorError(f"{name} may be {', '.join(map(str, refs))}: {way}")
    raise OperatorError(_none(objects, kind, name, namespace))


def _parsed(words: Sequence[str]) -> tuple[str, str]:
    if len(words) == 1 and "/" not in words[0]:
        return "", words[0]
    kind, slash, name = words[0].partition("/")
    if len(words) == 2 and not slash:
        name = words[1]
    elif len(words) != 1:
        raise UsageError("one object can be explained at a time: name it as KIND/NAME or KIND NAME")
    # kubectl takes machines.cluster.x-k8s.io, and with a version in the middle as well.
    meant = _WORDS.get(kind.lower().partition(".")[0])
    if meant is None:
        raise UsageError(
            f'"{kind}" is not a kind that can be explained: use {", ".join(sorted({kind.kind.lower() for kind in KINDS.values()}))}'
        )
    if not name:
        raise UsageError(f"the name is missing: write {kind}/NAME")
    return meant, name


def _none(objects: Objects, kind: str, name: str, namespace: str) -> str:
    place = f" in the namespace {namespace}" if namespace else ""
    if kind and kind in objects.missing:
        return objects.missing[kind]
    if not kind and CLUSTER.kind in objects.missing:
        return objects.missing[CLUSTER.kind]
    if not kind and name.lower() in _WORDS:
        there = _there(objects, _WORDS[name.lower()])
        return f"the name is missing: write {name}/NAME{f'; {there}' if there else ''}"
    there = _there(objects, kind or CLUSTER.kind)
    if not kind:
        return f"there is nothing called {name}{place}: write KIND/NAME or the name of a Cluster{f'; {there}' if there else ''}"
    return f"there is no {kind} {name}{place}{f': {there}' if there else ''}"


def _there(objects: Objects, kind: str) -> str:
    """The first of a kind, where there is any."""
    known = sorted(str(each["metadata"]["name"]) for each in found(objects, kind))
    more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    return f"there {'is' if len(known) == 1 else 'are'} {', '.join(known[:_NAMED])}{more}" if known else ""
