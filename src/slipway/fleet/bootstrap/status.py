"""The status of a KubeadmConfig: its conditions, in today's and in yesterday's form, and where the data is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.fleet.bootstrap import version
from slipway.fleet.contract import conditions, v1beta1conditions
from slipway.fleet.contract.conditions import FALSE, TRUE, UNKNOWN, Condition, Reasons, summary
from slipway.fleet.contract.paused import PAUSED
from slipway.fleet.contract.v1beta1conditions import DeprecatedCondition, well
from slipway.runtime import clock

if TYPE_CHECKING:
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.certificates import CertificatesError
    from slipway.fleet.contract.conditions import ConditionStatus
    from slipway.fleet.contract.v1beta1conditions import Severity

READY = "Ready"
DATA_SECRET = "DataSecretAvailable"
CERTIFICATES = "CertificatesAvailable"

OWNED = (READY, DATA_SECRET, CERTIFICATES, PAUSED, version.CONDITION)
OWNED_DEPRECATED = (READY, DATA_SECRET, CERTIFICATES)

WAITING_FOR_INFRASTRUCTURE = "WaitingForClusterInfrastructure"
WAITING_FOR_CONTROL_PLANE = "WaitingForControlPlaneAvailable"
GENERATION_FAILED = "DataSecretGenerationFailed"

_SUMMED_UP = (DATA_SECRET, CERTIFICATES)


class Status:
    """Changes the status of one KubeadmConfig in place."""

    def __init__(self, config: Manifest, now: datetime) -> None:
        self._config = config
        self._now = now
        # A reconcile sets a dozen conditions, all at the same time.
        self._stamp = clock.timestamp(now)
        self._said: dict[str, Condition] = {}

    def is_true(self, condition_type: str) -> bool:
        return conditions.is_true(conditions.of(self._config), condition_type)

    def paused(self, condition: Condition) -> None:
        self._said[condition.type] = condition
        self._put(condition)

    def created(self, secret_name: str) -> None:
        """The data is there, under this name."""
        status = self._status
        status["dataSecretName"] = secret_name
        status["initialization"] = {**(status.get("initialization") or {}), "dataSecretCreated": True}
        self.data_secret_available()

    def data_secret_available(self) -> None:
        self._set(DATA_SECRET, TRUE, "Available")
        self._set_deprecated(well(DATA_SECRET))

    def data_secret_missing(self, message: str, reason: str, severity: Severity, *, deprecated_message: str = "") -> None:
        self._set(DATA_SECRET, FALSE, "NotAvailable", message)
        self._set_deprecated(
            DeprecatedCondition(type=DATA_SECRET, status=FALSE, reason=reason, severity=severity, message=deprecated_message)
        )

    def generation_failed(self, message: str, cause: str) -> None:
        self.data_secret_missing(message, GENERATION_FAILED, "Warning", deprecated_message=cause)

    def certificates_available(self, *, deprecated: bool = True) -> None:
        self._set(CERTIFICATES, TRUE, "Available")
        if deprecated:
            self._set_deprecated(well(CERTIFICATES))

    def certificates_failed(self, error: CertificatesError, *, init: bool) -> None:
        self._set(CERTIFICATES, UNKNOWN, "InternalError", error.message)
        reason, severity = _CERTIFICATE_REASONS[init]
        self._set_deprecated(DeprecatedCondition(type=CERTIFICATES, status=FALSE, reason=reason, severity=severity, message=error.message))

    def version_known(self, reason: str, message: str) -> None:
        self._set(version.CONDITION, TRUE, reason, message)

    def version_unreadable(self, message: str) -> None:
        self._set(version.CONDITION, FALSE, version.UNREADABLE, message)

    def version_unsaid(self) -> None:
        """The condition belongs to the setting that the control plane's version decides."""
        found = conditions.of(self._config)
        self._said.pop(version.CONDITION, None)
        if conditions.find(found, version.CONDITION) is not None:
            self._status["conditions"] = conditions.remove(found, version.CONDITION)

    def finish(self, *, succeeded: bool) -> None:
        """Ready sums the others up; the generation counts as observed only when everything went well."""
        for condition in self._said.values():
            # A reconcile may bring about a new generation, and has observed that one as well.
            self._put(self._generation(condition))
        found = conditions.of(self._config)
        self._put(self._generation(summary(found, READY, _SUMMED_UP, Reasons("NotReady", "ReadyUnknown", "Ready"))))
        older = v1beta1conditions.summary(self._deprecated, _SUMMED_UP)
        if older is not None:
            self._set_deprecated(older)
        if succeeded:
            self._status["observedGeneration"] = self._config["metadata"].get("generation", 0)

    @property
    def _status(self) -> Manifest:
        status: Manifest = self._config.setdefault("status", {})
        return status

    @property
    def _deprecated(self) -> list[Manifest]:
        older = (self._status.get("deprecated") or {}).get("v1beta1") or {}
        return older.get("conditions") or []

    def _set(self, condition_type: str, status: ConditionStatus, reason: str, message: str = "") -> None:
        condition = self._said[condition_type] = Condition(type=condition_type, status=status, reason=reason, message=message)
        self._put(self._generation(condition))

    def _generation(self, condition: Condition) -> Condition:
        condition.observed_generation = self._config["metadata"].get("generation", 0)
        return condition

    def _put(self, condition: Condition) -> None:
        condition.last_transition_time = self._stamp
        self._status["conditions"] = conditions.set_condition(conditions.of(self._config), condition, self._now)

    def _set_deprecated(self, condition: DeprecatedCondition) -> None:
        condition.last_transition_time = self._stamp
        deprecated = self._status.setdefault("deprecated", {}).setdefault("v1beta1", {})
        deprecated["conditions"] = v1beta1conditions.set_deprecated(self._deprecated, condition, self._now)


_CERTIFICATE_REASONS: dict[bool, tuple[str, Severity]] = {
    True: ("CertificatesGenerationFailed", "Warning"),
    False: ("CertificatesCorrupted", "Error"),
}
