"""Folders of patches: kubeadm's own table (app/util/patches/patches_test.go), and recorded runs of the real one."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from slipway.api.kubeadm.internal import InitConfiguration, Patches
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.api.machinery.yaml import goyaml
from slipway.api.releases import release_for
from slipway.host.progress import TextProgress
from slipway.host.real import RealHost
from slipway.node.context import NodeContext
from slipway.node.staticpods import patches
from slipway.node.staticpods.patches import JSON, MERGE, STRATEGIC

# kubeadm's table is without the CoreDNS Deployment.
TARGETS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubeletconfiguration")
GOLDEN = json.loads((Path(__file__).parents[2] / "golden/patches/folders.json").read_text())


def folder_with(path: Path, files: dict[str, str]) -> str:
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(content)
    return str(path)


def context(directory: str, output: io.StringIO, version: str = "v1.36.3") -> NodeContext:
    return NodeContext(
        config=InitConfiguration(patches=Patches(directory=directory) if directory else None),
        release=release_for(Version.parse(version)),
        host=RealHost(),
        progress=TextProgress(output),
    )


def load(directory: str) -> patches.PatchSet:
    return patches.load(directory, TARGETS, RealHost(), TextProgress(io.StringIO()))


@pytest.mark.parametrize(
    ("name", "target", "patch_type"),
    [
        ("etcd+merge.json", "etcd", MERGE),
        ("etcd0.yaml", "etcd", STRATEGIC),
        ("etcd0+merge.yaml", "etcd", MERGE),
        ("kube-apiserver-abc+json.yaml", "kube-apiserver", JSON),
        ("kubeletconfiguration+strategic.json", "kubeletconfiguration", STRATEGIC),
    ],
)
def test_a_file_name_says_target_and_type(name: str, target: str, patch_type: str) -> None:
    assert patches.parse_name(name, TARGETS) == (target, patch_type, "")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("foo.yaml", "unknown target"),
        ("corednsdeployment.yaml", "unknown target"),
        ("etcd.foo", "file extension"),
        ("etcd", "file extension"),
        (".yaml", "file extension"),
    ],
)
def test_a_file_that_is_no_patch_is_left_alone(name: str, reason: str) -> None:
    target, patch_type, warning = patches.parse_name(name, TARGETS)
    assert (target, patch_type) == ("", "")
    assert reason in warning


@pytest.mark.parametrize("name", ["etcd+foo.json", "etcd+.json"])
def test_an_unknown_type_is_refused(name: str) -> None:
    with pytest.raises(OperatorError, match=r"unknown or missing patch type after '\+'"):
        patches.parse_name(name, TARGETS)


@pytest.mark.parametrize(
    "text",
    [
        "foo: bar\n---\nfoo: baz\n",
        '{"foo":"bar"}\n---\n{"foo":"baz"}',
        '{"foo":"bar"}\n---\n     ---\n{"foo":"baz"}',
        "---\nfoo: bar\n---\n\n---\nfoo: baz\n---\n",
    ],
)
def test_the_documents_of_a_file_are_patches(text: str) -> None:
    assert [item.content for item in patches.parse(text, "etcd", STRATEGIC, "etcd.yaml")] == [{"foo": "bar"}, {"foo": "baz"}]


def test_files_are_sorted_and_others_ignored(tmp_path: Path) -> None:
    names = ["kube-scheduler+merge.json", "kube-apiserver+json.yaml", "etcd.yaml", "foo", "bar.json"]
    found = load(folder_with(tmp_path, dict.fromkeys(names, '{"foo":"bar"}')))
    assert found.files == ("etcd.yaml", "kube-apiserver+json.yaml", "kube-scheduler+merge.json")
    assert found.ignored == ("bar.json", "foo")
    assert [(item.target, item.type, item.content) for item in found.patches] == [
        ("etcd", STRATEGIC, {"foo": "bar"}),
        ("kube-apiserver", JSON, {"foo": "bar"}),
        ("kube-scheduler", MERGE, {"foo": "bar"}),
    ]


def test_empty_files_are_ignored(tmp_path: Path) -> None:
    found = load(folder_with(tmp_path, {"kube-scheduler.json": ""}))
    assert (found.patches, found.files, found.ignored) == ((), (), ("kube-scheduler.json",))


def test_a_mounted_config_map_is_read_once(tmp_path: Path) -> None:
    folder_with(tmp_path, {"..2026_01_01/etcd.yaml": "a: b"})
    (tmp_path / "..data").symlink_to("..2026_01_01")
    (tmp_path / "etcd.yaml").symlink_to("..data/etcd.yaml")
    assert load(str(tmp_path)).files == ("etcd.yaml",)


@pytest.mark.parametrize(("name", "words"), [("file", "not a directory"), ("missing", "no such file or directory")])
def test_the_folder_must_be_one(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OperatorError, match=f'could not list patch files for path "{tmp_path / name}": {words}'):
        load(str(tmp_path / name))


def test_an_unreadable_patch_is_named(tmp_path: Path) -> None:
    (tmp_path / "etcd.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(OperatorError, match=r"etcd\.yaml.* is not UTF-8"):
        load(str(tmp_path))


@pytest.mark.parametrize(
    ("target", "files", "expected"),
    [
        (
            "kube-apiserver",
            {
                "kube-apiserver+merge.yaml": "foo: patched",
                "kube-apiserver+json.json": '[{"op": "replace", "path": "/foo", "value": "zzz"}]',
            },
            {"foo": "patched"},
        ),
        ("kube-apiserver", {"kube-apiserver+json.json": '[{"op": "replace", "path": "/foo", "value": "zzz"}]'}, {"foo": "zzz"}),
        ("kubeletconfiguration", {"kubeletconfiguration+json.json": '[{"op": "replace", "path": "/foo", "value": "zzz"}]'}, {"foo": "zzz"}),
        ("kube-apiserver", {"kube-apiserver+strategic.json": '{"foo":"zzz"}'}, {"foo": "zzz"}),
        ("etcd", {"kube-apiserver+merge.yaml": "foo: patched"}, {"foo": "bar"}),
    ],
)
def test_patches_apply_to_their_target_in_order(tmp_path: Path, target: str, files: dict[str, str], expected: dict[str, Any]) -> None:
    found = load(folder_with(tmp_path, files))
    assert patches.apply(found.patches, target, {"foo": "bar"}, 36, TextProgress(io.StringIO())) == expected


def recorded(want_error: bool) -> list[Any]:
    return [
        pytest.param(case, version, outcome, id=f"{case['name']} {version}")
        for case in GOLDEN["cases"]
        for version, outcome in case["outcome"].items()
        if bool(outcome["error"]) == want_error
    ]


@pytest.mark.parametrize(("case", "version", "outcome"), recorded(want_error=False))
def test_the_patched_artefact_and_the_lines_are_kubeadm_s(
    case: dict[str, Any], version: str, outcome: dict[str, Any], tmp_path: Path
) -> None:
    directory = folder_with(tmp_path / "patches", case["files"])
    output = io.StringIO()
    ctx = context(directory, output, version)
    [base] = goyaml.load(GOLDEN["bases"][case["target"]][version])
    patched = patches.patch(ctx, case["target"], base.value)
    if case["target"] == "kubeletconfiguration" and version != "v1.33.13":
        # kubeadm ends with the node's own settings, in a file beside the configuration.
        instance = tmp_path / "instance-config.yaml"
        instance.write_text(f"containerRuntimeEndpoint: {base.value['containerRuntimeEndpoint']}\n")
        patched = patches.patch_from_file(ctx, case["target"], patched, str(instance))
    assert goyaml.dump(patched) == outcome["artefact"]
    assert output.getvalue().replace(directory, "PATCHES").splitlines() == outcome["said"]


@pytest.mark.parametrize(("case", "version", "outcome"), recorded(want_error=True))
def test_what_kubeadm_refuses_is_refused_after_the_same_lines(
    case: dict[str, Any], version: str, outcome: dict[str, Any], tmp_path: Path
) -> None:
    directory = folder_with(tmp_path, case["files"])
    output = io.StringIO()
    [base] = goyaml.load(GOLDEN["bases"][case["target"]][version])
    with pytest.raises(OperatorError):
        patches.patch(context(directory, output, version), case["target"], base.value)
    assert output.getvalue().replace(directory, "PATCHES").splitlines() == outcome["said"]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("kube-scheduler.yaml", "spec: {containers: [{image: x}]}", "does not contain declared merge key: name"),
        ("kube-scheduler+json.yaml", "- {op: add, path: /a/b, value: 1}", 'add operation does not apply: doc is missing path: "/a/b"'),
        ("kube-scheduler+merge.yaml", "just text", "Invalid JSON Patch"),
        ("kube-scheduler+merge.yaml", "[1]", "not an object"),
    ],
)
def test_a_patch_that_does_not_apply_is_named_with_its_file(tmp_path: Path, name: str, text: str, words: str) -> None:
    ctx = context(folder_with(tmp_path, {name: text}), io.StringIO())
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "kube-scheduler"}, "spec": {"containers": [{"name": "a"}]}}
    with pytest.raises(OperatorError) as caught:
        patches.patch(ctx, "kube-scheduler", pod)
    assert 'could not apply the following patch of type "application/' in caught.value.message
    assert str(tmp_path / name) in caught.value.message
    assert words in caught.value.message


def test_a_value_of_the_wrong_type_is_named_with_its_place(tmp_path: Path) -> None:
    ctx = context(folder_with(tmp_path, {"etcd.yaml": "spec: {priority: high}"}), io.StringIO())
    with pytest.raises(OperatorError, match=r"failed to unmarshal patched manifest: spec\.priority: cannot unmarshal string"):
        patches.patch(ctx, "etcd", {"apiVersion": "v1", "kind": "Pod", "spec": {}})


def test_a_patch_cannot_make_another_kind(tmp_path: Path) -> None:
    # kubeadm writes the Pod as if there were no patch, and says nothing.
    ctx = context(folder_with(tmp_path, {"etcd.yaml": "kind: ConfigMap"}), io.StringIO())
    with pytest.raises(OperatorError, match="not a valid Pod object"):
        patches.patch(ctx, "etcd", {"apiVersion": "v1", "kind": "Pod"})


def test_a_deployment_is_patched_by_the_keys_of_its_pod(tmp_path: Path) -> None:
    text = "spec: {template: {spec: {containers: [{name: coredns, resources: {limits: {memory: 1024Mi}}}], foo: bar}}}"
    ctx = context(folder_with(tmp_path, {"corednsdeployment.yaml": text}), io.StringIO())
    container = {"name": "coredns", "image": "i", "resources": {"limits": {"memory": "170Mi"}}}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": {"containers": [container]}}}}
    patched = patches.patch(ctx, "corednsdeployment", deployment)
    expected = {"name": "coredns", "image": "i", "resources": {"limits": {"memory": "1Gi"}}}
    assert patched["spec"]["template"]["spec"] == {"containers": [expected]}


def test_without_a_folder_the_manifest_stays_as_it_is() -> None:
    manifest = {"kind": "Pod", "foo": "bar"}
    assert patches.patch(context("", io.StringIO()), "etcd", manifest) is manifest


def test_a_folder_is_read_and_announced_once_a_run(tmp_path: Path) -> None:
    output = io.StringIO()
    ctx = context(folder_with(tmp_path, {"etcd.yaml": "metadata: {labels: {a: b}}"}), output)
    for _ in range(2):
        patches.patch(ctx, "etcd", {"apiVersion": "v1", "kind": "Pod"})
    assert output.getvalue().count("Reading patches") == 1
    assert output.getvalue().count("Applied patch") == 2


def test_a_missing_patch_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="could not read patch file"):
        patches.patch_from_file(context("", io.StringIO()), "kubeletconfiguration", {}, str(tmp_path / "instance-config.yaml"))
