"""Reading YAML: against recorded results of Go's sigs.k8s.io/yaml (tests/oracles/yaml), and what Go has no word for: the lines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from slipway.api.machinery.errors import ConfigurationError
from slipway.api.machinery.yaml import goyaml

GOLDEN = Path(__file__).parents[2] / "golden/yaml/load.json"
CASES: list[dict[str, Any]] = json.loads(GOLDEN.read_text())["cases"]

# Where libyaml 0.2 and the older scanner inside goyaml part; docs/compatibility.md has the reasons.
READ_DIFFERENTLY = {
    "{a?: b}\n": {"a?": "b"},
    "[a?]\n": ["a?"],
}
REFUSED_BY_US_ONLY = ("[a:]\n", "a: 1\n\ufeffb: 2\n")

COMPARABLE = [case for case in CASES if case["yaml"] not in READ_DIFFERENTLY and case["yaml"] not in REFUSED_BY_US_ONLY]


def go_number(text: str) -> int | float:
    """An integer of Go's JSON; past 64 bits a decoder makes it a float."""
    return int(text) if -(2**63) <= int(text) < 2**64 else float(text)


def typed(value: Any) -> Any:
    """The value with the types of its numbers, so that 1, 1.0 and true are told apart."""
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    return type(value).__name__, value


@pytest.mark.parametrize("case", [case for case in COMPARABLE if "error" not in case], ids=lambda case: case["yaml"][:40])
def test_reads_the_values_that_go_reads(case: dict[str, Any]) -> None:
    documents = goyaml.load(case["yaml"])
    wanted = [json.loads(document["json"], parse_int=go_number) for document in case["documents"]]
    assert typed([document.value for document in documents]) == typed(wanted)
    assert [bool(document.duplicates) for document in documents] == ["strict" in document for document in case["documents"]]


@pytest.mark.parametrize("case", [case for case in COMPARABLE if "error" in case], ids=lambda case: case["yaml"][:40])
def test_refuses_what_go_refuses(case: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"^f\.yaml:[1-9][0-9]*: this is not valid YAML: "):
        goyaml.load(case["yaml"], "f.yaml")


@pytest.mark.parametrize(("text", "value"), READ_DIFFERENTLY.items())
def test_question_marks_inside_flow_scalars_are_text(text: str, value: object) -> None:
    assert [document.value for document in goyaml.load(text)] == [value]


@pytest.mark.parametrize("text", REFUSED_BY_US_ONLY)
def test_refuses_what_libyaml_cannot_scan(text: str) -> None:
    with pytest.raises(ConfigurationError, match="not valid YAML"):
        goyaml.load(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: c: d\n", "f.yaml:2: this is not valid YAML: mapping values are not allowed in this context"),
        ("a: 1\n---\n\nb: [1\n", "f.yaml:4: this is not valid YAML: did not find expected ',' or ']'"),
        (
            "a: 1\nb: 'x\nc: 2\n",
            "f.yaml:3: this is not valid YAML: found unexpected end of stream while scanning a quoted scalar that starts on line 2",
        ),
        (
            "a: 1\n--- b\n",
            "f.yaml:2: this is not valid YAML: invalid document separator: a comment may follow it on its line, but not 'b'",
        ),
        ("a:\n\tb: 2\n", "f.yaml:2: this is not valid YAML: found character that cannot start any token"),
        ("a: 1\n---\nb: 2\nc: *x\n", "f.yaml:4: this is not valid YAML: unknown anchor 'x' referenced"),
        ("a: 1\nb: !!int x\n", "f.yaml:2: this is not valid YAML: cannot decode !!str `x` as a !!int"),
        ("a: 1\nb: .inf\n", "f.yaml:2: this is not valid YAML: .inf is not a number that JSON has"),
        ("a: 1\n~: 2\n", "f.yaml:2: this is not valid YAML: ~ cannot be a key: quote it if it is meant as text"),
        ("a: 1\nb: \x07\n", "f.yaml:2: this is not valid YAML: control characters are not allowed"),
        ("[" * 301 + "]" * 301, "f.yaml:1: this is not valid YAML: exceeded max depth of 300"),
    ],
)
def test_errors_name_the_file_and_the_line_in_the_whole_file(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        goyaml.load(text, "f.yaml")
    assert caught.value.message == message


def test_an_error_without_a_source_names_the_line() -> None:
    with pytest.raises(ConfigurationError, match=r"^line 1: this is not valid YAML"):
        goyaml.load("{")


LINES = """\
# a comment
a:
  b:
  - x: 1
    w: 2
  - z: |
      text
      more
c: &anchor
  d: 1
e: *anchor
---
f: 1
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 2),
        (("a",), 2),
        (("a", "b"), 3),
        (("a", "b", 0), 4),
        (("a", "b", 0, "w"), 5),
        (("a", "b", 1, "z"), 6),
        (("e",), 11),
        (("e", "d"), 10),
        (("a", "b", 7), 3),
        (("a", "missing", "deeper"), 2),
    ],
)
def test_every_value_has_its_line_or_that_of_its_nearest_parent(path: goyaml.Path, line: int) -> None:
    assert goyaml.load(LINES)[0].line(path) == line


def test_lines_count_from_the_start_of_the_file_not_of_the_document() -> None:
    first, second = goyaml.load(LINES, "f.yaml")
    assert second.line(("f",)) == 13
    assert (first.source, second.text) == ("f.yaml", "f: 1\n")


def test_duplicates_have_their_path_and_the_line_of_the_second_key() -> None:
    [document] = goyaml.load("a: 1\nb:\n- c: 1\n  d: 2\n  c: 3\na: 4\n")
    assert document.duplicates == [(("b", 0, "c"), 5), (("a",), 6)]
    assert document.value == {"a": 4, "b": [{"c": 3, "d": 2}]}


def test_keys_that_are_equal_as_text_are_duplicates_too() -> None:
    # Go reads them in an order of chance, and does not call them duplicates.
    [document] = goyaml.load("1: a\n'1': b\n")
    assert document.duplicates == [(("1",), 2)]
    assert document.value == {"1": "b"}


def test_values_behind_aliases_are_copies() -> None:
    [document] = goyaml.load("a: &x {b: 1}\nc: *x\n")
    document.value["a"]["b"] = 2
    assert document.value["c"] == {"b": 1}


PROGRAM = """
import sys
if "without the C parser" in sys.argv:
    sys.modules["yaml._yaml"] = None
from slipway.api.machinery import goyaml
print(goyaml.load("a: [on, 010, 'x']\\nb: &x {c: 1.5}\\nd: *x\\n")[0].value)
print([name for name in ("yaml", "yaml.scanner") if name in sys.modules])
import yaml
print(yaml.safe_load("a: [1]"))
"""
VALUE = "{'a': [True, 8, 'x'], 'b': {'c': 1.5}, 'd': {'c': 1.5}}"


def run(*arguments: str) -> list[str]:
    return subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_c_parser_comes_without_the_rest_of_pyyaml_and_leaves_it_usable() -> None:
    assert run() == [VALUE, "[]", "{'a': [1]}"]


def test_pyyaml_without_libyaml_will_do() -> None:
    assert run("without the C parser") == [VALUE, "['yaml', 'yaml.scanner']", "{'a': [1]}"]
