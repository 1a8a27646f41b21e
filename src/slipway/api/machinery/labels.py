"""What labels and annotations may be called and hold; the texts are those of apimachinery 0.35."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slipway.api.machinery.fieldpath import FieldError, Path, invalid, too_long

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST_NAME = 63
_LONGEST_PREFIX = 253
_ANNOTATIONS_LIMIT = 256 * 1024

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_NAME})?"
_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"

_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    f"alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE}')"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    f"alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)


def key_problems(key: str) -> list[str]:
    """What is wrong with the key of a label; that of an annotation is checked in lower case."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return [f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    found: list[str] = []
    if slash and not prefix:
        found.append("prefix part must be non-empty")
    elif slash:
        found += [f"prefix part {problem}" for problem in subdomain_problems(prefix)]
    if not name:
        found.append("name part must be non-empty")
    elif len(name.encode()) > _LONGEST_NAME:
        found.append(f"name part must be no more than {_LONGEST_NAME} bytes")
    if not re.fullmatch(_NAME, name):
        found.append(f"name part {_NAME_RULE}")
    return found


def value_problems(value: str) -> list[str]:
    found = [f"must be no more than {_LONGEST_NAME} bytes"] if len(value.encode()) > _LONGEST_NAME else []
    return found if re.fullmatch(_VALUE, value) else [*found, _VALUE_RULE]


def subdomain_problems(name: str) -> list[str]:
    """What is wrong with a DNS subdomain, which is what most objects are named with."""
    found = [f"must be no more than {_LONGEST_PREFIX} bytes"] if len(name.encode()) > _LONGEST_PREFIX else []
    return found if re.fullmatch(_SUBDOMAIN, name) else [*found, _SUBDOMAIN_RULE]


def validate_labels(labels: Mapping[str, str], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    for key, value in labels.items():
        found += [invalid(path, key, problem) for problem in key_problems(key)]
        found += [invalid(path, value, problem) for problem in value_problems(value)]
    return found


def validate_annotations(annotations: Mapping[str, str], path: Path) -> list[FieldError]:
    found = [invalid(path, key, problem) for key in annotations for problem in key_problems(key.lower())]
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > _ANNOTATIONS_LIMIT:
        found.append(too_long(path, _ANNOTATIONS_LIMIT))
    return found
