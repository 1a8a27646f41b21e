"""A registry that ends in the middle of a layer, a few times: what is between hosts and the lab's own."""

from __future__ import annotations

import socket
import threading
from typing import Self

from support.ports import free_port

_LAYER = 4 << 20
"""More than manifests and configurations have: whoever was sent so much is in the middle of a layer."""


class BreakingRegistry:
    """Carries connections to ``upstream``, as ``host:port``, at another port of the same host; the first ``breaks`` layers end early."""

    def __init__(self, upstream: str, *, breaks: int) -> None:
        host, _, port = upstream.partition(":")
        self._upstream, self._left = (host, int(port)), breaks
        self._lock = threading.Lock()
        self._listener = socket.create_server((host, free_port()), reuse_port=False)
        self.address = f"{host}:{self._listener.getsockname()[1]}"
        self.broken = 0
        """How many ended early."""

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(self._upstream)
            for source, target, counted in ((near, far, False), (far, near, True)):
                threading.Thread(target=self._carry, args=(source, target, counted), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, counted: bool) -> None:
        sent = 0
        try:
            while chunk := source.recv(65536):
                target.sendall(chunk)
                sent += len(chunk)
                if counted and sent > _LAYER and self._breaks():
                    break
        except OSError:
            # Whoever hears of one end hears of the other.
            pass
        for end in (source, target):
            end.close()

    def _breaks(self) -> bool:
        with self._lock:
            if not self._left:
                return False
            self._left -= 1
            self.broken += 1
            return True
