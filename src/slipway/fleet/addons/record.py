"""What was applied to a Cluster: the entries of a ClusterResourceSetBinding, as values that are read and made anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.addons.clusterresourceset import RECONCILE
from slipway.api.cluster.kinds import CLUSTER, CORE_GROUP
from slipway.runtime import owners

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.machinery.objects import Manifest


class Applied(NamedTuple):
    """How it went with one ConfigMap or Secret."""

    kind: str
    name: str
    hash: str
    applied: bool
    time: str

    def manifest(self) -> Manifest:
        made: Manifest = {"name": self.name, "kind": self.kind, "lastAppliedTime": self.time, "applied": self.applied}
        return made | ({"hash": self.hash} if self.hash else {})


def needs_apply(binding: Manifest | None, set_name: str, kind: str, name: str, strategy: str, hash_: str) -> bool:
    """Whether a resource is to be applied: what is not yet, and with the strategy Reconcile what has changed."""
    known = _resource(_entry(binding, set_name), kind, name)
    if known is None or not known.get("applied"):
        return True
    return strategy == RECONCILE and known.get("hash") != hash_


def with_applied(binding: Manifest, set_name: str, done: Sequence[Applied]) -> list[Manifest]:
    """The entries of a binding with what was done now."""
    bindings: list[Manifest] = list((binding.get("spec") or {}).get("bindings") or ())
    entry = _entry(binding, set_name) or {"clusterResourceSetName": set_name}
    resources = list(entry.get("resources") or ())
    for each in done:
        known = _resource({"resources": resources}, each.kind, each.name)
        if known is None:
            resources.append(each.manifest())
        else:
            resources[resources.index(known)] = each.manifest()
    made = {**entry, **({"resources": resources} if resources else {})}
    if not any(each.get("clusterResourceSetName") == set_name for each in bindings):
        return [*bindings, made]
    return [made if each.get("clusterResourceSetName") == set_name else each for each in bindings]


def without(binding: Manifest, set_name: str) -> list[Manifest]:
    """The entries of a binding but those of a set."""
    bindings = (binding.get("spec") or {}).get("bindings") or ()
    return [each for each in bindings if each.get("clusterResourceSetName") != set_name]


def mentions(binding: Manifest, set_name: str) -> bool:
    return _entry(binding, set_name) is not None


def cluster_name(binding: Manifest) -> str:
    """The Cluster of a binding; before Cluster API 1.4 an owner reference named it."""
    name = (binding.get("spec") or {}).get("clusterName")
    if name:
        return str(name)
    owner = owners.find(binding, CORE_GROUP, CLUSTER.kind)
    return str(owner["name"]) if owner is not None else ""


def _entry(binding: Manifest | None, set_name: str) -> Manifest | None:
    bindings = ((binding or {}).get("spec") or {}).get("bindings") or ()
    return next((each for each in bindings if each.get("clusterResourceSetName") == set_name), None)


def _resource(entry: Manifest | None, kind: str, name: str) -> Manifest | None:
    resources = (entry or {}).get("resources") or ()
    return next((each for each in resources if (each.get("kind"), each.get("name")) == (kind, name)), None)
