"""Labels and annotations: the answers of apimachinery 0.35's IsLabelKey and IsLabelValue."""

from __future__ import annotations

import pytest

from slipway.api.machinery import labels
from slipway.api.machinery.fieldpath import Path

NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    "key",
    [
        "simple",
        "now-with-dashes",
        "1-starts-with-num",
        "1234",
        "simple/simple",
        "a.b-c.d/e_f.G",
        "1.2.3.4/5678",
        "a" * 63,
        "x" * 253 + "/a",
    ],
)
def test_good_keys(key: str) -> None:
    assert labels.key_problems(key) == []


@pytest.mark.parametrize(
    ("key", "problems"),
    [
        ("", ["name part must be non-empty", f"name part {NAME_RULE}"]),
        ("/name", ["prefix part must be non-empty"]),
        ("prefix/", ["name part must be non-empty", f"name part {NAME_RULE}"]),
        ("-bad", [f"name part {NAME_RULE}"]),
        ("a" * 64, ["name part must be no more than 63 bytes"]),
        ("a/b/c", [f"a valid label key {NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]),
        ("x" * 254 + "/a", ["prefix part must be no more than 253 bytes"]),
    ],
)
def test_bad_keys(key: str, problems: list[str]) -> None:
    assert labels.key_problems(key) == problems


def test_a_prefix_is_a_subdomain() -> None:
    [problem] = labels.key_problems("Upper/name")
    assert problem.startswith("prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'")


@pytest.mark.parametrize(("value", "count"), [("", 0), ("v1.2_x", 0), ("$bad", 1), ("a" * 64, 1), ("-" * 64, 2)])
def test_values(value: str, count: int) -> None:
    assert len(labels.value_problems(value)) == count


def test_annotations_are_checked_without_regard_to_case_and_up_to_a_size() -> None:
    path = Path("metadata", "annotations")
    assert labels.validate_annotations({"Example.COM/name": "any $ text"}, path) == []
    assert list(map(str, labels.validate_annotations({"a": "x" * 256 * 1024}, path))) == [
        "metadata.annotations: Too long: may not be more than 262144 bytes"
    ]
