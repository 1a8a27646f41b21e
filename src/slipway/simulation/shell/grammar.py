"""Reads a shell script: POSIX's grammar, but for jobs in the background, aliases and what nobody writes into a plan."""

from __future__ import annotations

import re

from slipway.api.machinery.errors import OperatorError
from slipway.simulation.shell.nodes import (
    AndOr,
    Arithmetic,
    Case,
    Command,
    For,
    Function,
    Group,
    If,
    List,
    Literal,
    Parameter,
    Part,
    Pipeline,
    Redirection,
    Simple,
    Substitution,
    While,
    Word,
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REDIRECTION = re.compile(r"([0-9]*)(<<-|<<|>>|>\||>&|<&|>|<)")
_RESERVED = {"if", "then", "elif", "else", "fi", "for", "in", "do", "done", "while", "until", "case", "esac", "{", "}", "!"}
_SPECIAL = "@*#?$!-0123456789"
_OPERATORS = (":-", ":=", ":?", ":+", "##", "%%", "-", "=", "?", "+", "#", "%")
_ENDS_WORD = " \t\n;&|<>()"


class ShellSyntaxError(OperatorError):
    """A script that this shell cannot read."""


def parse(script: str) -> List:
    return _Parser(script).script()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def script(self) -> List:
        found = self._list(())
        self._blank_lines()
        if self._at < len(self._text):
            raise self._problem(f'"{self._text[self._at]}" is not expected')
        return found

    # Lists, pipelines, commands.

    def _list(self, ends: tuple[str, ...]) -> List:
        found: list[AndOr] = []
        while True:
            self._blank_lines()
            if self._at >= len(self._text) or self._text.startswith((")", ";;"), self._at) or self._reserved() in ends:
                return tuple(found)
            found.append(self._and_or())
            self._spaces()
            if self._text.startswith("&", self._at):
                raise self._problem("commands in the background are not simulated")
            if self._text.startswith(";", self._at) and not self._text.startswith(";;", self._at):
                self._at += 1

    def _and_or(self) -> AndOr:
        first = self._pipeline()
        rest: list[tuple[str, Pipeline]] = []
        while True:
            self._spaces()
            operator = next((sign for sign in ("&&", "||") if self._text.startswith(sign, self._at)), "")
            if not operator:
                return AndOr(first, tuple(rest))
            self._at += 2
            self._blank_lines()
            rest.append((operator, self._pipeline()))

    def _pipeline(self) -> Pipeline:
        self._spaces()
        negated = self._reserved() == "!"
        if negated:
            self._word_text("!")
        commands = [self._command()]
        while True:
            self._spaces()
            if not self._text.startswith("|", self._at) or self._text.startswith("||", self._at):
                return Pipeline(tuple(commands), negated)
            self._at += 1
            self._blank_lines()
            commands.append(self._command())

    def _command(self) -> Command:
        self._spaces()
        match self._reserved():
            case "if":
                return self._if()
            case "for":
                return self._for()
            case "while" | "until" as word:
                return self._while(until=word == "until")
            case "case":
                return self._case()
            case "{":
                self._word_text("{")
                body = self._list(("}",))
                self._expect("}")
                return Group(body, self._redirections())
            case word if word:
                raise self._problem(f'"{word}" is not expected')
        if self._text.startswith("(", self._at):
            self._at += 1
            body = self._list(())
            self._close()
            return Group(body, self._redirections(), subshell=True)
        function = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)[ \t]*\([ \t]*\)").match(self._text, self._at)
        if function is not None:
            self._at = function.end()
            self._blank_lines()
            return Function(function[1], self._command())
        return self._simple()

    def _if(self) -> If:
        branches, otherwise, opening = [], None, "if"
        while True:
            self._word_text(opening)
            condition = self._list(("then",))
            self._expect("then")
            branches.append((condition, self._list(("elif", "else", "fi"))))
            if self._reserved() != "elif":
                break
            opening = "elif"
        if self._reserved() == "else":
            self._word_text("else")
            otherwise = self._list(("fi",))
        self._expect("fi")
        return If(tuple(branches), otherwise, self._redirections())

    def _for(self) -> For:
        self._word_text("for")
        self._spaces()
        name = self._name()
        self._blank_lines(semicolons=False)
        words: tuple[Word, ...] | None = None
        if self._reserved() == "in":
            self._word_text("in")
            words = tuple(self._words())
        self._separator()
        return For(name, words, self._loop(), self._redirections())

    def _while(self, *, until: bool) -> While:
        self._word_text("until" if until else "while")
        condition = self._list(("do",))
        return While(condition, self._loop(), until, self._redirections())

    def _loop(self) -> List:
        self._expect("do")
        body = self._list(("done",))
        self._expect("done")
        return body

    def _case(self) -> Case:
        self._word_text("case")
        self._spaces()
        word = self._word()
        self._blank_lines(semicolons=False)
        self._expect("in")
        arms: list[tuple[tuple[Word, ...], List]] = []
        while True:
            self._blank_lines()
            if self._reserved() == "esac":
                self._expect("esac")
                return Case(word, tuple(arms), self._redirections())
            if self._text.startswith("(", self._at):
                self._at += 1
            patterns = []
            while True:
                self._spaces()
                patterns.append(self._word())
                self._spaces()
                if not self._text.startswith("|", self._at):
                    break
                self._at += 1
            self._close()
            arms.append((tuple(patterns), self._list(("esac",))))
            self._blank_lines()
            if self._text.startswith(";;", self._at):
                self._at += 2

    def _simple(self) -> Simple:
        assignments: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirections: list[Redirection] = []
        while True:
            self._spaces()
            if (redirection := self._redirection()) is not None:
                redirections.append(redirection)
                continue
            if self._at >= len(self._text) or self._text[self._at] in "\n;&|()":
                break
            assigned = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=").match(self._text, self._at) if not words else None
            if assigned is not None:
                self._at = assigned.end()
                assignments.append((assigned[1], self._word(may_be_empty=True)))
                continue
            words.append(self._word())
        if not assignments and not words and not redirections:
            raise self._problem("a command is missing")
        return Simple(tuple(assignments), tuple(words), tuple(redirections))

    def _words(self) -> list[Word]:
        found: list[Word] = []
        while True:
            self._spaces()
            if self._at >= len(self._text) or self._text[self._at] in "\n;":
                return found
            found.append(self._word())

    # Redirections.

    def _redirections(self) -> tuple[Redirection, ...]:
        found: list[Redirection] = []
        while True:
            self._spaces()
            if (redirection := self._redirection()) is None:
                return tuple(found)
            found.append(redirection)

    def _redirection(self) -> Redirection | None:
        match = _REDIRECTION.match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        operator = match[2]
        descriptor = int(match[1]) if match[1] else (0 if operator.startswith("<") else 1)
        self._spaces()
        if not operator.startswith("<<"):
            return Redirection(descriptor, operator, self._word())
        delimiter = self._word()
        quoted = any(isinstance(part, Literal) and part.quoted for part in delimiter)
        end = "".join(part.text for part in delimiter if isinstance(part, Literal))
        return Redirection(descriptor, "<<", self._here_document(end, quoted=quoted, tabs=operator == "<<-"))

    def _here_document(self, end: str, *, quoted: bool, tabs: bool) -> Word:
        """Take the document out of the lines that follow this one."""
        begins = self._text.find("\n", self._at)
        lines: list[str] = []
        at = begins + 1
        while begins >= 0 and at <= len(self._text):
            stop = self._text.find("\n", at)
            stop = len(self._text) if stop < 0 else stop
            line = self._text[at:stop]
            line = line.lstrip("\t") if tabs else line
            at = stop + 1
            if line == end:
                self._text = self._text[: begins + 1] + self._text[at:]
                text = "".join(f"{each}\n" for each in lines)
                return (Literal(text, True),) if quoted else _Parser(text).quoted_text()
            lines.append(line)
        raise self._problem(f'the here-document has no end "{end}"')

    # Words.

    def quoted_text(self) -> Word:
        """All of the text as if it stood in double quotes."""
        parts: list[Part] = []
        while self._at < len(self._text):
            parts.append(self._quoted_part(""))
        return tuple(parts)

    def _word(self, *, may_be_empty: bool = False) -> Word:
        parts: list[Part] = []
        while self._at < len(self._text) and self._text[self._at] not in _ENDS_WORD:
            sign = self._text[self._at]
            if sign == "'":
                end = self._text.find("'", self._at + 1)
                if end < 0:
                    raise self._problem("a quote has no end")
                parts.append(Literal(self._text[self._at + 1 : end], True))
                self._at = end + 1
            elif sign == '"':
                parts.append(Literal("", True))
                self._at += 1
                while not self._text.startswith('"', self._at):
                    if self._at >= len(self._text):
                        raise self._problem("a quote has no end")
                    parts.append(self._quoted_part('"'))
                self._at += 1
            elif sign == "\\":
                if not self._text.startswith("\\\n", self._at):
                    parts.append(Literal(self._text[self._at + 1 : self._at + 2], True))
                self._at += 2
            elif sign in "$`":
                parts.append(self._dollar(quoted=False))
            else:
                stop = self._at
                while stop < len(self._text) and self._text[stop] not in _ENDS_WORD and self._text[stop] not in "'\"\\$`":
                    stop += 1
                parts.append(Literal(self._text[self._at : stop]))
                self._at = stop
        if not parts and not may_be_empty:
            raise self._problem("a word is missing")
        return tuple(parts)

    def _quoted_part(self, end: str) -> Part:
        sign = self._text[self._at]
        if sign in "$`":
            return self._dollar(quoted=True)
        if sign == "\\" and self._text[self._at + 1 : self._at + 2] in ("$", "`", '"', "\\", "\n"):
            self._at += 2
            following = self._text[self._at - 1]
            return Literal("" if following == "\n" else following, True)
        stop = self._at + 1
        while stop < len(self._text) and self._text[stop] not in f"$`\\{end}":
            stop += 1
        text, self._at = self._text[self._at : stop], stop
        return Literal(text, True)

    def _dollar(self, *, quoted: bool) -> Part:
        text = self._text
        if text[self._at] == "`":
            end = re.compile(r"(?:[^`\\]|\\.)*`", re.DOTALL).match(text, self._at + 1)
            if end is None:
                raise self._problem("a backquote has no end")
            inner = re.sub(r"\\([$`\\])", r"\1", end[0][:-1])
            self._at = end.end()
            return Substitution(parse(inner), quoted)
        if text.startswith("$((", self._at):
            end_at = text.find("))", self._at)
            if end_at < 0:
                raise self._problem("an arithmetic expansion has no end")
            expression = text[self._at + 3 : end_at]
            self._at = end_at + 2
            return Arithmetic(expression, quoted)
        if text.startswith("$(", self._at):
            self._at += 2
            body = self._list(())
            self._close()
            return Substitution(body, quoted)
        if text.startswith("${", self._at):
            return self._braced(quoted=quoted)
        following = text[self._at + 1 : self._at + 2]
        if following and following in _SPECIAL:
            self._at += 2
            return Parameter(following, quoted=quoted)
        name = _NAME.match(text, self._at + 1)
        if name is None:
            self._at += 1
            return Literal("$", quoted)
        self._at = name.end()
        return Parameter(name[0], quoted=quoted)

    def _braced(self, *, quoted: bool) -> Parameter:
        self._at += 2
        length = self._text.startswith("#", self._at) and not self._text.startswith("#}", self._at)
        if length:
            self._at += 1
        name = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]").match(self._text, self._at)
        if name is None:
            raise self._problem("this parameter expansion is not simulated")
        self._at = name.end()
        if self._text.startswith("}", self._at):
            self._at += 1
            return Parameter(name[0], "length" if length else "", (), quoted)
        operator = next((sign for sign in _OPERATORS if self._text.startswith(sign, self._at)), "")
        if not operator or length:
            raise self._problem("this parameter expansion is not simulated")
        self._at += len(operator)
        parts: list[Part] = []
        while not self._text.startswith("}", self._at):
            if self._at >= len(self._text):
                raise self._problem("a parameter expansion has no end")
            # Of a pattern the signs mean what they mean, quotes around the whole or not.
            if quoted and operator[0] not in "#%" and self._text[self._at] != '"':
                parts.append(self._quoted_part('}"'))
                continue
            inner = _Parser(self._text)
            inner._at = self._at
            parts += inner._until_brace()
            self._at = inner._at
        self._at += 1
        return Parameter(name[0], operator, tuple(parts), quoted)

    def _until_brace(self) -> Word:
        """The next piece of a word in braces; spaces are part of it."""
        sign = self._text[self._at]
        if sign in "'\"\\$`":
            if sign in "'\"":
                return self._one_quoted(self._at)
            if sign == "\\":
                self._at += 2
                return (Literal(self._text[self._at - 1], True),)
            return (self._dollar(quoted=False),)
        stop = self._at
        while stop < len(self._text) and self._text[stop] not in "}'\"\\$`":
            stop += 1
        text, self._at = self._text[self._at : stop], stop
        return (Literal(text),)

    def _one_quoted(self, begins: int) -> Word:
        sign = self._text[begins]
        self._at = begins + 1
        parts: list[Part] = [Literal("", True)]
        while not self._text.startswith(sign, self._at):
            if self._at >= len(self._text):
                raise self._problem("a quote has no end")
            if sign == "'":
                end = self._text.find("'", self._at)
                parts.append(Literal(self._text[self._at : end], True))
                self._at = end
            else:
                parts.append(self._quoted_part('"'))
        self._at += 1
        return tuple(parts)

    # Small things.

    def _spaces(self) -> None:
        while self._at < len(self._text):
            if self._text[self._at] in " \t":
                self._at += 1
            elif self._text.startswith("\\\n", self._at):
                self._at += 2
            elif self._text[self._at] == "#":
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            else:
                return

    def _blank_lines(self, *, semicolons: bool = False) -> None:
        while True:
            self._spaces()
            if self._at < len(self._text) and (self._text[self._at] == "\n" or (semicolons and self._text[self._at] == ";")):
                self._at += 1
            else:
                return

    def _separator(self) -> None:
        self._spaces()
        if self._text.startswith(";", self._at):
            self._at += 1
        self._blank_lines()

    def _reserved(self) -> str:
        """The reserved word that stands here, if any."""
        match = re.compile(r"(?:[a-z]+|[{}!])(?=[\s;&|()]|\Z)").match(self._text, self._at)
        return match[0] if match is not None and match[0] in _RESERVED else ""

    def _word_text(self, text: str) -> None:
        self._at += len(text)

    def _expect(self, word: str) -> None:
        self._blank_lines()
        if self._reserved() != word:
            raise self._problem(f'"{word}" is missing')
        self._at += len(word)

    def _close(self) -> None:
        self._blank_lines()
        if not self._text.startswith(")", self._at):
            raise self._problem('")" is missing')
        self._at += 1

    def _name(self) -> str:
        match = _NAME.match(self._text, self._at)
        if match is None:
            raise self._problem("a name is missing")
        self._at = match.end()
        return match[0]

    def _problem(self, why: str) -> ShellSyntaxError:
        line = self._text.count("\n", 0, self._at) + 1
        return ShellSyntaxError(f"line {line}: {why}: {self._text[self._at : self._at + 40]!r}")
