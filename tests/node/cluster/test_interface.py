"""The dry-run cluster says what kubeadm's dry-run client says; the lines were seen in runs of the real one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from node.conftest import VERSIONS
from support.tlsserver import Server, authority, json_answer, leaf

from slipway.api.machinery.version import Version
from slipway.api.releases import release_for
from slipway.kube.client import Client
from slipway.kube.connection import Connection
from slipway.node.cluster.dryrun import DryRunCluster
from slipway.node.cluster.live import LiveCluster

if TYPE_CHECKING:
    from node.conftest import Lines

    from slipway.api.releases import Release

CA = authority()
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


def test_what_a_real_cluster_has_is_shown_and_believed(lines: Lines, tmp_path: Path) -> None:
    found = {**config_map(), "data": {"key": "real"}}
    server = Server(tmp_path, leaf(CA), json_answer(msgspec.json.encode(found).decode()))
    real = LiveCluster(Client(Connection(server=server.url, ca=CA.certificate), environment={}), patience=0)
    assert DryRunCluster(lines, release(), real=real).get("v1", "ConfigMap", "settings", "kube-system") == found
    assert lines.said[-1] == ATTACHED
    assert "key: real\n" in lines.shown[0]
    server.close()


def test_a_real_cluster_is_never_written_to(lines: Lines, tmp_path: Path) -> None:
    server = Server(tmp_path, leaf(CA), json_answer("{}"))
    real = LiveCluster(Client(Connection(server=server.url, ca=CA.certificate), environment={}), patience=0)
    cluster = DryRunCluster(lines, release(), real=real)
    cluster.apply_all([config_map(), config_map("other")])
    cluster.create(config_map("third"))
    cluster.patch("v1", "ConfigMap", "third", "kube-system", {"data": {"key": "changed"}})
    cluster.delete("v1", "ConfigMap", "third", "kube-system")
    assert server.requests == []
    server.close()


def test_a_dry_run_goes_on_without_the_cluster(lines: Lines) -> None:
    # Nothing listens on port 1 of a machine: it was tcpmux's.
    real = LiveCluster(Client(Connection(server="https://127.0.0.1:1"), environment={}), patience=0)
    assert DryRunCluster(lines, release(), real=real).get("v1", "ConfigMap", "settings", "kube-system") is None
    assert lines.said[-1] == ABSENT.format("GET")
    assert lines.warned == ["[dryrun] The cluster does not answer: cannot reach https://127.0.0.1:1: Connection refused"]
