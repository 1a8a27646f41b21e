"""Strict decoding: every problem, each with its line and field path, and what is left when there are some."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from slipway.api.machinery.duration import Duration
from slipway.api.machinery.objects import Object
from slipway.api.machinery.strict import Problem, decode, field_path, report
from slipway.api.machinery.yaml import goyaml

field = msgspec.field


class Arg(Object):
    name: str = ""
    value: str = ""


class Local(Object):
    data_dir: str = ""
    extra_args: list[Arg] = field(default_factory=list)


class Etcd(Object):
    local: Local | None = None


class Base(Object):
    bind_port: int = 0


class Cluster(Base):
    """Every kind of field that the configuration types have."""

    etcd: Etcd = field(default_factory=Etcd)
    name: str = ""
    enabled: bool = False
    optional: bool | None = None
    share: float = 0.0
    timeout: Duration | None = None
    cert_sans: list[str] = field(default_factory=list, name="certSANs")
    taints: list[Arg] | None = None
    gates: dict[str, bool] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    matrix: dict[str, list[int]] = field(default_factory=dict)
    anything: dict[str, Any] = field(default_factory=dict)


def read(text: str) -> tuple[Cluster, list[Problem]]:
    [document] = goyaml.load(text)
    return decode(Cluster, document)


GOOD = """\
apiVersion: v1
kind: Cluster
bindPort: 6443
etcd:
  local:
    dataDir: /d
    extraArgs:
    - {name: a, value: b}
name: x
enabled: yes
optional: false
share: 1
timeout: 1h30m
certSANs: [a, b]
taints: []
gates: {a: on, b: off}
labels: {a: b}
matrix: {a: [1, 2], b: []}
anything: {a: [1, {b: null}]}
"""


def test_reads_every_kind_of_field() -> None:
    assert read(GOOD) == (
        Cluster(
            bind_port=6443,
            etcd=Etcd(local=Local(data_dir="/d", extra_args=[Arg(name="a", value="b")])),
            name="x",
            enabled=True,
            optional=False,
            share=1,
            timeout=Duration.of(hours=1, minutes=30),
            cert_sans=["a", "b"],
            taints=[],
            gates={"a": True, "b": False},
            labels={"a": "b"},
            matrix={"a": [1, 2], "b": []},
            anything={"a": [1, {"b": None}]},
        ),
        [],
    )


def test_null_leaves_a_field_as_it_is_and_is_the_zero_value_inside_lists_and_maps() -> None:
    names = ("etcd", "name", "enabled", "optional", "timeout", "certSANs", "taints", "gates", "bindPort")
    assert read("".join(f"{name}: null\n" for name in names)) == (Cluster(), [])
    text = "certSANs: [null]\ntaints: [null]\ngates: {a: null}\nmatrix: {a: null}\nanything: {a: null}\n"
    wanted = Cluster(cert_sans=[""], taints=[Arg()], gates={"a": False}, matrix={"a": []}, anything={"a": None})
    assert read(text) == (wanted, [])


@pytest.mark.parametrize("text", ["", "# nothing\n", "null\n", "{}\n"])
def test_an_empty_document_is_the_object_with_its_defaults(text: str) -> None:
    [document] = goyaml.load(text or "\n")
    assert decode(Cluster, document) == (Cluster(), [])


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("name: 1", "name", 'cannot unmarshal number 1 into field "name" of type string'),
        ("name: 1.35", "name", 'cannot unmarshal number 1.35 into field "name" of type string'),
        ("name: on", "name", 'cannot unmarshal boolean into field "name" of type string'),
        ("name: [a]", "name", 'cannot unmarshal list into field "name" of type string'),
        ("enabled: 'true'", "enabled", 'cannot unmarshal string into field "enabled" of type boolean'),
        ("enabled: 1", "enabled", 'cannot unmarshal number 1 into field "enabled" of type boolean'),
        ("optional: x", "optional", 'cannot unmarshal string into field "optional" of type boolean'),
        ("bindPort: '6443'", "bindPort", 'cannot unmarshal string into field "bindPort" of type integer'),
        ("bindPort: 1.5", "bindPort", 'cannot unmarshal number 1.5 into field "bindPort" of type integer'),
        ("bindPort: true", "bindPort", 'cannot unmarshal boolean into field "bindPort" of type integer'),
        (
            "bindPort: 18446744073709551615",
            "bindPort",
            'cannot unmarshal number 18446744073709551615 into field "bindPort" of type integer',
        ),
        ("share: x", "share", 'cannot unmarshal string into field "share" of type number'),
        ("etcd: x", "etcd", 'cannot unmarshal string into field "etcd" of type object'),
        ("etcd: {local: []}", "etcd.local", 'cannot unmarshal list into field "etcd.local" of type object'),
        ("certSANs: a", "certSANs", 'cannot unmarshal string into field "certSANs" of type list'),
        ("certSANs: {a: b}", "certSANs", 'cannot unmarshal object into field "certSANs" of type list'),
        ("certSANs: [a, 2]", "certSANs[1]", 'cannot unmarshal number 2 into field "certSANs[1]" of type string'),
        ("gates: [a]", "gates", 'cannot unmarshal list into field "gates" of type map'),
        ("gates: {a: x}", "gates.a", 'cannot unmarshal string into field "gates.a" of type boolean'),
        ("labels: {a: 1}", "labels.a", 'cannot unmarshal number 1 into field "labels.a" of type string'),
        ("matrix: {a: [x]}", "matrix.a[0]", 'cannot unmarshal string into field "matrix.a[0]" of type integer'),
        ("timeout: 5", "timeout", 'cannot unmarshal number 5 into field "timeout" of type duration'),
        (
            "timeout: 5minutes",
            "timeout",
            'cannot unmarshal "5minutes" into field "timeout" of type duration: time: unknown unit "minutes" in duration "5minutes"',
        ),
    ],
)
def test_a_wrong_type_says_what_was_found_and_what_is_wanted(text: str, path: str, message: str) -> None:
    assert read(f"\n{text}\n")[1] == [Problem("type", path, 2, message)]


def test_a_whole_float_is_an_integer_as_it_is_in_json() -> None:
    assert read("bindPort: 6443.0\n") == (Cluster(bind_port=6443), [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("unknown: 1", 'unknown field "unknown"'),
        ("Name: x", 'unknown field "Name" (did you mean "name"?)'),
        ("certSans: []", 'unknown field "certSans" (did you mean "certSANs"?)'),
        ("bindport: 1", 'unknown field "bindport" (did you mean "bindPort"?)'),
        ("enabeld: true", 'unknown field "enabeld" (did you mean "enabled"?)'),
        ("bind_port: 1", 'unknown field "bind_port" (did you mean "bindPort"?)'),
        ("etcd: {kind: x}", 'unknown field "etcd.kind"'),
        ("etcd: {local: {extraArgs: [{name: a}, {nmae: b}]}}", 'unknown field "etcd.local.extraArgs[1].nmae" (did you mean "name"?)'),
    ],
)
def test_an_unknown_field_comes_with_the_one_that_was_probably_meant(text: str, message: str) -> None:
    [problem] = read(text)[1]
    assert (problem.kind, problem.line, problem.message) == ("unknown", 1, message)


MANY = """\
name: 5
nope: 1
etcd:
  local:
    dataDir: /a
    dataDir: /b
    extraArgs:
    - name: a
      valeu: b
    - 7
