"""What a Cluster takes over from its infrastructure and from its control plane, once they are there: flags that stay, an endpoint, domains.

Others wait for these flags, and never look at the objects that they come from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.fleet.machines.cluster import fields
from slipway.runtime import finalizers

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.machines.cluster.observed import External

PROVISIONED = "infrastructureProvisioned"
INITIALIZED = "controlPlaneInitialized"


class Taken(NamedTuple):
    """What became so just now, and which fields of the other objects could not be read."""

    provisioned: bool
    initialized: bool
    problems: list[fields.FieldError]


def take_over(cluster: Manifest, infrastructure: External, control_plane: External) -> Taken:
    """Change the Cluster as it follows from the two."""
    before = is_set(cluster, PROVISIONED), is_set(cluster, INITIALIZED)
    problems: list[fields.FieldError] = []
    for take, external in ((_from_infrastructure, infrastructure), (_from_control_plane, control_plane)):
        try:
            take(cluster, external)
        except fields.FieldError as error:
            problems.append(error)
    return Taken(not before[0] and is_set(cluster, PROVISIONED), not before[1] and is_set(cluster, INITIALIZED), problems)


def is_set(cluster: Manifest, flag: str) -> bool:
    initialization: Manifest = (cluster.get("status") or {}).get("initialization") or {}
    return initialization.get(flag) is True


def _from_infrastructure(cluster: Manifest, external: External) -> None:
    if not (cluster.get("spec") or {}).get("infrastructureRef"):
        # What is not referred to is somebody else's, and there already.
        if not finalizers.is_deleted(cluster):
            _set(cluster, PROVISIONED)
        return
    found = external.manifest
    if found is None or finalizers.is_deleted(found):
        return
    if not fields.provisioned(found, external.contract) and not is_set(cluster, PROVISIONED):
        return
    _take_endpoint(cluster, found)
    domains, status = fields.failure_domains(found, external.contract), cluster.setdefault("status", {})
    if domains:
        status["failureDomains"] = domains
    else:
        status.pop("failureDomains", None)
    _set(cluster, PROVISIONED)


def _from_control_plane(cluster: Manifest, external: External) -> None:
    found = external.manifest
    if found is None or finalizers.is_deleted(found):
        return
    if not fields.initialized(found, external.contract) and not is_set(cluster, INITIALIZED):
        return
    _take_endpoint(cluster, found)
    _set(cluster, INITIALIZED)


def _take_endpoint(cluster: Manifest, found: Manifest) -> None:
    """One that the Cluster has stays."""
    spec = cluster.get("spec") or {}
    if fields.is_endpoint(spec.get("controlPlaneEndpoint")):
        return
    endpoint = fields.endpoint(found)
    if endpoint is not None:
        cluster["spec"] = {**spec, "controlPlaneEndpoint": endpoint}


def _set(cluster: Manifest, flag: str) -> None:
    status = cluster.setdefault("status", {})
    status["initialization"] = {**(status.get("initialization") or {}), flag: True}
