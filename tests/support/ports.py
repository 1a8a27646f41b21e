"""Ports for servers of tests."""

from __future__ import annotations

import socket


def free_port() -> int:
    """One that nobody listens on at the moment."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
