"""Names, labels and annotations of hosts from templates such as ``m-${System Information/UUID}``.

A placeholder is a path into what the host said of itself, or one of ``Random/UUID``, ``Random/Hex/<1-32>`` and
``Random/Int/<below>``.  A host that cannot fill a name gets one by chance; a label that it cannot fill is left out.

What is random in a name may follow from a seed: two who name one host at the same time name it alike then.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

DEFAULT_NAME = "m-${System Information/UUID}"
_LONGEST = 58
_LONGEST_VALUE = 1024
_MAX_HEX = 32
_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")


class TemplateError(ValueError):
    """A template that no host could fill."""


class MissingError(LookupError):
    """The host has no such value."""


def render(template: str, values: Mapping[str, Any], seed: str = "") -> str:
    """The text with every placeholder filled.  With a seed, what is random follows from it."""
    import random

    chance = random.Random(seed) if seed else random.SystemRandom()
    return _PLACEHOLDER.sub(lambda found: _value(found[1], values, chance), template)


def machine_name(template: str, values: Mapping[str, Any], seed: str = "") -> str:
    """The name of a host's inventory, which is its hostname too: lower case, and a DNS name of at most 58 characters."""
    try:
        rendered = render(template or DEFAULT_NAME, values, seed)
    except MissingError:
        rendered = render("m-${Random/UUID}", {}, seed)
    # A dot beside a dash ends or begins a part of the name with a dash, which DNS does not take.
    name = re.sub(r"-*\.[-.]*", ".", _words(rendered, r"[^0-9a-zA-Z.]"))
    name = name[:_LONGEST].rstrip("-.").lower()
    if not name:
        raise TemplateError(f'the machineName "{template}" of the registration leaves no name of this host: "{rendered[:100]}"')
    return name


def fill_labels(templates: Mapping[str, str], values: Mapping[str, Any], present: Mapping[str, str]) -> dict[str, str]:
    """The labels that the host can fill.  What was random stays as it is ``present`` already."""
    return _filled(templates, values, present, _label)


def fill_annotations(templates: Mapping[str, str], values: Mapping[str, Any], present: Mapping[str, str]) -> dict[str, str]:
    """The annotations that the host can fill, as labels are filled; an annotation may have any text."""
    return _filled(templates, values, present, lambda text: text)


def _filled(
    templates: Mapping[str, str], values: Mapping[str, Any], present: Mapping[str, str], shaped: Callable[[str], str]
) -> dict[str, str]:
    out = {}
    for key, template in templates.items():
        if present.get(key) and "${Random" in template:
            out[key] = present[key]
            continue
        try:
            out[key] = shaped(render(template, values))
        except MissingError:
            continue
    return out


def _label(text: str) -> str:
    return _words(text, r"[^0-9a-zA-Z._]")[:_LONGEST].rstrip("-._")


def _words(text: str, foreign: str) -> str:
    """The text with a dash for what is foreign to it, and letters or digits at both ends."""
    return re.sub(r"-{2,}", "-", re.sub(foreign, "-", text)).strip("-._")


def _value(path: str, values: Mapping[str, Any], chance: Random) -> str:
    names = path.split("/")
    if names[0] == "Random":
        return _random(names[1:], path, chance)
    found: Any = values
    for name in names:
        if not isinstance(found, Mapping) or name not in found:
            raise MissingError(f'the host has no value "{path}"')
        found = found[name]
    if not isinstance(found, str):
        raise MissingError(f'the host\'s value "{path}" is no text')
    if len(found) > _LONGEST_VALUE:
        raise MissingError(f'the host\'s value "{path}" has {len(found)} characters, more than the {_LONGEST_VALUE} that are taken')
    return found


def _random(names: list[str], path: str, chance: Random) -> str:
    import uuid

    match names:
        case ["UUID"]:
            return str(uuid.UUID(int=chance.getrandbits(128), version=4))
        case ["Hex", digits] if _number(digits, _MAX_HEX):
            return f"{chance.getrandbits(4 * _MAX_HEX):0{_MAX_HEX}x}"[: int(digits)]
        case ["Int", below] if _number(below, (1 << 63) - 1):
            return str(chance.randrange(int(below)))
    if not names or names[0] not in ("UUID", "Hex", "Int"):
        raise MissingError(f'there is no value "{path}"')
    raise TemplateError(f'"${{{path}}}" must be Random/UUID, Random/Hex/<1 to {_MAX_HEX}> or Random/Int/<a number above 0>')


def _number(text: str, largest: int) -> bool:
    return re.fullmatch(r"[0-9]{1,19}", text) is not None and 1 <= int(text) <= largest
