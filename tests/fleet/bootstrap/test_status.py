"""The status of a KubeadmConfig as a value.  Texts and severities are those of Cluster API 1.14's provider."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.bootstrap.decision import Step
from slipway.fleet.bootstrap.status import FOR_INFRASTRUCTURE, InputError, Outcome, tell
from slipway.fleet.bootstrap.version import JoinVersion, VersionUnreadableError
from slipway.fleet.certificates import CertificatesError
from slipway.fleet.contract.status import Status

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2026, 1, 2, tzinfo=UTC)
VERSION = JoinVersion("v1.35.0", "VersionFromControlPlane", "Join data is for Kubernetes v1.35.0")
MADE = Outcome(secret="w", certificates=True, version=VERSION)


def config(generation: int = 3) -> dict[str, Any]:
    return {"metadata": {"name": "w", "generation": generation}}


def told(
    step: Step,
    outcome: Outcome,
    error: OperatorError | None = None,
    *,
    manifest: dict[str, Any] | None = None,
    now: datetime = NOW,
    with_version: bool = True,
) -> dict[str, Any]:
    manifest = config() if manifest is None else manifest
    tell(Status(manifest, now), step, outcome, error, with_version=with_version)
    return manifest


def conditions(manifest: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {found["type"]: (found["status"], found["reason"], found["message"]) for found in manifest["status"]["conditions"]}


def older(manifest: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    found = manifest["status"]["deprecated"]["v1beta1"]["conditions"]
    return {entry["type"]: (entry["status"], entry.get("reason", ""), entry.get("severity", "")) for entry in found}


def test_data_that_is_there_makes_it_ready() -> None:
    manifest = told(Step.JOIN_WORKER, MADE)
    assert manifest["status"]["dataSecretName"] == "w"
    assert manifest["status"]["initialization"] == {"dataSecretCreated": True}
    assert manifest["status"]["observedGeneration"] == 3
    assert conditions(manifest) == {
        "Ready": ("True", "Ready", ""),
        "CertificatesAvailable": ("True", "Available", ""),
        "DataSecretAvailable": ("True", "Available", ""),
        "ControlPlaneKubernetesVersionAvailable": ("True", "VersionFromControlPlane", "Join data is for Kubernetes v1.35.0"),
    }
    assert older(manifest) == dict.fromkeys(("Ready", "CertificatesAvailable", "DataSecretAvailable"), ("True", "", ""))


def test_what_is_waited_for_is_told() -> None:
    manifest = told(Step.WAIT_FOR_INFRASTRUCTURE, Outcome(waiting=FOR_INFRASTRUCTURE))
    ready = conditions(manifest)["Ready"]
    assert ready[:2] == ("False", "NotReady")
    assert ready[2] == (
        "* DataSecretAvailable: Waiting for Cluster status.infrastructureReady to be true\n"
        "* CertificatesAvailable: Condition not yet reported"
    )
    assert older(manifest)["Ready"] == ("False", "WaitingForClusterInfrastructure", "Info")


@pytest.mark.parametrize(
    ("step", "reason", "severity"),
    [(Step.INIT, "CertificatesGenerationFailed", "Warning"), (Step.JOIN_WORKER, "CertificatesCorrupted", "Error")],
)
def test_certificates_that_fail_are_unknown_and_the_data_is_missing_for_it(step: Step, reason: str, severity: str) -> None:
    manifest = told(step, Outcome(), CertificatesError("there is no Secret ns/c-ca"))
    assert conditions(manifest)["CertificatesAvailable"] == ("Unknown", "InternalError", "there is no Secret ns/c-ca")
    missing = "Failed to create bootstrap data: there is no Secret ns/c-ca"
    assert conditions(manifest)["DataSecretAvailable"] == ("False", "NotAvailable", missing)
    assert conditions(manifest)["Ready"][:2] == ("False", "NotReady")
    assert older(manifest)["CertificatesAvailable"] == ("False", reason, severity)
    assert "observedGeneration" not in manifest["status"]


def test_a_failure_does_not_forget_what_was_observed_before() -> None:
    error = InputError("Failed to prepare spec.files: x", "x")
    manifest = told(Step.JOIN_WORKER, Outcome(), error, manifest=config() | {"status": {"observedGeneration": 2}})
    assert manifest["status"]["observedGeneration"] == 2
    assert older(manifest)["DataSecretAvailable"] == ("False", "DataSecretGenerationFailed", "Warning")


def test_data_that_could_not_be_rendered_anew_stands_and_the_conditions_tell_for_what() -> None:
    before = told(Step.JOIN_WORKER, MADE)
    error = InputError("Failed to prepare spec.files: no Secret", "no Secret")
    manifest = told(Step.REFRESH_TOKEN, Outcome(certificates=True, standing="v1.35.0"), error, manifest=before)
    why = "for Kubernetes v1.35.0, and could not be rendered anew: Failed to prepare spec.files: no Secret"
    assert conditions(manifest)["ControlPlaneKubernetesVersionAvailable"] == ("False", "RenderingFailed", f"Join data is {why}")
    assert conditions(manifest)["DataSecretAvailable"] == ("True", "Available", f"The data is {why}")
    assert manifest["status"]["dataSecretName"] == "w"


def test_a_generation_that_the_reconcile_itself_brought_about_counts_as_observed() -> None:
    manifest = config(generation=1)
    status = Status(manifest, NOW)
    status.set("Paused", "False", "NotPaused")
    manifest["metadata"] = {**manifest["metadata"], "generation": 2}
    tell(status, Step.JOIN_WORKER, MADE, None, with_version=True)
    assert {found["observedGeneration"] for found in manifest["status"]["conditions"]} == {2}
    assert manifest["status"]["observedGeneration"] == 2


def test_saying_the_same_again_changes_nothing() -> None:
    manifest = told(Step.JOIN_WORKER, MADE)
    before = repr(manifest)
    assert repr(told(Step.KEEP, Outcome(), manifest=manifest, now=LATER)) == before


def test_the_version_condition_has_no_part_in_ready() -> None:
    manifest = told(Step.REFRESH_TOKEN, Outcome(), VersionUnreadableError("no"))
    assert conditions(manifest)["ControlPlaneKubernetesVersionAvailable"] == ("False", "ControlPlaneVersionUnreadable", "no")
    assert conditions(manifest)["Ready"][0] == "True"


@pytest.mark.parametrize("step", [Step.KEEP, Step.REFRESH_TOKEN, Step.WAIT_FOR_INFRASTRUCTURE])
def test_where_the_machines_version_decides_there_is_no_version_condition_any_more(step: Step) -> None:
    manifest = told(Step.JOIN_WORKER, MADE)
    told(step, Outcome(), manifest=manifest, with_version=False)
    assert "ControlPlaneKubernetesVersionAvailable" not in conditions(manifest)
