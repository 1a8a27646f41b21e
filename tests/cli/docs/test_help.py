"""Help: where it can be asked for, and what is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cli.conftest import Run


@pytest.mark.parametrize(
    "arguments",
    [
        ["init", "--help"],
        ["init", "-h"],
        ["--help", "init"],
        ["init", "--dry-run", "--config", "x", "-h"],
        ["help", "init"],
        ["init", "--help=true"],
        ["init", "extra", "-h"],
    ],
    ids=" ".join,
)
def test_help_can_be_asked_for_anywhere(arguments: list[str], run: Run) -> None:
    outcome = run(*arguments)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("Make this machine the first control plane of a new cluster.\n")
    assert "\nUsage:\n  slipway init [flags]\n  slipway init [command]\n" in outcome.out


def test_without_arguments_the_commands_are_shown(run: Run) -> None:
    outcome = run()
    assert outcome.code == 0
    assert "\n  init        Make this machine the first control plane of a new cluster\n" in outcome.out


def test_the_program_is_called_what_the_user_called_it(run: Run) -> None:
    text = run("init", "--help", program="kubeadm").out
    assert "  kubeadm init [flags]\n" in text
    assert "slipway" not in text


def test_help_of_a_workflow_shows_its_phases_in_their_order(run: Run) -> None:
    lines = run("init", "--help").out.splitlines()
    phases = [line.split()[0] for line in lines[lines.index("The phases of init, in their order:") + 1 : lines.index("Usage:") - 1]]
    assert phases[:3] == ["preflight", "certs", "/ca"]
    assert phases[-3:] == ["/coredns", "/kube-proxy", "show-join-command"]


def test_help_of_a_flag_shows_its_type_and_default(run: Run) -> None:
    text = run("init", "--help").out
    assert "      --apiserver-bind-port int32            Port that the API server of this node listens on (default 6443)\n" in text
    assert '(default "cluster.local")' in text


def test_deprecated_and_hidden_flags_are_not_shown(run: Run) -> None:
    text = run("init", "phase", "control-plane", "apiserver", "--help").out
    assert "--apiserver-bind-port" in text
    assert "--apiserver-extra-args" not in text
    assert "--skip-headers" not in text


def test_no_line_is_wider_than_120_columns(run: Run) -> None:
    for command in (["init"], ["join"], ["upgrade", "apply"], ["config", "migrate"]):
        assert [line for line in run(*command, "--help").out.splitlines() if len(line) > 120] == []


@pytest.mark.parametrize("group", [["token"], ["init", "phase"], ["init", "phase", "certs"], ["certs", "renew"], ["config", "print"]])
def test_a_group_shows_its_help_and_asks_for_a_subcommand(group: list[str], run: Run) -> None:
    outcome = run(*group)
    assert outcome.code == 1
    assert "Available Commands:" in outcome.out
    assert outcome.err.startswith("error: \nerror: subcommand is required\n")


def test_an_unknown_topic_is_told_and_no_failure(run: Run) -> None:
    outcome = run("help", "foo")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.startswith("Unknown help topic [`foo`]\n")


def test_alpha_is_still_a_command(run: Run) -> None:
    assert run("alpha").code == 0
