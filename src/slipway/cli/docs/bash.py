"""Completion code for bash."""

from __future__ import annotations

from slipway.cli.docs.tables import arguments, every_command, path_key, quoted, shown_flags, switches, value_rows, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.argv.command import Command


def bash(root: Command) -> str:
    program = root.name
    commands = {
        path_key(command): " ".join(child.name for child in visible(command)) or arguments(command) for command in every_command(root)
    }
    aliases = {
        f"{path_key(command)} {alias}": child.name
        for command in every_command(root)
        for child in visible(command)
        for alias in child.aliases
    }
    flags = {path_key(command): " ".join(f"--{flag.name}" for flag in shown_flags(command)) for command in every_command(root)}
    tables = (
        _bash_table(f"_{program}_commands", commands)
        + _bash_table(f"_{program}_aliases", aliases)
        + _bash_table(f"_{program}_flags", flags)
        + _bash_table(f"_{program}_values", value_rows(root))
    )
    return _BASH.replace("@TABLES@", tables).replace("@SWITCHES@", " ".join(switches(root))).replace("@PROGRAM@", program)


def _bash_table(name: str, rows: dict[str, str]) -> str:
    body = "".join(f"  [{quoted(key)}]={quoted(value)}\n" for key, value in rows.items())
    return f"declare -gA {name}=(\n{body})\n"


_BASH = r"""# bash completion for @PROGRAM@; needs bash 4.2 or later
@TABLES@
_@PROGRAM@_offer() {
    # $1: words or @file or @dir; $2: what is typed; a list goes on after its last comma.
    case $1 in
        @file) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$2")) ;;
        @dir) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- "$2")) ;;
        *)
            local typed=${2##*,}
            COMPREPLY=($(compgen -P "${2%"$typed"}" -W "$1" -- "$typed")) ;;
    esac
}

_@PROGRAM@() {
    local current=${COMP_WORDS[COMP_CWORD]} path=/ flag= word i next
    COMPREPLY=()
    # Bash makes three words of --flag=value; `flag` is the one whose value comes next.
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word == '=' ]]; then
            flag=${COMP_WORDS[i - 1]}
        elif [[ -n $flag ]]; then
            flag=
        elif [[ $word == -* ]]; then
            [[ " @SWITCHES@ " == *" $word "* ]] || flag=$word
        else
            next=${_@PROGRAM@_aliases["$path $word"]-$word}
            [[ -n ${_@PROGRAM@_flags["$path $next"]-} ]] && path="$path $next"
        fi
    done
    if [[ $current == '=' ]]; then
        flag=${COMP_WORDS[COMP_CWORD - 1]} current=
    fi
    if [[ -n $flag ]]; then
        _@PROGRAM@_offer "${_@PROGRAM@_values["$path $flag"]-}" "$current"
    elif [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "${_@PROGRAM@_flags[$path]}" -- "$current"))
    else
        _@PROGRAM@_offer "${_@PROGRAM@_commands[$path]}" "$current"
    fi
}

complete -F _@PROGRAM@ @PROGRAM@
"""
