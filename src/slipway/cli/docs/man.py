"""``man``: a man page for every command, made from the tree and the flag table."""

from __future__ import annotations

import sys

from slipway import __version__
from slipway.api.machinery.errors import OperatorError
from slipway.cli.docs.help import flag_text, usage_lines
from slipway.cli.docs.tables import every_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.argv.command import Command
    from slipway.cli.argv.flags import Flag
    from slipway.cli.argv.parser import Invocation


def run(call: Invocation) -> None:
    """Write every page into the folder; without one, the program's own page goes to standard output."""
    root = call.command.root
    if not call.arguments:
        sys.stdout.write(page(call.program, root))
        return
    folder = call.arguments[0]
    try:
        for command in every_command(root):
            call.host.write(f"{folder}/{_title(call.program, command)}.1", page(call.program, command).encode(), 0o644)
    except OSError as error:
        raise OperatorError(f'cannot write man pages into "{folder}": {error.strerror or error}') from None


def page(program: str, command: Command) -> str:
    """One man page, in roff."""
    title = _title(program, command)
    lines = [
        f'.TH "{title.upper()}" 1 "" "slipway {__version__}" "Kubernetes clusters"',
        ".SH NAME",
        f"{_text(title)} \\- {_text(command.short)}",
        ".SH SYNOPSIS",
    ]
    for usage in usage_lines(program, command):
        lines += [f".B {_text(usage)}", ".br"]
    if command.long:
        lines += [".SH DESCRIPTION", _text(command.long)]
    lines += _phases(command)
    children = sorted((child for child in command.commands if not child.hidden), key=lambda child: child.name)
    if children:
        lines.append(".SH COMMANDS")
        for child in children:
            lines += [".TP", f".B {_text(child.name)}", _text(child.short)]
    lines += _options("OPTIONS", command.flags) + _options("GLOBAL OPTIONS", command.inherited_flags)
    if command.example:
        lines += [".SH EXAMPLES", ".nf", _text(command.example.format(program=program)), ".fi"]
    related = [_title(program, other) for other in (command.parent, *children) if other is not None]
    if related:
        lines += [".SH SEE ALSO", ", ".join(f"\\fB{_text(name)}\\fR(1)" for name in related)]
    return "\n".join(lines) + "\n"


def _phases(command: Command) -> list[str]:
    if not command.workflow:
        return []
    from slipway.cli.argv.phases import phase_paths

    return [".SH PHASES", f"In their order, as --skip-phases takes them: {_text(', '.join(phase_paths(command.workflow)))}."]


def _options(title: str, flags: list[Flag]) -> list[str]:
    shown = [flag for flag in flags if not flag.hidden]
    lines = [f".SH {title}"] if shown else []
    for flag in shown:
        shorthand = f"\\fB\\-{flag.shorthand}\\fR, " if flag.shorthand else ""
        kind = "" if flag.kind == "bool" else f" \\fI{flag.kind}\\fR"
        lines += [".TP", f"{shorthand}\\fB{_text('--' + flag.name)}\\fR{kind}"]
        lines += [part for text in flag_text(flag) for part in (_text(text.strip()), ".br")][:-1]
    return lines


def _title(program: str, command: Command) -> str:
    return "-".join((program, *command.path))


def _text(text: str) -> str:
    """Text that roff takes as it is: dashes that stay dashes, and no line that looks like a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line[:1] in (".", "'") else line for line in escaped.split("\n"))
