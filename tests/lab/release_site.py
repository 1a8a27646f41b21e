"""A web server on loopback that publishes files as the official sites do, can break off, and notes what it was asked."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ReleaseSite:
    """Files by path.  ``breaks_after`` cuts every answer to that many bytes; ``ranges`` is whether it knows Range.

    ``hangs_up`` ends every connection without an answer.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.breaks_after: int | None = None
        self.ranges = True
        self.hangs_up = False
        self.url = ""

    def publish(self, path: str, data: bytes, checksum: str | None = None) -> None:
        self.files[path] = data
        self.files[f"{path}.sha256"] = (checksum or hashlib.sha256(data).hexdigest()).encode()

    def transfers(self) -> list[tuple[str, str | None]]:
        """What was asked for beside checksums, with the range."""
        return [(path, wanted) for path, wanted in self.asked if not path.endswith((".sha256", "SUMS"))]


@contextmanager
def serving() -> Iterator[ReleaseSite]:
    site = ReleaseSite()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            site.asked.append((self.path, wanted))
            if site.hangs_up:
                self.close_connection = True
                return
            data = site.files.get(self.path)
            if data is None:
                self.send_error(404)
                return
            start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and site.ranges else 0
            if start >= len(data) > 0:
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(data) - start))
            self.end_headers()
            end = len(data) if site.breaks_after is None else start + site.breaks_after
            self.wfile.write(data[start:end])

        def log_message(self, *_: object) -> None:
            """Requests are noted in ``asked``."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
