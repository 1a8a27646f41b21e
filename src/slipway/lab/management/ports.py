"""Which TCP ports of the loopback address the programs of a lab listen on."""

from __future__ import annotations

import errno
import socket
import zlib
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

LOOPBACK = "127.0.0.1"
# Below what Linux gives to outgoing connections and outside of the ports of well-known programs and of Services.
RANGE = range(23000, 25000)


def choose(
    names: Sequence[str], recorded: Mapping[str, int], seed: str, is_free: Callable[[int], bool], among: range = RANGE
) -> dict[str, int]:
    """A port for each name: the recorded one where it is free still, else the first free one from a place of the seed's own.

    Runs with different seeds look in different places, so that two that choose at the same moment do not meet.
    """
    chosen = {name: recorded[name] for name in names if name in recorded and is_free(recorded[name])}
    start = zlib.crc32(seed.encode()) % len(among)
    candidates = (port for port in (*among[start:], *among[:start]) if port not in recorded.values() and is_free(port))
    for name in names:
        if name in chosen:
            continue
        port = next(candidates, None)
        if port is None:
            raise OperatorError(
                f"no port for {name} is free on {LOOPBACK} between {among[0]} and {among[-1]}: "
                "end programs that listen there (`ss -ltnp` shows them)"
            )
        chosen[name] = port
    return {name: chosen[name] for name in names}


def is_free(port: int) -> bool:
    """Whether a program could listen on a port of the loopback address now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as candidate:
        # As servers do it: connections of a program that has ended must not keep its port.
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind((LOOPBACK, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return False
    return True
