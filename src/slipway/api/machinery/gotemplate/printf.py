"""``printf``: reading a format with Go's rules, mistakes in it included."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.machinery.gotemplate.formatting import NIL_TEXT, PLAIN, Flags, Writer, write_value
from slipway.api.machinery.gotemplate.quoting import is_byte
from slipway.api.machinery.gotemplate.values import Value, type_name

if TYPE_CHECKING:
    from slipway.api.machinery.gotemplate.budget import Budget

_LARGEST = 1_000_000
_LONGEST_NUMBER = 7
# What a directive costs, whatever it prints.
_DIRECTIVE = 3
_SWITCHES = {"#": "sharp", "0": "zero", "+": "plus", "-": "minus", " ": "space"}


def sprintf(text: str, values: list[Value], budget: Budget) -> str:
    return _Format(text, values, budget).text()


def _too_large(number: int) -> bool:
    return abs(number) > _LARGEST


class _Format:
    """One run through a format.  ``_next`` is the number of the next argument."""

    def __init__(self, text: str, values: list[Value], budget: Budget) -> None:
        self._format, self._values, self._budget = text, values, budget
        self._position = self._next = 0
        self._is_good_number = True
        self._is_reordered = False
        self._writer = Writer(budget)

    def text(self) -> str:
        while self._position < len(self._format):
            percent = self._format.find("%", self._position)
            if percent < 0:
                self._writer.write(self._format[self._position :])
                break
            self._writer.write(self._format[self._position : percent])
            self._position = percent + 1
            if not self._directive():
                break
        self._extra()
        return self._writer.text()

    def _peek(self) -> str:
        return self._format[self._position : self._position + 1]

    def _directive(self) -> bool:
        """One directive, after its percent sign; False at the end of the format."""
        self._is_good_number = True
        self._budget.step(_DIRECTIVE)
        flags = Flags()
        while (switch := _SWITCHES.get(self._peek())) is not None:
            self._budget.step()
            setattr(flags, switch, True)
            self._position += 1
        after_number = self._argument_number()
        after_number = self._width(flags, after_number)
        after_number = self._precision(flags, after_number)
        if not after_number:
            self._argument_number()
        if self._position >= len(self._format):
            self._writer.write("%!(NOVERB)")
            return False
        verb = self._peek()
        self._position += 1
        self._verb("\ufffd" if is_byte(verb) else verb, flags)
        return True

    def _width(self, flags: Flags, after_number: bool) -> bool:
        if self._peek() != "*":
            flags.width = self._digits()
            if after_number and flags.width is not None:
                self._is_good_number = False
            return after_number
        self._position += 1
        flags.width = self._integer_argument()
        if flags.width is None:
            self._writer.write("%!(BADWIDTH)")
        elif flags.width < 0:
            flags.width, flags.minus, flags.zero = -flags.width, True, False
        return False

    def _precision(self, flags: Flags, after_number: bool) -> bool:
        # A point at the very end is the verb.
        if self._peek() != "." or self._position + 1 >= len(self._format):
            return after_number
        self._position += 1
        if after_number:
            self._is_good_number = False
        after_number = self._argument_number()
        if self._peek() != "*":
            precision = self._digits()
            flags.precision = 0 if precision is None else precision
            return after_number
        self._position += 1
        precision = self._integer_argument()
        flags.precision = None if precision is None or precision < 0 else precision
        if flags.precision is None:
            self._writer.write("%!(BADPREC)")
        return False

    def _digits(self) -> int | None:
        start, number = self._position, 0
        while self._peek() and self._peek() in "0123456789":
            if _too_large(number):
                self._position = len(self._format)
                return None
            self._budget.step()
            number = number * 10 + int(self._peek())
            self._position += 1
        return number if self._position > start else None

    def _argument_number(self) -> bool:
        """Reads ``[3]``, if it is there."""
        if self._peek() != "[":
            return False
        self._is_reordered = True
        closing = self._format.find("]", self._position + 1)
        self._budget.copy((len(self._format) if closing < 0 else closing) - self._position)
        if closing < 0 or self._position + 3 > len(self._format):
            self._is_good_number = False
            self._position += 1
            return False
        text = self._format[self._position + 1 : closing]
        self._position = closing + 1
        is_number = text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER
        if is_number and 1 <= int(text) <= len(self._values):
            self._next = int(text) - 1
        else:
            self._is_good_number = False
        return is_number

    def _integer_argument(self) -> int | None:
        """The next argument as a width or precision."""
        if self._next >= len(self._values):
            return None
        value = self._values[self._next]
        self._next += 1
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        return int(value) if is_integer and not _too_large(value) else None

    def _verb(self, verb: str, flags: Flags) -> None:
        if verb == "%":
            self._writer.write("%")
        elif not self._is_good_number:
            self._writer.write(f"%!{verb}(BADINDEX)")
        elif self._next >= len(self._values):
            self._writer.write(f"%!{verb}(MISSING)")
        else:
            if verb in ("v", "w"):
                flags.go_syntax, flags.sharp, flags.plus = flags.sharp, False, False
            write_value(self._writer, self._values[self._next], verb, flags)
            self._next += 1

    def _extra(self) -> None:
        """Arguments that no verb asked for."""
        if self._is_reordered or self._next >= len(self._values):
            return
        self._writer.write("%!(EXTRA ")
        for position, value in enumerate(self._values[self._next :]):
            if position:
                self._writer.write(", ")
            if value is None:
                self._writer.write(NIL_TEXT)
                continue
            self._writer.write(f"{type_name(value)}=")
            write_value(self._writer, value, "v", PLAIN)
        self._writer.write(")")
