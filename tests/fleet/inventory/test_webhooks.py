"""What is refused of inventories and registrations."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.api.cluster.kinds import MACHINE_INVENTORY, MACHINE_REGISTRATION
from slipway.fleet.inventory.webhooks import webhooks
from slipway.runtime.webhook.admission import AdmissionRequest

HOOKS = {hook.kind: hook for hook in webhooks()}


def refusals(kind: Any, spec: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    def whole(content: dict[str, Any]) -> dict[str, Any]:
        return {"metadata": {"name": "a", "namespace": "n"}, "spec": content}

    before = None if old is None else whole(old)
    request = AdmissionRequest("UPDATE" if old is not None else "CREATE", whole(spec), before, "n", "a", "someone", False)
    return [problem.text for problem in HOOKS[kind].validate(request).problems]


STORAGE = {"storage": {"volumes": [{"name": "data"}]}}


def test_an_inventory_with_data_volumes_is_refused_with_a_sentence() -> None:
    (text,) = refusals(MACHINE_INVENTORY, STORAGE)
    assert text.startswith("spec.storage: Forbidden: data volumes that outlive a reprovisioning are not managed here: remove them")


def test_an_inventory_that_had_data_volumes_before_can_be_changed_otherwise() -> None:
    assert refusals(MACHINE_INVENTORY, {**STORAGE, "network": {"configurator": "none"}}, STORAGE) == []


def test_an_inventory_stays_the_host_that_it_is() -> None:
    assert refusals(MACHINE_INVENTORY, {"tpmHash": "b"}, {"tpmHash": "a"})
    assert refusals(MACHINE_INVENTORY, {"tpmHash": "a"}, {}) == []


@pytest.mark.parametrize("token", ["a", "my-hosts-1", "0"])
def test_a_token_that_can_end_an_address_is_taken(token: str) -> None:
    assert refusals(MACHINE_REGISTRATION, {"token": token}) == []


@pytest.mark.parametrize("token", ["A", "-a", "a-", "a/b", "a b", "ä"])
def test_a_token_that_cannot_is_refused(token: str) -> None:
    (text,) = refusals(MACHINE_REGISTRATION, {"token": token})
    assert text.startswith("spec.token: Invalid value")


@pytest.mark.parametrize(
    "template",
    ["", "host", "m-${System Information/UUID}", "${Random/UUID}", "${Random/Hex/8}-${Random/Int/100}", "$ 5 {}", "${Anything/At All}"],
)
def test_placeholders_that_some_host_can_fill_are_taken(template: str) -> None:
    spec = {"machineName": template, "machineInventoryLabels": {"a": template}, "machineInventoryAnnotations": {"example.com/a": template}}
    assert refusals(MACHINE_REGISTRATION, spec) == []


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        ("m-${System Information", 'the placeholder "${System Information" has no end'),
        ("${}", '"${}" names nothing'),
        ("${System Information/}", '"${System Information/}" names nothing'),
        ("${Random/Hex/33}", "must be Random/UUID, Random/Hex/<1 to 32>"),
        ("${Random/Int/0}", "Random/Int/<a number above 0>"),
    ],
)
def test_placeholders_that_no_host_can_fill_are_refused(template: str, sentence: str) -> None:
    for spec, field in (
        ({"machineName": template}, "spec.machineName"),
        ({"machineInventoryLabels": {"a": template}}, "spec.machineInventoryLabels[a]"),
        ({"machineInventoryAnnotations": {"a": template}}, "spec.machineInventoryAnnotations[a]"),
    ):
        (text,) = refusals(MACHINE_REGISTRATION, spec)
        assert text.startswith(f"{field}: Invalid value")
        assert sentence in text


def test_a_label_that_is_none_is_refused() -> None:
    assert refusals(MACHINE_REGISTRATION, {"machineInventoryLabels": {"a b": "x"}})


def test_what_is_no_inventory_is_refused() -> None:
    assert refusals(MACHINE_INVENTORY, {"tpmHash": 1})
