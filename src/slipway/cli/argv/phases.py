"""The sub-commands of a workflow, made from its tree of phases: ``init phase certs ca`` runs the phase ``certs/ca``."""

from __future__ import annotations

from slipway.cli.argv.command import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from slipway.node.workflow import Phase


def tree(workflow: str) -> tuple[Phase[Any], ...]:
    """The phases of a workflow that is named as ``workflow:name``: ``init:PHASES`` of slipway.node.init."""
    module, _, name = workflow.partition(":")
    phases: tuple[Phase[Any], ...] = getattr(__import__(f"slipway.node.{module}.phases", fromlist=[name]), name)
    return phases


def phase_command(command: Command) -> Command:
    """The ``phase`` sub-command of a workflow's command."""
    return Command("phase", f"Run one phase of {command.name} by itself", commands=_commands(tree(command.workflow), command, ""))


def phase_paths(workflow: str) -> list[str]:
    """What ``--skip-phases`` takes."""
    return list(_paths(tree(workflow), ""))


def _paths(phases: Iterable[Phase[Any]], parent: str) -> Iterable[str]:
    for phase in phases:
        yield parent + phase.name
        yield from _paths(phase.phases, f"{parent}{phase.name}/")


def _commands(phases: Iterable[Phase[Any]], command: Command, parent: str) -> tuple[Command, ...]:
    return tuple(_command(phase, command, parent + phase.name) for phase in phases if not phase.hidden)


def _command(phase: Phase[Any], command: Command, path: str) -> Command:
    if not phase.phases:
        return _leaf(phase, command, phase.name, phase.short, path)
    children = _commands(phase.phases, command, f"{path}/")
    if phase.flags:
        # A group's flags are those of its `all`; a group without flags has none.
        children = (_leaf(phase, command, "all", f"Run every phase of {phase.name}", path), *children)
    return Command(phase.name, phase.short, commands=children, aliases=phase.aliases, long=phase.long)


def _leaf(phase: Phase[Any], command: Command, name: str, short: str, path: str) -> Command:
    return Command(
        name,
        short,
        run=command.run,
        flags=phase.flags,
        phase=path,
        aliases=phase.aliases if name == phase.name else (),
        argument=phase.argument,
        max_arguments=command.max_arguments,
        long=phase.long if name == phase.name else "",
        example=phase.example if name == phase.name else "",
    )
