"""The lab's kubectl: get, describe, explain, apply in both ways, patch, delete, watch."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
from conformance.api import DEADLINE, Api
from conformance.widgets import GROUP, Widgets

from slipway.lab.programs import cache

VERSION = "v1.35.4"


def program() -> str:
    """kubectl of the lab's cache, or one that is named."""
    found = os.environ.get("SLIPWAY_CONFORMANCE_KUBECTL") or cache.find(cache.cache_root(), "kubectl", VERSION)
    if not found:
        pytest.skip(f"there is no kubectl {VERSION} in the lab's cache: `make e2e` fetches it, or name one in SLIPWAY_CONFORMANCE_KUBECTL")
    return str(found)


class Kubectl:
    def __init__(self, kubeconfig: Path, namespace: str, home: Path) -> None:
        self._command = [program(), "--kubeconfig", str(kubeconfig), "--namespace", namespace, "--cache-dir", str(home / "cache")]

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run([*self._command, *arguments], input=stdin, capture_output=True, text=True, timeout=60, check=False)

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def watching(self, *arguments: str) -> Iterator[IO[str]]:
        """The lines of a command that does not end by itself; the last one is empty if they do not come in time."""
        with subprocess.Popen([*self._command, *arguments], stdout=subprocess.PIPE, text=True) as process:
            deadline = threading.Timer(DEADLINE, process.kill)
            deadline.start()
            try:
                assert process.stdout is not None
                yield process.stdout
            finally:
                deadline.cancel()
                process.terminate()


@pytest.fixture(scope="module")
def kubectl(kubeconfig: Path, namespace: str, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return Kubectl(kubeconfig, namespace, tmp_path_factory.mktemp("kubectl"))


def words(text: str) -> list[list[str]]:
    return [re.split(r"\s{2,}", line.strip()) for line in text.strip().splitlines()]


def config_map(name: str, **data: str) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})


def test_apply_creates_changes_and_leaves_alone(kubectl: Kubectl, unique: str) -> None:
    assert kubectl("apply", "-f", "-", stdin=config_map(unique, a="1", b="2")) == f"configmap/{unique} created\n"
    assert kubectl("apply", "-f", "-", stdin=config_map(unique, a="1", b="2")) == f"configmap/{unique} unchanged\n"
    assert kubectl("apply", "-f", "-", stdin=config_map(unique, a="3")) == f"configmap/{unique} configured\n"
    assert json.loads(kubectl("get", "configmap", unique, "-o", "jsonpath={.data}")) == {"a": "3"}


def test_apply_of_a_custom_object(kubectl: Kubectl, unique: str, widgets: Widgets) -> None:
    def manifest(**spec: object) -> str:
        return json.dumps(widgets.manifest(unique, spec))

    assert kubectl("apply", "-f", "-", stdin=manifest(text="a", mode="Fast")) == f"widget.{GROUP}/{unique} created\n"
    assert kubectl("apply", "-f", "-", stdin=manifest(text="b")) == f"widget.{GROUP}/{unique} configured\n"
    assert kubectl("get", "widget", unique, "-o", "jsonpath={.spec.text}{.spec.mode}") == "b"
    refused = kubectl.run("apply", "-f", "-", stdin=manifest(nope="b"))
    assert refused.returncode == 1
    assert 'strict decoding error: unknown field "spec.nope"' in refused.stderr


def test_apply_on_the_server(kubectl: Kubectl, unique: str) -> None:
    assert kubectl("apply", "--server-side", "-f", "-", stdin=config_map(unique, a="1")) == f"configmap/{unique} serverside-applied\n"
    arguments = ("apply", "--server-side", "--field-manager=other", "-f", "-")
    refused = kubectl.run(*arguments, stdin=config_map(unique, a="2"))
    assert refused.returncode == 1
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .data.a' in refused.stderr
    kubectl(*arguments, "--force-conflicts", stdin=config_map(unique, a="2"))
    assert kubectl("get", "cm", unique, "-o", "jsonpath={.data.a}") == "2"


def test_from_the_client_to_the_server(kubectl: Kubectl, unique: str) -> None:
    kubectl("apply", "-f", "-", stdin=config_map(unique, a="1"))
    kubectl("apply", "--server-side", "-f", "-", stdin=config_map(unique, a="2"))
    assert kubectl("get", "cm", unique, "-o", "jsonpath={.data.a}") == "2"


