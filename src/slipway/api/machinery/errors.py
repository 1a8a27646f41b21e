"""The one exception that a command line turns into a sentence and an exit code, and lists of faults within such a sentence."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_LISTED, _CHARACTERS, _CHARACTERS_EACH = 100, 65_536, 32_768


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


def listed(faults: Iterable[object]) -> list[str]:
    """Each fault as text, equal ones once.  Of more than anybody reads the first ones, and last how many more there are."""
    texts: dict[str, None] = {}
    length = 0
    following = iter(faults)
    for fault in following:
        if len(texts) == _LISTED or length > _CHARACTERS:
            return [*texts, f"and {1 + sum(1 for _ in following)} more"]
        text = str(fault)
        texts[text if len(text) <= _CHARACTERS_EACH else f"{text[:_CHARACTERS_EACH]}…"] = None
        length += len(text)
    return list(texts)
