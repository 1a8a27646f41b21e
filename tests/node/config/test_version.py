"""What a kubernetesVersion means; the rows are those of kubeadm's util/version_test.go."""

from __future__ import annotations

import pytest

from slipway.api.machinery.errors import ConfigurationError, OperatorError
from slipway.api.machinery.version import Version
from slipway.api.releases import release_for
from slipway.node.config import version

pytestmark = pytest.mark.upstream_table


def unreachable(url: str) -> str:
    raise OperatorError("network is unreachable")


def never(url: str) -> str:
    raise AssertionError(f"asked for {url}")


def silent(warning: str) -> None:
    raise AssertionError(f"unexpected warning: {warning}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v1.7.0", "v1.7.0"),
        ("v1.8.0-alpha.2.1231+afabd012389d53a", "v1.8.0-alpha.2.1231+afabd012389d53a"),
        ("1.7.0", "v1.7.0"),
        ("v1.35.4+vendor.1", "v1.35.4+vendor.1"),
        ("ci/v1.35.0-5+abc", "v1.35.0-5+abc"),
        ("release/v1.35.0", "v1.35.0"),
    ],
)
def test_a_version_is_never_looked_up(text: str, expected: str) -> None:
    assert version.resolve(text, release_for(Version(1, 35, 4)), silent, never) == expected


@pytest.mark.parametrize("text", ["v1.8", "1.8.+", "latest-", "", "b1.0.0", "stable-01", "stable-1\n", "foo bar"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"invalid version|doesn't match patterns"):
        version.resolve(text, release_for(Version(1, 35, 4)), silent, never)


def test_what_looks_like_a_version_but_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"couldn't parse Kubernetes version"):
        version.check_supported("v1.35.0.1", release_for(Version(1, 35, 4)), silent, fixed=True)


@pytest.mark.parametrize(
    ("label", "address"),
    [
        ("stable", "https://dl.k8s.io/release/stable.txt"),
        ("stable-1", "https://dl.k8s.io/release/stable-1.txt"),
        ("latest-1.35", "https://dl.k8s.io/release/latest-1.35.txt"),
        ("ci/latest", "https://storage.googleapis.com/k8s-release-dev/ci/latest.txt"),
    ],
)
def test_a_label_is_asked_of_its_server(label: str, address: str) -> None:
    asked = []

    def fetch(url: str) -> str:
        asked.append(url)
        return "v1.35.7"

    assert version.resolve(label, release_for(Version(1, 35, 4)), silent, fetch) == "v1.35.7"
    assert asked == [address]


def test_offline_the_own_release_stands_in() -> None:
    warnings: list[str] = []
    assert version.resolve("stable-1", release_for(Version(1, 35, 4)), warnings.append, unreachable) == "v1.35.4"
    assert warnings == [
        "could not fetch a Kubernetes version from the internet: network is unreachable",
        "falling back to the local client version: v1.35.4",
    ]


def test_a_newer_minor_falls_back_to_the_own_minors_label() -> None:
    answers = {"stable-1": "v1.37.2", "stable-1.35": "v1.35.8"}
    warnings: list[str] = []
    found = version.resolve("stable-1", release_for(Version(1, 35, 4)), warnings.append, lambda url: answers[url.split("/")[-1][:-4]])
    assert found == "v1.35.8"
    assert warnings == ["remote version is much newer: v1.37.2; falling back to: stable-1.35"]


@pytest.mark.parametrize(
    ("environment", "requested", "expected"),
    [
        ({}, "", "1.36.3"),
        ({}, "stable-1", "1.36.3"),
        ({}, "stable-1.34", "1.34.10"),
        ({}, "1.33.2", "1.33.2"),
        ({}, "ci/v1.35.1", "1.35.1"),
        ({}, "v1.37.1", "1.36.3"),
        ({}, "ci/v1.37.0-alpha.1", "1.36.3"),
        ({"SLIPWAY_AS_KUBEADM": "v1.34.10"}, "v1.35.0", "1.34.10"),
    ],
)
def test_which_release_is_acted_as(environment: dict[str, str], requested: str, expected: str) -> None:
    assert str(version.acting_release(environment, requested).version) == expected


def test_a_server_that_has_another_minor_for_a_label_is_not_asked_for_ever() -> None:
    warnings: list[str] = []
    assert version.resolve("stable-1.35", release_for(Version(1, 35, 4)), warnings.append, lambda url: "v1.37.2") == "v1.35.4"
    assert warnings == ["the release server has v1.37.2 for stable-1.35; falling back to the local client version: v1.35.4"]
