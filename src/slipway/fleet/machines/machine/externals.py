"""What the contract says of the objects that a Machine refers to: its bootstrap config and its infrastructure machine.

They say the same in two versions of the contract, in other fields.  Made before their Machine, they first belong to the MachineSet or the
control plane that made them, then to the Machine alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.cluster.kinds import CORE_GROUP, MACHINE, MACHINE_SET
from slipway.api.cluster.names import CLUSTER_NAME_LABEL
from slipway.api.machinery.errors import OperatorError
from slipway.runtime import owners

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.cluster.meta import ContractVersionedObjectReference
    from slipway.api.machinery.objects import Manifest

V1BETA1 = "v1beta1"


class Host(NamedTuple):
    """What an infrastructure machine says of its host; None is what it says nothing of."""

    provider_id: str = ""
    addresses: list[Manifest] | None = None
    failure_domain: str | None = None
    spec_failure_domain: str | None = None
    """Where the contract of v1beta1 had it."""


class Failure(NamedTuple):
    """What v1beta1 objects call a failure that does not pass."""

    reason: str = ""
    message: str = ""


def is_data_created(config: Manifest, contract: str) -> bool:
    """Whether the bootstrap data is there."""
    path = ("status", "ready") if contract == V1BETA1 else ("status", "initialization", "dataSecretCreated")
    return _bool(config, *path)


def data_secret_name(config: Manifest) -> str:
    """Where the data is, which must be known once it is there."""
    name = _text(config, "status", "dataSecretName")
    if not name:
        raise OperatorError(f"{_named(config)} does not say where its data is: status.dataSecretName is empty")
    return name


def is_provisioned(infrastructure: Manifest, contract: str) -> bool:
    """Whether the host is there."""
    return _bool(infrastructure, *(("status", "ready") if contract == V1BETA1 else ("status", "initialization", "provisioned")))


def is_interruptible(infrastructure: Manifest) -> bool:
    return _bool(infrastructure, "status", "interruptible")


def host(infrastructure: Manifest) -> Host:
    addresses = _at(infrastructure, "status", "addresses")
    if addresses is not None and not (isinstance(addresses, list) and all(isinstance(each, dict) for each in addresses)):
        raise OperatorError(f"status.addresses of {_named(infrastructure)} is not a list of addresses")
    return Host(
        provider_id(infrastructure),
        None if addresses is None else [{key: each[key] for key in ("type", "address") if key in each} for each in addresses],
        _text(infrastructure, "status", "failureDomain"),
        _text(infrastructure, "spec", "failureDomain"),
    )


def provider_id(infrastructure: Manifest) -> str:
    return _text(infrastructure, "spec", "providerID") or ""


def failure(manifest: Manifest) -> Failure:
    message = _text(manifest, "status", "failureMessage") or ""
    if message:
        group, _, version = str(manifest.get("apiVersion") or "").rpartition("/")
        shown = f"{group}/{version}, Kind={manifest.get('kind')}"
        message = f'Failure detected from referenced resource {shown} with name "{manifest["metadata"]["name"]}": {message}'
    return Failure(_text(manifest, "status", "failureReason") or "", message)


def ownership(manifest: Manifest, machine: Manifest, control_plane: ContractVersionedObjectReference | None) -> Manifest:
    """The merge patch that makes the object the Machine's alone; empty where it is.

    ``control_plane`` is the reference of a Cluster whose control plane the Machine is part of.
    """
    metadata, cluster = manifest["metadata"], machine["spec"]["clusterName"]
    current: list[Manifest] = metadata.get("ownerReferences") or []
    wanted = owners.reference({**machine, "apiVersion": MACHINE.api_version, "kind": MACHINE.kind})
    kept = [reference for reference in current if not _made_it(reference, control_plane)]
    is_labelled = (metadata.get("labels") or {}).get(CLUSTER_NAME_LABEL) == cluster
    if is_labelled and len(kept) == len(current) and any(_is_exact(reference, wanted) for reference in current):
        return {}
    try:
        after = owners.ensure_controller(kept, wanted)
    except OperatorError as error:
        raise OperatorError(f"{_named(manifest)} cannot be used for the Machine {machine['metadata']['name']}: {error.message}") from None
    return {
        "metadata": {
            "resourceVersion": metadata["resourceVersion"],
            "ownerReferences": after,
            **({} if is_labelled else {"labels": {CLUSTER_NAME_LABEL: cluster}}),
        }
    }


def _made_it(reference: Mapping[str, Any], control_plane: ContractVersionedObjectReference | None) -> bool:
    group = owners.group_of(dict(reference))
    if group == CORE_GROUP and reference.get("kind") == MACHINE_SET.kind:
        return True
    return control_plane is not None and (group, reference.get("kind")) == (control_plane.api_group, control_plane.kind)


def _is_exact(reference: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(reference.get(field) == wanted[field] for field in ("apiVersion", "kind", "name", "uid", "controller"))


def _at(manifest: Manifest, *path: str) -> Any:
    value: Any = manifest
    for step in path:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise OperatorError(f"{'.'.join(path)} of {_named(manifest)} cannot be read: there is no object above {step}")
        value = value.get(step)
    return value


def _text(manifest: Manifest, *path: str) -> str | None:
    value = _at(manifest, *path)
    if value is not None and not isinstance(value, str):
        raise OperatorError(f"{'.'.join(path)} of {_named(manifest)} is not a text")
    return value


def _bool(manifest: Manifest, *path: str) -> bool:
    value = _at(manifest, *path)
    if value is not None and not isinstance(value, bool):
        raise OperatorError(f"{'.'.join(path)} of {_named(manifest)} is neither true nor false")
    return bool(value)


def _named(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return f"the {manifest.get('kind')} {metadata.get('namespace', '')}/{metadata['name']}"
