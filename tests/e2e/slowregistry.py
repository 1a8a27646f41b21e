"""A registry behind a slow line: whatever it sends, to all hosts together, comes through at a bounded rate.

It is a proxy for bytes on the lab's gateway; nothing else of the lab is slowed down.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import Self

_PIECE = 1 << 16


class SlowRegistry:
    """``address`` is what hosts pull from while the block runs."""

    def __init__(self, registry: str, port: int, bits_a_second: float) -> None:
        host, _, self._port = registry.rpartition(":")
        self._host, self._rate = host, bits_a_second / 8
        self.address = f"{host}:{port}"
        self._listening = socket.create_server((host, port), backlog=64)
        self._lock = threading.Lock()
        self._due = 0.0
        self.sent = 0
        """The bytes that came through so far."""

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), client, socket.create_connection((self._host, int(self._port))) as server:
            threading.Thread(target=self._questions, args=(client, server), daemon=True).start()
            while piece := server.recv(_PIECE):
                self._wait_for(len(piece))
                client.sendall(piece)

    def _questions(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while piece := client.recv(_PIECE):
                server.sendall(piece)
            server.shutdown(socket.SHUT_WR)

    def _wait_for(self, count: int) -> None:
        """Until the line has room for so many bytes more."""
        with self._lock:
            now = time.monotonic()
            self._due = max(self._due, now) + count / self._rate
            self.sent += count
            pause = self._due - now
        time.sleep(pause)
