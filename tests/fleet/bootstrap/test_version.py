"""Which version a node joins with, from values; reading it is in test_reconciler.py."""

from __future__ import annotations

import pytest

from slipway.api.cluster.meta import ContractVersionedObjectReference as Reference
from slipway.fleet.bootstrap.options import JoinVersionSource
from slipway.fleet.bootstrap.version import (
    FROM_CONTROL_PLANE,
    FROM_MACHINE,
    VERSION_FILE,
    VersionUnreadableError,
    choose,
    normalized,
    template_data,
    version_file,
    version_of,
    with_file_after_boot,
)

REFERENCE = Reference(api_group="controlplane.cluster.x-k8s.io", kind="KubeadmControlPlane", name="cp")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v1.35.4", "v1.35.4"),
        ("1.35.4", "v1.35.4"),
        ("1.35", "v1.35.0"),
        ("v1", "v1.0.0"),
        (" v1.35.4 ", "v1.35.4"),
        ("v1.036.0", "v1.36.0"),
        ("v1.36.0-rc.1", "v1.36.0-rc.1"),
        ("v1.34.2+rke2r1", "v1.34.2+rke2r1"),
    ],
)
def test_versions_are_read_as_tolerantly_as_cluster_api_does(text: str, expected: str) -> None:
    assert normalized(text) == expected


@pytest.mark.parametrize("text", ["", "latest", "v", "1.2.3.4", "1..2", "v1.35.x", "v1.35-rc.1"])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a semantic version such as"):
        normalized(text)


@pytest.mark.parametrize(
    ("source", "reference", "control_plane", "expected", "reason", "message"),
    [
        pytest.param(
            "control-plane", REFERENCE, "v1.35.0", "v1.35.0", FROM_CONTROL_PLANE,
            "Join data is for Kubernetes v1.35.0, read from KubeadmControlPlane cp", id="from the control plane",
        ),
        pytest.param(
            "control-plane", None, "", "v1.34.2", FROM_MACHINE,
            "Join data is for Kubernetes v1.34.2 of the Machine m, because the Cluster has no controlPlaneRef", id="no reference",
        ),
        pytest.param(
            "control-plane", REFERENCE, "", "v1.34.2", FROM_MACHINE,
            "Join data is for Kubernetes v1.34.2 of the Machine m, because KubeadmControlPlane cp has no version", id="no version",
        ),
        pytest.param(
            "machine", REFERENCE, "v1.35.0", "v1.34.2", FROM_MACHINE,
            "Join data is for Kubernetes v1.34.2 of the Machine m", id="merged form",
        ),
    ],
)  # fmt: skip
def test_the_join_version_says_where_it_comes_from(
    source: JoinVersionSource, reference: Reference | None, control_plane: str, expected: str, reason: str, message: str
) -> None:
    chosen = choose(source, reference, control_plane, "1.34.2", "Machine m")
    assert (chosen.version, chosen.reason, chosen.message) == (expected, reason, message)


def test_a_node_is_told_the_version_of_the_control_plane_whatever_its_configuration_is_made_for() -> None:
    assert choose("machine", REFERENCE, "v1.35.0", "v1.34.2", "Machine m").shown == "v1.35.0"
    assert choose("control-plane", None, "", "v1.34.2", "Machine m").shown == "v1.34.2"


def test_a_machine_without_a_version_cannot_decide() -> None:
    with pytest.raises(VersionUnreadableError, match='failed to parse kubernetes version "" of the Machine m'):
        choose("control-plane", None, "", "", "Machine m")


def test_a_control_plane_that_says_nonsense_is_not_passed_over() -> None:
    with pytest.raises(VersionUnreadableError, match='failed to parse control plane version "latest" of X default/cp'):
        version_of({"spec": {"version": "latest"}}, "X default/cp")
    with pytest.raises(VersionUnreadableError, match="it is not a text"):
        version_of({"spec": {"version": 135}}, "X default/cp")


@pytest.mark.parametrize("manifest", [{}, {"spec": {}}, {"spec": {"version": None}}, {"spec": {"version": ""}}])
def test_a_control_plane_may_have_no_version(manifest: dict[str, object]) -> None:
    assert version_of(manifest, "X default/cp") == ""


def test_the_version_file_is_what_the_contract_says() -> None:
    assert version_file("v1.35.4") == {
        "path": "/run/cluster-api/kubeadm-version/version",
        "owner": "root:root",
        "permissions": "0644",
        "content": "v1.35.4\n",
    }


def test_templates_get_both_forms_and_no_control_plane_where_there_is_none() -> None:
    assert template_data("v1.35.0", "v1.35.0") == {"KubernetesVersion": "v1.35.0", "controlPlane": {"version": "v1.35.0"}}
    assert template_data("v1.34.0", "") == {"KubernetesVersion": "v1.34.0"}


def test_on_ignition_hosts_the_first_command_writes_the_file_again_as_run_is_mounted_later() -> None:
    spec = with_file_after_boot({"format": "ignition", "preKubeadmCommands": ["a"]}, "v1.35.4")
    assert spec["preKubeadmCommands"][1:] == ["a"]
    assert f"echo v1.35.4 > {VERSION_FILE}" in spec["preKubeadmCommands"][0]
    assert with_file_after_boot({"preKubeadmCommands": ["a"]}, "v1.35.4") == {"preKubeadmCommands": ["a"]}
