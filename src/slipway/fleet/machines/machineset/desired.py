"""What a MachineSet wants its Machines, and the objects that were cloned for them, to be: the whole of it, for server-side apply.

A Machine that is there keeps what only another machine can have: its version, failure domain, bootstrap configuration and infrastructure.
Everything else of the template is changed in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.api.cluster import names
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract import naming
from slipway.runtime import owners

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest

_NAME_TEMPLATE = "{{ .machineSet.name }}-{{ .random }}"
_RANDOM = "{{ .random }}"
# Of the template, what a Machine may have another value of than its MachineSet has now.
_KEPT = ("version", "failureDomain", "infrastructureRef")
# What is still changed of a Machine that is being deleted: it decides how long that takes.
_WHILE_DELETING = ("readinessGates", "minReadySeconds", "taints")
_TIMEOUTS = ("nodeDrainTimeoutSeconds", "nodeVolumeDetachTimeoutSeconds", "nodeDeletionTimeoutSeconds")
_DEFAULT_NODE_DELETION_TIMEOUT = 10


def machine_labels(machine_set: Manifest) -> dict[str, str]:
    """The labels of Machines and of their clones."""
    found = {**_template_metadata(machine_set, "labels"), names.SET_NAME_LABEL: naming.label_value(machine_set["metadata"]["name"])}
    deployment = (machine_set["metadata"].get("labels") or {}).get(names.DEPLOYMENT_NAME_LABEL)
    return found if deployment is None else {**found, names.DEPLOYMENT_NAME_LABEL: deployment}


def machine_annotations(machine_set: Manifest) -> dict[str, str]:
    return _template_metadata(machine_set, "annotations")


def machine_name(machine_set: Manifest) -> str:
    """A new name, by the MachineSet's naming template."""
    spec = machine_set["spec"]
    template = (spec.get("machineNaming") or {}).get("template") or _NAME_TEMPLATE
    if _RANDOM not in template:
        raise OperatorError(f"no Machine can be named: {_RANDOM} is missing in machineNaming.template")
    values = {"cluster": {"name": spec["clusterName"]}, "machineSet": {"name": machine_set["metadata"]["name"]}}
    return naming.rendered(template, values)


def new_machine(machine_set: Manifest, name: str, *, bootstrap: Manifest | None, infrastructure: Manifest) -> Manifest:
    """A Machine that is to be made; ``bootstrap`` and ``infrastructure`` are references to its clones."""
    wanted = _machine(machine_set, name)
    spec = wanted["spec"]
    spec["bootstrap"] = {**(spec.get("bootstrap") or {}), **({"configRef": bootstrap} if bootstrap is not None else {})}
    spec["infrastructureRef"] = infrastructure
    wanted["metadata"]["finalizers"] = [names.MACHINE_FINALIZER]
    return wanted


def machine(machine_set: Manifest, current: Manifest) -> Manifest:
    """A Machine that is there, in today's terms."""
    wanted = _machine(machine_set, current["metadata"]["name"])
    spec, had = wanted["spec"], current["spec"]
    for field in _KEPT:
        spec.pop(field, None)
        if had.get(field):
            spec[field] = had[field]
    reference = (had.get("bootstrap") or {}).get("configRef")
    spec["bootstrap"] = {**(spec.get("bootstrap") or {}), **({"configRef": reference} if reference else {})}
    finalizers = current["metadata"].get("finalizers") or []
    missing = [] if names.MACHINE_FINALIZER in finalizers else [names.MACHINE_FINALIZER]
    wanted["metadata"]["finalizers"] = [*finalizers, *missing]
    return wanted


def deleting_machine(machine_set: Manifest, current: Manifest) -> Manifest:
    """The spec of a Machine that is being deleted, in today's terms."""
    template, had = machine_set["spec"]["template"].get("spec") or {}, current["spec"]
    spec = {field: value for field, value in had.items() if field not in _WHILE_DELETING and field != "deletion"}
    spec |= {field: template[field] for field in _WHILE_DELETING if template.get(field) is not None}
    timeouts = template.get("deletion") or {}
    deletion = {field: value for field, value in (had.get("deletion") or {}).items() if field not in _TIMEOUTS}
    deletion |= {field: timeouts[field] for field in _TIMEOUTS if timeouts.get(field) is not None}
    # The webhook writes it on every Machine: left out, it would be written again and again.
    deletion.setdefault("nodeDeletionTimeoutSeconds", _DEFAULT_NODE_DELETION_TIMEOUT)
    return {**spec, "deletion": deletion}


def clone_metadata(machine_set: Manifest, current: Manifest) -> Manifest:
    """The labels and annotations of a clone, which have a field manager of their own."""
    metadata = current["metadata"]
    return {
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": machine_labels(machine_set),
            "annotations": machine_annotations(machine_set),
        }
    }


def set_reference(machine_set: Manifest) -> Manifest:
    """The owner reference of a clone until its Machine takes it over."""
    return owners.reference(machine_set, controller=False)


def _machine(machine_set: Manifest, name: str) -> Manifest:
    metadata = machine_set["metadata"]
    template: dict[str, Any] = dict(machine_set["spec"]["template"].get("spec") or {})
    template.pop("infrastructureRef", None)
    bootstrap = {key: value for key, value in (template.get("bootstrap") or {}).items() if key != "configRef"}
    return {
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": machine_labels(machine_set),
            "annotations": machine_annotations(machine_set),
            # At once, so that the Machine controller does not take it for one that stands alone.
            "ownerReferences": [owners.reference(machine_set)],
        },
        "spec": {**template, "clusterName": machine_set["spec"]["clusterName"], "bootstrap": bootstrap},
    }


def _template_metadata(machine_set: Manifest, field: str) -> dict[str, str]:
    return dict((machine_set["spec"]["template"].get("metadata") or {}).get(field) or {})
