"""``completion``: the code with which a shell completes commands, flags, phase names and files, made from the tree.

The tables are static, so a completion starts no Python.  Each shell's function walks the words before the cursor to
find the command, looks up what may follow, and knows of a flag what its value is.
"""

from __future__ import annotations

import sys

from slipway.api.machinery.errors import UsageError
from slipway.cli.docs.bash import bash
from slipway.cli.docs.fish import fish
from slipway.cli.docs.tables import SHELLS
from slipway.cli.docs.zsh import zsh

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.argv.parser import Invocation

_SCRIPTS = {"bash": bash, "fish": fish, "zsh": zsh}


def run(call: Invocation) -> None:
    if not call.arguments:
        raise UsageError("shell not specified")
    if len(call.arguments) > 1:
        raise UsageError("too many arguments. expected only the shell type")
    shell = call.arguments[0]
    if shell not in _SCRIPTS:
        raise UsageError(f'unsupported shell type "{shell}", the supported shell types are [{" ".join(SHELLS)}]')
    sys.stdout.write(_SCRIPTS[shell](call.command.root))
