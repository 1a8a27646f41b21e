"""What there is to complete, for every shell alike: commands, flags, and what a flag's value may be."""

from __future__ import annotations

from slipway.cli.argv.values import value_without_argument

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.cli.argv.command import Command
    from slipway.cli.argv.flags import Flag

SHELLS = ("bash", "fish", "zsh")


def every_command(command: Command) -> Iterator[Command]:
    """A command and all that are under it, hidden ones left out, in the order of their names."""
    yield command
    for child in visible(command):
        yield from every_command(child)


def visible(command: Command) -> list[Command]:
    return sorted((child for child in command.commands if not child.hidden), key=lambda child: child.name)


def shown_flags(command: Command) -> list[Flag]:
    return sorted((flag for flag in (*command.flags, *command.inherited_flags) if not flag.hidden), key=lambda flag: flag.name)


def values(command: Command, flag: Flag) -> str:
    """What a flag's value may be: words, or @file, @dir; empty for anything."""
    if flag.completes == "phases":
        from slipway.cli.argv.phases import phase_paths

        return " ".join(phase_paths(command.workflow))
    if isinstance(flag.completes, str):
        return f"@{flag.completes}" if flag.completes else ""
    return " ".join(flag.completes)


def arguments(command: Command) -> str:
    """What a command's argument may be, in the notation of a flag's value."""
    return {"completion": " ".join(SHELLS), "man": "@dir"}.get(" ".join(command.path), "")


def switches(root: Command) -> list[str]:
    """Every flag that takes no value, long and short."""
    flags = {flag.name: flag for command in every_command(root) for flag in (*command.flags, *command.inherited_flags)}
    switches = [flag for flag in flags.values() if value_without_argument(flag)]
    return sorted([f"--{flag.name}" for flag in switches] + [f"-{flag.shorthand}" for flag in switches if flag.shorthand])


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def path_key(command: Command) -> str:
    """A path as the shells build it: every word with a blank before it; never empty, which zsh could not index."""
    return "/" + "".join(f" {word}" for word in command.path)


def value_rows(root: Command) -> dict[str, str]:
    rows = {}
    for command in every_command(root):
        for flag in shown_flags(command):
            offered = values(command, flag)
            if offered:
                rows[f"{path_key(command)} --{flag.name}"] = offered
                if flag.shorthand:
                    rows[f"{path_key(command)} -{flag.shorthand}"] = offered
    return rows


def first_sentence(flag: Flag) -> str:
    return flag.help.split(". ")[0].replace(":", " -")
