"""What is asked of a cluster next: chosen by chance, as far as its present shape allows it.  Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.simulation.soak.options import VERSIONS, WORKER_HOSTS, WORKERS

if TYPE_CHECKING:
    import random

MAKE = "make"
UPGRADE, SCALE, TEMPLATES, ROLL, POOL, REMAKE = "upgrade", "scale", "templates", "roll", "pool", "remake"
MEANINGS = {
    MAKE: "the cluster is made at the oldest minor",
    UPGRADE: "control plane, then workers, go to the next minor",
    SCALE: "more workers, or fewer",
    TEMPLATES: "workers are rolled to new templates",
    ROLL: "the control plane is rolled at its version",
    POOL: "a free host of the workers' pool is exchanged for one that stands by",
    REMAKE: "the cluster is deleted, and made anew at the oldest minor",
}
_WEIGHTS = {UPGRADE: 5, SCALE: 3, TEMPLATES: 2, ROLL: 2, POOL: 1}
# What has reached the newest minor can only come down by being made anew; others are at times all the same.
_REMAKE_WEIGHT, _REMAKE_AT_TOP = 1, 6


class Shape(NamedTuple):
    """What a cluster is."""

    version: str = VERSIONS[0]
    workers: int = WORKERS
    generation: int = 0
    """Of the templates of its workers."""


class Operation(NamedTuple):
    name: str
    after: Shape


def chosen(chance: random.Random, shape: Shape) -> Operation:
    at_top = shape.version == VERSIONS[-1]
    weights = {name: weight for name, weight in _WEIGHTS.items() if name != UPGRADE or not at_top}
    weights[REMAKE] = _REMAKE_AT_TOP if at_top else _REMAKE_WEIGHT
    name = chance.choices(list(weights), weights=list(weights.values()))[0]
    match name:
        case "upgrade":
            return Operation(name, shape._replace(version=VERSIONS[VERSIONS.index(shape.version) + 1]))
        case "scale":
            others = [number for number in range(1, WORKER_HOSTS + 1) if number != shape.workers]
            return Operation(name, shape._replace(workers=chance.choice(others)))
        case "templates":
            return Operation(name, shape._replace(generation=shape.generation + 1))
        case "remake":
            return Operation(name, Shape())
    return Operation(name, shape)
