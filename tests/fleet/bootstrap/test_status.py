"""The status of a KubeadmConfig as a value.  Texts and severities are those of Cluster API 1.14's provider."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from slipway.fleet.bootstrap.status import WAITING_FOR_INFRASTRUCTURE, Status
from slipway.fleet.certificates import CertificatesError
from slipway.fleet.contract.conditions import Condition

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2026, 1, 2, tzinfo=UTC)


def config(generation: int = 3) -> dict[str, Any]:
    return {"metadata": {"name": "w", "generation": generation}}


def conditions(manifest: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {found["type"]: (found["status"], found["reason"], found["message"]) for found in manifest["status"]["conditions"]}


def older(manifest: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    found = manifest["status"]["deprecated"]["v1beta1"]["conditions"]
    return {entry["type"]: (entry["status"], entry.get("reason", ""), entry.get("severity", "")) for entry in found}


def test_data_that_is_there_makes_it_ready() -> None:
    manifest = config()
    status = Status(manifest, NOW)
    status.certificates_available()
    status.created("w")
    status.finish(succeeded=True)
    assert manifest["status"]["dataSecretName"] == "w"
    assert manifest["status"]["initialization"] == {"dataSecretCreated": True}
    assert manifest["status"]["observedGeneration"] == 3
    assert conditions(manifest) == {
        "Ready": ("True", "Ready", ""),
        "CertificatesAvailable": ("True", "Available", ""),
        "DataSecretAvailable": ("True", "Available", ""),
    }
    assert older(manifest) == dict.fromkeys(("Ready", "CertificatesAvailable", "DataSecretAvailable"), ("True", "", ""))


def test_what_is_waited_for_is_told() -> None:
    manifest = config()
    status = Status(manifest, NOW)
    status.data_secret_missing("Waiting for Cluster status.infrastructureReady to be true", WAITING_FOR_INFRASTRUCTURE, "Info")
    status.finish(succeeded=True)
    ready = conditions(manifest)["Ready"]
    assert ready[:2] == ("False", "NotReady")
    assert ready[2] == (
        "* DataSecretAvailable: Waiting for Cluster status.infrastructureReady to be true\n"
        "* CertificatesAvailable: Condition not yet reported"
    )
    assert older(manifest)["Ready"] == ("False", "WaitingForClusterInfrastructure", "Info")


def test_certificates_that_fail_are_unknown_and_say_why() -> None:
    for init, reason, severity in ((True, "CertificatesGenerationFailed", "Warning"), (False, "CertificatesCorrupted", "Error")):
        manifest = config()
        status = Status(manifest, NOW)
        status.certificates_failed(CertificatesError("there is no Secret ns/c-ca"), init=init)
        status.finish(succeeded=False)
        assert conditions(manifest)["CertificatesAvailable"] == ("Unknown", "InternalError", "there is no Secret ns/c-ca")
        assert conditions(manifest)["Ready"][:2] == ("Unknown", "ReadyUnknown")
        assert older(manifest)["CertificatesAvailable"] == ("False", reason, severity)
        assert "observedGeneration" not in manifest["status"]


def test_a_failure_does_not_forget_what_was_observed_before() -> None:
    manifest = config() | {"status": {"observedGeneration": 2}}
    status = Status(manifest, NOW)
    status.generation_failed("Failed to prepare spec.files: x", "x")
    status.finish(succeeded=False)
    assert manifest["status"]["observedGeneration"] == 2
    assert older(manifest)["DataSecretAvailable"] == ("False", "DataSecretGenerationFailed", "Warning")


def test_a_generation_that_the_reconcile_itself_brought_about_counts_as_observed() -> None:
    manifest = config(generation=1)
    status = Status(manifest, NOW)
    status.paused(Condition(type="Paused", status="False", reason="NotPaused", observed_generation=1))
    status.certificates_available()
    status.version_known("VersionFromControlPlane", "v")
    manifest["metadata"] = {**manifest["metadata"], "generation": 2}
    status.created("w")
    status.finish(succeeded=True)
    assert {found["observedGeneration"] for found in manifest["status"]["conditions"]} == {2}
    assert manifest["status"]["observedGeneration"] == 2


def test_saying_the_same_again_changes_nothing() -> None:
    manifest = config()
    first = Status(manifest, NOW)
    first.certificates_available()
    first.created("w")
    first.finish(succeeded=True)
    before = repr(manifest)
    again = Status(manifest, LATER)
    again.data_secret_available()
    again.certificates_available(deprecated=False)
    again.finish(succeeded=True)
    assert repr(manifest) == before


def test_the_version_condition_has_no_part_in_ready_and_can_go() -> None:
    manifest = config()
    status = Status(manifest, NOW)
    status.certificates_available()
    status.created("w")
    status.version_unreadable("no")
    status.finish(succeeded=False)
    assert conditions(manifest)["ControlPlaneKubernetesVersionAvailable"] == ("False", "ControlPlaneVersionUnreadable", "no")
    assert conditions(manifest)["Ready"][0] == "True"
    status.version_unsaid()
    status.finish(succeeded=True)
    assert "ControlPlaneKubernetesVersionAvailable" not in conditions(manifest)
