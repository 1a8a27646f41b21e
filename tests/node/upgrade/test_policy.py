"""Which upgrades are allowed; the rows are those of phases/upgrade/policy_test.go and postupgrade_test.go (1.36.3)."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.node.upgrade import policy
from slipway.node.upgrade.policy import Allowed

pytestmark = pytest.mark.upstream_table

# The minimum of a kubeadm that was built without a version, as kubeadm's own tests are.
MINIMUM = Version.parse("v1.0.0-placeholder-version")

# name, cluster, kubelet, kubeadm, target, mandatory errors, skippable errors, what is allowed
ROWS: list[tuple[str, str, str, str, str, int, int, Allowed]] = [
    ("minor upgrade", "1.3.3", "1.3.3", "1.3.5", "1.3.5", 0, 0, Allowed()),
    ("major upgrade", "1.3.3", "1.3.2", "1.4.1", "1.4.0", 0, 0, Allowed()),
    ("downgrade", "1.3.3", "1.3.0", "1.3.3", "1.3.2", 0, 0, Allowed()),
    ("same version upgrade", "1.3.3", "1.3.3", "1.3.3", "1.3.3", 0, 0, Allowed()),
    ("two minors down with a newer kubeadm", "v1.12.3", "v1.12.3", "v1.12.3", "v1.10.10", 1, 1, Allowed()),
    ("two minors up", "v1.11.3", "v1.11.3", "v1.13.0", "v1.13.0", 1, 0, Allowed()),
    ("n-3 kubelet", "v1.14.3", "v1.12.3", "v1.15.0", "v1.15.0", 0, 0, Allowed()),
    ("n-4 kubelet", "v1.14.3", "v1.11.3", "v1.15.0", "v1.15.0", 0, 1, Allowed()),
    ("two minors down", "1.6.0", "1.6.0", "1.4.0", "1.4.0", 1, 0, Allowed()),
    ("a higher patch than kubeadm's", "1.3.3", "1.3.3", "1.3.3", "1.3.5", 0, 1, Allowed()),
    ("a higher minor than kubeadm's", "1.3.3", "1.3.3", "1.3.3", "1.4.0", 1, 0, Allowed()),
    ("kubelets three minors older", "v1.13.0", "v1.10.8", "v1.13.0", "v1.13.0", 0, 0, Allowed()),
    ("kubelets four minors older", "v1.14.0", "v1.10.8", "v1.14.0", "v1.14.0", 0, 1, Allowed()),
    ("experimental, allowed", "1.3.3", "1.3.3", "1.4.0-beta.1", "1.4.0-beta.1", 0, 0, Allowed(experimental=True)),
    ("release candidate, allowed", "1.3.3", "1.3.3", "1.4.0-rc.1", "1.4.0-rc.1", 0, 0, Allowed(release_candidates=True)),
    ("release candidate, all allowed", "1.3.3", "1.3.3", "1.4.0-rc.1", "1.4.0-rc.1", 0, 0, Allowed(experimental=True)),
    ("experimental, only candidates allowed", "1.3.3", "1.3.3", "1.4.0-beta.1", "1.4.0-beta.1", 0, 1, Allowed(release_candidates=True)),
    ("release candidate, not allowed", "1.3.3", "1.3.3", "1.4.0-rc.1", "1.4.0-rc.1", 0, 1, Allowed()),
    ("newer kubeadm, older target", "1.3.3", "1.3.3", "1.4.0", "1.3.6", 0, 1, Allowed()),
    ("a build at the minimum", "1.3.0", "1.3.0", "1.3.0+build", "1.3.0+build", 0, 0, Allowed()),
]


@pytest.mark.parametrize(
    ("cluster", "kubelet", "kubeadm", "target", "mandatory", "skippable", "allowed"),
    [row[1:] for row in ROWS],
    ids=[row[0] for row in ROWS],
)
def test_the_rows_of_kubeadm(
    cluster: str, kubelet: str, kubeadm: str, target: str, mandatory: int, skippable: int, allowed: Allowed
) -> None:
    found = policy.check(target, cluster=cluster, kubeadm=kubeadm, kubelets=[kubelet], minimum=MINIMUM, allowed=allowed)
    assert (len(found.mandatory), len(found.skippable)) == (mandatory, skippable)


def test_errors_say_what_is_wrong() -> None:
    found = policy.check(
        "v1.36.0-alpha.1",
        cluster="v1.33.2",
        kubeadm="v1.35.4",
        kubelets=["v1.30.1", "v1.32.0", "v1.31.0"],
        minimum=Version.parse("v1.34.0"),
    )
    assert found.mandatory == ()
    assert found.skippable == (
        'Specified version to upgrade to "v1.36.0-alpha.1" is too high; kubeadm can upgrade only 1 minor version at a time',
        'Specified version to upgrade to "v1.36.0-alpha.1" is at least one minor release higher than the kubeadm minor release (36 > 35). '
        "Such an upgrade is not supported",
        'Specified version to upgrade to "v1.36.0-alpha.1" is an unstable version and such upgrades weren\'t allowed via setting '
        "the --allow-*-upgrades flags",
        "There are kubelets in this cluster that are too old that have these versions [v1.30.1 v1.31.0 v1.32.0]",
    )


def test_a_control_plane_older_than_the_minimum_cannot_be_the_target() -> None:
    found = policy.check("v1.33.9", cluster="v1.33.2", kubeadm="v1.35.4", kubelets=[], minimum=Version.parse("v1.34.0"))
    assert found.mandatory == (
        'Specified version to upgrade to "v1.33.9" is equal to or lower than the minimum supported version "v1.34.0". '
        "Please specify a higher version to upgrade to",
    )


def test_a_kubelet_version_that_is_none_is_told() -> None:
    found = policy.check("1.4.0", cluster="1.3.0", kubeadm="1.4.0", kubelets=["mine"], minimum=MINIMUM)
    assert found.skippable == ("couldn't parse kubelet version mine",)


def pod(node: str, image: str, container: str = "kube-apiserver") -> dict[str, Any]:
    return {
        "metadata": {"name": f"kube-apiserver-{node}"},
        "spec": {"nodeName": node, "containers": [{"name": container, "image": image}]},
    }


@pytest.mark.parametrize(
    ("pods", "behind"),
    [
        ([pod("node-1", "a:v1"), pod("node-2", "a:v1")], []),
        ([pod("node-1", "a:v1"), pod("node-3", "a:v0"), pod("node-2", "a:v0")], ["node-2", "node-3"]),
        ([pod("node-1", "a:v1")], []),
    ],
)
def test_control_planes_with_another_api_server_are_behind(pods: list[dict[str, Any]], behind: list[str]) -> None:
    assert policy.instances_behind(pods, "node-1") == behind


@pytest.mark.parametrize(
    ("pods", "message"),
    [
        ([], "cannot find kube-apiserver Pod by label selector: component=kube-apiserver"),
        ([pod("node-1", "a:v1", "other")], 'cannot find container by name "kube-apiserver" for Pod kube-system/kube-apiserver-node-1'),
        ([pod("node-2", "a:v1")], "cannot find kube-apiserver image for current control plane instance node-1"),
    ],
)
def test_api_servers_that_cannot_be_compared_are_an_error(pods: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(OperatorError) as caught:
        policy.instances_behind(pods, "node-1")
    assert caught.value.message == message
