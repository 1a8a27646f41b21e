"""A reconcile of a KubeadmConfig, and what its status says of it: conditions, in today's and in yesterday's form, and where the data is.

The steps of a reconcile note down what they saw and did; here, and nowhere else, that becomes the status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.api.cluster.kinds import KUBEADM_CONFIG
from slipway.api.cluster.names import PAUSED_CONDITION, READY_CONDITION
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.bootstrap import version
from slipway.fleet.bootstrap.data.discovery import EndpointUnknownError
from slipway.fleet.bootstrap.decision import Step
from slipway.fleet.bootstrap.tokens import Holder
from slipway.fleet.bootstrap.version import JoinVersion, VersionUnreadableError
from slipway.fleet.certificates import CertificatesError
from slipway.fleet.contract import scope as contract
from slipway.fleet.contract.conditions import FALSE, TRUE, UNKNOWN
from slipway.fleet.contract.status import DeprecatedCondition, well

if TYPE_CHECKING:
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.facts import ClusterFacts, Owner
    from slipway.fleet.contract.status import Severity, Status
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache

DATA_SECRET = "DataSecretAvailable"
CERTIFICATES = "CertificatesAvailable"

OWNED = (READY_CONDITION, DATA_SECRET, CERTIFICATES, PAUSED_CONDITION, version.CONDITION)
OWNED_DEPRECATED = (READY_CONDITION, DATA_SECRET, CERTIFICATES)

GENERATION_FAILED = "DataSecretGenerationFailed"

_SUMMED_UP = (DATA_SECRET, CERTIFICATES)


class InputError(OperatorError):
    """Something that the spec says or refers to cannot be used.  ``message`` is the condition's, ``cause`` without what it was for."""

    def __init__(self, message: str, cause: str) -> None:
        super().__init__(message)
        self.cause = cause


class Waiting(NamedTuple):
    """What is waited for, and its word in yesterday's conditions."""

    message: str
    reason: str


FOR_INFRASTRUCTURE = Waiting("Waiting for Cluster status.infrastructureReady to be true", "WaitingForClusterInfrastructure")
FOR_CONTROL_PLANE = Waiting("Waiting for Cluster control plane to be initialized", "WaitingForControlPlaneAvailable")


class Outcome(msgspec.Struct):
    """What a reconcile saw and did."""

    secret: str = ""
    """The data is there, under this name."""
    certificates: bool = False
    """All that the host needs were found."""
    version: JoinVersion | None = None
    """What the data in the Secret is made for."""
    note: str = ""
    """What is to be said about that."""
    standing: str | None = None
    """The Secret has data, for this version if that is known, which was to be replaced."""
    waiting: Waiting | None = None


class Scope(contract.Scope):
    """One reconcile of one KubeadmConfig: beside what every scope has, whom it is for, and what was seen and done."""

    def __init__(self, client: AsyncClient, cache: Cache, config: Manifest, owner: Owner, cluster: ClusterFacts, now: datetime) -> None:
        super().__init__(
            client,
            cache,
            KUBEADM_CONFIG,
            config,
            cluster,
            now,
            owned_conditions=OWNED,
            owned_deprecated_conditions=OWNED_DEPRECATED,
        )
        self.owner = owner
        self.outcome = Outcome()

    @property
    def holder(self) -> Holder:
        return Holder(self.manifest["metadata"]["uid"], self.namespace, self.name)


def tell(status: Status, step: Step, outcome: Outcome, error: OperatorError | None, *, with_version: bool) -> None:
    """Put into the status how a reconcile went; ``with_version`` where the control plane's version decides, which has a condition then."""
    if not with_version:
        status.remove(version.CONDITION)
    if step.has_data:
        # Yesterday's condition of the certificates tells of the making alone.
        status.set(DATA_SECRET, TRUE, "Available")
        status.set_deprecated(well(DATA_SECRET))
        status.set(CERTIFICATES, TRUE, "Available")
    if outcome.certificates:
        status.set(CERTIFICATES, TRUE, "Available")
        status.set_deprecated(well(CERTIFICATES))
    if outcome.secret:
        status.fields["dataSecretName"] = outcome.secret
        status.fields["initialization"] = {**(status.fields.get("initialization") or {}), "dataSecretCreated": True}
        status.set(DATA_SECRET, TRUE, "Available")
        status.set_deprecated(well(DATA_SECRET))
    if outcome.version is not None and with_version:
        status.set(version.CONDITION, TRUE, outcome.version.reason, outcome.version.message + outcome.note)
    waiting = outcome.waiting
    if isinstance(error, EndpointUnknownError):
        waiting, error = Waiting(error.message, FOR_CONTROL_PLANE.reason), None
    if waiting is not None and not step.has_data:
        _missing(status, waiting.message, waiting.reason, "Info")
    if error is not None:
        _tell_failure(status, step, outcome, error, with_version=with_version)
    status.sum_up(READY_CONDITION, _SUMMED_UP)
    if error is None:
        # The generation counts as observed only when everything went well.
        status.observed()


def _tell_failure(status: Status, step: Step, outcome: Outcome, error: OperatorError, *, with_version: bool) -> None:
    if isinstance(error, VersionUnreadableError) and with_version:
        status.set(version.CONDITION, FALSE, version.UNREADABLE, error.message)
    elif outcome.standing is not None and with_version:
        message = f"Join data is {_standing(outcome)}, and could not be rendered anew: {error.message}"
        status.set(version.CONDITION, FALSE, version.NOT_RENDERED, message)
    if isinstance(error, CertificatesError):
        status.set(CERTIFICATES, UNKNOWN, "InternalError", error.message)
        reason, severity = _CERTIFICATE_REASONS[step is Step.INIT]
        status.set_deprecated(DeprecatedCondition(type=CERTIFICATES, status=FALSE, reason=reason, severity=severity, message=error.message))
    if step.has_data:
        if outcome.standing is not None:
            status.set(DATA_SECRET, TRUE, "Available", f"The data is {_standing(outcome)}, and could not be rendered anew: {error.message}")
        return
    _missing(status, _explained(error), GENERATION_FAILED, "Warning", deprecated_message=getattr(error, "cause", error.message))


def _standing(outcome: Outcome) -> str:
    return f"for Kubernetes {outcome.standing}" if outcome.standing else "as it was made before"


def _explained(error: OperatorError) -> str:
    if isinstance(error, InputError):
        return error.message
    if isinstance(error, VersionUnreadableError):
        return f"Failed to determine the Kubernetes version to join with: {error.message}"
    return f"Failed to create bootstrap data: {error.message}"


def _missing(status: Status, message: str, reason: str, severity: Severity, *, deprecated_message: str = "") -> None:
    status.set(DATA_SECRET, FALSE, "NotAvailable", message)
    status.set_deprecated(DeprecatedCondition(type=DATA_SECRET, status=FALSE, reason=reason, severity=severity, message=deprecated_message))


_CERTIFICATE_REASONS: dict[bool, tuple[str, Severity]] = {
    True: ("CertificatesGenerationFailed", "Warning"),
    False: ("CertificatesCorrupted", "Error"),
}
