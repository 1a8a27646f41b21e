"""The limits of Container Linux YAML.  What yaml.v3 v3.0.1 says of the same documents was asked of it."""

from __future__ import annotations

import pytest

from slipway.fleet.bootstrap.ignition.clc.types import CONTAINER_LINUX
from slipway.fleet.bootstrap.ignition.clc.yaml import Decoder, YAMLError, parse


def refusal(text: str) -> str:
    with pytest.raises(YAMLError) as caught:
        Decoder().document(parse(text), CONTAINER_LINUX["Config"])
    return str(caught.value)


def merges(count: int, each: int) -> str:
    chain = (f"m{level}: &m{level} {{<<: [{', '.join([f'*m{level - 1}'] * each)}]}}\n" for level in range(1, count))
    return f"m0: &m0 {{version: 0}}\n{''.join(chain)}<<: *m{count - 1}\n"


def partitions(count: int) -> str:
    aliases = f"[{','.join(['*p'] * count)}]"
    return f"p: &p {{number: 1}}\nd: &d {{partitions: {aliases}}}\nstorage: {{disks: {aliases.replace('*p', '*d')}}}\n"


@pytest.mark.parametrize("text", [merges(30, 10), partitions(4_000)])
def test_aliases_that_blow_a_document_up_are_refused_as_in_go(text: str) -> None:
    assert refusal(text) == "yaml: document contains excessive aliasing"


@pytest.mark.parametrize(
    "text", ["storage: &a\n  <<: *a\n", "storage: &a\n  <<: [*a, *a]\n", "a: &a\n  <<: *a\n<<: *a\n", "a: &a {<<: &b {<<: *a}}\n<<: *a\n"]
)
def test_a_mapping_that_merges_itself_is_refused_as_in_go(text: str) -> None:
    assert refusal(text) == "yaml: anchor 'a' value contains itself"


def test_an_alias_within_its_anchor_is_read_as_far_as_the_types_go() -> None:
    value = Decoder().document(parse("storage:\n  disks:\n  - &d\n    device: /dev/a\n    partitions: [*d]\n"), CONTAINER_LINUX["Config"])
    assert [len(disk["partitions"]) for disk in value["storage"]["disks"]] == [1]


def test_merges_within_merges_end_before_the_stack_does() -> None:
    assert refusal(merges(1_000, 1)).endswith("more than 100 merges within each other")


@pytest.mark.parametrize("text", ["a: " + "[" * 20_000, "a: " + "{a: " * 8_000, "- " * 15_000])
def test_deep_nesting_is_refused(text: str) -> None:
    assert refusal(text) == "yaml: line 1: exceeded max depth of 300"


def test_every_pair_of_equal_keys_is_listed_as_in_go() -> None:
    assert refusal("a: 1\na: 2\nb: 1\na: 3\nb: 2\n").splitlines()[1:] == [
        '  line 2: mapping key "a" already defined at line 1',
        '  line 4: mapping key "a" already defined at line 1',
        '  line 4: mapping key "a" already defined at line 2',
        '  line 5: mapping key "b" already defined at line 3',
    ]


@pytest.mark.parametrize(
    ("text", "key"),
    [("storage: {disks: [&d {? *d : 1, ? *d : 2}]}\n", "d"), ("storage: {disks: [{? [a] : 1, ? [b] : 2, ? {} : 3}]}\n", "")],
)
def test_keys_that_are_no_scalars_are_compared_by_kind_and_text_as_in_go(text: str, key: str) -> None:
    assert refusal(text).splitlines()[1:] == [f'  line 1: mapping key "{key}" already defined at line 1']


def test_of_very_many_equal_keys_a_hundred_are_listed_and_the_rest_counted() -> None:
    lines = refusal("a: 1\n" * 8_000).splitlines()
    assert len(lines) == 102
    assert lines[-1] == f"  and {8_000 * 7_999 // 2 - 100} more"


def test_of_very_many_mismatches_a_hundred_are_listed_and_the_rest_counted() -> None:
    lines = refusal(f"storage: {{files: [{','.join('a' * 10_000)}]}}").splitlines()
    assert len(lines) == 102
    assert lines[-1] == "  and 9900 more"


@pytest.mark.parametrize(
    ("number", "shown"),
    [("1" * 5_000, "1111111..."), ("0x" + "1" * 5_000, "0x11111..."), ("0o" + "1" * 5_000, "0o11111..."), ("1e999", "1e999")],
)
def test_a_number_that_is_too_large_is_text_as_in_go(number: str, shown: str) -> None:
    assert refusal(f"version: {number}\n").splitlines()[1:] == [f"  line 1: cannot unmarshal !!str `{shown}` into int"]


@pytest.mark.parametrize(
    "text",
    [
        f"f: &f {{contents: {{inline: a}}}}\nstorage: {{files: [{','.join(['*f'] * 10_000)}]}}\n",
        f'c: &c "{"a" * 10_000}"\nf: &f {{contents: {{inline: *c}}}}\nstorage: {{files: [{",".join(["*f"] * 200)}]}}\n',
    ],
    ids=["values", "characters"],
)
def test_aliases_that_make_more_than_a_secret_holds_are_refused(text: str) -> None:
    assert "with its aliases the document has more than 50000 values or 1048576 characters" in refusal(text)
