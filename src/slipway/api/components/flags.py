"""The flags that components accept, by release: what the components themselves say, recorded by tests/oracles/flags_record.py.

Minors are those of a component's own project: Kubernetes 1.x and etcd 3.x.
"""

from __future__ import annotations

import os
from functools import cache

import msgspec

PROJECTS = {"etcd": "3"}
"""The major version of a component's project, where it is not Kubernetes' 1."""


@cache
def accepted(component: str) -> dict[int, frozenset[str]]:
    """The names of the flags that a component accepts, hidden and deprecated ones included, by minor."""
    found: dict[int, set[str]] = {}
    for minors, names in _table()[component].items():
        for minor in minors.split():
            found.setdefault(int(minor), set()).update(names.split())
    return {minor: frozenset(found[minor]) for minor in sorted(found)}


def problem(component: str, minor: int, name: str) -> str:
    """What is wrong with a flag of a component, if anything; a minor that is not known counts as the nearest that is."""
    by_minor = accepted(component)
    major = PROJECTS.get(component, "1")
    acting = min(by_minor, key=lambda known: abs(known - minor))
    # Kubernetes' components take either of the two characters; etcd does not.
    normalised = name if component in PROJECTS else name.replace("_", "-")
    if normalised in by_minor[acting]:
        return ""
    from difflib import get_close_matches

    text = f'{component} {major}.{acting} has no flag "{name}"'
    elsewhere = [f"{major}.{other}" for other, names in by_minor.items() if normalised in names]
    if elsewhere:
        text += f" ({', '.join(elsewhere)} {'has' if len(elsewhere) == 1 else 'have'} it)"
    nearest = get_close_matches(normalised.lstrip("-"), sorted(by_minor[acting]), n=1)
    return f'{text}: did you mean "{nearest[0]}"?' if nearest else text


@cache
def _table() -> dict[str, dict[str, str]]:
    """By component, names under the minors that have them."""
    with open(os.path.join(os.path.dirname(__file__), "flags.json"), "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[str, dict[str, str]])
