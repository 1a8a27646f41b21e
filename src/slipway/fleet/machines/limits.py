"""How many machines a rollout may have too many and too few: numbers and percentages as numbers.

A surge is rounded up and an unavailability down; where both come to nothing, one machine may be unavailable, or no rollout would ever move
(mdutil.ResolveFenceposts of Cluster API).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from slipway.api.machinery.errors import OperatorError

_PERCENT = re.compile(r"([+-]?[0-9]+)%")
# What the webhook writes where nothing is said.
DEFAULT_SURGE, DEFAULT_UNAVAILABLE = 1, 0
# Twenty times what Kubernetes is tested with; a slip of the keyboard must not fill the API server.
MOST_REPLICAS = 100_000


class Limits(NamedTuple):
    surge: int
    unavailable: int


def scaled(value: int | str, total: int, *, up: bool) -> int:
    """A number as it is, a percentage of ``total`` rounded up or down."""
    if isinstance(value, int):
        return value
    match = _PERCENT.fullmatch(value)
    if match is None:
        raise OperatorError(f'"{value}" is neither a number nor a percentage')
    hundredths = int(match[1]) * total
    return -(-hundredths // 100) if up else hundredths // 100


def fenceposts(surge: int | str | None, unavailable: int | str | None, replicas: int) -> Limits:
    """Both together, since they must not both be 0."""
    most = scaled(DEFAULT_SURGE if surge is None else surge, replicas, up=True)
    fewer = scaled(DEFAULT_UNAVAILABLE if unavailable is None else unavailable, replicas, up=False)
    return Limits(most, 1 if most == fewer == 0 else fewer)


def limits(*, rolling: bool, surge: int | str | None, unavailable: int | str | None, replicas: int) -> Limits:
    """The bounds of a rollout, which OnDelete does not have; no more machines are unavailable than there are to be."""
    if not rolling:
        return Limits(0, 0)
    found = fenceposts(surge, unavailable, replicas)
    return Limits(found.surge, min(found.unavailable, replicas))


def refuse_number(kind: str, replicas: int) -> None:
    """An error where the number of replicas cannot be meant."""
    if not 0 <= replicas <= MOST_REPLICAS:
        raise OperatorError(f"the {kind} has {replicas} replicas: it must have 0 or more, and no more than {MOST_REPLICAS}")
