"""What is sent to a cluster that is there: changes to Nodes, and which failures are worth another try."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.tlsserver import Server, Step, authority, json_answer, leaf

from slipway.kube import errors
from slipway.kube.client import Client
from slipway.kube.connection import Connection
from slipway.node.cluster.live import LiveCluster, node_patch

CA = authority()
OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "kube-system"}}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n", "resourceVersion": "7", "labels": {"kubernetes.io/hostname": "n"}, "annotations": {"old": "1", "kept": "2"}},
    "spec": {
        "taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}, {"key": "own", "value": "old", "effect": "NoExecute"}]
    },
}


def failure(code: int, reason: str, message: str = "because") -> Step:
    body = {"kind": "Status", "apiVersion": "v1", "message": message, "reason": reason, "code": code}
    return json_answer(msgspec.json.encode(body).decode(), f"{code} {reason}")


def success(manifest: dict[str, Any] = OBJECT) -> Step:
    return json_answer(msgspec.json.encode(manifest).decode())


def cluster(folder: Path, *steps: Step, patience: float = 20.0) -> tuple[LiveCluster, Server]:
    server = Server(folder, leaf(CA), *steps)
    return LiveCluster(Client(Connection(server=server.url, ca=CA.certificate), environment={}), patience=patience), server


def asked(server: Server) -> list[str]:
    lines = [request.split(b"\r\n")[0].decode() for requests in server.requests for request in requests]
    return [re.sub(r" HTTP/1.1$", "", line) for line in lines]


POST = "POST /api/v1/namespaces/kube-system/configmaps"
PUT = "PUT /api/v1/namespaces/kube-system/configmaps/x"
GET = "GET /api/v1/namespaces/kube-system/configmaps/x"


def test_what_is_there_already_is_replaced(tmp_path: Path) -> None:
    live, server = cluster(tmp_path, failure(409, "AlreadyExists"), success())
    live.apply(OBJECT)
    assert asked(server) == [POST, PUT]


def test_a_kind_that_wants_its_resource_version_gets_it(tmp_path: Path) -> None:
    found = {**OBJECT, "metadata": {**OBJECT["metadata"], "resourceVersion": "42"}}  # type: ignore[dict-item]
    invalid = failure(422, "Invalid", 'metadata.resourceVersion: Invalid value: "": must be specified for an update')
    live, server = cluster(tmp_path, failure(409, "AlreadyExists"), invalid, success(found), success())
    live.apply(OBJECT)
    assert asked(server) == [POST, PUT, GET, PUT]
    assert b'"resourceVersion":"42"' in server.requests[0][3]


@pytest.mark.parametrize(
    "first",
    [
        failure(403, "Forbidden"),  # the role is not bound yet
        failure(404, "NotFound", 'namespaces "kube-system" not found'),
        failure(503, "ServiceUnavailable"),
        failure(429, "TooManyRequests"),
        failure(500, "InternalError", "etcdserver: leader changed"),
    ],
)
def test_a_starting_control_plane_is_waited_for(tmp_path: Path, first: Step) -> None:
    live, server = cluster(tmp_path, first, success())
    live.apply(OBJECT)
    assert asked(server) == [POST, POST]


@pytest.mark.parametrize(("code", "reason"), [(401, "Unauthorized"), (422, "Invalid"), (400, "BadRequest")])
def test_what_does_not_pass_is_not_tried_again(tmp_path: Path, code: int, reason: str) -> None:
    live, server = cluster(tmp_path, failure(code, reason))
    with pytest.raises(errors.ApiError, match="because"):
        live.apply(OBJECT)
    assert asked(server) == [POST]


def test_patience_ends_with_what_was_tried(tmp_path: Path) -> None:
    live, _ = cluster(tmp_path, failure(503, "ServiceUnavailable"), patience=0.2)
    with pytest.raises(
        errors.ApiError, match=r'could not write the ConfigMap "x" in the namespace "kube-system" within 0\.\ds: because'
    ) as caught:
        live.apply(OBJECT)
    assert caught.value.code == 503


def test_several_objects_are_all_written_and_the_first_failure_is_told(tmp_path: Path) -> None:
    live, server = cluster(tmp_path, success())
    live.apply_all([OBJECT] * 12)
    assert asked(server) == [POST] * 12
    live, _ = cluster(tmp_path, failure(422, "Invalid"))
    with pytest.raises(errors.ApiError, match="because"):
        live.apply_all([OBJECT] * 3)


def test_an_object_that_a_lost_try_made_is_taken_for_created(tmp_path: Path) -> None:
    def lose(connection: object, request: bytes) -> bool:
        return False

    live, server = cluster(tmp_path, lose, failure(409, "AlreadyExists"), success())
    assert live.create(OBJECT) == OBJECT
    assert asked(server) == [POST, POST, GET]


def test_an_object_of_somebody_else_is_not(tmp_path: Path) -> None:
    live, _ = cluster(tmp_path, failure(409, "AlreadyExists"))
    with pytest.raises(errors.AlreadyExistsError):
        live.create(OBJECT)


def test_a_node_is_changed_when_the_kubelet_has_registered_it(tmp_path: Path) -> None:
    bare = {**NODE, "metadata": {"name": "n", "resourceVersion": "6"}}
    live, server = cluster(
        tmp_path, failure(404, "NotFound"), success(bare), success(NODE), failure(409, "Conflict"), success(NODE), success(NODE)
    )
    live.amend_node("n", labels={"a": "b"})
    node = "/api/v1/nodes/n"
    assert asked(server) == [f"GET {node}", f"GET {node}", f"GET {node}", f"PATCH {node}", f"GET {node}", f"PATCH {node}"]


def test_a_node_that_lacks_nothing_is_left_alone(tmp_path: Path) -> None:
    live, server = cluster(tmp_path, success(NODE))
    live.amend_node("n", labels={"kubernetes.io/hostname": "n"}, annotations={"kept": "2"}, dropped_annotations=["none"])
    assert asked(server) == ["GET /api/v1/nodes/n"]


def test_labels_and_annotations_are_merged() -> None:
    patch = node_patch(NODE, {"role": "", "kubernetes.io/hostname": "n"}, {"new": "3", "kept": "2"}, (), ("old", "none"))
    assert patch == {"metadata": {"labels": {"role": ""}, "annotations": {"new": "3", "old": None}}}


def test_taints_of_others_stay_and_a_change_in_between_is_a_conflict() -> None:
    # As MarkControlPlane does it: the new ones first.  A Node has one taint for a key and an effect.
    wanted = [
        {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"},
        {"key": "own", "value": "new", "effect": "NoExecute"},
    ]
    assert node_patch(NODE, {}, {}, wanted, ()) == {
        "metadata": {"resourceVersion": "7"},
        "spec": {"taints": [*wanted, {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]},
    }


def test_taints_that_are_there_are_not_written_again() -> None:
    assert node_patch(NODE, {}, {}, [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}], ()) == {}
