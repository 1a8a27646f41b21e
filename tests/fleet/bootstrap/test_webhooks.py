"""Admission of KubeadmConfigs: the rows of Cluster API's webhook tests, with the texts of its field errors; templates must parse."""

from __future__ import annotations

import json
import tracemalloc
from base64 import b64decode
from typing import Any

import pytest

from slipway.api.machinery.patches.jsonpatch import apply
from slipway.fleet.bootstrap import webhooks
from slipway.fleet.bootstrap.data import files
from slipway.runtime.webhook.admission import Defaulter, Validator, review

SECRET = {"secret": {"name": "foo", "key": "bar"}}
INIT_TIMEOUTS = {"timeouts": {"controlPlaneComponentHealthCheckSeconds": 10}}
IGNITION_CONFIG = {"containerLinuxConfig": {"additionalConfig": "config"}}
NOT_WITH_IGNITION = 'Forbidden: not supported when spec.format is set to: "ignition"'


def config(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmConfig",
        "metadata": {"name": "baz", "namespace": "default"},
        "spec": spec,
    }


def template(spec: dict[str, Any], metadata: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        **config({"template": {"spec": spec, **({"metadata": metadata} if metadata else {})}}),
        "kind": "KubeadmConfigTemplate",
    }


def file(content: str, path: str = "/x", content_format: str = "Template") -> dict[str, Any]:
    return {"path": path, "content": content, "contentFormat": content_format}


VALID: dict[str, dict[str, Any]] = {
    "valid content": {"files": [{"content": "foo"}]},
    "valid contentFrom": {"files": [{"contentFrom": SECRET}]},
    "valid template contentFormat": {"files": [file("{{ .controlPlane.version }}")]},
    "valid go-template contentFormat": {"files": [file("{{ .KubernetesVersion }}", content_format="go-template")]},
    "what is raw need not parse": {"files": [file("{{", content_format="Raw"), {"path": "/y", "content": "{{"}]},
    "valid passwd": {"users": [{"passwd": "foo"}]},
    "valid passwdFrom": {"users": [{"passwdFrom": SECRET}]},
    "Ignition field is not set, format is Ignition": {"format": "ignition"},
    "bootCommands configured with CloudConfig format": {"format": "cloud-config", "bootCommands": ["echo $(date)"]},
    "health check seconds, join not defined": {"initConfiguration": INIT_TIMEOUTS},
    "health check seconds, init not defined": {"joinConfiguration": INIT_TIMEOUTS},
    "health check seconds": {"initConfiguration": INIT_TIMEOUTS, "joinConfiguration": INIT_TIMEOUTS},
    "disk layout of 100": {"diskSetup": {"partitions": [{"device": "d", "diskLayout": [{"percentage": 30}, {"percentage": 70}]}]}},
    "disk layout below 100": {"diskSetup": {"partitions": [{"device": "d", "diskLayout": [{"percentage": 30}, {"percentage": 20}]}]}},
    "gpt with Ignition": {"format": "ignition", "diskSetup": {"partitions": [{"device": "d", "tableType": "gpt", "layout": True}]}},
    "nothing": {},
}

