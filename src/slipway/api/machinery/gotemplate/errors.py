"""What a template can end with, other than text."""

from __future__ import annotations

from slipway.api.machinery.errors import ConfigurationError


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
