"""Names and labels of hosts from templates: elemental-operator's own rows, and where ours is held to what the API server takes."""

import re
import uuid
from typing import Any

import pytest

from slipway.api.cluster.meta import DNS_SUBDOMAIN
from slipway.api.elemental import placeholders
from slipway.api.elemental.placeholders import MissingError, TemplateError

pytestmark = pytest.mark.upstream_table

# pkg/templater/templater_test.go of elemental-operator 1.6.
TREE: dict[str, Any] = {
    "level1A": {"level2A": "level2AValue", "level2B": {"level3A": "level3AValue"}},
    "level1B": "level1BValue",
    "Troublesome": {"emptyData": "", "noStringVal": 5},
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("${level1B}", "level1BValue"),
        ("${level1B", "${level1B"),
        ("a${level1B", "a${level1B"),
        ("${", "${"),
        ("a${", "a${"),
        ("a${level1A/level2A}c", "alevel2AValuec"),
        ("a${level1A/level2B/level3A}c", "alevel3AValuec"),
        ("a${level1A/level2B/level3A}c${level1B}", "alevel3AValueclevel1BValue"),
        ("${Troublesome/emptyData}", ""),
        ("no placeholder", "no placeholder"),
    ],
)
def test_placeholders_are_filled(template: str, text: str) -> None:
    assert placeholders.render(template, TREE) == text


@pytest.mark.parametrize(
    "template",
    [
        "${}",
        "${level1A}",
        "a${level1A}c",
        "a${unknown}",
        "${Troublesome/noStringVal}",
        "${level1B/level2A}",
        "${Random/Float/3}",
        "${Random}",
    ],
)
def test_what_the_host_has_not_is_missing(template: str) -> None:
    with pytest.raises(MissingError):
        placeholders.render(template, TREE)


def test_a_value_that_is_longer_than_any_name_is_missing() -> None:
    with pytest.raises(MissingError, match="1025 characters"):
        placeholders.render("${a}", {"a": "x" * 1025})


@pytest.mark.parametrize(
    "template",
    [
        "${Random/UUID/1}",
        "${Random/Hex}",
        "${Random/Hex/0}",
        "${Random/Hex/33}",
        "${Random/Hex/x}",
        "${Random/Int/0}",
        "${Random/Int/-1}",
        "${Random/Int/99999999999999999999}",
    ],
)
def test_a_random_value_that_cannot_be_made_is_the_mistake_of_the_template(template: str) -> None:
    with pytest.raises(TemplateError, match="must be Random/UUID, Random/Hex/<1 to 32> or Random/Int"):
        placeholders.render(template, TREE)


def test_random_values_have_their_shape() -> None:
    assert uuid.UUID(placeholders.render("${Random/UUID}", {})).version == 4
    assert re.fullmatch("[0-9a-f]{5}", placeholders.render("${Random/Hex/5}", {}))
    assert re.fullmatch("[0-9a-f]{32}", placeholders.render("${Random/Hex/32}", {}))
    assert {placeholders.render("${Random/Int/3}", {}) for _ in range(200)} == {"0", "1", "2"}


# pkg/server/labeltmpl_test.go of elemental-operator 1.6, TestUpdateInventoryName.
NAMES = {"Template Data": {"Data 1": "value1", "Data 2": "value2", "Empty data": "", "Bad data": 0}}


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("machine-${Template Data/Data 1}", "machine-value1"),
        ("machine-${Template Data/Empty data}", "machine"),
        ("Rack_7 ${Template Data/Data 1}", "rack-7-value1"),
        ("-.web.example.com.-", "web.example.com"),
        ("a._b..c", "a.b.c"),
        ("x" * 80, "x" * 58),
        ("x" * 57 + "-y", "x" * 57),
    ],
)
def test_a_name_is_lower_case_and_a_dns_name(template: str, name: str) -> None:
    assert placeholders.machine_name(template, NAMES) == name
    assert re.match(DNS_SUBDOMAIN, name)


@pytest.mark.parametrize("template", ["machine-${Template Data/Dont Exists}", "$machine-${Template Data/Bad data}"])
def test_a_host_that_cannot_fill_its_name_gets_one_by_chance(template: str) -> None:
    name = placeholders.machine_name(template, NAMES)
    assert name.startswith("m-")
    assert uuid.UUID(name[2:])


def test_a_registration_without_a_name_names_hosts_by_their_uuid() -> None:
    assert placeholders.machine_name("", {"System Information": {"UUID": "069A9E4C-2EEC"}}) == "m-069a9e4c-2eec"


def test_a_template_that_leaves_no_name_is_refused() -> None:
    with pytest.raises(TemplateError, match=re.escape('machineName "${Template Data/Empty data}.-"')):
        placeholders.machine_name("${Template Data/Empty data}.-", NAMES)


# The same file, TestUpdateInventoryLabels.
HOST = {
    "System Data": {
        "Memory": {"Total Physical Bytes": "100"},
        "CPU": {"Model": "-this_is@broken?TM-][{¬{$h4yh46Ŋ£$⅝ŋg46¬~{~←ħ¬"},
        "Network": {"myNic1": {"MacAddress": "02:00:00:00:00:01"}},
    }
}


@pytest.mark.parametrize(
    ("template", "label"),
    [
        ("${System Data/Memory/Total Physical Bytes}", "100"),
        ("${System Data/Network/myNic1/MacAddress}", "02-00-00-00-00-01"),
        ("${System Data/CPU/Model}", "this_is-broken-TM-h4yh46-g46"),
        ("_a.b_", "a.b"),
        ("x" * 57 + "._-y", "x" * 57),
        ("?", ""),
    ],
)
def test_a_label_is_what_the_api_server_takes(template: str, label: str) -> None:
    assert placeholders.fill_labels({"k": template}, HOST, {}) == {"k": label}


def test_a_label_that_the_host_cannot_fill_is_left_out() -> None:
    assert placeholders.fill_labels({"a": "${System Data/Not Existing Value}", "b": "c"}, HOST, {}) == {"b": "c"}


def test_a_random_label_keeps_the_value_that_it_was_given_first() -> None:
    templates = {"first": "my-${Random/Int/1000}", "empty": "${Random/Hex/5}", "steady": "${System Data/Memory/Total Physical Bytes}"}
    made = placeholders.fill_labels(templates, HOST, {"first": "alreadyFilled", "empty": "", "steady": "99"})
    assert (made["first"], len(made["empty"]), made["steady"]) == ("alreadyFilled", 5, "100")


def test_annotations_have_any_text() -> None:
    assert placeholders.fill_annotations({"mac": "${System Data/Network/myNic1/MacAddress}", "none": "${x}"}, HOST, {}) == {
        "mac": "02:00:00:00:00:01"
    }