INVALID: dict[str, tuple[dict[str, Any], list[str]]] = {
    # upstream's BootstrapTokenString cannot be read from another text.
    "malformed bootstrap tokens": (
        {"initConfiguration": {"bootstrapTokens": [{"token": "abcdef.0123456789abcdef"}, {"token": "abcdef.x"}, {"token": "x\n"}]}},
        [
            r'initConfiguration.bootstrapTokens[1].token: Invalid value: "abcdef.x": '
            r'the bootstrap token was not of the form "\\A([a-z0-9]{6})\\.([a-z0-9]{16})\\z"',
            r'initConfiguration.bootstrapTokens[2].token: Invalid value: "x\n": '
            r'the bootstrap token was not of the form "\\A([a-z0-9]{6})\\.([a-z0-9]{16})\\z"',
        ],
    ),
    "content and contentFrom": (
        {"files": [{"contentFrom": {"secret": {"name": "secret"}}, "content": "foo"}]},
        [
            'files[0]: Invalid value: {"content":"foo","contentFrom":{"secret":{"name":"secret"}}}: '
            "only one of content or contentFrom may be specified for a single file",
            "files[0].contentFrom.secret.key: Required value: secret file source must specify non-empty secret key",
        ],
    ),
    "contentFrom without name": (
        {"files": [{"path": "/a", "owner": "root", "contentFrom": {"secret": {"key": "bar"}}, "content": "foo"}]},
        [
            'files[0]: Invalid value: {"path":"/a","owner":"root","content":"foo","contentFrom":{"secret":{"key":"bar"}}}: '
            "only one of content or contentFrom may be specified for a single file",
            "files[0].contentFrom.secret.name: Required value: secret file source must specify non-empty secret name",
        ],
    ),
    "duplicate file path": (
        {"files": [{"content": "foo"}, {"content": "bar"}]},
        ['files[1].path: Invalid value: {"content":"bar"}: path property must be unique among all files'],
    ),
    "passwd and passwdFrom": (
        {"users": [{"passwdFrom": {"secret": {"name": "secret"}}, "passwd": "foo"}]},
        [
            'users[0]: Invalid value: {"passwd":"foo","passwdFrom":{"secret":{"name":"secret"}}}: '
            "only one of passwd or passwdFrom may be specified for a single user",
            "users[0].passwdFrom.secret.key: Required value: secret file source must specify non-empty secret key",
        ],
    ),
    "passwdFrom without name": (
        {"users": [{"passwdFrom": {"secret": {"key": "bar"}}}]},
        ["users[0].passwdFrom.secret.name: Required value: secret file source must specify non-empty secret name"],
    ),
    "passwdFrom without key": (
        {"users": [{"passwdFrom": {"secret": {"name": "foo"}}}]},
        ["users[0].passwdFrom.secret.key: Required value: secret file source must specify non-empty secret key"],
    ),
    "Ignition field is set, format is not Ignition": (
        {"ignition": IGNITION_CONFIG},
        ['format: Invalid value: "": must be set to "ignition" if spec.ignition is set'],
    ),
    "format is Ignition, user is inactive": (
        {"format": "ignition", "users": [{"name": "a"}, {"name": "b", "inactive": True}]},
        [f"users[1].inactive: {NOT_WITH_IGNITION}"],
    ),
    "format is Ignition, non-GPT partition configured": (
        {"format": "ignition", "diskSetup": {"partitions": [{"tableType": "MS-DOS"}]}},
        [
            'diskSetup.partitions[0].tableType: Invalid value: "MS-DOS": '
            'only partition type "gpt" is supported when spec.format is set to "ignition"'
        ],
    ),
    "replaceFS specified with Ignition": (
        {"format": "ignition", "diskSetup": {"filesystems": [{"replaceFS": "ntfs"}]}},
        [f"diskSetup.filesystems[0].replaceFS: {NOT_WITH_IGNITION}"],
    ),
    "filesystem partition specified with Ignition": (
        {"format": "ignition", "diskSetup": {"filesystems": [{"partition": "1"}]}},
        [f"diskSetup.filesystems[0].partition: {NOT_WITH_IGNITION}"],
    ),
    "file encoding gzip specified with Ignition": (
        {"format": "ignition", "files": [{"encoding": "gzip"}]},
        [f"files[0].encoding: {NOT_WITH_IGNITION}"],
    ),
    "file encoding gzip+base64 specified with Ignition": (
        {"format": "ignition", "files": [{"encoding": "gzip+base64"}]},
        [f"files[0].encoding: {NOT_WITH_IGNITION}"],
    ),
    "bootCommands configured with Ignition format": (
        {"format": "ignition", "bootCommands": ["echo $(date)", "echo 'hello BootCommands!'"]},
        [f"bootCommands: {NOT_WITH_IGNITION}"],
    ),
    "disk layout beyond 100": (
        {"diskSetup": {"partitions": [{"device": "d", "diskLayout": [{"percentage": 60}, {"percentage": 50}]}]}},
        ["diskSetup.partitions[0].diskLayout: Invalid value: 110: the sum of all partition percentages must not be greater than 100"],
    ),
    "authProvider and exec": (
        {"joinConfiguration": {"discovery": {"file": {"kubeConfig": {"user": {"authProvider": {"name": "a"}, "exec": {"command": "c"}}}}}}},
        [
            'joinConfiguration.discovery.file.kubeconfig.user: Invalid value: {"authProvider":{"name":"a"},"exec":{"command":"c"}}: '
            "only one of authProvider or exec must be defined"
        ],
    ),
    "a template that does not parse": (
        {"files": [file("ok"), file("#!/bin/sh\necho {{ .controlPlane.version }", "/y")]},
        ['files[1].content: Invalid value: "echo {{ .controlPlane.version }": template: /y:2: unexpected "}" in operand'],
    ),
    "a go-template that does not parse": (
        {"files": [file("{{ .KubernetesVersion | upper }}", content_format="go-template")]},
        ['files[0].content: Invalid value: "{{ .KubernetesVersion | upper }}": template: /x:1: function "upper" not defined'],
    ),
    "an if without an end": (
        {"files": [file("{{ if .controlPlane }}\n")]},
        ['files[0].content: Invalid value: "": template: /x:2: unexpected EOF'],
    ),
}


