"""Names that controllers give."""

from __future__ import annotations

import re

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract.naming import generated, label_value, rendered

ENDING = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{5}")


def test_a_generated_name_is_cut_so_that_its_ending_fits() -> None:
    name = generated("x" * 80)
    assert len(name) == 63
    assert name.startswith("x" * 58)
    assert ENDING.fullmatch(name[58:])


def test_a_template_has_the_values_and_a_random_ending() -> None:
    name = rendered("{{ .cluster.name }}-{{ .machineSet.name }}-{{ .random }}", {"cluster": {"name": "c"}, "machineSet": {"name": "md-0"}})
    assert re.fullmatch(rf"c-md-0-{ENDING.pattern}", name)


def test_what_a_template_makes_too_long_is_cut_and_gets_an_ending() -> None:
    name = rendered("{{ .machineSet.name }}-{{ .random }}", {"machineSet": {"name": "m" * 70}})
    assert len(name) == 63
    assert name[:58] == "m" * 58


@pytest.mark.parametrize("template", ["{{ .machineSet.name", "{{ .nothing.name }}"])
def test_a_template_that_makes_no_name_is_shown(template: str) -> None:
    with pytest.raises(OperatorError) as caught:
        rendered(template, {"machineSet": {"name": "m"}})
    assert template in caught.value.message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("a-name.of_any", "a-name.of_any"),
        ("", ""),
        ("x" * 63, "x" * 63),
        # By Go's hash/fnv and encoding/base64.
        ("x" * 64, "hash_0ZsaxQ_z"),
        ("a-name-that-is-much-longer-than-the-sixty-three-characters-of-a-label", "hash_8bXN8A_z"),
        ("ends-with-", "hash_Hq10uQ_z"),
        ("ü", "hash_EZ3USg_z"),
    ],
)
def test_what_no_label_can_have_as_its_value_is_hashed(name: str, value: str) -> None:
    assert label_value(name) == value
