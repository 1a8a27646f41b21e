"""Machines and control planes between v1beta1 and v1beta2, compared with upstream's conversion; there and back nothing is lost."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from slipway.api.cluster import crds
from slipway.api.cluster.conversion import convert
from slipway.api.cluster.meta import decode, manifest
from slipway.api.cluster.names import CONVERSION_DATA_ANNOTATION as DATA_ANNOTATION
from slipway.api.cluster.versions import ConversionError
from slipway.api.machinery.patches.jsonpatch import merge

pytestmark = pytest.mark.recorded

GOLDEN = Path(__file__).parents[2] / "golden/clusterapi/conversion"
CASES: list[dict[str, Any]] = json.loads((GOLDEN / "machines.json").read_text())
RANDOM: list[dict[str, Any]] = json.loads((GOLDEN / "machines-random.json").read_text())
STORED = {definition.kind.kind: next(each.type for each in definition.versions if each.storage) for definition in crds.DEFINITIONS}
# Kinds of which v1beta1 can say everything but an explicit 0, as upstream has it: no annotation.
WITHOUT_DATA = ("MachineSet", "MachineDrainRule")

# What upstream makes otherwise of an object of v1beta2 on the way there and back, and why ours is kept.
UPSTREAM_CHANGES = {
    "the status of a Cluster v1beta2": "the order of failure domains, and that controlPlane was not said",
    "an empty MachineDeployment v1beta2": "it adds counters of 0 that nobody counted",
    "a MachineDeployment v1beta2": "it adds counters of 0 that nobody counted",
    "a MachineDeployment is scaled in v1beta1": "it adds counters of 0 that nobody counted, though the status was not changed",
    "an empty KubeadmControlPlane v1beta2": "it adds counters of 0 that nobody counted",
    "a KubeadmControlPlane v1beta2": "it gives the join the init's timeout",
    "a KubeadmControlPlane is scaled in v1beta1": "it adds counters of 0 that nobody counted, though the status was not changed",
}


def lookup(group: str, kind: str) -> str:
    if kind == "Unknown":
        raise ConversionError("no such kind")
    return f"{group}/v1beta2"


def other(api_version: str) -> str:
    group, _, version = api_version.rpartition("/")
    return f"{group}/{'v1beta1' if version == 'v1beta2' else 'v1beta2'}"


def comparable(content: Any) -> Any:
    """The object without null, and with what the annotation holds as an object."""
    out = without_nulls(content)
    annotations = out["metadata"].get("annotations", {})
    if DATA_ANNOTATION in annotations:
        annotations[DATA_ANNOTATION] = without_nulls(json.loads(annotations[DATA_ANNOTATION]))
        annotations[DATA_ANNOTATION].pop("metadata", None)
    return out


def without_nulls(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: without_nulls(value) for key, value in content.items() if value is not None and (key, value) != ("divisor", "0")}
    return [without_nulls(each) for each in content] if isinstance(content, list) else content


def without_needless_layouts(content: Any) -> Any:
    """v1beta2 refuses ``layout: false`` beside diskLayout, which upstream's conversion makes; random objects have it often."""
    if isinstance(content, dict):
        needless = content.get("layout") is False and content.get("diskLayout")
        return {key: without_needless_layouts(value) for key, value in content.items() if not (needless and key == "layout")}
    return [without_needless_layouts(each) for each in content] if isinstance(content, list) else content


def of_version(version: str, *, changed: bool) -> list[Any]:
    return [
        pytest.param(case, id=f"{case['object']['kind']}-{case['name']}")
        for case in (*CASES, *RANDOM)
        if case["object"]["apiVersion"].endswith(version) and "back" in case and ("change" in case) == changed
    ]


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case['object']['kind']}-{case['name']}") for case in (*CASES, *RANDOM)])
def test_an_object_becomes_what_upstream_makes_of_it(case: dict[str, Any]) -> None:
    wanted = other(case["object"]["apiVersion"])
    if "error" in case["there"]:
        with pytest.raises(ConversionError):
            convert(case["object"], wanted, lookup)
        return
    expected = case["there"]["object"]
    if wanted.endswith("v1beta2"):
        expected = without_needless_layouts(expected)
    assert comparable(convert(case["object"], wanted, lookup)) == comparable(expected)


