"""What a template can end with, other than text."""

from __future__ import annotations

from slipway.api.machinery.errors import ConfigurationError

# A message is for a person, and may be a condition of an object; a template and its values may be a megabyte.
_LONGEST = 1_000


class TemplateError(ConfigurationError):
    """A template that cannot be parsed or executed.  The message is Go's; ``line`` is 0 where Go names none."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class NoValueError(TemplateError):
    """A template that would print ``<no value>``; ``expression`` is what was to be printed."""

    def __init__(self, message: str, line: int, expression: str) -> None:
        super().__init__(message, line)
        self.expression = expression


class CallError(Exception):
    """What a function of the language says about its arguments; execution adds the place."""


class ExhaustedError(CallError):
    """A limit that was met, in a function or between them; execution adds the place."""


def shortened(text: str, longest: int = _LONGEST) -> str:
    """Text as a message shows it."""
    return text if len(text) <= longest else f"{text[:longest]}..."