def test_get_shows_columns(kubectl: Kubectl, api: Api, namespace: str, unique: str, widgets: Widgets) -> None:
    kubectl("create", "secret", "generic", unique, "--from-literal=a=1", "--from-literal=b=2")
    header, row = words(kubectl("get", "secret", unique))
    assert header == ["NAME", "TYPE", "DATA", "AGE"]
    assert row[:3] == [unique, "Opaque", "2"]
    widgets.create(namespace, unique, {"text": "a", "replicas": 2})
    api.patch(widgets.path(namespace, unique, "status"), {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}).ok()
    assert words(kubectl("get", "widx", unique)) == [["NAME", "TEXT", "REPLICAS", "READY"], [unique, "a", "2", "True"]]
    header, row = words(kubectl("get", "namespace", namespace))
    assert (header, row[:2]) == (["NAME", "STATUS", "AGE"], [namespace, "Active"])
    header, row = words(kubectl("get", "crd", f"widgets.{GROUP}"))
    assert (header, row[0]) == (["NAME", "CREATED AT"], f"widgets.{GROUP}")
    assert kubectl.run("get", "secret", "nobody").stderr == 'Error from server (NotFound): secrets "nobody" not found\n'
    assert kubectl("get", "pods") == ""


@pytest.mark.parametrize(
    "kind", ["configmap", "secret", "serviceaccount", "namespace", "lease", "role", "rolebinding", "event", "node", "pod"]
)
def test_get_has_its_usual_columns(api: Api, namespace: str, kind: str) -> None:
    groups = {"lease": "apis/coordination.k8s.io/v1", "role": "apis/rbac.authorization.k8s.io/v1"}
    root = groups.get(kind.removesuffix("binding"), "api/v1")
    where = "" if kind in ("namespace", "node") else f"/namespaces/{namespace}"
    body = api.request("GET", f"/{root}{where}/{kind}s", accept="application/json;as=Table;v=v1;g=meta.k8s.io").ok()
    assert (body["kind"], body["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    expected = {
        "configmap": "Name Data Age",
        "secret": "Name Type Data Age",
        "serviceaccount": "Name Age",
        "namespace": "Name Status Age",
        "lease": "Name Holder Age",
        "role": "Name Created_At",
        "rolebinding": "Name Role Age Users+ Groups+ ServiceAccounts+",
        "event": "Last_Seen Type Reason Object Subobject+ Source+ Message First_Seen+ Count+ Name+",
        "node": "Name Status Roles Age Version Internal-IP+ External-IP+ OS-Image+ Kernel-Version+ Container-Runtime+",
        "pod": "Name Ready Status Restarts Age IP+ Node+ Nominated_Node+ Readiness_Gates+",
    }
    found = [column["name"].replace(" ", "_") + "+" * column["priority"] for column in body["columnDefinitions"]]
    assert found == expected[kind].split()


def test_describe_tells_of_events(kubectl: Kubectl, api: Api, namespace: str, unique: str, widgets: Widgets) -> None:
    made = widgets.create(namespace, unique, {"text": "a"})
    about = {"apiVersion": made["apiVersion"], "kind": "Widget", "name": unique, "namespace": namespace, "uid": made["metadata"]["uid"]}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": unique},
        "involvedObject": about,
        "reason": "Tested",
        "message": "it was said",
    }
    api.post(f"/api/v1/namespaces/{namespace}/events", {**event, "type": "Normal"}).ok()
    text = kubectl("describe", "widget", unique)
    assert re.search(rf"^Name:\s+{unique}$", text, re.MULTILINE)
    assert "it was said" in text
    kubectl("create", "secret", "generic", unique, "--from-literal=a=12345")
    assert re.search(r"^a:\s+5 bytes$", kubectl("describe", "secret", unique), re.MULTILINE)
    assert re.search(r"^Status:\s+Active$", kubectl("describe", "namespace", namespace), re.MULTILINE)


def test_patch_label_annotate_scale_and_edit_in_place(kubectl: Kubectl, unique: str, widgets: Widgets, namespace: str) -> None:
    widgets.create(namespace, unique, {"text": "a"})
    assert kubectl("patch", "widget", unique, "--type=merge", "-p", '{"spec":{"text":"b"}}') == f"widget.{GROUP}/{unique} patched\n"
    assert (
        kubectl("patch", "widget", unique, "--type=merge", "-p", '{"spec":{"text":"b"}}')
        == f"widget.{GROUP}/{unique} patched (no change)\n"
    )
    kubectl("patch", "widget", unique, "--subresource=status", "--type=merge", "-p", '{"status":{"ready":true}}')
    assert kubectl("label", "widget", unique, f"l={unique}") == f"widget.{GROUP}/{unique} labeled\n"
    assert kubectl("annotate", "widget", unique, "a=b") == f"widget.{GROUP}/{unique} annotated\n"
    assert kubectl("scale", "widget", unique, "--replicas=7") == f"widget.{GROUP}/{unique} scaled\n"
    assert kubectl("get", "widget", "-l", f"l={unique}", "-o", "jsonpath={.items[*].spec.replicas}{.items[*].status.ready}") == "7true"


