"""systemd units as Ignition reads them before it accepts a config: which sections have options, and whether the text is a unit at all."""

from __future__ import annotations

_LONGEST_LINE = 2048
# The reader that Ignition looks for long lines with sees this much of the text at a time.
_WINDOW = 4096
_SPACE = " \t\n\v\f\r\x85\xa0"


class UnitError(Exception):
    """A text that is no unit; the message has Ignition's words."""


def sections(contents: str) -> list[str]:
    """The section of every option, in order."""
    return _Unit(contents.encode(errors="surrogateescape")).read()


class _Unit:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = self._seen = 0

    def read(self) -> list[str]:
        found: list[str] = []
        section: str | None = None
        while (character := self._next()) is not None:
            if character == "[":
                self._refuse_long_line()
                section = self._section_name()
                self._refuse_long_line()
                self._end_of_section_name()
            elif character in "#;":
                self._refuse_long_line()
                self._skip_comment()
            elif section is not None and character not in _SPACE:
                self._position -= len(character.encode())
                self._refuse_long_line()
                self._option_name()
                self._option_value()
                found.append(section)
            self._refuse_long_line()
        return found

    def _next(self) -> str | None:
        if self._position == len(self._data):
            return None
        if self._position >= self._seen:
            self._fill()
        byte = self._data[self._position]
        if byte < 0x80:
            self._position += 1
            return chr(byte)
        width = next((width for width in (2, 3, 4) if self._is_character(width)), 1)
        character = self._data[self._position : self._position + width].decode(errors="replace")
        self._position += width
        return character

    def _is_character(self, width: int) -> bool:
        try:
            return len(self._data[self._position : self._position + width].decode()) == 1
        except UnicodeDecodeError:
            return False

    def _fill(self) -> None:
        self._seen = min(len(self._data), self._position + _WINDOW)

    def _until(self, mark: bytes) -> tuple[bytes, bool]:
        """The bytes up to and with the mark, and whether it was there."""
        end = self._data.find(mark, self._position)
        end, found = (len(self._data), False) if end < 0 else (end + 1, True)
        piece = self._data[self._position : end]
        while self._seen < end:
            self._position = self._seen if self._seen - self._position >= _WINDOW else self._position
            self._fill()
        self._position = end
        return piece, found

    def _line(self) -> tuple[bytes, bool]:
        line, found = self._until(b"\n")
        return line.removesuffix(b"\r").removesuffix(b"\n"), not found

    def _section_name(self) -> str:
        name, found = self._until(b"]")
        if not found:
            raise UnitError("unable to find end of section")
        return name[:-1].decode(errors="surrogateescape")

    def _end_of_section_name(self) -> None:
        garbage = self._line()[0].strip()
        if garbage:
            raise UnitError(f"found garbage after section name : [{' '.join(map(str, garbage))}]")

    def _skip_comment(self) -> None:
        # A comment goes on where its line ends with a backslash.
        while self._line()[0].removesuffix(b" ").endswith(b"\\"):
            pass

    def _option_name(self) -> None:
        while (character := self._next()) != "=":
            if character is None:
                raise UnitError("EOF")
            if character in "\r\n":
                raise UnitError("unexpected newline encountered while parsing option name")

    def _option_value(self) -> None:
        while True:
            self._refuse_long_line()
            line, _ = self._line()
            if not line.strip() or not line.endswith(b"\\"):
                return

    def _refuse_long_line(self) -> None:
        if self._seen - self._position < _LONGEST_LINE:
            return
        ahead = self._data[self._position : self._position + _LONGEST_LINE]
        if b"\n" not in ahead and b"\r" not in ahead:
            raise UnitError(f"line too long (max {_LONGEST_LINE} bytes)")
