"""What the API server asks before it stores a ClusterResourceSet or a binding: rules and texts are those of Cluster API 1.14."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from slipway.api.cluster.addons.clusterresourceset import APPLY_ONCE, ClusterResourceSet, ClusterResourceSetBinding
from slipway.api.cluster.kinds import CLUSTER_RESOURCE_SET, CLUSTER_RESOURCE_SET_BINDING
from slipway.api.cluster.meta import decode, manifest
from slipway.api.machinery.fieldpath import FieldError, Fields, Path, invalid
from slipway.fleet.contract import selectors
from slipway.runtime.webhook.admission import Defaulter, Problem, Validator, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.machinery.objects import Manifest
    from slipway.runtime.webhook.admission import AdmissionRequest

_SELECTOR = Path("spec", "clusterSelector")
_IMMUTABLE = "field is immutable"


def webhooks() -> list[Validator | Defaulter]:
    return [
        Defaulter(CLUSTER_RESOURCE_SET, _defaulted),
        Validator(CLUSTER_RESOURCE_SET, _verdict(validate_set)),
        Validator(CLUSTER_RESOURCE_SET_BINDING, _verdict(validate_binding)),
    ]


def default(given: Manifest) -> Manifest:
    """A ClusterResourceSet with its strategy."""
    spec = given.get("spec") or {}
    return given if spec.get("strategy") else {**given, "spec": {**spec, "strategy": APPLY_ONCE}}


def validate_set(new: Manifest, old: Manifest | None) -> list[FieldError]:
    """What is wrong with a ClusterResourceSet."""
    spec = decode(new, ClusterResourceSet).spec
    shown = Fields(manifest(spec.cluster_selector))
    found: list[FieldError] = []
    problem = selectors.problem(spec.cluster_selector)
    if problem:
        found.append(invalid(_SELECTOR, shown, problem))
    elif not spec.cluster_selector:
        found.append(invalid(_SELECTOR, shown, "selector must not be empty"))
    if old is not None:
        before = decode(old, ClusterResourceSet).spec
        if before.strategy and before.strategy != spec.strategy:
            found.append(invalid(Path("spec", "strategy"), spec.strategy, _IMMUTABLE))
        if before.cluster_selector != spec.cluster_selector:
            found.append(invalid(_SELECTOR, shown, _IMMUTABLE))
    return found


def validate_binding(new: Manifest, old: Manifest | None) -> list[FieldError]:
    """What is wrong with a ClusterResourceSetBinding."""
    name = decode(new, ClusterResourceSetBinding).spec.cluster_name
    before = decode(old, ClusterResourceSetBinding).spec.cluster_name if old is not None else ""
    return [invalid(Path("spec", "clusterName"), name, _IMMUTABLE)] if before and before != name else []


def _defaulted(request: AdmissionRequest) -> Manifest:
    return default(request.object or {})


def _verdict(validate: Callable[[Manifest, Manifest | None], list[FieldError]]) -> Callable[[AdmissionRequest], Verdict]:
    def verdict(request: AdmissionRequest) -> Verdict:
        if request.object is None:
            return Verdict()
        try:
            found: list[Any] = validate(request.object, request.old)
        except msgspec.ValidationError as error:
            found = [invalid(Path("spec"), "", str(error))]
        return Verdict([Problem(str(each.path), "FieldValueInvalid", str(each)) for each in found])

    return verdict