def test_delete_waits_until_it_is_gone(kubectl: Kubectl, unique: str) -> None:
    kubectl("create", "configmap", unique, "--from-literal=a=1")
    assert kubectl("delete", "configmap", unique).startswith(f'configmap "{unique}" deleted')
    assert kubectl("get", "configmap", unique, "--ignore-not-found") == ""
    assert kubectl("delete", "configmap", unique, "--ignore-not-found") == ""


def test_get_watches(kubectl: Kubectl, api: Api, namespace: str, unique: str) -> None:
    kubectl("create", "configmap", unique, "--from-literal=a=1")
    kubectl("label", "configmap", unique, f"of={unique}")
    path = f"/api/v1/namespaces/{namespace}/configmaps/{unique}"
    # kubectl goes on from the version of a list; of one object by name it would miss what happens before its watch starts.
    with kubectl.watching("get", "configmap", "-l", f"of={unique}", "-w", "--no-headers", "-o", "custom-columns=D:.data") as lines:
        assert lines.readline() == "map[a:1]\n"
        api.patch(path, {"data": {"a": "2"}}).ok()
        assert lines.readline() == "map[a:2]\n"
    with kubectl.watching("get", "configmap", "-l", f"of={unique}", "-w") as lines:
        assert lines.readline().split() == ["NAME", "DATA", "AGE"]
        assert lines.readline().split()[:2] == [unique, "1"]
        api.patch(path, {"data": {"b": "2"}}).ok()
        assert lines.readline().split()[:2] == [unique, "2"]


def test_wait_for_a_condition(kubectl: Kubectl, api: Api, namespace: str, unique: str, widgets: Widgets) -> None:
    widgets.create(namespace, unique, {"text": "a"})
    path = widgets.path(namespace, unique, "status")
    api.patch(path, {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}).ok()
    assert kubectl("wait", f"widget/{unique}", "--for=condition=Ready", "--timeout=10s") == f"widget.{GROUP}/{unique} condition met\n"


def test_explain_knows_the_fields(kubectl: Kubectl, widgets: Widgets) -> None:
    text = kubectl("explain", "widget.spec.replicas")
    assert re.search(r"^KIND:\s+Widget$", text, re.MULTILINE)
    assert re.search(r"^FIELD:\s+replicas <integer>$", text, re.MULTILINE)
    assert re.search(r"^\s+stringData\s+<map\[string\]string>$", kubectl("explain", "secret"), re.MULTILINE)
    assert "<[]Container> -required-" in kubectl("explain", "pod.spec")


def test_api_resources_are_listed(kubectl: Kubectl, widgets: Widgets) -> None:
    rows = [line.split() for line in kubectl("api-resources", "--no-headers").splitlines()]
    assert ["widgets", "widx", f"{GROUP}/v1", "true", "Widget"] in rows
    assert ["secrets", "v1", "true", "Secret"] in rows
    assert f"{GROUP}/v1" in kubectl("api-versions").split()


def test_auth_questions(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", "secrets") == "yes\n"
    refused = kubectl.run("auth", "can-i", "create", "secrets", "--as=nobody")
    assert (refused.returncode, refused.stdout) == (1, "no\n")


def test_a_validation_error_reads_well(kubectl: Kubectl, unique: str, widgets: Widgets) -> None:
    refused = kubectl.run("apply", "-f", "-", stdin=json.dumps(widgets.manifest(unique, {"mode": "Slow"})))
    assert refused.returncode == 1
    assert refused.stderr == (f'The Widget "{unique}" is invalid: spec.mode: Unsupported value: "Slow": supported values: "Fast", "Safe"\n')


def test_a_whole_namespace_is_deleted(kubectl: Kubectl, unique: str) -> None:
    kubectl("create", "namespace", unique)
    kubectl("create", "configmap", "inside", "-n", unique)
    assert kubectl("delete", "namespace", unique, "--timeout=60s") == f'namespace "{unique}" deleted\n'
