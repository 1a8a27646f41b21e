"""The help of a command, laid out as cobra lays it out, made from the tree and the flag table."""

from __future__ import annotations

import os
import sys
import textwrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from slipway.cli.argv.command import Command
    from slipway.cli.argv.flags import Flag
    from slipway.cli.argv.parser import Invocation
    from slipway.node.workflow import Phase

_WIDTH = 120


def run(call: Invocation) -> None:
    """``help init phase certs``; as kubeadm does it, an unknown topic is no failure."""
    from slipway.api.machinery.errors import UsageError
    from slipway.cli.argv.parser import find

    root = call.command.root
    try:
        command, _ = find(root, call.arguments)
    except UsageError:
        topics = " ".join(f"`{word}`" for word in call.arguments)
        sys.stderr.write(f"Unknown help topic [{topics}]\n\n{command_help(call.program, root)}")
        return
    sys.stdout.write(command_help(call.program, command))


def alpha(call: Invocation) -> None:
    sys.stdout.write(f"{call.command.short}\n")


def command_help(program: str, command: Command) -> str:
    """The whole help text."""
    width = _width()
    sections = [
        f"{command.short}.",
        command.long,
        _phases(command, width),
        "Usage:\n" + "".join(f"  {line}\n" for line in usage_lines(program, command)),
        f"Aliases:\n  {', '.join((command.name, *command.aliases))}" if command.aliases else "",
        _examples(program, command),
        _subcommands(command),
        _flags("Flags", command.flags, width),
        _flags("Global Flags", command.inherited_flags, width),
        _footer(program, command),
    ]
    return "\n\n".join(section.rstrip("\n") for section in sections if section) + "\n"


def usage_lines(program: str, command: Command) -> list[str]:
    path = " ".join((program, *command.path))
    lines = []
    if command.run or not command.commands:
        lines.append(" ".join(part for part in (path, command.argument, "[flags]") if part))
    if command.commands:
        lines.append(f"{path} [command]")
    return lines


def default_text(flag: Flag) -> str:
    """The default as pflag shows it: strings quoted, zero values not at all."""
    if not flag.default:
        return ""
    return f'"{flag.default}"' if flag.kind == "string" else flag.default


def flag_text(flag: Flag) -> list[str]:
    """What the help says about a flag; each item is a line of its own."""
    default = default_text(flag)
    lines = [f"{flag.help} (default {default})" if default else flag.help]
    if flag.name == "feature-gates":
        from slipway.api.releases import NEWEST, release_for

        lines += (f"  {name}, {str(gate.default).lower()} by default" for name, gate in release_for(NEWEST).feature_gates.items())
    return lines


def _width() -> int:
    try:
        return max(60, min(_WIDTH, os.get_terminal_size(sys.stdout.fileno()).columns))
    except (OSError, ValueError):
        return _WIDTH


def _phases(command: Command, width: int) -> str:
    if not command.workflow:
        return ""
    from slipway.cli.argv.phases import tree

    rows = list(_phase_rows(tree(command.workflow), 0))
    column = max(len(name) for name, _ in rows) + 2
    lines = [f"The phases of {command.name}, in their order:", *_columns(rows, column, width)]
    return "\n".join(lines)


def _phase_rows(phases: Iterable[Phase[Any]], level: int) -> Iterable[tuple[str, str]]:
    for phase in phases:
        yield f"{'  ' * level}{'/' if level else ''}{phase.name}", phase.short
        yield from _phase_rows(phase.phases, level + 1)


def _examples(program: str, command: Command) -> str:
    if not command.example:
        return ""
    return "Examples:\n" + "".join(f"  {line}\n" for line in command.example.format(program=program).split("\n"))


def _subcommands(command: Command) -> str:
    rows = sorted((child.name, child.short) for child in command.commands if not child.hidden)
    if not rows:
        return ""
    column = max(len(name) for name, _ in rows) + 2
    return "Available Commands:\n" + "\n".join(f"  {name:<{column}}{short}" for name, short in rows)


def _flags(title: str, flags: list[Flag], width: int) -> str:
    rows = [(_flag_name(flag), flag_text(flag)) for flag in flags if not flag.hidden]
    if not rows:
        return ""
    column = max(len(name) for name, _ in rows) + 3
    lines = [f"{title}:"]
    for name, texts in rows:
        for text in texts:
            # A default is not broken over two lines.
            whole = text.replace("(default ", "(default\0")
            for line in textwrap.wrap(whole, max(width - column, 40), break_long_words=False, break_on_hyphens=False):
                lines.append(f"{name:<{column}}{line}".replace("\0", " ").rstrip())
                name = ""
    return "\n".join(lines)


def _flag_name(flag: Flag) -> str:
    shorthand = f"-{flag.shorthand}, " if flag.shorthand else "    "
    kind = "" if flag.kind == "bool" else f" {flag.kind}"
    return f"  {shorthand}--{flag.name}{kind}"


def _columns(rows: list[tuple[str, str]], column: int, width: int) -> list[str]:
    lines = []
    for name, text in rows:
        for line in textwrap.wrap(text, max(width - column, 40)):
            lines.append(f"{name:<{column}}{line}".rstrip())
            name = ""
    return lines


def _footer(program: str, command: Command) -> str:
    path = " ".join((program, *command.path))
    return f'Use "{path} [command] --help" for more about a command.' if command.commands else ""
