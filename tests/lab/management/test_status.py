"""What an unhealthy answer of a program is told as, and until when it is asked again."""

from __future__ import annotations

import socket

import pytest

from slipway.lab.management import status

# In the form of k8s.io/apiserver v0.35.4, pkg/server/healthz/healthz.go.
STARTING = """[+]ping ok
[-]informer-sync failed: reason withheld
[+]poststarthook/start-apiextensions-informers ok
[-]poststarthook/rbac/bootstrap-roles failed: reason withheld
readyz check failed
"""


@pytest.mark.parametrize(
    ("code", "text", "told"),
    [
        (500, STARTING, "not ready yet: informer-sync, poststarthook/rbac/bootstrap-roles"),
        (500, STARTING.replace("[+]", "[-]"), "not ready yet: ping, informer-sync, poststarthook/start-apiextensions-informers and 1 more"),
        (503, "first line\nsecond line\n", "HTTP 503: first line"),
        (404, "", "HTTP 404"),
    ],
)
def test_an_unhealthy_answer_tells_what_is_awaited(code: int, text: str, told: str) -> None:
    assert status.unhealthy(code, text) == told


def test_where_nobody_listens_that_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    endpoint = status.Endpoint(address="127.0.0.1", port=port, path="/readyz", context=status.client_without_trust())
    assert status.ask(endpoint) == f"nothing listens on 127.0.0.1:{port}"


def test_waiting_ends_when_the_program_has_ended() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    endpoint = status.Endpoint(address="127.0.0.1", port=port, path="/readyz", context=status.client_without_trust())
    alive, reminded = iter([True, True, False]), list[str]()
    assert status.wait(endpoint, 60, lambda: next(alive), reminded.append) == f"nothing listens on 127.0.0.1:{port}"
    assert len(reminded) == 2
