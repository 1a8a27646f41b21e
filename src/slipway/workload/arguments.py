"""Flags of components: how kubeadm's defaults and a user's ``extraArgs`` become one command line.

A name may occur more than once.  Where a name is read, its last value counts, as in the components.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.kubeadm.internal import Arg

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


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


def _ordered(args: list[Arg]) -> list[Arg]:
    # Go compares strings by their UTF-8 bytes, Python by code points: the order is the same.
    return sorted(args, key=lambda arg: (arg.name, arg.value))
