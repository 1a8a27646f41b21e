"""KubeadmConfigs between v1beta1 and v1beta2, compared with upstream's conversion; there and back nothing is lost."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from slipway.api.cluster.bootstrap import config, v1beta1
from slipway.api.cluster.conversion import convert
from slipway.api.cluster.meta import decode, manifest
from slipway.api.cluster.names import CONVERSION_DATA_ANNOTATION as DATA_ANNOTATION
from slipway.api.cluster.versions import ConversionError
from slipway.api.machinery.patches.jsonpatch import merge

pytestmark = pytest.mark.recorded

GOLDEN = Path(__file__).parents[2] / "golden/clusterapi/conversion"
V1BETA1, V1BETA2 = v1beta1.API_VERSION, config.API_VERSION

CASES: list[dict[str, Any]] = json.loads((GOLDEN / "objects.json").read_text())
RANDOM: list[dict[str, Any]] = json.loads((GOLDEN / "random.json").read_text())

# What upstream makes otherwise, by case, and why ours is kept.
UPSTREAM_MAKES_OTHERWISE = {
    # It finds volumes by hostPath and files by path, and gives both what the first one has.
    "two volumes of one path",
    "two files of one path",
    # Empty lists make it write initConfiguration: {} and extraEnvs: [], which v1beta2 refuses for having nothing in them.
    "empty objects v1beta1",
    # layout: false stays beside diskLayout, which v1beta2 refuses.
    "a disk layout v1beta1",
}
# Where it loses something of v1beta2 on the way there and back, which we keep.
UPSTREAM_LOSES = {
    "control plane v1beta2": "the order of arguments",
    "only timeouts of init v1beta2": "that the timeout was the init's alone",
    "join waits otherwise than init": "the join's own timeout",
    "join alone waits for the control plane": "the join's own timeout",
    "the same argument twice": "the first of two values",
    "empty lists v1beta2": "an empty list of variables",
    "a disk layout v1beta2": "that layout was not said",
}


def other(api_version: str) -> str:
    return V1BETA1 if api_version == V1BETA2 else V1BETA2


def comparable(content: dict[str, Any]) -> dict[str, Any]:
    """The object without what says nothing: null, a divisor of 0, what remains of v1beta1's status, metadata in the annotation."""
    out: dict[str, Any] = without_nulls(content)
    if out.get("status", {}).get("deprecated") == {"v1beta1": {}}:
        del out["status"]["deprecated"]
        if not out["status"]:
            del out["status"]
    annotations = out["metadata"].get("annotations", {})
    if DATA_ANNOTATION in annotations:
        annotations[DATA_ANNOTATION] = without_nulls(json.loads(annotations[DATA_ANNOTATION]))
        annotations[DATA_ANNOTATION].pop("metadata", None)
    return out


def without_nulls(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: without_nulls(value) for key, value in content.items() if value is not None and (key, value) != ("divisor", "0")}
    return [without_nulls(each) for each in content] if isinstance(content, list) else content


def without_needless_layouts(content: dict[str, Any]) -> dict[str, Any]:
    """v1beta2 refuses ``layout: false`` beside diskLayout, which upstream's conversion makes; random objects have it often."""
    out = deepcopy(content)
    spec = out.get("spec", {})
    for partition in spec.get("template", {}).get("spec", spec).get("diskSetup", {}).get("partitions", []):
        if partition.get("layout") is False and partition.get("diskLayout") and out["apiVersion"] == V1BETA2:
            del partition["layout"]
    return out


def named(cases: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in cases]


@pytest.mark.parametrize("case", named([*CASES, *RANDOM]))
def test_an_object_becomes_what_upstream_makes_of_it(case: dict[str, Any]) -> None:
    wanted = other(case["object"]["apiVersion"])
    if "error" in case["there"]:
        with pytest.raises(ConversionError):
            convert(case["object"], wanted)
        return
    expected = case["there"]["object"] if case in CASES else without_needless_layouts(case["there"]["object"])
    same = comparable(convert(case["object"], wanted)) == comparable(expected)
    assert same == (case["name"] not in UPSTREAM_MAKES_OTHERWISE)


def test_a_volume_keeps_its_own_read_only() -> None:
    (case,) = [case for case in CASES if case["name"] == "two volumes of one path"]
    volumes = convert(case["object"], V1BETA2)["spec"]["clusterConfiguration"]["scheduler"]["extraVolumes"]
    assert [volume.get("readOnly") for volume in volumes] == [True, None]


def test_a_file_is_appended_to_another_of_the_same_path() -> None:
    (case,) = [case for case in CASES if case["name"] == "two files of one path"]
    assert convert(case["object"], V1BETA2)["spec"]["files"] == case["object"]["spec"]["files"]


def test_objects_with_empty_lists_alone_are_left_out() -> None:
    (case,) = [case for case in CASES if case["name"] == "empty objects v1beta1"]
    assert convert(case["object"], V1BETA2)["spec"] == {"users": [{"name": "u"}]}


def test_a_disk_layout_stands_alone() -> None:
    (case,) = [case for case in CASES if case["name"] == "a disk layout v1beta1"]
    assert convert(case["object"], V1BETA2)["spec"]["diskSetup"]["partitions"] == [
        {"device": "/dev/sdb", "diskLayout": [{"percentage": 100}]}
    ]


@pytest.mark.parametrize("case", named([case for case in CASES if "change" in case]))
def test_what_a_client_of_v1beta1_changes_is_kept_beside_what_it_cannot_say(case: dict[str, Any]) -> None:
    there = convert(case["object"], other(case["object"]["apiVersion"]))
    back = convert(merge(there, case["change"]), case["object"]["apiVersion"])
    assert comparable(back) == comparable(case["back"]["object"])


