"""How a report reads: a table, blocks where that does not fit, colours, JSON, and the reference in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

from node.doctor.nodes import CONTROL_PLANE, NO_NODE, WORKER, but, unit

from slipway.cli.argv.parser import find
from slipway.cli.trees.root import build
from slipway.node.doctor import report
from slipway.node.doctor.examination import CHECKS, examine
from slipway.node.doctor.facts import Clock, Unseen

ROOT = Path(__file__).parents[3]
STOPPED = examine(but(WORKER, kubelet__unit=unit("inactive", "dead"), clock=Clock(synchronized=False)))


def test_findings_are_a_table_with_the_commands_whole() -> None:
    lines = report.text(STOPPED, width=None, colours=False).splitlines()
    assert lines[0].split() == ["SEVERITY", "FINDING", "EVIDENCE", "FIX"]
    assert lines[1].split()[0] == "error"
    assert lines[1].endswith("  systemctl start kubelet")
    assert lines[-1] == "The worker w-1 has 1 error and 1 warning."


def test_where_a_table_does_not_fit_each_finding_is_a_block() -> None:
    text = report.text(STOPPED, width=80, colours=False)
    assert "error    the kubelet's service is inactive (dead)\n" in text
    assert "\n         fix       systemctl start kubelet\n" in text
    assert max(map(len, text.splitlines())) <= 80


def test_colours_are_only_there_where_they_are_asked_for() -> None:
    assert "\033[31merror" in report.text(STOPPED, width=None, colours=True)
    assert "\033" not in report.text(STOPPED, width=None, colours=False)


def test_a_machine_that_is_well_is_said_to_be_so() -> None:
    assert report.text(examine(CONTROL_PLANE), width=None, colours=False) == "The control plane cp-1 is well.\n"
    assert report.verdict(examine(NO_NODE)) == "This machine, which is no node, is well."


def test_what_could_not_be_seen_is_told() -> None:
    text = report.text(examine(but(WORKER, unseen=(Unseen("etcd", "no answer within 10 s"),))), width=None, colours=False)
    assert "Could not be looked at:\n  etcd: no answer within 10 s\n" in text
    assert text.endswith("The worker w-1 is well, as far as it could be looked at.\n")


def test_a_program_reads_the_same() -> None:
    told = report.fields(STOPPED, 1.23456)
    assert (told["role"], told["node"], told["well"], told["errors"], told["warnings"]) == ("worker", "w-1", False, 1, 1)
    assert told["findings"][0] == {
        "name": "kubelet-stopped",
        "check": "kubelet",
        "severity": "error",
        "finding": "the kubelet's service is inactive (dead)",
        "evidence": "systemctl show kubelet: ActiveState=inactive SubState=dead",
        "fix": ["systemctl start kubelet"],
    }


def test_the_documentation_has_every_finding() -> None:
    page = (ROOT / "docs/doctor.md").read_text()
    assert report.reference() in page, "put there what slipway.node.doctor.report.reference() says"
    assert all(f"`{kind.name}`" in page for check in CHECKS for kind in check.kinds)


def test_the_commands_of_our_own_that_would_help_are_those_of_the_program() -> None:
    named = {
        words
        for check in CHECKS
        for kind in check.kinds
        for line in kind.fix
        for words in re.findall(r"slipway((?: [a-z]+(?:-[a-z]+)*)+)", line)
    }
    assert named
    for words in named:
        given = words.split()
        command, rest = find(build("slipway"), given)
        # What follows a command in a sentence begins with a word that is none of its sub-commands.
        assert command.path, f"slipway{words} is no command"
        assert command.run or not rest, f"slipway{words} has no {rest}"
