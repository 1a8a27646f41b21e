"""The rules of pflag and cobra, one by one."""

from __future__ import annotations

import pytest

from slipway.api.machinery.duration import Duration
from slipway.api.machinery.errors import UsageError
from slipway.cli.argv.command import Command
from slipway.cli.argv.flags import FLAGS
from slipway.cli.argv.parser import Invocation, check_arguments, find, parse

_LEAF = Command(
    "leaf",
    "A command with a flag of every type",
    flags=(
        "apiserver-bind-port", "apiserver-cert-extra-sans", "apiserver-extra-args", "config", "context-lines", "dry-run",
        "etcd-upgrade", "force", "groups", "token-ttl", "yes",
    ),
    max_arguments=None,
)  # fmt: skip
_ROOT = Command(
    "program",
    "A small tree",
    persistent=("rootfs", "v", "vmodule"),
    commands=(
        Command("group", "A group", persistent=("kubeconfig",), aliases=("grp",), commands=(_LEAF,)),
        Command("config", "A command that is named as a flag", flags=("config",)),
    ),
)


def _parsed(*argv: str) -> Invocation:
    command, rest = find(_ROOT, list(argv))
    invocation = Invocation("program", command)
    parse(invocation, rest)
    return invocation


def _leaf(*argv: str) -> Invocation:
    return _parsed("group", "leaf", *argv)


@pytest.mark.parametrize(
    ("argv", "name", "value"),
    [
        (["--config=x"], "config", "x"),
        (["--config", "x"], "config", "x"),
        (["--config="], "config", ""),
        (["--config", "--dry-run"], "config", "--dry-run"),
        (["--config", "a", "--config", "b"], "config", "b"),
        (["--config=a=b"], "config", "a=b"),
        (["--dry-run"], "dry-run", True),
        (["--dry-run=false"], "dry-run", False),
        (["--dry-run=F"], "dry-run", False),
        (["--dry-run=1"], "dry-run", True),
        (["--dry-run", "--dry-run=false"], "dry-run", False),
        (["-f"], "force", True),
        (["-f=false"], "force", False),
        (["-fy"], "yes", True),
        (["-fyc5"], "context-lines", 5),
        (["-c", "7"], "context-lines", 7),
        (["-c=7"], "context-lines", 7),
        (["-v5"], "v", 5),
        (["-v=5"], "v", 5),
        (["-v", "5"], "v", 5),
        (["--v=5"], "v", 5),
        (["--apiserver-bind-port=0x10"], "apiserver-bind-port", 16),
        (["--apiserver-bind-port=0o17"], "apiserver-bind-port", 15),
        (["--apiserver-bind-port=017"], "apiserver-bind-port", 15),
        (["--apiserver-bind-port=1_000"], "apiserver-bind-port", 1000),
        (["--apiserver-bind-port=-1"], "apiserver-bind-port", -1),
        (["--apiserver-bind-port", "+1"], "apiserver-bind-port", 1),
        (["--apiserver-bind-port=2147483647"], "apiserver-bind-port", 2147483647),
        (["--token-ttl=1h30m"], "token-ttl", Duration.of(hours=1, minutes=30)),
        (["--token-ttl=0"], "token-ttl", Duration(0)),
        (["--apiserver-cert-extra-sans=a,b"], "apiserver-cert-extra-sans", ["a", "b"]),
        (["--apiserver-cert-extra-sans=a", "--apiserver-cert-extra-sans=b,c"], "apiserver-cert-extra-sans", ["a", "b", "c"]),
        (["--apiserver-cert-extra-sans="], "apiserver-cert-extra-sans", []),
        (["--apiserver-cert-extra-sans=a,,b"], "apiserver-cert-extra-sans", ["a", "", "b"]),
        (["--apiserver-cert-extra-sans=a,"], "apiserver-cert-extra-sans", ["a", ""]),
        (['--apiserver-cert-extra-sans="a,b",c'], "apiserver-cert-extra-sans", ["a,b", "c"]),
        (['--apiserver-cert-extra-sans="say ""hi"""'], "apiserver-cert-extra-sans", ['say "hi"']),
        (["--apiserver-cert-extra-sans=a\nb"], "apiserver-cert-extra-sans", ["a"]),
        (["--groups=x"], "groups", ["x"]),
        (["--apiserver-extra-args=a=b,c=", "--apiserver-extra-args=d=e"], "apiserver-extra-args", [("a", "b"), ("c", ""), ("d", "e")]),
        (["--kubeconfig=k"], "kubeconfig", "k"),
        (["--vmodule=a=1,b=2"], "vmodule", "a=1,b=2"),
        (["--", "x"], "config", ""),
        ([], "etcd-upgrade", True),
        ([], "groups", ["system:bootstrappers:kubeadm:default-node-token"]),
        ([], "apiserver-bind-port", 6443),
        ([], "token-ttl", Duration.of(hours=24)),
        ([], "apiserver-cert-extra-sans", []),
        ([], "v", 0),
    ],
    ids=str,
)
def test_a_flag_gets_its_value(argv: list[str], name: str, value: object) -> None:
    assert _leaf(*argv).value(name) == value


