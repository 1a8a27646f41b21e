"""Reads argv as cobra and pflag do: which command, which flags, which arguments; or the error that they would give."""

from __future__ import annotations

from slipway.cli.argv.values import InvalidValueError, Value, default_value, parse_value, quote, value_without_argument

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.api.machinery.duration import Duration
    from slipway.api.machinery.errors import UsageError
    from slipway.api.releases import Release
    from slipway.cli.argv.command import Command
    from slipway.cli.argv.flags import Flag
    from slipway.host.interface import Host
    from slipway.host.progress import Progress


class Invocation:
    """A command line that was understood."""

    def __init__(self, program: str, command: Command) -> None:
        self.program = program
        self.command = command
        self.arguments: list[str] = []
        self.flags = {flag.name: flag for flag in (*command.inherited_flags, *command.flags)}
        self.given: dict[str, Value] = {}
        """The values of the flags that are on the command line."""
        self.warnings: list[str] = []
        """What to tell about deprecated flags, once the whole command line is understood."""
        self.host_override: Host | None = None
        self.config_path = ""
        self.config_text: str | None = None
        """The configuration file of the command, once it was read."""
        self.release: Release | None = None
        """The release that the command acts as, once it knows; it decides on the exit code of an error."""

    def changed(self, name: str) -> bool:
        return name in self.given

    def value(self, name: str) -> Value:
        return self.given[name] if name in self.given else default_value(self.flags[name])

    def text(self, name: str) -> str:
        value = self.value(name)
        assert isinstance(value, str)
        return value

    def switch(self, name: str) -> bool:
        value = self.value(name)
        assert isinstance(value, bool)
        return value

    def is_on(self, name: str) -> bool:
        """Whether a switch is on; a command that does not have it has it off."""
        return name in self.flags and self.switch(name)

    def number(self, name: str) -> int:
        value = self.value(name)
        assert isinstance(value, int)
        return value

    def duration(self, name: str) -> Duration:
        from slipway.api.machinery.duration import Duration

        value = self.value(name)
        assert isinstance(value, Duration)
        return value

    def texts(self, name: str) -> list[str]:
        value = self.value(name)
        assert isinstance(value, list)
        return [str(item) for item in value]

    def pairs(self, name: str) -> list[tuple[str, str]]:
        value = self.value(name)
        assert isinstance(value, list)
        return [(str(item[0]), str(item[1])) for item in value]

    def progress(self) -> Progress:
        """Where to report to: lines for a person, or with ``-o json`` an event a line; sub-commands of phases have no ``-o``."""
        from slipway.host.progress import JsonProgress, TextProgress

        chosen = self.text("output") if "output" in self.flags else "text"
        if chosen == "json":
            return JsonProgress()
        if chosen != "text":
            from slipway.api.machinery.errors import UsageError

            raise UsageError(f'invalid output format "{chosen}": use text or json')
        return TextProgress()

    @property
    def verbosity(self) -> int:
        return self.number("v")

    @property
    def host(self) -> Host:
        """The machine to work on: the one that a test gave, or this one, seen from ``--rootfs``."""
        if self.host_override is None:
            from slipway.host.real import RealHost

            self.host_override = RealHost(self.text("rootfs") or "/")
        return self.host_override


def find(root: Command, argv: list[str]) -> tuple[Command, list[str]]:
    """The command that argv names, and argv without the words that name it; flags may stand in between."""
    command, rest = root, argv
    while True:
        words = _words(command, rest)
        following = command.find(words[0]) if words else None
        if following is None:
            break
        rest = _without(rest, words[0], command)
        command = following
    if command is root and words:
        raise _usage(f"unknown command {quote(words[0])} for {quote(root.name)}{_suggestions(root, words[0])}")
    return command, rest


def parse(invocation: Invocation, argv: list[str]) -> None:
    """Fill ``invocation`` from what follows the command's name; raises a UsageError with pflag's words."""
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            invocation.arguments.append(word)
        elif word == "--":
            invocation.arguments += rest
            return
        elif word.startswith("--"):
            _long(invocation, word, rest)
        else:
            _shorthands(invocation, word[1:], rest)


def check_arguments(invocation: Invocation) -> None:
    """What cobra checks after the flags: how many arguments there are, and the flags that must be there."""
    command, arguments = invocation.command, invocation.arguments
    limit = command.max_arguments
    if limit == 0 and arguments:
        path = " ".join((invocation.program, *command.path))
        raise _usage(f"unknown command {quote(arguments[0])} for {quote(path)}")
    if limit is not None and len(arguments) > limit:
        raise _usage(f"accepts at most {limit} arg(s), received {len(arguments)}")
    missing = [name for name in command.required if not invocation.changed(name)]
    if missing:
        raise _usage(f"required flag(s) {', '.join(map(quote, missing))} not set")


