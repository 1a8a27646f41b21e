"""The ``slipway`` program: finds the command, runs it, and turns what goes wrong into a sentence and an exit code.

A command's module is imported when it is the one that runs; this module must stay cheap.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.argv.command import Command
    from slipway.cli.argv.parser import Invocation
    from slipway.host.interface import Host

_PROGRAMS = ("slipway", "kubeadm")
_INTERRUPTED = 130
_BROKEN_PIPE = 141


def entry() -> None:
    """The program, which has its process for itself and does not take it apart at the end."""
    code = main(own_process=True)
    sys.stderr.flush()
    os._exit(code)


def main(argv: list[str] | None = None, host: Host | None = None, *, own_process: bool = False) -> int:
    """Run a command line; ``host`` stands for the machine in tests, and ``own_process`` lets the process be fitted to the command."""
    try:
        code = _run(sys.argv[1:] if argv is None else argv, host, own_process=own_process)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has left; as with a C program, that ends this one.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except OSError as error:
        sys.stderr.write(f"error: the output could not be written: {error.strerror}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return _INTERRUPTED
    return code


def program_name() -> str:
    """The name that the program was called by: nodes may know it as kubeadm."""
    called = sys.argv[0].rpartition("/")[2] if sys.argv else ""
    return next((name for name in _PROGRAMS if called.endswith(name)), _PROGRAMS[0])


def _run(argv: list[str], host: Host | None, *, own_process: bool) -> int:
    from slipway.cli.argv.parser import Invocation, check_arguments, find, parse
    from slipway.cli.trees.root import build

    root = build(program_name())
    invocation = Invocation(root.name, root)
    try:
        command, rest = find(root, argv)
        invocation = Invocation(root.name, command)
        invocation.host_override = host
        parse(invocation, rest)
        for warning in invocation.warnings:
            sys.stderr.write(f"{warning}\n")
        if invocation.switch("help") or (command is root and not invocation.arguments):
            _help(invocation)
            return 0
        check_arguments(invocation)
        if not command.run:
            _help(invocation)
            raise _subcommand_required(command)
        if own_process:
            _fit_process(command)
        command.function()(invocation)
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as error:
        from slipway.cli.failure import report

        return report(error, invocation)
    return 0


def _fit_process(command: Command) -> None:
    """A process that lives for milliseconds has no use for collecting cycles, nor for what its packages import for other Pythons."""
    if not command.long_running:
        import gc

        gc.disable()
    if not command.bare and "typing_extensions" not in sys.modules:
        # msgspec wants it for Pythons that are older than ours, and it takes longer than many commands.
        sys.modules["typing_extensions"] = None  # type: ignore[assignment]
        try:
            import msgspec  # noqa: F401 - so that it is there without
        finally:
            del sys.modules["typing_extensions"]


def _help(invocation: Invocation) -> None:
    from slipway.cli.docs.help import command_help

    sys.stdout.write(command_help(invocation.program, invocation.command))


def _subcommand_required(command: Command) -> Exception:
    from slipway.api.machinery.errors import UsageError

    if command.is_ours:
        return UsageError(f"what {command.name} is to do is missing: name one of {', '.join(each.name for each in command.commands)}")
    # kubeadm's text begins with an empty line, which sets it off from the help.
    return UsageError("\nerror: subcommand is required")
