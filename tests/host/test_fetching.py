"""What anybody may read: over redirects, within a limit of size and of time."""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest

from slipway.host.real import RealHost

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/stable.txt")
            self.end_headers()
            return
        found = self.path in ("/stable.txt", "/long")
        self.send_response(200 if found else 404)
        self.end_headers()
        self.wfile.write(b"v1.35.4\n" if self.path == "/stable.txt" else b"x" * 10_000)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Nothing is logged."""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with HTTPServer(("127.0.0.1", 0), _Pages) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_redirect_is_followed(site: str) -> None:
    assert RealHost().fetch_public(f"{site}/moved", timeout=5.0) == b"v1.35.4\n"


def test_a_long_answer_is_cut(site: str) -> None:
    assert len(RealHost().fetch_public(f"{site}/long", timeout=5.0)) == 4096


def test_a_page_that_is_not_there_is_an_error_with_its_reason(site: str) -> None:
    with pytest.raises(OSError, match="Not Found"):
        RealHost().fetch_public(f"{site}/gone", timeout=5.0)


def test_a_server_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(OSError, match=r"no answer within|timed out"):
        RealHost().fetch_public(f"http://127.0.0.1:{silent.getsockname()[1]}/", timeout=0.1)
