"""Rows of kubeadm's util/arguments_test.go and apis/kubeadm/argument_test.go (1.36.3), and the order of older patches."""

from __future__ import annotations

import pytest

from slipway.api.kubeadm.internal import Arg
from slipway.workload import arguments

pytestmark = pytest.mark.upstream_table


def args(*pairs: str) -> list[Arg]:
    return [Arg(name=pair.partition("=")[0], value=pair.partition("=")[2]) for pair in pairs]


@pytest.mark.parametrize(
    ("defaults", "extra", "expected"),
    [
        pytest.param(
            ["admission-control=NamespaceLifecycle", "allow-privileged=true"],
            ["admission-control=NamespaceLifecycle,LimitRanger"],
            ["--allow-privileged=true", "--admission-control=NamespaceLifecycle,LimitRanger"],
            id="an extra flag replaces a default",
        ),
        pytest.param(
            ["token-auth-file=/token", "tls-sni-cert-key=/some/path/"],
            ["tls-sni-cert-key=/some/new/path", "tls-sni-cert-key=/some/new/path/subpath"],
            ["--token-auth-file=/token", "--tls-sni-cert-key=/some/new/path", "--tls-sni-cert-key=/some/new/path/subpath"],
            id="an extra flag may be repeated",
        ),
        pytest.param(
            ["token-auth-file=/token", "tls-sni-cert-key=foo", "tls-sni-cert-key=bar"],
            ["tls-sni-cert-key=/some/new/path"],
            ["--token-auth-file=/token", "--tls-sni-cert-key=/some/new/path"],
            id="every copy of a default goes",
        ),
        pytest.param(
            ["allow-privileged=true"],
            ["admission-control=NamespaceLifecycle,LimitRanger"],
            ["--allow-privileged=true", "--admission-control=NamespaceLifecycle,LimitRanger"],
            id="a flag of its own follows",
        ),
        pytest.param(
            ["allow-privileged=true", "something-that-allows-empty-string="],
            ["admission-control=NamespaceLifecycle,LimitRanger"],
            ["--allow-privileged=true", "--something-that-allows-empty-string=", "--admission-control=NamespaceLifecycle,LimitRanger"],
            id="a default may be empty",
        ),
        pytest.param(
            ["allow-privileged=true", "something-that-allows-empty-string=foo"],
            ["admission-control=NamespaceLifecycle,LimitRanger", "something-that-allows-empty-string="],
            ["--allow-privileged=true", "--admission-control=NamespaceLifecycle,LimitRanger", "--something-that-allows-empty-string="],
            id="an extra flag may be empty",
        ),
        pytest.param(
            ["b=true", "c=true", "a=true"],
            ["e=true", "b=true", "d=true"],
            ["--a=true", "--c=true", "--e=true", "--b=true", "--d=true"],
            id="defaults are sorted and extra flags are not",
        ),
    ],
)
def test_extra_flags_follow_the_defaults_that_they_leave(defaults: list[str], extra: list[str], expected: list[str]) -> None:
    assert arguments.to_command(args(*defaults), args(*extra), sorted_extra_args=False) == expected


# kubeadm 1.34.0, util/arguments_test.go: the patches before 1.33.8, 1.34.4 and 1.35.1 sort everything.
@pytest.mark.parametrize(
    ("defaults", "extra", "expected"),
    [
        (
            ["admission-control=NamespaceLifecycle", "allow-privileged=true"],
            ["admission-control=NamespaceLifecycle,LimitRanger"],
            ["--admission-control=NamespaceLifecycle,LimitRanger", "--allow-privileged=true"],
        ),
        (
            ["token-auth-file=/token", "tls-sni-cert-key=/some/path/"],
            ["tls-sni-cert-key=/some/new/path", "tls-sni-cert-key=/some/new/path/subpath"],
            ["--tls-sni-cert-key=/some/new/path", "--tls-sni-cert-key=/some/new/path/subpath", "--token-auth-file=/token"],
        ),
        (["c=foo"], ["b=foo", "a=foo", "b=bar"], ["--a=foo", "--b=bar", "--b=foo", "--c=foo"]),
    ],
)
def test_older_patches_sort_extra_flags_in_with_the_defaults(defaults: list[str], extra: list[str], expected: list[str]) -> None:
    assert arguments.to_command(args(*defaults), args(*extra), sorted_extra_args=True) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            ["--admission-control=NamespaceLifecycle,LimitRanger", "--allow-privileged=true"],
            ["admission-control=NamespaceLifecycle,LimitRanger", "allow-privileged=true"],
        ),
        (
            ["kube-apiserver", "--allow-privileged=true", "--feature-gates=EnableFoo=true,EnableBar=false"],
            ["allow-privileged=true", "feature-gates=EnableFoo=true,EnableBar=false"],
        ),
        (
            ["--tls-sni-cert-key=/some/path", "--tls-sni-cert-key=/some/path/subpath"],
            ["tls-sni-cert-key=/some/path", "tls-sni-cert-key=/some/path/subpath"],
        ),
        (["--c=foo", "--a=foo", "--b=foo", "--b=bar"], ["a=foo", "b=bar", "b=foo", "c=foo"]),
        (["--a=", "--very-long-flag-name=some-value", "--some-number=0.2"], ["a=", "some-number=0.2", "very-long-flag-name=some-value"]),
    ],
)
def test_a_command_line_is_read_back_in_order(command: list[str], expected: list[str]) -> None:
    assert arguments.from_command(command) == (args(*expected), [])


@pytest.mark.parametrize("word", ["", "a", "a-z", "a=b", "--=b", "--a"])
def test_a_word_that_is_no_flag_is_told_apart(word: str) -> None:
    assert arguments.from_command(["--x=y", word]) == (args("x=y"), [word])


def test_the_program_at_the_head_of_a_command_line_is_not_a_flag() -> None:
    assert arguments.from_command(["kubelet"]) == ([], [])


@pytest.mark.parametrize(
    ("given", "name", "expected"),
    [
        (["a=a1", "b=b1", "c=c1"], "b", "b1"),
        (["foo1=", "foo2="], "foo2", ""),
        (["foo=bar"], "z", None),
        (["foo=first", "foo=last"], "foo", "last"),
    ],
)
def test_the_last_value_of_a_flag_counts(given: list[str], name: str, expected: str | None) -> None:
    assert arguments.value_of(args(*given), name) == expected
