"""The one exception that a command line turns into a sentence and an exit code."""

from __future__ import annotations


class OperatorError(Exception):
    """Something that the person at the keyboard must know: what is wrong, where, and what would be right.

    The text is printed after ``error: `` and the program ends with ``exit_code``.
    """

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class UsageError(OperatorError):
    """The command line itself cannot be understood."""


class ConfigurationError(OperatorError):
    """A configuration that cannot be used."""


class ValidationError(ConfigurationError):
    """A configuration that was read and has invalid values.  kubeadm up to 1.33 ends with 3 here, later releases with 1."""


class PreflightError(OperatorError):
    """The host is not ready.  kubeadm up to 1.33 ends with 2 here, later releases with 1."""
