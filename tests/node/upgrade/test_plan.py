"""Which upgrades are offered and how a plan is shown.

The rows are those of phases/upgrade/compute_test.go (1.36.3), the texts were seen in runs of the real kubeadm 1.35.4.
"""

from __future__ import annotations

from typing import Any

import pytest
from node.conftest import Lines, MakeContext

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.node.cluster.dryrun import DryRunCluster
from slipway.node.upgrade import plan
from slipway.node.upgrade.plan import Offer, State, Upgrade

pytestmark = pytest.mark.upstream_table

ETCD, DNS = "3.1.12", "1.0.6"
NEW_ETCD, NEW_DNS = "3.6.8-0", "v1.14.2"


def state(component: str, kubelet: str, *, external_etcd: bool = False) -> State:
    nodes = {component: ["node1"]}
    etcds = {} if external_etcd else {ETCD: ["node1"]}
    return State(api_servers=nodes, controller_managers=nodes, schedulers=nodes, etcds=etcds, kubelets={kubelet: ["node1"]}, dns=DNS)


def labels(stable: str = "", patch: str = "", latest: str = "", previous: str = "") -> plan.LookUp:
    """What a release server would answer; nothing where it has no stable version."""

    def look_up(label: str, description: str) -> str:
        if not stable:
            raise OperatorError(f"no {description}")
        if label in ("stable", "latest"):
            return stable if label == "stable" else latest
        return previous if previous and label.startswith("latest-") else patch

    return look_up


def upgrade(description: str, target: str, kubeadm: str = "", etcd: str = NEW_ETCD) -> Upgrade:
    return Upgrade(description=description, target=target, kubeadm=kubeadm or target, dns=NEW_DNS, etcd=etcd)


SERIES = "version in the v1.15 series"
CANDIDATE, EXPERIMENTAL = "release candidate version", "experimental version"
X5, Y0, Y1, Y2, Y3, Y5, Z0, Z1 = "1.14.5", "1.15.0", "1.15.1", "1.15.2", "1.15.3", "1.15.5", "1.16.0", "1.16.1"

# name, the cluster, kubeadm, what is looked up, whether experimental versions and candidates are allowed, the upgrades
ROWS: list[tuple[str, State, str, plan.LookUp, bool, bool, list[Upgrade]]] = [
    ("up to date", state(Y0, Y0), Y0, labels(Y0, Y0), False, False, []),
    ("patch", state(Y1, Y1), Y2, labels(Y3, Y3), False, False, [upgrade(SERIES, Y3)]),
    ("external etcd", state(Y1, Y1, external_etcd=True), Y2, labels(Y3, Y3), False, False, [upgrade(SERIES, Y3, etcd="")]),
    ("minor", state(Y1, Y1), Z0, labels(Z0, Y1), False, False, [upgrade("stable version", Z0)]),
    ("both", state(Y3, Y3), Y5, labels(Z1, Y5), False, False, [upgrade(SERIES, Y5), upgrade("stable version", Z1)]),
    ("nothing experimental", state("1.16.0-alpha.2", Y5), Y5, labels(Y5, Y5, "1.16.0-alpha.2"), True, False, []),
    ("unstable", state(Y5, Y5), Y5, labels(Y5, Y5, "1.16.0-alpha.2"), True, False, [upgrade(EXPERIMENTAL, "1.16.0-alpha.2")]),
    (
        "unstable to unstable",
        state("1.16.0-alpha.1", Y5),
        Y5,
        labels(Y5, Y5, "1.16.0-alpha.2"),
        True,
        False,
        [upgrade(EXPERIMENTAL, "1.16.0-alpha.2")],
    ),
    (
        "alpha.0 is ignored",
        state(X5, X5),
        X5,
        labels(X5, X5, "1.15.0-alpha.0", "1.16.0-beta.1"),
        True,
        False,
        [upgrade(EXPERIMENTAL, "1.16.0-beta.1")],
    ),
    (
        "candidate",
        state(X5, X5),
        X5,
        labels(X5, X5, "1.15.0-alpha.1", "1.16.0-rc.1"),
        False,
        True,
        [upgrade(CANDIDATE, "1.16.0-rc.1")],
    ),
    (
        "candidate while the newest is alpha.0",
        state(X5, X5),
        X5,
        labels(X5, X5, "1.15.0-alpha.0", "1.16.0-rc.1"),
        True,
        False,
        [upgrade(EXPERIMENTAL, "1.16.0-rc.1")],
    ),
    (
        "candidate and experimental",
        state(X5, X5),
        X5,
        labels(X5, X5, "1.15.0-alpha.1", "1.16.0-rc.1"),
        True,
        True,
        [upgrade(CANDIDATE, "1.16.0-rc.1"), upgrade(EXPERIMENTAL, "1.15.0-alpha.1")],
    ),
    ("a version is given", state(Y1, Y0), Y1, lambda *_: Z1, False, False, [upgrade(SERIES, Z1)]),
]


