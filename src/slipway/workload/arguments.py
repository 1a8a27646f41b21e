"""Flags and variables of components: how kubeadm's defaults, a user's ``extraArgs`` and ``extraEnvs`` and the proxies of the
machine become one command line and one environment.

A flag's name may occur more than once.  Where a name is read, its last value counts, as in the components.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.kubeadm.internal import Arg, EnvVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from slipway.api.machinery.objects import Manifest


def to_command(defaults: Iterable[Arg], extra: Sequence[Arg], *, sorted_extra_args: bool) -> list[str]:
    """The flags as ``--name=value``: an extra flag drops every default of its name.

    Defaults are sorted and extra flags follow in the user's order; releases with ``sorted_extra_args`` sort all of them.
    """
    overridden = {arg.name for arg in extra}
    kept = [arg for arg in defaults if arg.name not in overridden]
    args = _ordered([*kept, *extra]) if sorted_extra_args else [*_ordered(kept), *extra]
    return [f"--{arg.name}={arg.value}" for arg in args]


def from_command(command: Iterable[str]) -> tuple[list[Arg], list[str]]:
    """The flags of a command line, sorted, and the words that are none; a first word without dashes is the program."""
    args: list[Arg] = []
    unknown: list[str] = []
    for position, word in enumerate(command):
        name, equals, value = word.removeprefix("--").partition("=")
        if word.startswith("--") and equals and name:
            args.append(Arg(name=name, value=value))
        elif position:
            unknown.append(word)
    return _ordered(args), unknown


def value_of(args: Sequence[Arg], name: str) -> str | None:
    """The value that a component would use, or None where the flag is not given."""
    return next((arg.value for arg in reversed(args) if arg.name == name), None)


def proxies(environment: Mapping[str, str]) -> list[EnvVar]:
    """The variables of the environment that name a proxy, in either case."""
    return [EnvVar(name=name, value=value) for name, value in environment.items() if name.lower().endswith("_proxy") and value]


def env(*groups: Sequence[EnvVar]) -> list[Manifest]:
    """The ``env`` of a container, sorted by name; a later group wins."""
    merged = {variable.name: variable for group in groups for variable in group}
    return [_variable(merged[name]) for name in sorted(merged)]


def _ordered(args: list[Arg]) -> list[Arg]:
    # Go compares strings by their UTF-8 bytes, Python by code points: the order is the same.
    return sorted(args, key=lambda arg: (arg.name, arg.value))


def _variable(variable: EnvVar) -> Manifest:
    made: Manifest = {"name": variable.name}
    if variable.value:
        made["value"] = variable.value
    if variable.value_from is not None:
        made["valueFrom"] = variable.value_from
    return made
