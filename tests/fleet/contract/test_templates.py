"""Objects made from templates."""

from __future__ import annotations

from typing import Any

from slipway.fleet.contract.templates import clone

TEMPLATE: dict[str, Any] = {
    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
    "kind": "TestMachineTemplate",
    "metadata": {"name": "t", "namespace": "ns", "uid": "u"},
    "spec": {"template": {"metadata": {"labels": {"a": "template", "b": "template"}, "annotations": {"n": "1"}}, "spec": {"size": 3}}},
}


def test_a_clone_has_what_the_template_says_and_where_it_comes_from() -> None:
    owner = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "name": "s", "uid": "v"}
    made = clone(TEMPLATE, name="m", namespace="ns", cluster="c", labels={"b": "caller"}, annotations={"o": "2"}, owners=[owner])
    assert made == {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
        "kind": "TestMachine",
        "metadata": {
            "name": "m",
            "namespace": "ns",
            "labels": {"a": "template", "b": "caller", "cluster.x-k8s.io/cluster-name": "c"},
            "annotations": {
                "n": "1",
                "o": "2",
                "cluster.x-k8s.io/cloned-from-name": "t",
                "cluster.x-k8s.io/cloned-from-groupkind": "TestMachineTemplate.infrastructure.cluster.x-k8s.io",
            },
            "ownerReferences": [owner],
        },
        "spec": {"size": 3},
    }


def test_the_template_stays_as_it_is() -> None:
    made = clone(TEMPLATE, name="m", namespace="ns", cluster="c", labels={}, annotations={})
    made["spec"]["size"] = 4
    assert TEMPLATE["spec"]["template"]["spec"] == {"size": 3}


def test_a_template_without_content_makes_an_empty_object() -> None:
    made = clone({**TEMPLATE, "spec": {}}, name="m", namespace="ns", cluster="c", labels={}, annotations={})
    assert "spec" not in made
    assert made["kind"] == "TestMachine"
