"""The Kubernetes client against a real kube-apiserver with its etcd: what the server accepts, and what it answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from e2e.planes import VERSION, management_plane, real_server

from slipway.api.machinery.version import Version
from slipway.host.real import RealHost
from slipway.kube import errors
from slipway.kube.client import Client
from slipway.node.cluster import live
from slipway.node.cluster.live import LiveCluster

pytestmark = real_server


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    folder = tmp_path_factory.mktemp("labs") / "client"
    with management_plane(folder) as plane:
        yield live.connect(RealHost(), str(plane.kubeconfig))


@pytest.fixture
def client(cluster: LiveCluster) -> Client:
    return cluster.client


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {"of": "test"}},
        "data": data,
    }


def test_the_server_tells_its_version(cluster: LiveCluster) -> None:
    assert cluster.server_version() == Version.parse(VERSION)


def test_an_object_is_made_changed_and_deleted(client: Client) -> None:
    assert client.get("v1", "ConfigMap", "one", "default") is None
    made = client.create(config_map("one", a="1"))
    with pytest.raises(errors.AlreadyExistsError):
        client.create(config_map("one"))
    assert client.update(config_map("one", a="2"))["data"] == {"a": "2"}
    with pytest.raises(errors.ConflictError):
        client.update(made)
    assert client.patch("v1", "ConfigMap", "one", "default", {"data": {"b": "3"}})["data"] == {"a": "2", "b": "3"}
    assert client.delete("v1", "ConfigMap", "one", "default")
    assert not client.delete("v1", "ConfigMap", "one", "default")


def test_a_list_is_chosen_by_labels_and_fields(client: Client) -> None:
    for name in ("two", "three"):
        client.create(config_map(name))
    found = client.list("v1", "ConfigMap", "default", labels={"of": "test"}, fields={"metadata.name": "two"})
    assert [(item["kind"], item["metadata"]["name"]) for item in found] == [("ConfigMap", "two")]
    assert client.list("v1", "ConfigMap", labels={"of": "nobody"}) == []


def test_a_watch_begins_with_what_is_there_and_goes_on(client: Client) -> None:
    client.create(config_map("four"))
    seen: list[tuple[str, str]] = []
    for event in client.watch("v1", "ConfigMap", "default", fields={"metadata.name": "four"}, timeout=30):
        seen.append((event.type, event.object["metadata"]["name"]))
        if event.type == "ADDED":
            threading.Thread(target=client.delete, args=("v1", "ConfigMap", "four", "default")).start()
        if event.type == "DELETED":
            break
    assert seen == [("ADDED", "four"), ("DELETED", "four")]


def test_a_service_keeps_its_address_when_it_is_written_again(cluster: LiveCluster) -> None:
    """As kube-dns is: its manifest has the address and the resourceVersion "0"."""
    service: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "dns", "namespace": "default", "resourceVersion": "0"},
        "spec": {"clusterIP": _free_address(cluster), "ports": [{"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 53}]},
    }
    cluster.apply(service)
    cluster.apply({**service, "metadata": {**service["metadata"], "labels": {"again": "yes"}}})
    found = cluster.get("v1", "Service", "dns", "default")
    assert found is not None
    assert found["spec"]["clusterIP"] == service["spec"]["clusterIP"]
    assert found["metadata"]["labels"] == {"again": "yes"}


def test_objects_that_are_written_at_once_are_all_there(cluster: LiveCluster) -> None:
    for _ in range(2):
        cluster.apply_all(config_map(f"many-{number}") for number in range(30))
    names = {item["metadata"]["name"] for item in cluster.list("v1", "ConfigMap", "default", {"of": "test"})}
    assert {f"many-{number}" for number in range(30)} <= names


def test_a_node_is_amended_beside_what_others_do_to_it(cluster: LiveCluster) -> None:
    cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"kubernetes.io/hostname": "n"}}})
    names = [f"example.com/{number}" for number in range(8)]
    threads = [
        threading.Thread(target=cluster.amend_node, args=("n",), kwargs={"taints": [{"key": name, "effect": "NoSchedule"}]})
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cluster.amend_node("n", labels={"role": ""}, annotations={"socket": "x"})
    cluster.amend_node("n", dropped_annotations=["socket"])
    node = cluster.get("v1", "Node", "n") or {}
    assert set(names) <= {taint["key"] for taint in node["spec"]["taints"]}
    assert node["metadata"]["labels"]["role"] == ""
    assert "socket" not in node["metadata"].get("annotations", {})


def test_a_stranger_is_told_apart_from_someone_who_may_not(client: Client) -> None:
    import msgspec

    connection = msgspec.structs.replace(client.connection, client_certificate=b"", client_key=b"")
    with pytest.raises(errors.ForbiddenError):
        Client(connection).list("v1", "Secret", "kube-system")
    with pytest.raises(errors.UnauthorizedError):
        Client(msgspec.structs.replace(connection, token="abcdef.0123456789abcdef")).list("v1", "Secret", "kube-system")


def _free_address(cluster: LiveCluster) -> str:
    found = cluster.get("v1", "Service", "kubernetes", "default")
    assert found is not None
    first = str(found["spec"]["clusterIP"]).rpartition(".")
    return f"{first[0]}.{int(first[2]) + 9}"
