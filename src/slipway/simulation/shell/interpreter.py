"""Runs a script that was read, as ``sh`` does: on a machine in memory, one command after another, a pipeline from left to right."""

from __future__ import annotations

import errno
import fnmatch
import os
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

from slipway.simulation.shell import builtins, expansion, grammar
from slipway.simulation.shell.grammar import ShellSyntaxError
from slipway.simulation.shell.nodes import Case, For, Function, Group, If, Simple, While
from slipway.simulation.shell.process import NOT_FOUND, Process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from slipway.simulation.shell.nodes import AndOr, Command, List, Pipeline, Redirection
    from slipway.simulation.shell.process import System

_read = lru_cache(maxsize=512)(grammar.parse)
_SYNTAX_ERROR = 2


class Exit(Exception):  # noqa: N818 - nothing went wrong
    """``exit``, or a command that failed under ``set -e``."""

    def __init__(self, code: int) -> None:
        self.code = code


class Return(Exit):
    """``return`` from a function."""


class Loop(Exception):  # noqa: N818 - nothing went wrong
    """``break`` and ``continue``."""

    def __init__(self, levels: int, *, again: bool) -> None:
        self.levels, self.again = levels, again


class Streams:
    def __init__(self, stdin: bytes, out: bytearray, err: bytearray) -> None:
        self.stdin, self.out, self.err = stdin, out, err


