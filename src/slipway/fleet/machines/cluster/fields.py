"""The fields that the contracts v1beta1 and v1beta2 give to an InfraCluster and to a control plane, read from objects of any provider.

A field that is not there is None; one of another type than the contract says is an error with a sentence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest

V1BETA1 = "v1beta1"


class FieldError(OperatorError):
    """An object of a provider has something else in a field than the contract says."""


def provisioned(infrastructure: Manifest, contract: str) -> bool:
    path = "status.ready" if contract == V1BETA1 else "status.initialization.provisioned"
    return _typed(infrastructure, path, bool) is True


def initialized(control_plane: Manifest, contract: str) -> bool:
    path = "status.initialized" if contract == V1BETA1 else "status.initialization.controlPlaneInitialized"
    return _typed(control_plane, path, bool) is True


def endpoint(found: Manifest) -> Manifest | None:
    """spec.controlPlaneEndpoint, where it names a host and a port."""
    given = _typed(found, "spec.controlPlaneEndpoint", dict)
    if given is None:
        return None
    host, port = given.get("host", ""), given.get("port", 0)
    if not isinstance(host, str) or not isinstance(port, int):
        raise FieldError(f"spec.controlPlaneEndpoint of {_named(found)} is not a host and a port: {given!r}")
    return {"host": host, "port": port} if host and port else None


def is_endpoint(given: Any) -> bool:
    """Whether the Cluster's own is set: with a host and a port."""
    return isinstance(given, dict) and bool(given.get("host")) and bool(given.get("port"))


def failure_domains(infrastructure: Manifest, contract: str) -> list[Manifest]:
    """By name: a map in v1beta1, a list in v1beta2."""
    if contract == V1BETA1:
        mapped = _typed(infrastructure, "status.failureDomains", dict) or {}
        given = [{**domain, "name": name} for name, domain in mapped.items()]
    else:
        given = _typed(infrastructure, "status.failureDomains", list) or []
    return [_domain(one) for one in sorted(given, key=lambda one: str(one.get("name", "")))]


def number(found: Manifest, path: str) -> int | None:
    """A counter; nothing where it is no number, as a provider need not count."""
    value = _at(found, path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def versions(control_plane: Manifest) -> list[Manifest] | None:
    value = _at(control_plane, "status.versions")
    if not isinstance(value, list):
        return None
    return [{"version": one.get("version", ""), "replicas": one.get("replicas", 0)} for one in value if isinstance(one, dict)]


def failure(found: Manifest) -> tuple[str, str]:
    """Reason and message of a failure for good, which providers of v1beta1 report."""
    return _typed(found, "status.failureReason", str) or "", _typed(found, "status.failureMessage", str) or ""


def _domain(given: Manifest) -> Manifest:
    made = {"name": given.get("name", ""), "controlPlane": given.get("controlPlane") is True}
    return {**made, "attributes": given["attributes"]} if given.get("attributes") else made


def _typed(found: Manifest, path: str, wanted: type[Any]) -> Any:
    value = _at(found, path)
    if value is not None and not isinstance(value, wanted):
        raise FieldError(f"{path} of {_named(found)} is {value!r}, and the contract of Cluster API wants a {_WORDS[wanted]}")
    return value


def _at(found: Manifest, path: str) -> Any:
    value: Any = found
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _named(found: Manifest) -> str:
    return f"the {found.get('kind')} {found['metadata']['name']}"


_WORDS = {bool: "boolean", str: "string", dict: "mapping", list: "list"}
