"""Which objects are carried over into a rehearsal, and what is changed about them: pure.

Names, uids, owners, times and statuses stay, as they decide what controllers do: which machine is the oldest, whose a host is.  What cannot
stay is the address of the cluster, which leads to the real one; and what only the real world would ever take away again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import CLUSTER, CONFIG_MAP, DAEMON_SET, NODE, POD, REPLICA_SET
from slipway.api.cluster.names import KUBEADM_CONTROL_PLANE_PRE_TERMINATE_HOOK, PRE_DRAIN_HOOK_PREFIX, PRE_TERMINATE_HOOK_PREFIX
from slipway.api.elemental import names as elemental
from slipway.fleet.controlplane.decisions.snapshot import BEFORE_ANNOTATION as SNAPSHOT_ANNOTATION
from slipway.simulation.rehearsal.original import LISTED
from slipway.simulation.workload.controllers import BUDGET, STATEFUL_SET

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.simulation.rehearsal.original import Original

_HOOKS = (f"{PRE_DRAIN_HOOK_PREFIX}/", f"{PRE_TERMINATE_HOOK_PREFIX}/")
_OWN_FINALIZERS = ("cluster.x-k8s.io", "elemental.cattle.io", "slipway.io")
_MIRROR = "kubernetes.io/config.mirror"
# What every cluster has of its own is made by the rehearsal, by the same rules.
_SYSTEM, _OWN_WORKLOADS = "kube-system", ("coredns", "kube-proxy")


def endpoint(original: Original) -> tuple[str, int]:
    """Where the real API server is."""
    found = (original.cluster.get("spec") or {}).get("controlPlaneEndpoint") or {}
    return str(found.get("host") or ""), int(found.get("port") or 6443)


def management(original: Original, address: str) -> list[tuple[Kind, Manifest]]:
    """What is loaded into the management cluster of the rehearsal, whose workload cluster is at ``address``."""
    host, _ = endpoint(original)
    chosen: list[tuple[Kind, Manifest]] = [(CLUSTER, original.cluster)]
    chosen += [(kind, each) for kind in LISTED for each in original.objects.get(kind, ())]
    uids = {str(each["metadata"].get("uid")) for _, each in chosen}
    made = [(kind, moved(_carried(each, uids), host, address)) for kind, each in chosen]
    if original.registry:
        made[0][1]["metadata"].setdefault("annotations", {})[names.REGISTRY_ADDRESS_ANNOTATION] = original.registry
    if original.catalog is not None:
        namespace, _, name = original.catalog_place.partition("/")
        catalog = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace, "uid": "catalog"}}
        made.append((CONFIG_MAP, {**catalog, "data": dict(original.catalog)}))
    return made


def foreign(original: Original) -> list[str]:
    """What of others is left out: hooks and finalizers that nobody in a rehearsal would take away."""
    found = set()
    for kind in LISTED:
        for each in original.objects.get(kind, ()):
            metadata = each["metadata"]
            found |= {f"the finalizer {name} of {kind.plural}" for name in metadata.get("finalizers") or () if not _is_own(name)}
            found |= {f"the hook {name} of {kind.plural}" for name in metadata.get("annotations") or () if _is_foreign_hook(name)}
    return sorted(found)


def workload(original: Original) -> list[tuple[Kind, Manifest]]:
    """What is loaded into the simulated workload cluster: Nodes, what makes Pods, the Pods themselves, and their budgets."""
    found = original.workload or {}
    chosen = [(kind, each) for kind in (NODE, REPLICA_SET, STATEFUL_SET, DAEMON_SET, BUDGET) for each in found.get(kind, ())]
    chosen = [(kind, each) for kind, each in chosen if not _is_made_anew(each) and _is_wanted(kind, each)]
    uids = {str(each["metadata"].get("uid")) for _, each in chosen}
    pods = [(POD, each) for each in found.get(POD, ()) if _lives(each) and not _is_made_anew(each)]
    return [(kind, _carried(each, uids)) for kind, each in (*chosen, *pods)]


def namespaces(objects: Iterable[tuple[Kind, Manifest]]) -> list[str]:
    return sorted({str(each["metadata"]["namespace"]) for _, each in objects if each["metadata"].get("namespace")})


def moved(value: Any, host: str, address: str) -> Any:
    """The same with another address wherever the text has the old one, as a whole."""
    if not host:
        return value
    return _moved(value, re.compile(rf"(?<![\w.-]){re.escape(host)}(?![\w-]|\.\w)"), address)


def _moved(value: Any, host: re.Pattern[str], address: str) -> Any:
    if isinstance(value, str):
        return host.sub(address, value)
    if isinstance(value, dict):
        return {key: _moved(each, host, address) for key, each in value.items()}
    if isinstance(value, list):
        return [_moved(each, host, address) for each in value]
    return value


def _carried(manifest: Manifest, uids: set[str]) -> Manifest:
    """A copy without what others own or keep."""
    metadata: dict[str, Any] = {key: value for key, value in manifest["metadata"].items() if key not in ("managedFields", "selfLink")}
    owners = [each for each in metadata.pop("ownerReferences", None) or () if each.get("uid") in uids]
    finalizers = [name for name in metadata.pop("finalizers", None) or () if _is_own(name)]
    annotations = {name: value for name, value in (metadata.pop("annotations", None) or {}).items() if not _is_left_out(name)}
    parts: Mapping[str, Sequence[Any] | Mapping[str, str]] = {
        "ownerReferences": owners,
        "finalizers": finalizers,
        "annotations": annotations,
    }
    return {**manifest, "metadata": {**metadata, **{key: value for key, value in parts.items() if value}}}


def _is_own(finalizer: str) -> bool:
    return finalizer == elemental.MACHINE_INVENTORY_FINALIZER or any(domain in finalizer for domain in _OWN_FINALIZERS)


def _is_left_out(annotation: str) -> bool:
    # A rehearsal keeps no snapshots of an etcd that is not there.
    return _is_foreign_hook(annotation) or annotation == SNAPSHOT_ANNOTATION


def _is_foreign_hook(annotation: str) -> bool:
    return annotation.startswith(_HOOKS) and annotation != KUBEADM_CONTROL_PLANE_PRE_TERMINATE_HOOK


def _is_made_anew(manifest: Manifest) -> bool:
    metadata = manifest["metadata"]
    if metadata.get("namespace") != _SYSTEM:
        return False
    if manifest.get("kind") == BUDGET.kind:
        return False
    related = [str(metadata["name"]), *(str(each.get("name")) for each in metadata.get("ownerReferences") or ())]
    return any(name == own or name.startswith(f"{own}-") for name in related for own in _OWN_WORKLOADS)


def _is_wanted(kind: Kind, manifest: Manifest) -> bool:
    """A ReplicaSet that an earlier rollout left behind makes no Pods."""
    return kind != REPLICA_SET or bool((manifest.get("spec") or {}).get("replicas"))


def _lives(pod: Manifest) -> bool:
    """Runs, or will: a static Pod is its kubelet's, and one that has ended takes no part."""
    if _MIRROR in (pod["metadata"].get("annotations") or {}) or pod["metadata"].get("deletionTimestamp"):
        return False
    return (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
