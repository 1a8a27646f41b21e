"""Where a value changed within a minor, both sides of the change, as the kubeadm sources of the two patches have it.

All patches of the four minors were read but 1.33.8, 1.33.10 and 1.34.6, which the module proxy does not have.
"""

from __future__ import annotations

import pytest

from slipway.api import releases
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version


def release(version: str) -> releases.Release:
    return releases.release_for(Version.parse(version))


@pytest.mark.parametrize(
    ("version", "tags"),
    [
        # constants.SupportedEtcdVersion.
        ("v1.33.0", {30: "3.5.21-0", 31: "3.5.21-0", 32: "3.5.21-0", 33: "3.5.21-0"}),
        ("v1.33.5", {30: "3.5.21-0", 31: "3.5.21-0", 32: "3.5.21-0", 33: "3.5.21-0"}),
        ("v1.33.6", {30: "3.5.24-0", 31: "3.5.24-0", 32: "3.5.24-0", 33: "3.5.24-0"}),
        ("v1.33.13", {30: "3.5.24-0", 31: "3.5.24-0", 32: "3.5.24-0", 33: "3.5.24-0"}),
        ("v1.34.0", {31: "3.5.21-0", 32: "3.5.21-0", 33: "3.5.21-0", 34: "3.6.4-0"}),
        ("v1.34.1", {31: "3.5.21-0", 32: "3.5.21-0", 33: "3.5.21-0", 34: "3.6.4-0"}),
        ("v1.34.2", {31: "3.5.24-0", 32: "3.5.24-0", 33: "3.5.24-0", 34: "3.6.5-0"}),
        ("v1.34.10", {31: "3.5.24-0", 32: "3.5.24-0", 33: "3.5.24-0", 34: "3.6.5-0"}),
        ("v1.35.0", {33: "3.5.24-0", 34: "3.6.6-0", 35: "3.6.6-0"}),
        ("v1.35.6", {33: "3.5.24-0", 34: "3.6.6-0", 35: "3.6.6-0"}),
        ("v1.36.0", {34: "3.6.8-0", 35: "3.6.8-0", 36: "3.6.8-0"}),
        ("v1.36.3", {34: "3.6.8-0", 35: "3.6.8-0", 36: "3.6.8-0"}),
    ],
)
def test_etcd_tags(version: str, tags: dict[int, str]) -> None:
    assert release(version).etcd_versions == tags
    assert release(version).etcd_version == tags[Version.parse(version).minor]


@pytest.mark.parametrize(
    ("version", "coredns", "pause"),
    [
        ("v1.33.0", "v1.12.0", "3.10"),
        ("v1.33.13", "v1.12.0", "3.10"),
        ("v1.34.0", "v1.12.1", "3.10.1"),
        ("v1.34.10", "v1.12.1", "3.10.1"),
        ("v1.35.0", "v1.13.1", "3.10.1"),
        ("v1.35.6", "v1.13.1", "3.10.1"),
        ("v1.36.0", "v1.14.2", "3.10.2"),
        ("v1.36.3", "v1.14.2", "3.10.2"),
    ],
)
def test_coredns_and_pause_changed_with_the_minor_only(version: str, coredns: str, pause: str) -> None:
    assert (release(version).coredns_version, release(version).pause_version) == (coredns, pause)


@pytest.mark.parametrize(
    ("before", "after"), [("v1.33.11", "v1.33.12"), ("v1.34.7", "v1.34.8"), ("v1.35.4", "v1.35.5"), ("v1.36.0", "v1.36.1")]
)
def test_the_kubelet_client_was_an_administrator_until_it_got_a_binding_of_its_own(before: str, after: str) -> None:
    assert (release(before).kubelet_client_organization, release(before).kubelet_client_binding) == ("kubeadm:cluster-admins", False)
    assert (release(after).kubelet_client_organization, release(after).kubelet_client_binding) == ("", True)


# 1.33.7 sorts and 1.33.9 does not; the change is taken to be in 1.33.8, which came out with 1.34.4 and 1.35.1.
@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("v1.33.7", True),
        ("v1.33.9", False),
        ("v1.34.3", True),
        ("v1.34.4", False),
        ("v1.35.0", True),
        ("v1.35.1", False),
        ("v1.36.0", False),
    ],
)
def test_extra_flags_were_sorted(version: str, expected: bool) -> None:
    assert release(version).sorted_extra_args is expected


@pytest.mark.parametrize(
    ("minor", "gates"),
    [
        # features.InitFeatureGates: default, stage, locked.
        (
            33,
            {
                "PublicKeysECDSA": (False, "DEPRECATED", False),
                "RootlessControlPlane": (False, "ALPHA", False),
                "WaitForAllControlPlaneComponents": (True, "BETA", False),
                "ControlPlaneKubeletLocalMode": (True, "BETA", False),
                "NodeLocalCRISocket": (False, "ALPHA", False),
            },
        ),
        (
            34,
            {
                "PublicKeysECDSA": (False, "DEPRECATED", False),
                "RootlessControlPlane": (False, "ALPHA", False),
                "WaitForAllControlPlaneComponents": (True, "", True),
                "ControlPlaneKubeletLocalMode": (True, "BETA", False),
                "NodeLocalCRISocket": (True, "BETA", False),
            },
        ),
        (
            35,
            {
                "PublicKeysECDSA": (False, "DEPRECATED", False),
                "RootlessControlPlane": (False, "ALPHA", False),
                "ControlPlaneKubeletLocalMode": (True, "", True),
                "NodeLocalCRISocket": (True, "BETA", False),
            },
        ),
        (
            36,
            {
                "PublicKeysECDSA": (False, "DEPRECATED", False),
                "RootlessControlPlane": (False, "ALPHA", False),
                "NodeLocalCRISocket": (True, "", True),
            },
        ),
    ],
)
def test_feature_gates(minor: int, gates: dict[str, tuple[bool, str, bool]]) -> None:
    known = release(f"v1.{minor}.0").feature_gates
    assert {name: (gate.default, gate.stage, gate.locked) for name, gate in known.items()} == gates


@pytest.mark.parametrize(
    ("version", "given", "gate", "expected"),
    [
        ("v1.33.13", {}, "NodeLocalCRISocket", False),
        ("v1.33.13", {"NodeLocalCRISocket": True}, "NodeLocalCRISocket", True),
        ("v1.35.4", {"NodeLocalCRISocket": False}, "NodeLocalCRISocket", False),
        ("v1.36.3", {}, "ControlPlaneKubeletLocalMode", True),
    ],
)
def test_a_gate_that_is_gone_has_kept_its_last_default(version: str, given: dict[str, bool], gate: str, expected: bool) -> None:
    assert release(version).gate(given, gate) is expected


@pytest.mark.parametrize("version", ["v1.32.9", "v1.37.0", "v2.34.0"])
def test_an_unknown_minor_is_refused_with_what_is_known(version: str) -> None:
    with pytest.raises(OperatorError, match=r"is not supported: this program knows 1\.33, 1\.34, 1\.35, 1\.36"):
        release(version)