enabled: maybe
enabled: true
"""


def test_all_problems_are_found_in_the_order_of_the_lines() -> None:
    decoded, problems = read(MANY)
    assert [(problem.kind, problem.path, problem.line) for problem in problems] == [
        ("type", "name", 1),
        ("unknown", "nope", 2),
        ("duplicate", "etcd.local.dataDir", 6),
        ("unknown", "etcd.local.extraArgs[0].valeu", 9),
        ("type", "etcd.local.extraArgs[1]", 10),
        ("duplicate", "enabled", 12),
    ]
    assert decoded == Cluster(etcd=Etcd(local=Local(data_dir="/b", extra_args=[Arg(name="a"), Arg()])), enabled=True)


def test_the_report_names_the_file_and_lists_every_problem() -> None:
    assert report(read("name: 5\nnope: 1\nname: x\n")[1], "c.yaml") == (
        'strict decoding error:\n  c.yaml:2: unknown field "nope"\n  c.yaml:3: duplicate field "name": key "name" already set in map'
    )


def test_the_report_of_one_problem_is_one_line() -> None:
    assert report(read("\nnope: 1\n")[1]) == 'strict decoding error: line 2: unknown field "nope"'


def test_a_part_of_a_document_keeps_its_place() -> None:
    [document] = goyaml.load("a: 1\na: 2\nb:\n- name: x\n  nope: 1\n  name: z\n")
    decoded, problems = decode(Arg, document, ("b", 0))
    assert decoded == Arg(name="z")
    assert [(problem.kind, problem.path, problem.line) for problem in problems] == [
        ("unknown", "b[0].nope", 5),
        ("duplicate", "b[0].name", 6),
    ]


def test_a_document_of_another_shape_is_one_problem() -> None:
    assert read("[1]\n") == (Cluster(), [Problem("type", "", 1, "cannot unmarshal list into an object")])


def test_paths_read_like_those_of_field_errors() -> None:
    assert field_path(("etcd", "local", "extraArgs", 2, "name")) == "etcd.local.extraArgs[2].name"
