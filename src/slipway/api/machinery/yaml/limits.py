"""How much a YAML document may ask of its reader: goyaml's bounds, which every reader of ours keeps."""

from __future__ import annotations

MAX_DEPTH = 300
"""Collections within collections: deeper than any API goes.  Go stops at 10000."""

_ALIASES_FREE, _NODES_FREE = 100, 1_000
_NODES_LOW, _NODES_HIGH = 400_000, 4_000_000


def too_many_aliased(decoded: int, from_aliases: int) -> bool:
    """Whether aliases blow a document up: of the nodes decoded, these many were reached through an alias."""
    if from_aliases <= _ALIASES_FREE or decoded <= _NODES_FREE:
        return False
    share = min(max((decoded - _NODES_LOW) / (_NODES_HIGH - _NODES_LOW), 0), 1)
    return from_aliases / decoded > 0.99 - 0.89 * share
