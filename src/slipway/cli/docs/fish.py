"""Completion code for fish."""

from __future__ import annotations

from slipway.cli.argv.values import value_without_argument
from slipway.cli.docs.tables import arguments, every_command, first_sentence, quoted, shown_flags, switches, values, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.argv.command import Command


def fish(root: Command) -> str:
    program = root.name
    lines = [_FISH.replace("@SWITCHES@", " ".join(switches(root))).replace("@PROGRAM@", program)]
    paths = [" ".join(command.path) for command in every_command(root) if command.path]
    lines.append(f"set -g __{program}_paths {' '.join(map(quoted, paths))}")
    for command in every_command(root):
        condition = quoted(f'__{program}_at "{" ".join(command.path)}"')
        here = f"complete -c {program} -n {condition}"
        lines += (f"{here} -f -a {quoted(child.name)} -d {quoted(child.short)}" for child in visible(command))
        if arguments(command):
            lines.append(f"{here} {_fish_values(arguments(command), program)}")
        for flag in shown_flags(command):
            short = f" -s {flag.shorthand}" if flag.shorthand else ""
            value = "" if value_without_argument(flag) else f" -r {_fish_values(values(command, flag), program)}".rstrip()
            lines.append(f"{here} -l {flag.name}{short}{value} -d {quoted(first_sentence(flag))}")
    return "\n".join(lines) + "\n"


def _fish_values(values: str, program: str) -> str:
    if values == "@file":
        return "-F"
    if values == "@dir":
        return "-f -a '(__fish_complete_directories)'"
    return f"-f -a {quoted(f'(__{program}_list {values})')}" if values else "-f"


_FISH = r"""# fish completion for @PROGRAM@
complete -c @PROGRAM@ -f

function __@PROGRAM@_at --description 'Whether the command line is at this command'
    set -l words (commandline -opc)
    set -l path
    set -l skip 0
    for word in $words[2..-1]
        if test $skip -eq 1
            set skip 0
        else if string match -q -- '-*' $word
            if not contains -- $word @SWITCHES@; and not string match -q -- '*=*' $word
                set skip 1
            end
        else if contains -- (string join ' ' $path $word) $__@PROGRAM@_paths
            set -a path $word
        end
    end
    test "$path" = "$argv[1]"
end

function __@PROGRAM@_list --description 'The words, after what a comma-separated list has already'
    set -l typed (commandline -ct | string replace -r '^--[^=]*=' '' | string replace -r '[^,]*$' '')
    for word in $argv
        echo "$typed$word"
    end
end
"""
