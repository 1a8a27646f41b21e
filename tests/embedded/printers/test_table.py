"""Tables, as ``kubectl get`` asks for them: columns of built-in kinds, printer columns of custom resources."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from slipway.embedded.printers import jsonpath
from slipway.embedded.printers.table import table

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
META = {"name": "x", "creationTimestamp": "2026-01-02T03:00:00Z"}


def rows(group: str, kind: str, *objects: Any, columns: Any = None) -> list[dict[str, Any]]:
    """Every row as column name to cell."""
    made = table(objects, group=group, kind=kind, columns=columns, now=NOW)
    names = [column["name"] for column in made["columnDefinitions"]]
    return [dict(zip(names, row["cells"], strict=True)) for row in made["rows"]]


def test_secrets_and_config_maps_count_their_keys() -> None:
    secret = {"metadata": META, "type": "Opaque", "data": {"a": "", "b": ""}}
    assert rows("", "Secret", secret) == [{"Name": "x", "Type": "Opaque", "Data": 2, "Age": "4m5s"}]
    assert rows("", "ConfigMap", {"metadata": META, "data": {"a": ""}, "binaryData": {"b": ""}}) == [
        {"Name": "x", "Data": 2, "Age": "4m5s"}
    ]


def test_a_node_shows_its_state_roles_and_version() -> None:
    node = {
        "metadata": {**META, "labels": {"node-role.kubernetes.io/control-plane": "", "node-role.kubernetes.io/a": ""}},
        "spec": {"unschedulable": True},
        "status": {
            "conditions": [{"type": "Ready", "status": "False"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "InternalIP", "address": "10.0.0.2"}],
            "nodeInfo": {"kubeletVersion": "v1.35.4"},
        },
    }
    (row,) = rows("", "Node", node)
    assert row["Status"] == "NotReady,SchedulingDisabled"
    assert row["Roles"] == "a,control-plane"
    assert (row["Version"], row["Internal-IP"], row["External-IP"], row["OS-Image"]) == ("v1.35.4", "10.0.0.1", "<none>", "<unknown>")


@pytest.mark.parametrize(
    ("status", "ready", "shown", "restarts"),
    [
        ({"phase": "Pending"}, "0/1", "Pending", "0"),
        ({"phase": "Running", "containerStatuses": [{"ready": True, "state": {"running": {}}}]}, "1/1", "Running", "0"),
        (
            {
                "phase": "Running",
                "containerStatuses": [
                    {
                        "restartCount": 3,
                        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                        "lastState": {"terminated": {"finishedAt": "2026-01-02T03:03:05Z"}},
                    }
                ],
            },
            "0/1",
            "CrashLoopBackOff",
            "3 (60s ago)",
        ),
        ({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 2}}}]}, "0/1", "ExitCode:2", "0"),
        ({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"waiting": {}}}]}, "0/1", "Init:0/1", "0"),
    ],
)
def test_a_pod_shows_the_state_of_its_containers(status: Any, ready: str, shown: str, restarts: str) -> None:
    pod = {"kind": "Pod", "metadata": META, "spec": {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]}, "status": status}
    (row,) = rows("", "Pod", pod)
    assert (row["Ready"], row["Status"], row["Restarts"]) == (ready, shown, restarts)


def test_an_event_shows_what_it_is_about() -> None:
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "KubeadmConfig", "name": "k"},
        "type": "Normal",
        "reason": "Created",
        "message": " made \n",
        "lastTimestamp": "2026-01-02T03:04:00Z",
        "firstTimestamp": "2026-01-02T03:03:00Z",
        "count": 2,
        "source": {"component": "slipway"},
    }
    (row,) = rows("", "Event", event)
    assert row == {
        "Last Seen": "5s",
        "Type": "Normal",
        "Reason": "Created",
        "Object": "kubeadmconfig/k",
        "Subobject": "",
        "Source": "slipway",
        "Message": "made",
        "First Seen": "65s",
        "Count": 2,
        "Name": "e",
    }


def test_a_kind_without_a_printer_shows_when_it_was_made() -> None:
    assert rows("rbac.authorization.k8s.io", "Role", {"metadata": META}) == [{"Name": "x", "Created At": "2026-01-02T03:00:00Z"}]


def test_a_custom_resource_shows_its_printer_columns() -> None:
    columns = [
        {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
        {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
        {"name": "Missing", "type": "string", "jsonPath": ".spec.nope"},
        {"name": "Wrong", "type": "integer", "jsonPath": ".spec.version"},
        {"name": "Object", "type": "string", "jsonPath": ".spec.ref", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    machine = {
        "metadata": META,
        "spec": {"replicas": 3, "version": "v1", "ref": {"b": 1, "a": "x"}},
        "status": {"conditions": [{"type": "Paused", "status": "False"}, {"type": "Ready", "status": "True"}]},
    }
    (row,) = rows("example.com", "Machine", machine, columns=columns)
    assert row == {"Name": "x", "Ready": "True", "Replicas": 3, "Missing": None, "Wrong": None, "Object": '{"a":"x","b":1}', "Age": "4m5s"}


def test_a_custom_resource_without_columns_shows_its_age() -> None:
    assert rows("example.com", "Machine", {"metadata": META}, columns=[]) == [{"Name": "x", "Age": "4m5s"}]


def test_rows_carry_as_much_of_the_object_as_was_asked_for() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": META, "data": {}}

    def row(include: str) -> Any:
        return table([secret], group="", kind="Secret", include=include, now=NOW)["rows"][0]["object"]

    assert row("Metadata") == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": META}
    assert row("Object") == secret
    assert row("None") is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".a.b", [1]),
        ("$.a.b", [1]),
        (".a['b']", [1]),
        (".list[0].n", ["x"]),
        (".list[-1].n", ["y"]),
        (".list[*].n", ["x", "y"]),
        (".list[0:1].n", ["x"]),
        ('.list[?(@.n=="y")].v', [2]),
        (".list[?(@.v>1)].n", ["y"]),
        (".list[?(@.w)].n", ["x"]),
        (".labels.cluster\\.x-k8s\\.io/name", ["c"]),
        ("..v", [1, 2]),
        (".no.such", []),
        (".list[5]", []),
    ],
)
def test_json_paths(path: str, expected: list[Any]) -> None:
    value = {"a": {"b": 1}, "list": [{"n": "x", "v": 1, "w": 0}, {"n": "y", "v": 2}], "labels": {"cluster.x-k8s.io/name": "c"}}
    assert jsonpath.is_readable(path)
    assert jsonpath.find(path, value) == expected


def test_a_json_path_that_cannot_be_read_finds_nothing() -> None:
    assert not jsonpath.is_readable(".a[")
    assert jsonpath.find(".a[", {"a": [1]}) == []