class Shell:
    """One run of a script."""

    def __init__(self, system: System, process: Process, *, name: str = "sh", arguments: list[str] | None = None) -> None:
        self.system = system
        self.name, self.arguments = name, list(arguments or ())
        self.variables = {**process.environment, "PWD": process.folder}
        self.exported = {*process.environment, "PWD"}
        self.functions: dict[str, Command] = {}
        self.options: set[str] = set()
        self.folder = process.folder
        self.code = 0
        self.at_exit = ""
        self._streams = Streams(process.stdin, process.out, process.err)
        self._checked = 0
        """How many conditions are around: in one of them a failure does not end the script."""
        self._substitutions = 0

    def run(self, script: str) -> int:
        """The exit code of a script."""
        try:
            self.code = self._run(script)
        except Exit as ended:
            self.code = ended.code
        except expansion.ExpansionError as error:
            self.complain(str(error))
            self.code = _SYNTAX_ERROR
        if self.at_exit:
            trap, self.at_exit = self.at_exit, ""
            code = self.code
            self.run(trap)
            self.code = code
        return self.code

    def _run(self, script: str) -> int:
        try:
            body = _read(script)
        except ShellSyntaxError as error:
            self.complain(f"Syntax error: {error.message}")
            return _SYNTAX_ERROR
        self.perform(body)
        return self.code

    def evaluate(self, script: str) -> int:
        """``eval``, and a file that is sourced."""
        return self._run(script)

    # What words ask for.

    def value(self, name: str) -> str | None:
        match name:
            case "?":
                return str(self.code)
            case "#":
                return str(len(self.arguments))
            case "@" | "*":
                return " ".join(self.arguments)
            case "$":
                return "4242"
            case "-":
                return "".join(sorted(self.options))
            case "0":
                return self.name
        if name.isdecimal():
            return self.arguments[int(name) - 1] if int(name) <= len(self.arguments) else None
        return self.variables.get(name)

    def substituted(self, body: List) -> str:
        self._substitutions += 1
        out = bytearray()
        with self._writing(out):
            self.code = 0
            self._in_subshell(lambda: self.perform(body))
        return out.decode(errors="replace").rstrip("\n")

    def complain(self, why: str) -> None:
        self._streams.err += f"{self.name}: {why}\n".encode()

    @property
    def streams(self) -> Streams:
        return self._streams

    # Running.

    def perform(self, body: List) -> None:
        for item in body:
            self._and_or(item)

    def _and_or(self, item: AndOr) -> None:
        with self._conditional(bool(item.rest)):
            self._pipeline(item.first)
        for position, (operator, pipeline) in enumerate(item.rest, 1):
            if (self.code == 0) is (operator == "&&"):
                with self._conditional(position < len(item.rest)):
                    self._pipeline(pipeline)

    def _pipeline(self, pipeline: Pipeline) -> None:
        with self._conditional(pipeline.negated):
            if len(pipeline.commands) == 1:
                self._command(pipeline.commands[0])
            else:
                self._piped(pipeline)
        if pipeline.negated:
            self.code = int(self.code == 0)
            return
        if self.code and "e" in self.options and not self._checked:
            raise Exit(self.code)

    def _piped(self, pipeline: Pipeline) -> None:
        kept = self._streams
        carried = kept.stdin
        codes = []
        for position, command in enumerate(pipeline.commands):
            last = position == len(pipeline.commands) - 1
            out = kept.out if last else bytearray()
            self._streams = Streams(carried, out, kept.err)
            try:
                self._in_subshell(lambda command=command: self._command(command))  # type: ignore[misc]
            finally:
                self._streams = kept
            codes.append(self.code)
            carried = b"" if last else bytes(out)
        if "pipefail" in self.options:
            self.code = next((code for code in reversed(codes) if code), 0)

    def _in_subshell(self, action: Callable[[], None]) -> None:
        """What happens in there stays there, but for the files and the exit code."""
        kept = dict(self.variables), set(self.exported), set(self.options), self.folder, list(self.arguments), dict(self.functions)
        try:
            action()
        except Exit as ended:
            self.code = ended.code
        finally:
            self.variables, self.exported, self.options, self.folder, self.arguments, self.functions = kept

    def _command(self, command: Command) -> None:
        if isinstance(command, Simple):
            self._simple(command)
            return
        if isinstance(command, Function):
            self.functions[command.name] = command.body
            self.code = 0
            return
        with self._redirected(command.redirections) as ready:
            if not ready:
                return
            if isinstance(command, Group):
                if command.subshell:
                    self._in_subshell(lambda: self.perform(command.body))
                else:
                    self.perform(command.body)
            elif isinstance(command, If):
                self._if(command)
            elif isinstance(command, For):
                self._loop(self._each(command), command.body)
            elif isinstance(command, While):
                self._loop(self._while(command), command.body)
            elif isinstance(command, Case):
                self._case(command)

    def _if(self, command: If) -> None:
        for condition, body in command.branches:
            if self._holds(condition):
                self.code = 0
                self.perform(body)
                return
        self.code = 0
        if command.otherwise is not None:
            self.perform(command.otherwise)

    def _holds(self, condition: List) -> bool:
        with self._conditional(True):
            self.perform(condition)
        return self.code == 0

    def _each(self, command: For) -> Iterator[None]:
        words = self.arguments if command.words is None else expansion.fields(self, command.words)
        for word in words:
            self.variables[command.name] = word
            yield

    def _while(self, command: While) -> Iterator[None]:
        code = 0
        while True:
            if self._holds(command.condition) is command.until:
                self.code = code
                return
            yield
            code = self.code

    def _loop(self, turns: Iterator[None], body: List) -> None:
        self.code = 0
        for _ in turns:
            try:
                self.perform(body)
            except Loop as loop:
                if loop.levels > 1:
                    raise Loop(loop.levels - 1, again=loop.again) from None
                self.code = 0
                if not loop.again:
                    return

    def _case(self, command: Case) -> None:
        wanted = expansion.text(self, command.word)
        self.code = 0
        for patterns, body in command.arms:
            if any(fnmatch.fnmatchcase(wanted, expansion.pattern(self, pattern)) for pattern in patterns):
                self.perform(body)
                return

    def _simple(self, command: Simple) -> None:
        substitutions = self._substitutions
        words = expansion.fields(self, command.words)
        assigned = {name: expansion.text(self, word) for name, word in command.assignments}
        if words == ["exec"] and command.redirections:
            self._redirect_for_good(command.redirections)
            return
        with self._redirected(command.redirections) as ready:
            if words and ready:
                self.code = self._executed(words, assigned)
            elif not words:
                self.variables |= assigned
                # Without a command it is the last substitution that tells.
                if ready and substitutions == self._substitutions:
                    self.code = 0

    def _executed(self, words: list[str], assigned: dict[str, str]) -> int:
        if words[0] in self.functions:
            return self._called(words)
        builtin = builtins.TABLE.get(words[0])
        if builtin is not None:
            self.variables |= assigned
            return builtin(self, words[1:])
        environment = {name: self.variables[name] for name in self.exported if name in self.variables} | assigned
        return self.execute(words, environment)

    def execute(self, words: list[str], environment: dict[str, str]) -> int:
        """Run a program of the machine."""
        program = self.system.program(words[0])
        if program is None:
            self.complain(f"{words[0]}: not found")
            return NOT_FOUND
        process = Process(words, environment, self._streams.stdin, self.folder)
        process.out, process.err = self._streams.out, self._streams.err
        return program(process)

    def _called(self, words: list[str]) -> int:
        kept, self.arguments = self.arguments, words[1:]
        try:
            self._command(self.functions[words[0]])
        except Return as returned:
            return returned.code
        finally:
            self.arguments = kept
        return self.code

    # Streams.

    @contextmanager
    def _conditional(self, conditional: bool) -> Iterator[None]:
        self._checked += conditional
        try:
            yield
        finally:
            self._checked -= conditional

    @contextmanager
    def _writing(self, out: bytearray) -> Iterator[None]:
        kept = self._streams
        self._streams = Streams(kept.stdin, out, kept.err)
        try:
            yield
        finally:
            self._streams = kept

    @contextmanager
    def _redirected(self, redirections: tuple[Redirection, ...]) -> Iterator[bool]:
        """Whether all could be opened; files are written when the command has ended."""
        if not redirections:
            yield True
            return
        kept = self._streams
        self._streams = Streams(kept.stdin, kept.out, kept.err)
        files: list[tuple[str, bytearray]] = []
        try:
            for redirection in redirections:
                self._redirect(redirection, files)
        except OSError as error:
            self._streams = kept
            words = "cannot create" if redirection.operator.startswith(">") else "cannot open"
            self.complain(f"{words} {error.filename}: {_reason(error)}")
            self.code = 2
            yield False
            return
        try:
            yield True
        finally:
            self._streams = kept
            for path, content in files:
                self.system.tree.write(path, bytes(content))

    def _redirect_for_good(self, redirections: tuple[Redirection, ...]) -> None:
        """``exec`` without a command: only streams that are there already can be kept, since files are written at a command's end."""
        for redirection in redirections:
            if redirection.operator != ">&":
                raise expansion.ExpansionError("exec with a file is not simulated")
            self._duplicate(redirection.descriptor, expansion.text(self, redirection.target))
        self.code = 0

    def _redirect(self, redirection: Redirection, files: list[tuple[str, bytearray]]) -> None:
        streams = self._streams
        if redirection.operator == "<<":
            streams.stdin = expansion.text(self, redirection.target).encode()
            return
        target = expansion.text(self, redirection.target)
        if redirection.operator in (">&", "<&"):
            self._duplicate(redirection.descriptor, target)
            return
        path = Process([""], {}, folder=self.folder).path(target)
        if redirection.operator == "<":
            streams.stdin = b"" if path == "/dev/null" else self.system.tree.file(path).content
            return
        content = bytearray()
        if redirection.operator == ">>" and self.system.tree.exists(path):
            content += self.system.tree.file(path).content
        if path != "/dev/null":
            # It is there, and empty, from now on.
            self.system.tree.write(path, bytes(content))
            files.append((path, content))
        self._set(redirection.descriptor, content)

    def _duplicate(self, descriptor: int, target: str) -> None:
        if target == "-":
            self._set(descriptor, bytearray())
        else:
            self._set(descriptor, {"1": self._streams.out, "2": self._streams.err}.get(target, bytearray()))

    def _set(self, descriptor: int, content: bytearray) -> None:
        if descriptor == 1:
            self._streams.out = content
        elif descriptor == 2:
            self._streams.err = content


def _reason(error: OSError) -> str:
    return {errno.ENOENT: "Directory nonexistent", errno.EISDIR: "Is a directory"}.get(error.errno or 0) or os.strerror(error.errno or 0)
