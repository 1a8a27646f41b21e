"""What a shell script is made of, once it is read."""

from __future__ import annotations

from typing import NamedTuple


class Literal(NamedTuple):
    text: str
    quoted: bool = False


class Parameter(NamedTuple):
    """``$name``, ``${name}`` or ``${name<operator>word}``; the operator may be ``#`` in front, for the length."""

    name: str
    operator: str = ""
    word: Word = ()
    quoted: bool = False


class Substitution(NamedTuple):
    body: List
    quoted: bool = False


class Arithmetic(NamedTuple):
    expression: str
    quoted: bool = False


Part = Literal | Parameter | Substitution | Arithmetic
Word = tuple[Part, ...]


class Redirection(NamedTuple):
    """``fd`` goes to or comes from ``target``; a here-document's target is its text."""

    descriptor: int
    operator: str
    target: Word


class Simple(NamedTuple):
    assignments: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]
    redirections: tuple[Redirection, ...]


class Group(NamedTuple):
    body: List
    redirections: tuple[Redirection, ...]
    subshell: bool = False


class If(NamedTuple):
    branches: tuple[tuple[List, List], ...]
    otherwise: List | None
    redirections: tuple[Redirection, ...]


class For(NamedTuple):
    name: str
    words: tuple[Word, ...] | None
    """None: the positional parameters."""
    body: List
    redirections: tuple[Redirection, ...]


class While(NamedTuple):
    condition: List
    body: List
    until: bool
    redirections: tuple[Redirection, ...]


class Case(NamedTuple):
    word: Word
    arms: tuple[tuple[tuple[Word, ...], List], ...]
    redirections: tuple[Redirection, ...]


class Function(NamedTuple):
    name: str
    body: Command


Command = Simple | Group | If | For | While | Case | Function


class Pipeline(NamedTuple):
    commands: tuple[Command, ...]
    negated: bool = False


class AndOr(NamedTuple):
    first: Pipeline
    rest: tuple[tuple[str, Pipeline], ...] = ()


List = tuple[AndOr, ...]
