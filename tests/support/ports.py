"""Ports for servers of tests."""

from __future__ import annotations

import random
import socket

# Below those that the kernel gives to connections: one of these is not taken before the server has come to listen.
_PORTS = range(12000, 20000)


def free_port() -> int:
    """One that nobody listens on at the moment."""
    for port in random.sample(_PORTS, k=100):
        with socket.socket() as found:
            try:
                found.bind(("0.0.0.0", port))
            except OSError:
                continue
            return port
    raise AssertionError(f"none of a hundred ports from {_PORTS[0]} to {_PORTS[-1]} is free")
