"""The dry-run cluster says what kubeadm's dry-run client says; the lines were seen in runs of the real one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from node.conftest import VERSIONS

from slipway.api.machinery.version import Version
from slipway.api.releases import release_for
from slipway.node.cluster import DryRunCluster

if TYPE_CHECKING:
    from node.conftest import Lines

    from slipway.api.releases import Release

ABSENT = "[dryrun] Real object does not exist. Attempting to {} from followup reactors or from the fake client tracker"
ATTACHED = "[dryrun] Attached object:"


def release(version: str = "v1.36.3") -> Release:
    return release_for(Version.parse(version))


def config_map(name: str = "settings") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "kube-system"}, "data": {"key": "value"}}


def test_an_object_is_announced_and_shown(lines: Lines) -> None:
    DryRunCluster(lines, release()).apply(config_map())
    assert lines.said == ['[dryrun] Would perform action CREATE on resource "configmaps" in API group "core/v1"', ATTACHED]
    assert lines.shown == [
        "apiVersion: v1\ndata:\n  key: value\nkind: ConfigMap\nmetadata:\n  name: settings\n  namespace: kube-system\n\n"
    ]


def test_a_group_is_named_with_its_version(lines: Lines) -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "x"}, "rules": []}
    DryRunCluster(lines, release()).apply(role)
    assert lines.said[0] == ('[dryrun] Would perform action CREATE on resource "clusterroles" in API group "rbac.authorization.k8s.io/v1"')


def test_what_was_created_is_updated_the_second_time(lines: Lines) -> None:
    cluster = DryRunCluster(lines, release())
    cluster.apply(config_map())
    lines.said.clear()
    cluster.apply(config_map())
    assert [line for line in lines.said if line != ATTACHED] == [
        '[dryrun] Would perform action CREATE on resource "configmaps" in API group "core/v1"',
        '[dryrun] Would perform action UPDATE on resource "configmaps" in API group "core/v1"',
    ]


def test_an_object_that_nobody_made_is_not_found(lines: Lines) -> None:
    assert DryRunCluster(lines, release()).get("v1", "Secret", "token", "kube-system") is None
    assert lines.said == [
        '[dryrun] Would perform action GET on resource "secrets" in API group "core/v1"',
        '[dryrun] Resource name "token", namespace "kube-system"',
        ABSENT.format("GET"),
    ]


def test_what_was_written_is_found_again(lines: Lines) -> None:
    cluster = DryRunCluster(lines, release())
    cluster.apply(config_map())
    assert cluster.get("v1", "ConfigMap", "settings", "kube-system") == config_map()


def test_an_imagined_object_is_shown_when_it_is_read(lines: Lines) -> None:
    cluster = DryRunCluster(lines, release(), imagined=[config_map()], expects_cluster=True)
    assert cluster.get("v1", "ConfigMap", "settings", "kube-system") == config_map()
    assert lines.said[-2:] == [ABSENT.format("GET"), ATTACHED]


def test_a_list_holds_what_has_the_labels(lines: Lines) -> None:
    cluster = DryRunCluster(lines, release())
    labelled = {**config_map("labelled"), "metadata": {"name": "labelled", "namespace": "kube-system", "labels": {"app": "x", "tier": "y"}}}
    cluster.apply(labelled)
    cluster.apply(config_map("plain"))
    lines.said.clear()
    assert cluster.list("v1", "ConfigMap", "kube-system", {"app": "x"}) == [labelled]
    assert cluster.list("v1", "ConfigMap", "default", {}) == []
    assert lines.said[:2] == ['[dryrun] Would perform action LIST on resource "configmaps" in API group "core/v1"', ABSENT.format("LIST")]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_node_is_imagined_as_the_release_does_it(version: str, lines: Lines) -> None:
    DryRunCluster(lines, release(version)).amend_node("n1", labels={"a": ""})
    before, after = lines.shown
    assert before == after
    # util/apiclient/dryrun.go, getNode: up to 1.34 the fake Node has the annotation of the CRI socket.
    assert ("kubeadm.alpha.kubernetes.io/cri-socket: dry-run-cri-socket" in before) == (version in VERSIONS[:2])
    assert ("creationTimestamp: null" in before) == (version == VERSIONS[0])
    assert [line for line in lines.said if line != ATTACHED] == [
        '[dryrun] Would perform action GET on resource "nodes" in API group "core/v1"',
        '[dryrun] Resource name "n1", namespace ""',
        '[dryrun] Would perform action PATCH on resource "nodes" in API group "core/v1"',
        '[dryrun] Resource name "n1", namespace ""',
    ]
