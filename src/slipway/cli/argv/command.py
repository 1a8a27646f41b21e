"""What a command is: its name, its flags, its sub-commands and the function behind it."""

from __future__ import annotations

from slipway.cli.argv.flags import FLAGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from slipway.cli.argv.flags import Flag
    from slipway.cli.argv.parser import Invocation

# What kubeadm has no commands of need not speak as it does.
_OURS = frozenset(("agent", "alive", "demo", "doctor", "fleet", "lab", "man", "manager"))


class Command:
    """A command of the tree.  ``flags`` are its own, ``persistent`` also hold for everything under it, by table key."""

    __slots__ = (
        "_commands",
        "_parent",
        "_workflow",
        "aliases",
        "argument",
        "bare",
        "example",
        "flag_keys",
        "hidden",
        "long",
        "long_running",
        "max_arguments",
        "name",
        "persistent_keys",
        "phase",
        "required",
        "run",
        "short",
    )

    def __init__(
        self,
        name: str,
        short: str,
        *,
        run: str = "",
        flags: tuple[str, ...] = (),
        persistent: tuple[str, ...] = (),
        commands: tuple[Command, ...] = (),
        workflow: str = "",
        phase: str = "",
        aliases: tuple[str, ...] = (),
        argument: str = "",
        max_arguments: int | None = 0,
        required: tuple[str, ...] = (),
        long: str = "",
        example: str = "",
        hidden: bool = False,
        bare: bool = False,
        long_running: bool = False,
    ) -> None:
        self.name = name
        self.short = short
        self.long = long
        self.example = example
        self.run = run
        """The function behind the command, as ``module:function`` under slipway.cli; a group without one needs a sub-command."""
        self.flag_keys = flags
        self.persistent_keys = persistent
        self.aliases = aliases
        self.argument = argument
        """How the usage line shows the arguments, such as ``[version]``."""
        self.max_arguments = max_arguments
        """How many arguments there may be; None for any number."""
        self.required = required
        self.hidden = hidden
        self.bare = bare
        """Does without msgspec, whose import takes several times as long as the command."""
        self.long_running = long_running
        """Runs until it is told to stop, and not for a moment: its process collects its garbage."""
        self.phase = phase
        """The path of the phase that the command runs, such as ``certs/ca``."""
        self._workflow = workflow
        self._commands = commands
        self._parent: Command | None = None
        for command in commands:
            command._parent = self

    @property
    def workflow(self) -> str:
        """The phase tree that the command runs, as ``module:name`` under slipway.node; empty for all but workflows."""
        return self._workflow

    @property
    def commands(self) -> tuple[Command, ...]:
        """The sub-commands; those of a workflow are made from its phases, on demand since its module is not cheap."""
        if self._workflow and not self._commands:
            from slipway.cli.argv.phases import phase_command

            self._commands = (phase_command(self),)
            self._commands[0]._parent = self
        return self._commands

    @property
    def parent(self) -> Command | None:
        return self._parent

    @property
    def path(self) -> tuple[str, ...]:
        """The words that lead here, without the program's name."""
        return (*self._parent.path, self.name) if self._parent else ()

    @property
    def is_ours(self) -> bool:
        """Whether kubeadm has no such command."""
        return self.path[:1] != () and self.path[0] in _OURS

    @property
    def root(self) -> Command:
        return self._parent.root if self._parent else self

    @property
    def flags(self) -> list[Flag]:
        """The command's own flags, sorted; ``--help`` is everybody's."""
        return _sorted((*self.flag_keys, *self.persistent_keys, "help"))

    @property
    def inherited_flags(self) -> list[Flag]:
        own = {flag.name for flag in self.flags}
        return [flag for flag in _sorted(tuple(self._inherited_keys())) if flag.name not in own]

    def _inherited_keys(self) -> Iterator[str]:
        ancestor = self._parent
        while ancestor is not None:
            yield from ancestor.persistent_keys
            ancestor = ancestor._parent

    def find(self, name: str) -> Command | None:
        return next((command for command in self.commands if command.name == name or name in command.aliases), None)

    def function(self) -> Callable[[Invocation], None]:
        """The function behind the command, imported only now."""
        module, _, name = self.run.partition(":")
        loaded = __import__(f"slipway.cli.{module}", fromlist=[name])
        function: Callable[[Invocation], None] = getattr(loaded, name)
        return function


def _sorted(keys: tuple[str, ...]) -> list[Flag]:
    return sorted((FLAGS[key] for key in keys), key=lambda flag: flag.name)