@pytest.mark.parametrize("spec", VALID.values(), ids=VALID)
def test_what_upstream_admits_is_admitted(spec: dict[str, Any]) -> None:
    for new in (config(spec), template(spec)):
        assert webhooks.validate(new, None) == []
        assert webhooks.validate(new, new) == []


@pytest.mark.parametrize(("spec", "errors"), INVALID.values(), ids=INVALID)
def test_what_upstream_refuses_is_refused_with_its_words(spec: dict[str, Any], errors: list[str]) -> None:
    assert list(map(str, webhooks.validate(config(spec), None))) == [f"spec.{error}" for error in errors]
    assert list(map(str, webhooks.validate(template(spec), config({})))) == [f"spec.template.spec.{error}" for error in errors]


def test_labels_and_annotations_of_a_template_are_checked() -> None:
    labels = {"foo": "$invalid-key", "bar": "a" * 64 + "too-long-value", "/invalid-key": "foo"}
    found = list(map(str, webhooks.validate(template({}, {"labels": labels, "annotations": {"/invalid-key": "foo"}}), None)))
    assert len(found) == 4
    assert found[0].startswith(
        'spec.template.metadata.labels: Invalid value: "$invalid-key": a valid label must be an empty string or consist'
    )
    assert found[1:] == [
        f'spec.template.metadata.labels: Invalid value: "{labels["bar"]}": must be no more than 63 bytes',
        'spec.template.metadata.labels: Invalid value: "/invalid-key": prefix part must be non-empty',
        'spec.template.metadata.annotations: Invalid value: "/invalid-key": prefix part must be non-empty',
    ]


def test_a_stored_template_that_does_not_parse_does_not_block_other_changes() -> None:
    stored = config({"files": [file("{{")]})
    assert webhooks.validate({**stored, "metadata": {"name": "baz", "finalizers": []}}, stored) == []
    assert webhooks.validate(config({"files": [file("{{ .")]}), stored) != []


def test_values_of_the_wrong_type_are_refused_with_their_place() -> None:
    [error] = webhooks.validate(config({"files": [{"path": 1}]}), None)
    assert str(error) == 'spec: Invalid value: "": Expected `str`, got `int` - at `$.spec.files[0].path`'


@pytest.mark.parametrize(
    ("entry", "warnings"),
    [
        (file("{{ .controlPlane.version }}"), []),
        (file("{{ if .controlPlane }}{{ .controlPlane.version }}{{ end }}"), []),
        (
            file("a\n{{ .controlplane.version }}"),
            ["spec.files[0].content: line 2: no value for .controlplane.version: Template has .controlPlane.version"],
        ),
        (
            file("{{ .controlPlane.version }}", content_format="go-template"),
            ["spec.files[0].content: line 1: no value for .controlPlane.version: go-template has .KubernetesVersion"],
        ),
        (
            file("{{ .controlPlane.version.minor }}"),
            [
                'spec.files[0].content: template: /x:1:16: executing "/x" at <.controlPlane.version.minor>: '
                "can't evaluate field minor in type interface {}"
            ],
        ),
        (
            {**file("e3sgLng="), "encoding": "base64"},
            ["spec.files[0]: a template is rendered before its base64 is decoded: actions in encoded text stay as they are"],
        ),
    ],
)
def test_templates_that_will_fail_are_warned_of(entry: dict[str, Any], warnings: list[str]) -> None:
    verdict = validator("KubeadmConfig").validate(request(config({"files": [entry]})))
    assert (list(verdict.problems), list(verdict.warnings)) == ([], warnings)


def test_who_edits_a_template_is_told_that_its_machines_stay_as_they_are() -> None:
    old, new = template({"preKubeadmCommands": ["true"]}), template({"preKubeadmCommands": ["false"]})
    [warning] = webhooks.edit_warnings(new, old)
    assert "spec.template.spec.bootstrap.configRef" in warning
    relabelled = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    assert [webhooks.edit_warnings(*each) for each in ((new, None), (relabelled, old), (config({"verbosity": 1}), config({})))] == [
        [],
        [],
        [],
    ]


def test_a_review_that_asks_for_a_gigabyte_of_text_is_answered_with_little_memory() -> None:
    doubled = '{{$x := "😀"}}{{range 22}}{{$x = print $x $x}}{{end}}{{printf "%x" $x}}'
    tracemalloc.start()
    try:
        [warning] = review(body(config({"files": [file(doubled)]})), validator("KubeadmConfig"))["response"]["warnings"]
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert warning.endswith("error calling print: the text is longer than the limit of 1048576 characters")