@pytest.mark.parametrize("case", of_version("v1beta2", changed=False))
def test_v1beta2_there_and_back_is_the_same(case: dict[str, Any]) -> None:
    given = case["object"]
    back = convert(convert(given, other(given["apiVersion"]), lookup), given["apiVersion"])
    if given["kind"] in WITHOUT_DATA:
        assert comparable(back) == comparable(case["back"]["object"])
    else:
        assert comparable(back) == comparable(manifest(decode(without_nulls(given), STORED[given["kind"]])))


@pytest.mark.parametrize("case", [param for param in of_version("v1beta2", changed=False) if param.values[0] in CASES])
def test_upstream_changes_only_what_is_listed(case: dict[str, Any]) -> None:
    given = case["object"]
    if given["kind"] not in WITHOUT_DATA:
        same = comparable(case["back"]["object"]) == comparable(manifest(decode(given, STORED[given["kind"]])))
        assert same == (case["name"] not in UPSTREAM_CHANGES)


@pytest.mark.parametrize("case", of_version("v1beta1", changed=False))
def test_v1beta1_there_and_back_is_as_with_upstream(case: dict[str, Any]) -> None:
    given = case["object"]
    back = comparable(convert(convert(given, other(given["apiVersion"])), given["apiVersion"], lookup))
    expected = comparable(case["back"]["object"])
    for each in (back, expected):
        # It holds the form in between, which is compared above.
        each["metadata"].get("annotations", {}).pop(DATA_ANNOTATION, None)
    assert back == expected


@pytest.mark.parametrize("case", of_version("v1beta2", changed=True))
def test_what_a_client_of_v1beta1_changes_is_kept_beside_what_it_cannot_say(case: dict[str, Any]) -> None:
    given = case["object"]
    back = convert(merge(convert(given, other(given["apiVersion"]), lookup), case["change"]), given["apiVersion"])
    same = comparable(back) == comparable(case["back"]["object"])
    assert same == (case["name"] not in UPSTREAM_CHANGES)


def test_a_change_of_the_spec_leaves_the_status_alone() -> None:
    (case,) = [case for case in CASES if case["name"] == "a KubeadmControlPlane is scaled in v1beta1"]
    there = convert(case["object"], "controlplane.cluster.x-k8s.io/v1beta1", lookup)
    back = convert(merge(there, case["change"]), case["object"]["apiVersion"])
    assert back == merge(deepcopy(case["object"]), case["change"])


def test_without_somebody_who_knows_versions_a_reference_has_no_v1beta1_form() -> None:
    (case,) = [case for case in CASES if case["name"] == "a Machine v1beta2"]
    with pytest.raises(ConversionError, match=r"the reference to a MetalMachine of infrastructure\.cluster\.x-k8s\.io cannot be converted"):
        convert(case["object"], "cluster.x-k8s.io/v1beta1")


def test_an_object_without_references_needs_nobody_who_knows_versions() -> None:
    given = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "a"}, "spec": {"paused": True}}
    assert convert(given, "cluster.x-k8s.io/v1beta1")["spec"]["paused"] is True


def test_a_provider_that_moved_to_another_version_changes_nothing_that_is_stored() -> None:
    (case,) = [case for case in CASES if case["name"] == "a Machine v1beta2"]
    there = convert(case["object"], "cluster.x-k8s.io/v1beta1", lambda group, _: f"{group}/v1alpha9")
    assert convert(there, case["object"]["apiVersion"])["spec"] == case["object"]["spec"]


def test_a_reference_that_cannot_be_read_is_named() -> None:
    (case,) = [case for case in CASES if case["name"] == "a Machine whose reference cannot be read"]
    with pytest.raises(ConversionError, match='its apiVersion "a/b/c" is not group/version'):
        convert(case["object"], "cluster.x-k8s.io/v1beta2")


def test_what_is_given_is_not_changed() -> None:
    for case in CASES:
        if "error" not in case["there"]:
            before = deepcopy(case["object"])
            convert(case["object"], other(before["apiVersion"]), lookup)
            assert case["object"] == before
