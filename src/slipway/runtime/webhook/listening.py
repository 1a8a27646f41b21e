"""Sockets that take so many connections at a time, for servers that strangers reach.

Before a stranger has said a word, TLS sets a quarter of a megabyte aside for the connection: what comes beyond the bound is closed at once.
"""

from __future__ import annotations

import socket
import weakref
from typing import Any

_WAITING = 128


class Connections:
    """Those that are open, of all sockets of a server."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def takes(self, connection: socket.socket) -> bool:
        if len(self._open) >= self._most:
            # What is closed may not have been let go yet.
            self._open = weakref.WeakSet(each for each in self._open if each.fileno() >= 0)
        if len(self._open) >= self._most:
            return False
        self._open.add(connection)
        return True


class BoundedSocket(socket.socket):
    """A listening socket that turns connections away."""

    connections: Connections

    def accept(self) -> tuple[socket.socket, Any]:
        connection, address = super().accept()
        if self.connections.takes(connection):
            return connection, address
        connection.close()
        # To the event loop: there was nobody.
        raise BlockingIOError


def listen(address: str, port: int, most: int) -> list[socket.socket]:
    """Sockets on all addresses of the name, or of the machine; OSError where there is none to listen on."""
    connections = Connections(most)
    found: list[socket.socket] = []
    try:
        for family, kind, protocol, _, place in socket.getaddrinfo(address or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE):
            try:
                made = BoundedSocket(family, kind, protocol)
            except OSError:
                # The kernel has no such addresses, as one without IPv6.
                continue
            found.append(made)
            made.connections = connections
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            made.bind(place)
            made.listen(_WAITING)
            made.setblocking(False)
        if not found:
            raise OSError(f"there is no address {address} here")
    except BaseException:
        for each in found:
            each.close()
        raise
    return found