def test_the_templates_of_a_review_have_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "SECONDS", 0.0)
    entries = [file("{{ .controlPlane.version }}"), file("{{1}}\n" * 1_000, "/y")]
    [problem] = validator("KubeadmConfig").validate(request(config({"files": entries}))).problems
    assert problem.text == 'spec.files[1].content: Invalid value: "{{1}}": template: /y:250: the time to parse it in is over'


def test_the_line_of_a_template_that_does_not_parse_is_cut_short() -> None:
    [error] = webhooks.validate(config({"files": [file("{{ nothing }}" + "x" * 100_000)]}), None)
    assert len(str(error)) < 1_500
    assert str(error).endswith('template: /x:1: function "nothing" not defined')


# The webhooks as the API server meets them.


def request(obj: dict[str, Any], *, dry_run: bool = False) -> Any:
    from slipway.runtime.webhook.admission import AdmissionRequest

    return AdmissionRequest("CREATE", obj, None, "default", "baz", "somebody", dry_run)


def validator(kind: str) -> Validator:
    [found] = [hook for hook in webhooks.webhooks() if isinstance(hook, Validator) and hook.kind.kind == kind]
    return found


def defaulter() -> Defaulter:
    [found] = [hook for hook in webhooks.webhooks() if isinstance(hook, Defaulter)]
    return found


def body(obj: dict[str, Any], *, dry_run: bool = False) -> bytes:
    asked = {"uid": "1", "operation": "CREATE", "object": obj, "name": "baz", "dryRun": dry_run}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}).encode()


def test_a_refusal_reads_as_the_api_servers_own() -> None:
    obj = config({"files": [{"path": "/a", "content": "x"}, {"path": "/a", "content": "y"}]})
    response = review(body(obj), validator("KubeadmConfig"))["response"]
    detail = 'Invalid value: {"path":"/a","content":"y"}: path property must be unique among all files'
    assert response["allowed"] is False
    assert response["status"]["message"] == f'KubeadmConfig.bootstrap.cluster.x-k8s.io "baz" is invalid: spec.files[1].path: {detail}'
    assert response["status"]["details"]["causes"] == [{"reason": "FieldValueInvalid", "message": detail, "field": "spec.files[1].path"}]


def test_the_paths_are_those_of_upstream() -> None:
    assert [hook.path for hook in webhooks.webhooks()] == [
        "/validate-bootstrap-cluster-x-k8s-io-v1beta2-kubeadmconfig",
        "/mutate-bootstrap-cluster-x-k8s-io-v1beta2-kubeadmconfigtemplate",
        "/validate-bootstrap-cluster-x-k8s-io-v1beta2-kubeadmconfigtemplate",
    ]


def test_a_template_is_defaulted_in_dry_runs_of_the_topology_controller_alone() -> None:
    plain = template({"verbosity": 4})
    annotated = {**plain, "metadata": {"name": "baz", "annotations": {"topology.cluster.x-k8s.io/dry-run": ""}}}
    for obj, dry_run in ((plain, False), (plain, True), (annotated, False)):
        assert review(body(obj, dry_run=dry_run), defaulter())["response"] == {"uid": "1", "allowed": True}
    response = review(body(annotated, dry_run=True), defaulter())["response"]
    patched = apply(annotated, json.loads(b64decode(response["patch"])))
    assert patched["spec"]["template"]["spec"] == {
        "verbosity": 4,
        "format": "cloud-config",
        "initConfiguration": {"nodeRegistration": {"imagePullPolicy": "IfNotPresent"}},
        "joinConfiguration": {"nodeRegistration": {"imagePullPolicy": "IfNotPresent"}},
    }


def test_defaults_replace_nothing_and_complete_a_credential_command() -> None:
    join = {
        "nodeRegistration": {"imagePullPolicy": "Always", "name": "n"},
        "discovery": {"file": {"kubeConfigPath": "/k", "kubeConfig": {"user": {"exec": {"command": "c"}}}}},
    }
    spec = webhooks.default(template({"format": "ignition", "joinConfiguration": join}))["spec"]["template"]["spec"]
    assert spec["format"] == "ignition"
    assert spec["joinConfiguration"] == {
        "nodeRegistration": {"imagePullPolicy": "Always", "name": "n"},
        "discovery": {
            "file": {
                "kubeConfigPath": "/k",
                "kubeConfig": {"user": {"exec": {"command": "c", "apiVersion": "client.authentication.k8s.io/v1"}}},
            }
        },
    }
    assert "apiVersion" not in join["discovery"]["file"]["kubeConfig"]["user"]["exec"]  # type: ignore[index]