@pytest.mark.parametrize(
    ("argv", "arguments"),
    [
        (["a", "--dry-run", "b"], ["a", "b"]),
        (["--config", "c", "a"], ["a"]),
        (["--", "--dry-run"], ["--dry-run"]),
        (["a", "--", "b", "--", "c"], ["a", "b", "--", "c"]),
        (["-"], ["-"]),
        ([""], [""]),
        (["--dry-run", "false"], ["false"]),
    ],
)
def test_what_is_no_flag_is_an_argument(argv: list[str], arguments: list[str]) -> None:
    assert _leaf(*argv).arguments == arguments


@pytest.mark.parametrize(
    "argv",
    [
        ["group", "leaf"],
        ["grp", "leaf"],
        ["-v", "5", "group", "leaf"],
        ["--rootfs", "/x", "group", "--kubeconfig", "leaf", "leaf"],
        ["--v=5", "group", "--kubeconfig=k", "leaf"],
    ],
)
def test_flags_of_parents_may_stand_before_a_subcommand(argv: list[str]) -> None:
    assert _parsed(*argv).command is _LEAF


def test_the_value_of_a_flag_is_not_taken_for_a_command() -> None:
    invocation = _parsed("--rootfs", "config", "config", "--config", "config")
    assert invocation.command.name == "config"
    assert (invocation.text("rootfs"), invocation.text("config")) == ("config", "config")


def test_only_flags_that_are_given_count_as_changed() -> None:
    invocation = _leaf("--dry-run=false")
    assert invocation.changed("dry-run")
    assert not invocation.changed("config")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--kubernetes-version=x"], "unknown flag: --kubernetes-version"),
        (["-z"], "unknown shorthand flag: 'z' in -z"),
        (["-fz"], "unknown shorthand flag: 'z' in -z"),
        (["--config"], "flag needs an argument: --config"),
        (["-c"], "flag needs an argument: 'c' in -c"),
        (["-fc"], "flag needs an argument: 'c' in -c"),
        (["---x"], "bad flag syntax: ---x"),
        (["--context-lines", "x"], 'invalid argument "x" for "-c, --context-lines" flag: strconv.ParseInt: parsing "x": invalid syntax'),
    ],
)
def test_a_bad_flag_is_refused_in_pflags_words(argv: list[str], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        _leaf(*argv)
    assert raised.value.message == message


@pytest.mark.parametrize(
    ("limit", "arguments", "message"),
    [
        (0, ["x", "y"], 'unknown command "x" for "program one"'),
        (1, ["x", "y"], "accepts at most 1 arg(s), received 2"),
    ],
)
def test_too_many_arguments_are_refused_in_cobras_words(limit: int, arguments: list[str], message: str) -> None:
    command = Command("one", "A command", max_arguments=limit)
    Command("program", "Its parent", commands=(command,))
    invocation = Invocation("program", command)
    parse(invocation, arguments)
    with pytest.raises(UsageError) as raised:
        check_arguments(invocation)
    assert raised.value.message == message


def test_every_flag_has_one_type_by_name() -> None:
    """Completion and the search for the sub-command know flags by name alone."""
    kinds: dict[str, set[str]] = {}
    for flag in FLAGS.values():
        kinds.setdefault(flag.name, set()).add(flag.kind)
    assert {name: kind for name, kind in kinds.items() if len(kind) > 1} == {}
