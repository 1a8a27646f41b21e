"""The command line of a simulated program, its options and its operands, and the words in which it says what went wrong."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slipway.simulation.shell.process import Process


class UsageError(Exception):
    """An option that the program does not have here."""


def options(process: Process, known: str, *, valued: str = "", long: dict[str, str] | None = None) -> tuple[dict[str, str], list[str]]:
    """The options and the operands of a command line; ``long`` maps long names to letters."""
    found: dict[str, str] = {}
    operands: list[str] = []
    words = list(process.arguments)
    while words:
        word = words.pop(0)
        if word == "--":
            operands += words
            break
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            letter = (long or {}).get(name)
            if letter is None:
                raise UsageError(f"unrecognized option '{word}'")
            found[letter] = value if equals else (words.pop(0) if letter in valued and words else "")
        elif word.startswith("-") and len(word) > 1:
            letters = word[1:]
            while letters:
                letter, letters = letters[0], letters[1:]
                if letter in valued:
                    found[letter] = letters or (words.pop(0) if words else "")
                    break
                if letter not in known:
                    raise UsageError(f"invalid option -- '{letter}'")
                found[letter] = ""
        else:
            operands.append(word)
    return found, operands


def reason(error: OSError) -> str:
    return os.strerror(error.errno or 0)