def printed(content: dict[str, Any]) -> dict[str, Any]:
    """The object as its type prints it: what a conversion can give back at most."""
    types: dict[str, Any] = {"KubeadmConfig": config.KubeadmConfig, "KubeadmConfigTemplate": config.KubeadmConfigTemplate}
    return comparable(manifest(decode(without_nulls(content), types[content["kind"]])))


OF_V1BETA2 = [case for case in (*CASES, *RANDOM) if case["object"]["apiVersion"] == V1BETA2 and "change" not in case]
OF_V1BETA1 = [case for case in (*CASES, *RANDOM) if case["object"]["apiVersion"] == V1BETA1 and "back" in case]


@pytest.mark.parametrize("case", named(OF_V1BETA2))
def test_v1beta2_there_and_back_is_the_same(case: dict[str, Any]) -> None:
    back = convert(convert(case["object"], V1BETA1), V1BETA2)
    assert comparable(back) == printed(case["object"])


@pytest.mark.parametrize("case", named([case for case in OF_V1BETA2 if case in CASES]))
def test_upstream_loses_only_what_is_listed(case: dict[str, Any]) -> None:
    same = comparable(case["back"]["object"]) == printed(case["object"])
    assert same == (case["name"] not in UPSTREAM_LOSES)


@pytest.mark.parametrize("case", named(OF_V1BETA1))
def test_v1beta1_there_and_back_is_as_with_upstream(case: dict[str, Any]) -> None:
    back, expected = comparable(convert(convert(case["object"], V1BETA2), V1BETA1)), comparable(case["back"]["object"])
    for each in (back, expected):
        # It holds the form in between, which is compared above.
        del each["metadata"]["annotations"][DATA_ANNOTATION]
    same = back == expected
    assert same == (case["name"] not in ("two volumes of one path", "two files of one path", "empty objects v1beta1"))


def test_what_is_given_is_not_changed() -> None:
    for case in CASES:
        if "error" not in case["there"]:
            before = deepcopy(case["object"])
            convert(case["object"], other(before["apiVersion"]))
            assert case["object"] == before


def test_an_object_in_the_wanted_version_is_given_back_as_it_is() -> None:
    given = CASES[0]["object"]
    assert convert(given, given["apiVersion"]) == given


@pytest.mark.parametrize(
    ("api_version", "kind", "wanted", "sentence"),
    [
        ("v1", "Secret", V1BETA2, "Secret v1 cannot be converted to .*: only objects of bootstrap.cluster.x-k8s.io, .* are converted here"),
        (V1BETA1, "Other", V1BETA2, "Other .*/v1beta1 cannot be converted to .*/v1beta2: only KubeadmConfig and KubeadmConfigTemplate can"),
        (V1BETA2, "KubeadmConfig", "bootstrap.cluster.x-k8s.io/v1alpha4", "cannot be converted to bootstrap.cluster.x-k8s.io/v1alpha4"),
    ],
)
def test_what_cannot_be_converted_is_said(api_version: str, kind: str, wanted: str, sentence: str) -> None:
    with pytest.raises(ConversionError, match=sentence):
        convert({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}}, wanted)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"files": "x"}, r"not a valid KubeadmConfigSpec of v1beta1: Expected `array`, got `str` - at `\$.files`"),
        ({"joinConfiguration": {"discovery": {"timeout": "5x"}}}, 'cannot be read: time: unknown unit "x" in duration "5x"'),
    ],
)
def test_a_value_of_the_wrong_kind_is_named(spec: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConversionError, match=sentence):
        convert({"apiVersion": V1BETA1, "kind": "KubeadmConfig", "metadata": {"name": "a"}, "spec": spec}, V1BETA2)


def test_a_broken_annotation_is_named() -> None:
    content = {
        "apiVersion": V1BETA1,
        "kind": "KubeadmConfig",
        "metadata": {"name": "a", "namespace": "n", "annotations": {DATA_ANNOTATION: "{"}},
    }
    with pytest.raises(ConversionError, match=r"KubeadmConfig n/a: the annotation cluster.x-k8s.io/conversion-data does not hold"):
        convert(content, V1BETA2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"metadata": "a"}, "metadata is no object"),
        ({"metadata": {"annotations": [1]}}, "metadata.annotations is no object"),
        ({"metadata": {"annotations": {DATA_ANNOTATION: ["a"]}}}, "does not hold the object's v1beta2 form"),
        ({"metadata": {"annotations": {DATA_ANNOTATION: '{"spec":' * 50_000}}}, "nested too deeply"),
        ({"metadata": {"name": "a"}, "spec": [1]}, "not a valid KubeadmConfigSpec|spec is no object"),
        ({"metadata": {"name": "a"}, "spec": {"template": "a"}}, "not a valid KubeadmConfigTemplate|spec.template is no object"),
    ],
    ids=["metadata", "annotations", "annotation", "depth", "spec", "template"],
)
def test_what_is_no_object_is_refused_with_its_place(content: dict[str, Any], message: str) -> None:
    kind = "KubeadmConfigTemplate" if "template" in str(content.get("spec")) else "KubeadmConfig"
    with pytest.raises(ConversionError, match=message):
        convert({"apiVersion": V1BETA1, "kind": kind, **content}, V1BETA2)


def test_files_are_paired_in_linear_time() -> None:
    files = [{"path": f"/{number}", "append": False} for number in range(5_000)]
    there = convert({"apiVersion": V1BETA2, "kind": "KubeadmConfig", "metadata": {"name": "a"}, "spec": {"files": files[::-1]}}, V1BETA1)
    there["spec"]["files"].reverse()
    assert convert(there, V1BETA2)["spec"]["files"] == files
