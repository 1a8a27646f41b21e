"""Completion code for zsh."""

from __future__ import annotations

from slipway.cli.docs.tables import arguments, every_command, first_sentence, path_key, quoted, shown_flags, switches, value_rows, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.argv.command import Command


def _described(rows: list[tuple[str, str]]) -> str:
    """``name:what it is`` a line, as zsh's _describe reads it."""
    return "\n".join(f"{name}:{short}".replace("\\", "\\\\") for name, short in rows)


def zsh(root: Command) -> str:
    program = root.name
    commands = {
        path_key(command): _described([(child.name, child.short.replace(":", " -")) for child in visible(command)]) or arguments(command)
        for command in every_command(root)
    }
    aliases = {
        f"{path_key(command)} {alias}": child.name
        for command in every_command(root)
        for child in visible(command)
        for alias in child.aliases
    }
    flags = {
        path_key(command): _described([(f"--{flag.name}", first_sentence(flag)) for flag in shown_flags(command)])
        for command in every_command(root)
    }
    tables = (
        _table(f"_{program}_commands", commands)
        + _table(f"_{program}_aliases", aliases)
        + _table(f"_{program}_flags", flags)
        + _table(f"_{program}_values", value_rows(root))
    )
    return _ZSH.replace("@TABLES@", tables).replace("@SWITCHES@", " ".join(switches(root))).replace("@PROGRAM@", program)


def _table(name: str, rows: dict[str, str]) -> str:
    """An associative array."""
    body = "".join(f"  {quoted(key)} {quoted(value)}\n" for key, value in rows.items())
    return f"typeset -gA {name}=(\n{body})\n"


_ZSH = r"""#compdef @PROGRAM@
# zsh completion for @PROGRAM@
@TABLES@
_@PROGRAM@_offer() {
  case $1 in
    @file) _files ;;
    @dir) _files -/ ;;
    *) compset -P '*,'; compadd -- ${=1} ;;
  esac
}

_@PROGRAM@() {
  local current=$words[CURRENT] place=/ flag= word next
  local -a offers
  for word in "${(@)words[2,CURRENT-1]}"; do
    if [[ -n $flag ]]; then
      flag=
    elif [[ $word == -*=* ]]; then
      continue
    elif [[ $word == -* ]]; then
      [[ " @SWITCHES@ " == *" $word "* ]] || flag=$word
    else
      next=${_@PROGRAM@_aliases[$place $word]:-$word}
      [[ -n ${_@PROGRAM@_flags[$place $next]} ]] && place="$place $next"
    fi
  done
  if [[ -n $flag ]]; then
    _@PROGRAM@_offer "${_@PROGRAM@_values[$place $flag]}"
  elif [[ $current == -*=* ]]; then
    compset -P '*='
    _@PROGRAM@_offer "${_@PROGRAM@_values[$place ${current%%=*}]}"
  elif [[ $current == -* ]]; then
    offers=("${(@f)_@PROGRAM@_flags[$place]}")
    _describe flag offers
  elif [[ ${_@PROGRAM@_commands[$place]} == *:* ]]; then
    offers=("${(@f)_@PROGRAM@_commands[$place]}")
    _describe command offers
  else
    _@PROGRAM@_offer "${_@PROGRAM@_commands[$place]}"
  fi
}

if [[ $funcstack[1] == _@PROGRAM@ ]]; then
  _@PROGRAM@ "$@"
else
  compdef _@PROGRAM@ @PROGRAM@
fi
"""