@pytest.mark.parametrize(
    ("running", "kubeadm", "look_up", "experimental", "candidates", "upgrades"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_the_rows_of_kubeadm(
    running: State,
    kubeadm: str,
    look_up: plan.LookUp,
    experimental: bool,
    candidates: bool,
    upgrades: list[Upgrade],
    lines: Lines,
) -> None:
    offer = Offer(kubeadm=kubeadm, dns=NEW_DNS, etcd=lambda _: NEW_ETCD)
    found = plan.available(running, offer, look_up, lines, experimental=experimental, release_candidates=candidates)
    assert found == upgrades


def test_without_an_answer_kubeadm_is_the_newest(lines: Lines) -> None:
    offer = Offer(kubeadm="v1.35.4", dns=NEW_DNS, etcd=lambda _: NEW_ETCD)
    found = plan.available(state("v1.34.10", "v1.34.10"), offer, labels(), lines)
    assert found == [upgrade("stable version", "v1.35.4")]
    assert lines.said == ["[upgrade/versions] Cluster version: 1.34.10", "[upgrade/versions] kubeadm version: v1.35.4", ""]
    assert lines.warned == [
        "[upgrade/versions] WARNING: no stable version",
        "[upgrade/versions] WARNING: Falling back to current kubeadm version as latest stable version",
        "[upgrade/versions] WARNING: no version in the v1.34 series",
    ]


def test_api_servers_of_several_versions_are_told(lines: Lines) -> None:
    mixed = State(
        api_servers={"v1.35.4": ["b"], "v1.34.10": ["a", "c"]}, controller_managers={}, schedulers={}, etcds={}, kubelets={}, dns=""
    )
    plan.available(mixed, Offer(kubeadm="v1.35.4", dns="", etcd=str), lambda *_: "v1.35.4", lines)
    assert lines.warned == [
        "Different API server versions in the cluster were discovered: v1.34.10 on nodes [a c], v1.35.4 on nodes [b]. "
        "Please upgrade your control plane nodes to the same version of Kubernetes"
    ]
    assert "[upgrade/versions] Cluster version: 1.35.4" in lines.said


# TestKubeletUpgrade
@pytest.mark.parametrize(
    ("kubelets", "target", "possible"),
    [
        ({"v1.10.1": ["node1"]}, "v1.10.3", True),
        ({"v1.10.1": ["node1"], "v1.10.3": ["node2", "node3"]}, "v1.10.3", True),
        ({"v1.10.3": ["node1", "node2"]}, "v1.10.3", False),
        ({}, "v1.10.3", False),
    ],
)
def test_kubelets_are_listed_where_one_is_behind(kubelets: dict[str, list[str]], target: str, possible: bool) -> None:
    assert plan.can_upgrade_kubelets(kubelets, target) == possible


def seen() -> plan.Plan:
    """The plan of a cluster of one node, as the real kubeadm 1.35.4 made it."""
    running = State(
        api_servers={"v1.34.10": ["host-1"]},
        controller_managers={"v1.34.10": ["host-1"]},
        schedulers={"v1.34.10": ["host-1"]},
        etcds={"3.6.5-0": ["host-1"]},
        kubelets={"v1.34.10": ["host-1"]},
        dns="v1.12.1",
    )
    wanted = Upgrade(description="version in the v1.34 series", target="v1.35.4", kubeadm="v1.35.4", dns="v1.13.1", etcd="3.6.6-0")
    listed = plan.components(running, wanted, "v1.35.4", with_etcd=True)
    present = {"kubeproxy.config.k8s.io": None, "kubelet.config.k8s.io": None}
    return plan.Plan(upgrades=[(wanted.description, listed)], configs=plan.config_states(present))


SEEN = """\
Components that must be upgraded manually after you have upgraded the control plane with 'kubeadm upgrade apply':
COMPONENT   NODE      CURRENT    TARGET
kubelet     host-1    v1.34.10   v1.35.4

Upgrade to the latest version in the v1.34 series:

COMPONENT                 NODE      CURRENT    TARGET
kube-apiserver            host-1    v1.34.10   v1.35.4
kube-controller-manager   host-1    v1.34.10   v1.35.4
kube-scheduler            host-1    v1.34.10   v1.35.4
kube-proxy                          1.34.10    v1.35.4
CoreDNS                             v1.12.1    v1.13.1
etcd                      host-1    3.6.5-0    3.6.6-0

You can now apply the upgrade by executing the following command:

\tkubeadm upgrade apply v1.35.4

_____________________________________________________________________


The table below shows the current state of component configs as understood by this version of kubeadm.
Configs that have a "yes" mark in the "MANUAL UPGRADE REQUIRED" column require manual config upgrade or
resetting to kubeadm defaults before a successful upgrade can be performed. The version to manually
upgrade to is denoted in the "PREFERRED VERSION" column.

API GROUP                 CURRENT VERSION   PREFERRED VERSION   MANUAL UPGRADE REQUIRED
kubeproxy.config.k8s.io   v1alpha1          v1alpha1            no
kubelet.config.k8s.io     v1beta1           v1beta1             no
_____________________________________________________________________

"""


def test_a_plan_for_a_person() -> None:
    assert seen().text() == SEEN


def test_a_plan_for_a_program() -> None:
    made = seen().manifest()
    assert list(made) == ["kind", "apiVersion", "availableUpgrades", "configVersions"]
    assert made["apiVersion"] == "output.kubeadm.k8s.io/v1alpha3"
    components: list[dict[str, Any]] = made["availableUpgrades"][0]["components"]
    assert components[0] == {"name": "kubelet", "currentVersion": "v1.34.10", "newVersion": "v1.35.4", "nodeName": "host-1"}
    assert components[4] == {"name": "kube-proxy", "currentVersion": "1.34.10", "newVersion": "v1.35.4"}
    assert [component["name"] for component in components[4:]] == ["kube-proxy", "CoreDNS", "kubeadm", "etcd"]


@pytest.mark.parametrize(
    ("target", "flag"), [("v1.36.0-rc.1", " --allow-release-candidate-upgrades"), ("v1.36.0-alpha.1", " --allow-experimental-upgrades")]
)
def test_a_preview_needs_a_flag_and_its_own_kubeadm(target: str, flag: str) -> None:
    running = state("v1.35.4", "v1.35.4")
    listed = plan.components(running, upgrade("preview", target), "v1.35.4", with_etcd=False)
    text = plan.Plan(upgrades=[("preview", listed)], configs=[]).text()
    assert f"\tkubeadm upgrade apply {target}{flag}\n" in text
    assert f"\nNote: Before you can perform this upgrade, you have to update kubeadm to {target}.\n\n" in text
    assert "\netcd " not in text


@pytest.mark.parametrize(
    ("environment", "requested", "running", "acting"),
    [
        ({}, "v1.35.4", "v1.34.10", "1.35.4"),
        ({}, "", "v1.34.10", "1.35.4"),  # one minor at a time
        ({}, "", "v1.36.1", "1.36.3"),  # and none that is not known
        ({"SLIPWAY_AS_KUBEADM": "v1.34.10"}, "", "v1.34.2", "1.34.10"),
    ],
)
def test_the_kubeadm_to_be_is_that_of_the_next_version(environment: dict[str, str], requested: str, running: str, acting: str) -> None:
    assert str(plan.acting_release(environment, requested, Version.parse(running)).version) == acting


def pod(component: str, node: str, image: str) -> dict[str, Any]:
    labels = {"component": component, "tier": "control-plane"}
    spec = {"nodeName": node, "containers": [{"name": component, "image": image}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{component}-{node}", "labels": labels}, "spec": spec}


def test_what_a_cluster_runs(make_context: MakeContext, lines: Lines) -> None:
    pods = [
        pod("kube-apiserver", "a", "registry.k8s.io/kube-apiserver:v1.34.10"),
        pod("kube-apiserver", "b", "registry.k8s.io:443/kube-apiserver:v1.34.2_vendor.1@sha256:00"),
        pod("etcd", "a", "registry.k8s.io/etcd:3.6.5-0"),
    ]
    info = {"nodeInfo": {"kubeletVersion": "v1.34.10"}}
    nodes = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": info} for name in ("a", "b")]
    found = plan.observe(DryRunCluster(lines, make_context().release, lists={"Pod": pods, "Node": nodes, "Deployment": []}))
    assert found.api_servers == {"v1.34.10": ["a"], "v1.34.2+vendor.1": ["b"]}
    assert (found.etcds, found.kubelets, found.dns) == ({"3.6.5-0": ["a"]}, {"v1.34.10": ["a", "b"]}, "")
    assert str(found.version) == "1.34.10"


def test_a_cluster_without_api_servers_of_kubeadm_is_refused(make_context: MakeContext, lines: Lines) -> None:
    with pytest.raises(OperatorError, match="cannot find the Pods of kube-apiserver"):
        plan.observe(DryRunCluster(lines, make_context().release, lists={"Pod": [], "Node": [], "Deployment": []}))
