"""How a tree of phases is walked; the rows follow kubeadm's cmd/phases/workflow/runner_test.go (1.36.3)."""

from __future__ import annotations

import inspect
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.node import init, join, reset, upgrade, workflow
from slipway.node.workflow import Phase

if TYPE_CHECKING:
    from types import ModuleType

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

    tree: tuple[Phase[Log], ...] = (
        step("first"),
        Phase(name="group", short="", phases=(Phase(name="second", short="", run=fail),)),
        step("third"),
    )
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


NEEDY: tuple[Phase[Log], ...] = (
    step("one"),
    step("two"),
    Phase(name="three", short="", run=partial(_record, "three"), needs=("one", "two")),
)


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


@pytest.mark.parametrize(("dry_run", "expected"), [(False, ["one", "two"]), (True, ["would one", "two"])])
def test_a_dry_run_does_what_a_phase_would_do(dry_run: bool, expected: list[str], lines: Lines) -> None:
    tree: tuple[Phase[Log], ...] = (
        Phase(name="one", short="", run=partial(_record, "one"), would=partial(_record, "would one")),
        step("two"),
    )
    log: Log = []
    workflow.execute(tree, log, lines, dry_run=dry_run)
    assert log == expected


@pytest.mark.parametrize(
    ("package", "tree"),
    [
        (init, init.PHASES),
        (join, join.PHASES),
        (reset, reset.PHASES),
        (upgrade, upgrade.APPLY_PHASES),
        (upgrade, upgrade.NODE_PHASES),
    ],
)
def test_every_function_that_a_phase_names_is_there(package: ModuleType, tree: tuple[Phase[Any], ...]) -> None:
    for item in workflow.walk(tree):
        for named in (item.phase.run, item.phase.would, item.phase.applies):
            if named is not None:
                taken = len(inspect.signature(workflow.function(named, package.__name__)).parameters)
                assert taken == (1 if named is item.phase.applies else len(item.phase.given) + 1), item.path


@pytest.mark.parametrize("name", ["init", "join", "reset", "upgrade"])
def test_a_tree_is_read_without_what_is_behind_it(name: str) -> None:
    program = f"import sys, slipway.node.{name}; print(*(each for each in sys.modules if each.startswith('slipway.node')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    own = {f"slipway.node.{name}{part}" for part in ("", ".options", ".phases", ".result")}
    assert set(done.stdout.split()) <= {"slipway.node", "slipway.node.paths", "slipway.node.workflow", *own}
