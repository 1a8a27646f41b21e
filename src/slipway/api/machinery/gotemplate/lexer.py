"""The words of a template: plain text, and what stands between ``{{`` and ``}}``.

Trimming of white space (``{{-`` and ``-}}``) happens here; the parser never sees it.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from time import monotonic
from typing import NamedTuple

from slipway.api.machinery.gotemplate import limits
from slipway.api.machinery.gotemplate.quoting import byte_length, quote

LEFT, RIGHT = "{{", "}}"
_SPACES = " \t\r\n"
_MARKER_LENGTH = 2
_END = ""
# Words between two looks at the clock.
_STRETCH = 1_000
_SPACE_RUN = re.compile(f"[{_SPACES}]*")
_ASCII_NAME = re.compile("[A-Za-z0-9_]*")
_DECIMAL_DIGITS = re.compile("[0-9_]*")
_DIGITS = {"x": re.compile("[0-9a-fA-F_]*"), "o": re.compile("[0-7_]*"), "b": re.compile("[01_]*")}
# What stands before the closing mark.
_QUOTED = {mark: re.compile(rf"(?:[^{mark}\\\n]++|\\[^\n])*+") for mark in "\"'"}


class Word(Enum):
    """The kinds of word."""

    ERROR = auto()
    BOOL = auto()
    CHARACTER = auto()
    CHARACTER_CONSTANT = auto()
    COMPLEX = auto()
    ASSIGN = auto()
    DECLARE = auto()
    EOF = auto()
    FIELD = auto()
    IDENTIFIER = auto()
    LEFT_DELIMITER = auto()
    LEFT_PARENTHESIS = auto()
    NUMBER = auto()
    PIPE = auto()
    RAW_STRING = auto()
    RIGHT_DELIMITER = auto()
    RIGHT_PARENTHESIS = auto()
    SPACE = auto()
    STRING = auto()
    TEXT = auto()
    VARIABLE = auto()
    BLOCK = auto()
    BREAK = auto()
    CONTINUE = auto()
    DOT = auto()
    DEFINE = auto()
    ELSE = auto()
    END = auto()
    IF = auto()
    NIL = auto()
    RANGE = auto()
    TEMPLATE = auto()
    WITH = auto()


KEYWORDS = {
    ".": Word.DOT,
    "block": Word.BLOCK,
    "break": Word.BREAK,
    "continue": Word.CONTINUE,
    "define": Word.DEFINE,
    "else": Word.ELSE,
    "end": Word.END,
    "if": Word.IF,
    "range": Word.RANGE,
    "nil": Word.NIL,
    "template": Word.TEMPLATE,
    "with": Word.WITH,
}


class Item(NamedTuple):
    """One word, where it starts (in characters) and on which line."""

    word: Word
    position: int
    text: str
    line: int

    def __str__(self) -> str:
        """As errors name it."""
        if self.word is Word.EOF:
            return "EOF"
        if self.word is Word.ERROR:
            return self.text
        if self.word in KEYWORDS.values():
            return f"<{self.text}>"
        return quote(self.text) if byte_length(self.text) <= 10 else f"{quote(self.text[:10])}..."


def unicode_name(character: str) -> str:
    """Go's ``%#U``."""
    name = f"U+{ord(character):04X}"
    return f"{name} '{character}'" if character.isprintable() else name


def _is_alphanumeric(character: str) -> bool:
    return character == "_" or character.isalpha() or character.isdecimal()


def _has_left_marker(text: str, position: int) -> bool:
    return text.startswith("-", position) and text[position + 1 : position + 2] in tuple(_SPACES)


def _has_right_marker(text: str, position: int) -> bool:
    return text[position : position + 1] in tuple(_SPACES) and text.startswith("-", position + 1)


