"""What a Machine takes over from the objects of its providers: put into its manifest, with yesterday's conditions of it.

What is there once stays: a host that is no longer reported as provisioned was, and the name of the data does not change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster import names
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.status import well
from slipway.fleet.machines.machine import deprecated, externals, words
from slipway.fleet.machines.machine.values import moment
from slipway.runtime.objects import timestamp

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.status import Status


def take_bootstrap(status: Status, machine: Manifest, config: Manifest, contract: str) -> None:
    """The name of the Secret with the data."""
    take_failure(status, config)
    bootstrap = machine["spec"].get("bootstrap") or {}
    if bootstrap.get("dataSecretName") is not None:
        _initialized(status, "bootstrapDataSecretCreated")
        status.set_deprecated(well(words.BOOTSTRAP_READY))
        return
    created = externals.is_data_created(config, contract)
    status.set_deprecated(deprecated.bootstrap_ready(config, created, deleting=_is_deleting(machine)))
    if _is_deleting(config) or not created:
        return
    machine["spec"]["bootstrap"] = {**bootstrap, "dataSecretName": externals.data_secret_name(config)}
    _initialized(status, "bootstrapDataSecretCreated")


def take_infrastructure(status: Status, machine: Manifest, infrastructure: Manifest, contract: str) -> None:
    """The identity of the host, its addresses and where it is."""
    take_failure(status, infrastructure)
    provisioned = externals.is_provisioned(infrastructure, contract)
    status.set_deprecated(deprecated.infrastructure_ready(infrastructure, provisioned, deleting=_is_deleting(machine)))
    before = (status.fields.get("initialization") or {}).get("infrastructureProvisioned") is True
    if _is_deleting(infrastructure) or not (provisioned or before):
        return
    host = externals.host(infrastructure)
    if not host.provider_id:
        return
    for fields, name, value in (
        (status.fields, "addresses", host.addresses),
        (machine["spec"], "failureDomain", host.spec_failure_domain),
        (status.fields, "failureDomain", host.failure_domain),
    ):
        if value:
            fields[name] = value
        elif value is not None:
            # Said to be empty, which the API has no way to write.
            fields.pop(name, None)
    machine["spec"]["providerID"] = host.provider_id
    _initialized(status, "infrastructureProvisioned")


def lost_infrastructure(status: Status, machine: Manifest) -> OperatorError:
    """The host of a Machine that ran is gone without the Machine."""
    reference, metadata = machine["spec"]["infrastructureRef"], machine["metadata"]
    named = f"{reference['kind']} {metadata['namespace']}/{reference['name']}"
    older = status.fields.setdefault("deprecated", {}).setdefault("v1beta1", {})
    older["failureReason"] = "InvalidConfiguration"
    older["failureMessage"] = f"Machine infrastructure resource {named} has been deleted after provisioning was completed"
    return OperatorError(f"could not find {named} for Machine {metadata['namespace']}/{metadata['name']}")


def take_failure(status: Status, source: Manifest) -> None:
    found = externals.failure(source)
    for name, value in (("failureReason", found.reason), ("failureMessage", found.message)):
        if value:
            status.fields.setdefault("deprecated", {}).setdefault("v1beta1", {})[name] = value


def take_expiry(status: Status, machine: Manifest, config: Manifest | None) -> None:
    """When the certificates of a control plane's Machine expire, which its control plane writes onto the Machine or onto its config."""
    if names.CONTROL_PLANE_LABEL not in (machine["metadata"].get("labels") or {}):
        return
    for source in filter(None, (machine, config)):
        text = (source["metadata"].get("annotations") or {}).get(names.CERTIFICATES_EXPIRY_ANNOTATION)
        if text is None:
            continue
        try:
            expiry = moment(text)
        except ValueError:
            expiry = None
        if expiry is None:
            raise OperatorError(f'the annotation {names.CERTIFICATES_EXPIRY_ANNOTATION} is not a time: "{text}"')
        status.fields["certificatesExpiryDate"] = timestamp(expiry)
        return
    status.fields.pop("certificatesExpiryDate", None)


def _initialized(status: Status, what: str) -> None:
    status.fields["initialization"] = {**(status.fields.get("initialization") or {}), what: True}


def _is_deleting(manifest: Manifest) -> bool:
    return bool(manifest["metadata"].get("deletionTimestamp"))