def _long(invocation: Invocation, word: str, rest: list[str]) -> None:
    name, equals, value = word[2:].partition("=")
    if not name or name.startswith("-"):
        raise _usage(f"bad flag syntax: {word}")
    flag = invocation.flags.get(name)
    if flag is None:
        raise _usage(f"unknown flag: --{name}")
    if not equals:
        value = value_without_argument(flag)
        if not value:
            if not rest:
                raise _usage(f"flag needs an argument: --{name}")
            value = rest.pop(0)
    _set(invocation, flag, value)


def _shorthands(invocation: Invocation, letters: str, rest: list[str]) -> None:
    """``-v5``, ``-v=5``, ``-v 5`` and groups of switches such as ``-fy``."""
    while letters:
        flag = next((flag for flag in invocation.flags.values() if flag.shorthand == letters[0]), None)
        if flag is None:
            raise _usage(f"unknown shorthand flag: '{letters[0]}' in -{letters}")
        if len(letters) > 2 and letters[1] == "=":
            value, following = letters[2:], ""
        elif value_without_argument(flag):
            value, following = value_without_argument(flag), letters[1:]
        elif len(letters) > 1:
            value, following = letters[1:], ""
        elif rest:
            value, following = rest.pop(0), ""
        else:
            raise _usage(f"flag needs an argument: '{letters[0]}' in -{letters}")
        _set(invocation, flag, value)
        letters = following


def _set(invocation: Invocation, flag: Flag, text: str) -> None:
    try:
        value = parse_value(flag, text)
    except InvalidValueError as error:
        shown = f"-{flag.shorthand}, --{flag.name}" if flag.shorthand else f"--{flag.name}"
        raise _usage(f"invalid argument {quote(text)} for {quote(shown)} flag: {error}") from None
    before = invocation.given.get(flag.name)
    # A list that is given twice grows; the first time it replaces the default.
    invocation.given[flag.name] = [*before, *value] if isinstance(before, list) and isinstance(value, list) else value
    if flag.deprecated:
        invocation.warnings.append(f"Flag --{flag.name} has been deprecated, {flag.deprecated}")


def _takes_argument(command: Command, word: str) -> bool:
    """Whether the word after this flag is its value; an unknown flag is taken to have one, as cobra does."""
    flags = (*command.inherited_flags, *command.flags)
    if word.startswith("--"):
        flag = next((flag for flag in flags if flag.name == word[2:]), None)
    else:
        flag = next((flag for flag in flags if flag.shorthand == word[1:]), None)
    return flag is None or not value_without_argument(flag)


def _words(command: Command, argv: list[str]) -> list[str]:
    """argv without flags and their values."""
    words = []
    position = 0
    while position < len(argv):
        word = argv[position]
        position += 1
        if word == "--":
            break
        if word.startswith("-") and "=" not in word and (word.startswith("--") or len(word) == 2):
            if _takes_argument(command, word):
                if len(argv) - position <= 1:
                    break
                position += 1
        elif word and not word.startswith("-"):
            words.append(word)
    return words


def _without(argv: list[str], name: str, command: Command) -> list[str]:
    """argv without the first word that names a sub-command; a flag's value that reads the same stays."""
    position = 0
    while position < len(argv):
        word = argv[position]
        if word == "--":
            break
        if word.startswith("-") and "=" not in word and (word.startswith("--") or len(word) == 2):
            position += 2 if _takes_argument(command, word) else 1
        elif word == name:
            return argv[:position] + argv[position + 1 :]
        else:
            position += 1
    return argv


def _suggestions(root: Command, typed: str) -> str:
    near = [
        command.name
        for command in root.commands
        if not command.hidden and (_distance(typed.lower(), command.name) <= 2 or command.name.startswith(typed.lower()))
    ]
    return "".join(("\n\nDid you mean this?\n", *(f"\t{name}\n" for name in near))) if near else ""


def _distance(left: str, right: str) -> int:
    """Levenshtein's."""
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            before, row[j] = row[j], before if a == b else 1 + min(before, row[j], row[j - 1])
    return row[-1]


def _usage(message: str) -> UsageError:
    from slipway.api.machinery.errors import UsageError

    return UsageError(message)
