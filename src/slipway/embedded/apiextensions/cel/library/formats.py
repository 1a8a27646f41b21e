"""Named formats: what is wrong with a string that should be a name, a UUID, a date."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slipway.api.machinery import labels
from slipway.embedded.apiextensions import formats
from slipway.embedded.apiextensions.cel.functions import Functions, traversal
from slipway.embedded.apiextensions.cel.types import FORMAT, STRING, Type, list_of, optional_of
from slipway.embedded.apiextensions.cel.values import NONE, Maybe
from slipway.embedded.registry import metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FUNCTIONS = Functions()


@dataclass(frozen=True)
class Format:
    problems: Callable[[str], list[str]]
    length: int
    """Of the pattern that its cost is reckoned by."""
    cel_type: Type = FORMAT


def _prefix(rule: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """A prefix of a name may end in a dash, as something follows."""
    return lambda text: rule(f"{text[:-1]}a" if text.endswith("-") else text)


def _known(format_: str, problem: str) -> Callable[[str], list[str]]:
    return lambda text: [] if formats.is_valid(format_, text) else [problem]


_label_1035 = metadata.name_rule("services")
_FORMATS = {
    "dns1123Label": Format(metadata.label_problems, 30),
    "dns1123Subdomain": Format(metadata.subdomain_problems, 60),
    "dns1035Label": Format(_label_1035, 30),
    "qualifiedName": Format(labels.key_problems, 60),
    "dns1123LabelPrefix": Format(_prefix(metadata.label_problems), 30),
    "dns1123SubdomainPrefix": Format(_prefix(metadata.subdomain_problems), 60),
    "dns1035LabelPrefix": Format(_prefix(_label_1035), 30),
    "labelValue": Format(labels.value_problems, 40),
    "uri": Format(_known("uri", "invalid URI for request"), 1103),
    "uuid": Format(_known("uuid", "does not match the UUID format"), 70),
    "byte": Format(_known("byte", "invalid base64"), 84),
    "date": Format(_known("date", "invalid date"), 71),
    "datetime": Format(_known("date-time", "invalid datetime"), 71),
}


def _validated(format_: Format, text: str) -> Maybe:
    problems = format_.problems(text)
    return Maybe(problems, True) if problems else NONE


def _named(name: str) -> Maybe:
    return Maybe(_FORMATS[name], True) if name in _FORMATS else NONE


def _of_validation(arguments: Sequence[Any], result: Any) -> int:
    return traversal(1 + len(arguments[1])) * traversal(arguments[0].length, 0.25)


def _constant(format_: Format) -> Callable[[], Format]:
    return lambda: format_


FUNCTIONS.add("format.named", [STRING], optional_of(FORMAT), _named)
FUNCTIONS.member("validate", [FORMAT, STRING], optional_of(list_of(STRING)), _validated, _of_validation)
for _name, _format in _FORMATS.items():
    FUNCTIONS.add(f"format.{_name}", [], FORMAT, _constant(_format))