class Lexer:
    """Gives one word after the other; after an error there is nothing more."""

    def __init__(self, text: str, deadline: float | None) -> None:
        self._text, self._deadline = text, deadline
        self._position = self._start = 0
        self._line = self._start_line = 1
        self._parentheses = 0
        self._in_action = False
        self._count = 0

    def next_item(self) -> Item:
        return self._counted() or (self._action() if self._in_action else self._plain())

    def _counted(self) -> Item | None:
        """Counts a word; an error where there are too many, or where there is no more time for them."""
        self._count += 1
        if self._count > limits.WORDS:
            return self._error(f"a template may have no more than {limits.WORDS} words")
        if self._count % _STRETCH == 0 and self._deadline is not None and monotonic() > self._deadline:
            return self._error("the time to parse it in is over")
        return None

    def _item(self, word: Word) -> Item:
        item = Item(word, self._start, self._text[self._start : self._position], self._start_line)
        self._line += item.text.count("\n")
        self._start, self._start_line = self._position, self._line
        return item

    def _skip(self, length: int) -> None:
        self._position += length
        self._item(Word.SPACE)

    def _error(self, message: str) -> Item:
        item = Item(Word.ERROR, self._start, message, self._start_line)
        self._text, self._position, self._start = "", 0, 0
        return item

    def _peek(self) -> str:
        return self._text[self._position : self._position + 1]

    def _next(self) -> str:
        character = self._peek()
        self._position += len(character)
        return character

    def _accept(self, characters: str) -> bool:
        character = self._peek()
        found = character != _END and character in characters
        self._position += found
        return found

    def _accept_run(self, characters: re.Pattern[str]) -> None:
        found = characters.match(self._text, self._position)
        self._position = found.end() if found else self._position

    # Outside actions.

    def _plain(self) -> Item:
        while True:
            opening = self._text.find(LEFT, self._position)
            if opening < 0:
                self._position = len(self._text)
                return self._item(Word.TEXT if self._position > self._start else Word.EOF)
            plain = self._text[self._position : opening]
            kept = len(plain.rstrip(_SPACES)) if _has_left_marker(self._text, opening + len(LEFT)) else len(plain)
            self._position += kept
            item = self._item(Word.TEXT)
            self._skip(len(plain) - kept)
            if item.text:
                return item
            found = self._left_delimiter() or self._counted()
            if found is not None:
                return found

    def _left_delimiter(self) -> Item | None:
        """The delimiter, or an error; None after a comment."""
        self._position += len(LEFT)
        marker = _MARKER_LENGTH if _has_left_marker(self._text, self._position) else 0
        if self._text.startswith("/*", self._position + marker):
            self._skip(marker)
            return self._comment()
        item = self._item(Word.LEFT_DELIMITER)
        self._skip(marker)
        self._in_action, self._parentheses = True, 0
        return item

    def _comment(self) -> Item | None:
        closing = self._text.find("*/", self._position + 2)
        if closing < 0:
            return self._error("unclosed comment")
        self._position = closing + 2
        if not self._at_right_delimiter():
            return self._error("comment ends before closing delimiter")
        self._item(Word.SPACE)
        self._right_delimiter()
        return None

    # Inside actions.

    def _at_right_delimiter(self) -> bool:
        marked = _has_right_marker(self._text, self._position) and self._text.startswith(RIGHT, self._position + _MARKER_LENGTH)
        return marked or self._text.startswith(RIGHT, self._position)

    def _right_delimiter(self) -> Item:
        trim = not self._text.startswith(RIGHT, self._position)
        if trim:
            self._skip(_MARKER_LENGTH)
        self._position += len(RIGHT)
        item = self._item(Word.RIGHT_DELIMITER)
        if trim:
            self._accept_run(_SPACE_RUN)
            self._skip(0)
        self._in_action = False
        return item

    def _action(self) -> Item:
        if self._at_right_delimiter():
            return self._right_delimiter() if self._parentheses == 0 else self._error("unclosed left paren")
        character = self._next()
        if character == _END:
            return self._error("unclosed action")
        if character in _SPACES:
            return self._space()
        single = {"=": Word.ASSIGN, "|": Word.PIPE}.get(character)
        if single is not None:
            return self._item(single)
        if character == ":":
            return self._item(Word.DECLARE) if self._next() == "=" else self._error("expected :=")
        if character in "\"'":
            return self._quoted(character)
        if character == "`":
            return self._raw_quoted()
        if character == "$":
            return self._name(Word.VARIABLE, Word.VARIABLE)
        if character == "." and self._peek() not in tuple("0123456789") and self._peek() != _END:
            return self._name(Word.FIELD, Word.DOT)
        if character in ".+-" or character in "0123456789":
            self._position -= 1
            return self._number()
        if _is_alphanumeric(character):
            return self._identifier()
        return self._punctuation(character)

    def _punctuation(self, character: str) -> Item:
        if character == "(":
            self._parentheses += 1
            return self._item(Word.LEFT_PARENTHESIS)
        if character == ")":
            self._parentheses -= 1
            return self._item(Word.RIGHT_PARENTHESIS) if self._parentheses >= 0 else self._error("unexpected right paren")
        if character.isascii() and character.isprintable():
            return self._item(Word.CHARACTER)
        return self._error(f"unrecognized character in action: {unicode_name(character)}")

    def _space(self) -> Item:
        self._accept_run(_SPACE_RUN)
        # The last space may belong to a trimming delimiter.
        last = self._position - 1
        if _has_right_marker(self._text, last) and self._text.startswith(RIGHT, last + _MARKER_LENGTH):
            self._position = last
            if last == self._start:
                return self._right_delimiter()
        return self._item(Word.SPACE)

    def _at_terminator(self) -> bool:
        character = self._peek()
        return character == _END or character in _SPACES or character in ".,|:)(" or self._text.startswith(RIGHT, self._position)

    def _accept_name(self) -> None:
        self._accept_run(_ASCII_NAME)
        while self._peek() and _is_alphanumeric(self._peek()):
            self._position += 1

    def _identifier(self) -> Item:
        self._accept_name()
        if not self._at_terminator():
            return self._error(f"bad character {unicode_name(self._peek())}")
        name = self._text[self._start : self._position]
        word = Word.BOOL if name in ("true", "false") else KEYWORDS.get(name, Word.IDENTIFIER)
        return self._item(word)

    def _name(self, word: Word, alone: Word) -> Item:
        """A field or variable, whose first character was read."""
        if self._at_terminator():
            return self._item(alone)
        self._accept_name()
        if not self._at_terminator():
            return self._error(f"bad character {unicode_name(self._peek())}")
        return self._item(word)

    def _quoted(self, mark: str) -> Item:
        self._accept_run(_QUOTED[mark])
        if self._next() != mark:
            return self._error("unterminated quoted string" if mark == '"' else "unterminated character constant")
        return self._literal(Word.STRING, limits.TEXT) if mark == '"' else self._literal(Word.CHARACTER_CONSTANT, limits.NUMBER)

    def _raw_quoted(self) -> Item:
        closing = self._text.find("`", self._position)
        if closing < 0:
            return self._error("unterminated raw quoted string")
        self._position = closing + 1
        return self._literal(Word.RAW_STRING, limits.TEXT)

    def _literal(self, word: Word, longest: int) -> Item:
        """A literal that was read."""
        if self._position - self._start > longest:
            kind = "number" if word in (Word.NUMBER, Word.COMPLEX) else "character constant" if longest == limits.NUMBER else "text"
            return self._error(f"a {kind} may have no more than {longest} characters")
        return self._item(word)

    def _number(self) -> Item:
        word = Word.NUMBER
        well = self._scan_number()
        if well and self._peek() in ("+", "-"):
            word = Word.COMPLEX
            well = self._scan_number() and self._text[self._position - 1] == "i"
        if well or self._position - self._start > limits.NUMBER:
            return self._literal(word, limits.NUMBER)
        return self._error(f"bad number syntax: {quote(self._text[self._start : self._position])}")

    def _scan_number(self) -> bool:
        self._accept("+-")
        digits, exponents = _DECIMAL_DIGITS, "eE"
        if self._accept("0"):
            if self._accept("xX"):
                digits, exponents = _DIGITS["x"], "pP"
            elif self._accept("oO"):
                digits, exponents = _DIGITS["o"], ""
            elif self._accept("bB"):
                digits, exponents = _DIGITS["b"], ""
        self._accept_run(digits)
        if self._accept("."):
            self._accept_run(digits)
        if exponents and self._accept(exponents):
            self._accept("+-")
            self._accept_run(_DECIMAL_DIGITS)
        self._accept("i")
        if self._peek() and _is_alphanumeric(self._peek()):
            self._position += 1
            return False
        return True
