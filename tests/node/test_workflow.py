"""How a tree of phases is walked; the rows follow kubeadm's cmd/phases/workflow/runner_test.go (1.36.3)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.node import workflow
from slipway.node.workflow import Phase

if TYPE_CHECKING:
    from node.conftest import Lines

pytestmark = pytest.mark.upstream_table

Log = list[str]


def step(name: str, *children: Phase[Log]) -> Phase[Log]:
    return Phase(name=name, short=name, run=partial(_record, name), phases=children)


def _record(name: str, log: Log) -> None:
    log.append(name)


# foo with bar and baz, baz with qux, and a second root: the tree of the original tests.
TREE = (step("foo", step("bar"), step("baz", step("qux"))), step("last"))


@pytest.mark.parametrize(
    ("only", "skip", "expected"),
    [
        ("", (), ["foo", "bar", "baz", "qux", "last"]),
        ("foo/baz", (), ["baz", "qux"]),
        ("foo", (), ["foo", "bar", "baz", "qux"]),
        ("", ("foo/bar", "foo/baz/qux"), ["foo", "baz", "last"]),
        ("", ("foo/bar", "foo/baz"), ["foo", "last"]),
        ("", ("foo",), ["last"]),
        ("foo", ("foo/baz",), ["foo", "bar"]),
        ("foo/baz", ("foo/baz",), []),
    ],
)
def test_a_run_takes_one_branch_or_all_less_what_is_skipped(only: str, skip: tuple[str, ...], expected: list[str], lines: Lines) -> None:
    log: Log = []
    workflow.execute(TREE, log, lines, only=only, skip=skip)
    assert log == expected


@pytest.mark.parametrize(("only", "skip"), [("invalid", ()), ("", ("foo/invalid",)), ("bar", ())])
def test_a_phase_that_is_not_in_the_tree_is_refused_before_anything_runs(only: str, skip: tuple[str, ...], lines: Lines) -> None:
    log: Log = []
    with pytest.raises(OperatorError, match="invalid phase name: "):
        workflow.execute(TREE, log, lines, only=only, skip=skip)
    assert log == []


def test_a_failure_ends_the_run_and_names_the_phase(lines: Lines) -> None:
    def fail(log: Log) -> None:
        raise OperatorError("no such luck")

    tree = (step("first"), Phase(name="group", short="", phases=(Phase(name="second", short="", run=fail),)), step("third"))
    log: Log = []
    with pytest.raises(OperatorError, match=r"^error execution phase group/second: no such luck$"):
        workflow.execute(tree, log, lines)
    assert log == ["first"]
    assert [(event.phase, event.event) for event in lines.events] == [
        ("first", "started"),
        ("first", "finished"),
        ("group/second", "started"),
        ("group/second", "failed"),
    ]


def test_a_phase_that_does_not_apply_is_reported_and_not_run(lines: Lines) -> None:
    log: Log = []
    workflow.execute((Phase(name="idle", short="", run=partial(_record, "idle"), applies=lambda log: False),), log, lines)
    assert log == []
    assert [(event.event, event.reason) for event in lines.events] == [("skipped", "nothing to do")]


NEEDY = (step("one"), step("two"), Phase(name="three", short="", run=partial(_record, "three"), needs=("one", "two")))


@pytest.mark.parametrize(
    ("only", "skip", "missing"), [("", ("one",), r"\[one\]"), ("three", (), r"\[one two\]"), ("", ("one", "two"), r"\[one two\]")]
)
def test_a_phase_is_not_run_without_those_that_it_needs(only: str, skip: tuple[str, ...], missing: str, lines: Lines) -> None:
    log: Log = []
    with pytest.raises(OperatorError, match=rf'unresolved dependencies:\n\tmissing {missing} phase\(s\) needed by "three" phase'):
        workflow.execute(NEEDY, log, lines, only=only, skip=skip)
    assert log == []


def test_what_a_skipped_phase_needs_may_be_skipped_too(lines: Lines) -> None:
    log: Log = []
    workflow.execute(NEEDY, log, lines, skip=("one", "three"))
    assert log == ["two"]
