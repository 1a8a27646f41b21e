"""How the asyncio client behaves on the wire, against a TLS server that really speaks TLS."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import time
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
from support.tlsserver import Identity, Server, Step, authority, hang_up, json_answer, leaf, raw

from slipway import __version__
from slipway.api.cluster.kinds import CONFIG_MAP, LEASE, NAMESPACE
from slipway.api.machinery.errors import OperatorError
from slipway.kube import errors
from slipway.kube.aio import AsyncClient, PatchType, WatchEvent
from slipway.kube.aiotransport import TokenSource
from slipway.kube.connection import Connection

CA = authority()
FOUND = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"default"}}'
Serve = Callable[..., Server]
Connect = Callable[..., AsyncClient]
pytestmark = pytest.mark.asyncio

# What a kube-apiserver v1.35.4 answered, byte by byte.
GONE = (
    '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 1 (2)",'
    '"reason":"Expired","code":410}'
)
BOOKMARK = '{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"812"}}}\n'


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    started: list[Server] = []

    def start(*steps: Step, identity: Identity | None = None, clients: Identity | None = None) -> Server:
        started.append(Server(tmp_path, identity or leaf(CA), *steps, clients=clients))
        return started[-1]

    yield start
    for server in started:
        server.close()


@pytest_asyncio.fixture
async def connect() -> AsyncIterator[Connect]:
    made: list[AsyncClient] = []

    def client(server: Server, *, ca: Identity = CA, **options: object) -> AsyncClient:
        own = {name: options.pop(name) for name in ("timeout", "user_agent", "on_request", "largest") if name in options}
        connection = Connection(server=server.url, ca=ca.certificate, **options)  # type: ignore[arg-type]
        made.append(AsyncClient(connection, **own))  # type: ignore[arg-type]
        return made[-1]

    yield client
    for each in made:
        await each.close()


def streamed(*pieces: bytes, then: threading.Event | None = None) -> Step:
    """A watch whose body comes in these pieces, cut wherever the test likes; it ends when ``then`` is set, without it at once."""

    def answer(connection: ssl.SSLSocket, request: bytes) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in pieces:
            connection.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        if then is not None:
            then.wait(30)
        connection.sendall(b"0\r\n\r\n")
        return True

    return answer


def head(server: Server, connection: int = 0, request: int = 0) -> str:
    return server.requests[connection][request].decode()


async def test_a_request_says_who_asks_for_what(serve: Serve, connect: Connect) -> None:
    server = serve(json_answer(FOUND))
    assert (await connect(server, token="abc").get(CONFIG_MAP, "x", "default"))["metadata"]["name"] == "x"
    assert head(server).startswith("GET /api/v1/namespaces/default/configmaps/x HTTP/1.1\r\n")
    assert f"User-Agent: slipway/{__version__}\r\n" in head(server)
    assert "Authorization: Bearer abc\r\n" in head(server)
    assert "Accept: application/json\r\n" in head(server)


async def test_the_kernel_asks_whether_the_other_side_of_a_connection_is_there(serve: Serve, connect: Connect) -> None:
    server = serve(json_answer(FOUND))
    await connect(server).get(CONFIG_MAP, "x", "default")
    port = int(server.url.rpartition(":")[2])
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    # proc(5): the other side, the state (01: established) and which timer is pending (02: keep-alive), with its hundredths of a second.
    timers = [row[5].split(":") for row in rows if int(row[2].rpartition(":")[2], 16) == port and row[3] == "01"]
    assert [kind for kind, _ in timers] == ["02"]
    assert int(timers[0][1], 16) <= 1000


async def test_a_connection_is_kept_until_the_next_probe_and_not_for_as_long_as_the_server_would(
    serve: Serve, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(json_answer(FOUND))
    client = connect(server)
    # The second probe of a cluster comes up to 42 seconds after the first; kube-apiserver ends what was idle for 90, while we may ask.
    for seconds in (0, 42, 42 + 85):
        monkeypatch.setattr("aiohttp.connector.monotonic", lambda later=seconds: time.monotonic() + later)
        await client.get(CONFIG_MAP, "x", "default")
    assert [len(requests) for requests in server.requests] == [2, 1]


async def test_a_client_certificate_is_shown(serve: Serve, connect: Connect) -> None:
    mine = leaf(CA, names=())
    server = serve(json_answer(FOUND), clients=CA)
    await connect(server, client_certificate=mine.certificate, client_key=mine.key).get(CONFIG_MAP, "x", "default")
    assert server.peers == ["kube-apiserver"]


async def test_a_server_may_be_verified_under_another_name(serve: Serve, connect: Connect) -> None:
    server = serve(json_answer(FOUND), identity=leaf(CA, names=("kubernetes",)))
    await connect(server, tls_server_name="kubernetes").get(CONFIG_MAP, "x", "default")


@pytest.mark.parametrize(
    ("identity", "message"),
    [
        (leaf(authority("other")), "its certificate is not signed by the CA of the cluster"),
        (leaf(CA, begins=-2, ends=-1), "its certificate has expired; renew it, or if it is valid, set the clock"),
        (leaf(CA, names=("elsewhere",)), "its certificate is for other names"),
    ],
)
async def test_a_server_that_does_not_prove_itself_is_not_trusted(serve: Serve, connect: Connect, identity: Identity, message: str) -> None:
    server = serve(json_answer(FOUND), identity=identity)
    with pytest.raises(errors.UntrustedError) as raised:
        await connect(server).get(CONFIG_MAP, "x", "default")
    assert message in raised.value.message
    assert server.requests in ([], [[]])


async def test_who_does_not_answer_is_unreachable(serve: Serve, connect: Connect) -> None:
    until = threading.Event()

    def hang(connection: ssl.SSLSocket, request: bytes) -> bool:
        return until.wait(30) and False

    server = serve(hang)
    with pytest.raises(errors.UnreachableError, match=r"did not answer within 0.2s \(GET /api/v1/namespaces/default/configmaps/x\)"):
        await connect(server, timeout=0.2).get(CONFIG_MAP, "x", "default")
    until.set()


async def test_a_refused_connection_and_a_closed_one_are_unreachable(serve: Serve, connect: Connect) -> None:
    server = serve(hang_up)
    client = connect(server)
    with pytest.raises(errors.UnreachableError, match="closed the connection without an answer"):
        await client.create(CONFIG_MAP, {"metadata": {"name": "x", "namespace": "default"}})
    server.close()
    async with AsyncClient(Connection(server="https://127.0.0.1:1")) as nobody:
        with pytest.raises(errors.UnreachableError, match=r"cannot reach https://127.0.0.1:1: Connection refused"):
            await nobody.get(CONFIG_MAP, "x", "default")


async def test_something_that_is_not_kubernetes_is_said_to_be_so(serve: Serve, connect: Connect) -> None:
    with pytest.raises(errors.ApiError, match="not an answer of a Kubernetes API server: 'hello'"):
        await connect(serve(json_answer("hello"))).get(CONFIG_MAP, "x", "default")
    with pytest.raises(errors.UnreachableError, match="answered with something that is not HTTP"):
        await connect(serve(raw(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"))).get(CONFIG_MAP, "x", "default")


@pytest.mark.parametrize("kubeconfig", [True, False])
async def test_a_proxy_that_does_not_answer_is_named_without_its_password(kubeconfig: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = "http://user:secret@127.0.0.1:1"
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    connection = Connection(server="https://me:hidden@api.example.com:6443", ca=CA.certificate, proxy_url=proxy if kubeconfig else "")
    async with AsyncClient(connection) as client:
        with pytest.raises(errors.UnreachableError) as caught:
            await client.get(CONFIG_MAP, "x", "default")
    assert caught.value.message == (
        "cannot reach https://xxxxx@api.example.com:6443 through the proxy http://xxxxx@127.0.0.1:1: Connection refused"
    )
    trace = "".join(traceback.format_exception(caught.value))
    assert "secret" not in trace
    assert "hidden" not in trace


async def test_a_proxy_is_asked_for_a_tunnel_with_its_password() -> None:
    asked: list[bytes] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as proxy:
        port = proxy.sockets[0].getsockname()[1]
        connection = Connection(server="https://api.example.com:6443", ca=CA.certificate, proxy_url=f"http://user:secret@127.0.0.1:{port}")
        async with AsyncClient(connection) as client:
            with pytest.raises(errors.UnreachableError, match=rf"through the proxy http://xxxxx@127\.0\.0\.1:{port}: .* 407 "):
                await client.get(CONFIG_MAP, "x", "default")
    assert asked[0].startswith(b"CONNECT api.example.com:6443 HTTP/1.")
    assert b"Proxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n" in asked[0]


@pytest.mark.parametrize("server", ["ftp://x", "https://", "https://x:99999"])
async def test_a_server_that_is_no_address_is_refused(server: str) -> None:
    with pytest.raises(OperatorError, match="is not an address"):
        AsyncClient(Connection(server=server))


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        ("401 Unauthorized", "Unauthorized", errors.UnauthorizedError),
        ("403 Forbidden", "Forbidden", errors.ForbiddenError),
        ("404 Not Found", "NotFound", errors.NotFoundError),
        ("409 Conflict", "Conflict", errors.ConflictError),
        ("409 Conflict", "AlreadyExists", errors.AlreadyExistsError),
        ("410 Gone", "Expired", errors.GoneError),
        ("422 Unprocessable Entity", "Invalid", errors.InvalidError),
        ("503 Service Unavailable", "ServiceUnavailable", errors.ApiError),
    ],
)
async def test_each_refusal_is_the_error_of_its_kind(
    serve: Serve, connect: Connect, status: str, reason: str, expected: type[errors.ApiError]
) -> None:
    body = json.dumps(
        {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "why", "reason": reason, "code": int(status[:3])}
    )
    with pytest.raises(expected) as raised:
        await connect(serve(json_answer(body, status))).get(CONFIG_MAP, "x", "default")
    assert (type(raised.value), raised.value.message, raised.value.reason) == (expected, "why", reason)


async def test_a_list_goes_on_page_by_page_and_its_items_get_their_kind(serve: Serve, connect: Connect) -> None:
    pages = [
        '{"metadata":{"resourceVersion":"9","continue":"more"},"items":[{"metadata":{"name":"a"}}]}',
        '{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"b"}}]}',
    ]
    server = serve(*map(json_answer, pages))
    found = await connect(server).list(CONFIG_MAP, "default", labels="app in (a,b)", fields="metadata.name!=z")
    assert found == [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in "ab"]
    first, second = (line.split(" ")[1] for line in (head(server), head(server, 0, 1)))
    assert first == ("/api/v1/namespaces/default/configmaps?labelSelector=app+in+%28a%2Cb%29&fieldSelector=metadata.name%21%3Dz&limit=500")
    assert second == first + "&continue=more"


async def test_a_list_of_nothing_is_empty(serve: Serve, connect: Connect) -> None:
    page = await connect(serve(json_answer('{"metadata":{"resourceVersion":"9"},"items":null}'))).list_page(CONFIG_MAP)
    assert page == ([], "9", "")


async def test_writes_go_where_the_object_says_with_its_kind(serve: Serve, connect: Connect) -> None:
    server = serve(json_answer(FOUND))
    client = connect(server)
    await client.create(CONFIG_MAP, {"metadata": {"name": "x", "namespace": "default"}})
    await client.update(LEASE, {"metadata": {"name": "x", "namespace": "default"}}, subresource="status")
    await client.create(NAMESPACE, {"metadata": {"name": "x"}})
    lines = [request.decode().split("\r\n")[0] for request in server.requests[0]]
    assert lines == [
        "POST /api/v1/namespaces/default/configmaps HTTP/1.1",
        "PUT /apis/coordination.k8s.io/v1/namespaces/default/leases/x/status HTTP/1.1",
        "POST /api/v1/namespaces HTTP/1.1",
    ]
    body = json.loads(server.requests[0][0].partition(b"\r\n\r\n")[2])
    assert body == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}}


async def test_patches_have_their_type_and_their_manager(serve: Serve, connect: Connect) -> None:
    server = serve(json_answer(FOUND))
    client = connect(server)
    await client.patch(CONFIG_MAP, "x", "default", {"data": {"a": None}}, type=PatchType.MERGE, subresource="status")
    await client.patch(CONFIG_MAP, "x", "default", {}, type=PatchType.APPLY, field_manager="slipway", force=True)
    merge, apply = (request.decode() for request in server.requests[0])
    assert merge.startswith("PATCH /api/v1/namespaces/default/configmaps/x/status HTTP/1.1")
    assert "Content-Type: application/merge-patch+json\r\n" in merge
    assert merge.endswith('{"data":{"a":null}}')
    assert apply.startswith("PATCH /api/v1/namespaces/default/configmaps/x?fieldManager=slipway&force=true HTTP/1.1")
    assert "Content-Type: application/apply-patch+yaml\r\n" in apply


async def test_a_delete_may_be_of_one_state_only_and_says_whether_there_was_one(serve: Serve, connect: Connect) -> None:
    missing = json_answer('{"kind":"Status","code":404,"reason":"NotFound","message":"none"}', "404 Not Found")
    server = serve(json_answer(FOUND), missing)
    client = connect(server)
    assert await client.delete(CONFIG_MAP, "x", "default", propagation="Foreground", uid="u", resource_version="7")
    assert not await client.delete(CONFIG_MAP, "x", "default")
    first, second = (request.partition(b"\r\n\r\n")[2] for request in server.requests[0])
    assert json.loads(first) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Foreground",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
    }
    assert second == b""


async def test_events_of_a_watch_are_whole_however_the_stream_is_cut(serve: Serve, connect: Connect) -> None:
    lines = ['{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n', '{"type":"MODIFIED","object":{"metadata":{"name":"ä"}}}\n', BOOKMARK]
    stream = "".join(lines).encode()
    for size in (1, 7, 64, len(stream)):
        server = serve(streamed(*(stream[start : start + size] for start in range(0, len(stream), size))))
        opened: list[str] = []
        watch = connect(server).watch(CONFIG_MAP, resource_version="5", timeout_seconds=300, on_open=partial(opened.append, "open"))
        found = [(event.type, json.loads(bytes(event.object))["metadata"]) async for event in watch]
        assert found == [("ADDED", {"name": "a"}), ("MODIFIED", {"name": "ä"}), ("BOOKMARK", {"resourceVersion": "812"})]
        assert opened == ["open"]
        assert " /api/v1/configmaps?watch=true&resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=300 " in head(server)


async def test_a_watch_that_is_too_old_is_gone_whether_by_status_or_by_event(serve: Serve, connect: Connect) -> None:
    event = f'{{"type":"ERROR","object":{GONE}}}\n'.encode()
    for step in (json_answer(GONE, "410 Gone"), streamed(event)):
        with pytest.raises(errors.GoneError, match=r"too old resource version: 1 \(2\)"):
            [each async for each in connect(serve(step)).watch(CONFIG_MAP, resource_version="1")]


async def test_a_watch_that_goes_silent_is_noticed(serve: Serve, connect: Connect) -> None:
    until = threading.Event()
    client = connect(serve(streamed(BOOKMARK.encode(), then=until)))
    seen: list[WatchEvent] = []

    async def follow() -> None:
        async with aclosing(client.watch(CONFIG_MAP, silence=0.2)) as events:
            async for event in events:
                seen.append(event)  # noqa: PERF401 - what came before the silence is wanted

    with pytest.raises(errors.SilentError, match=r"said nothing for 0.2s \(watch of /api/v1/configmaps"):
        await follow()
    until.set()
    assert [event.type for event in seen] == ["BOOKMARK"]


async def test_a_watch_that_breaks_off_is_unreachable(serve: Serve, connect: Connect) -> None:
    cut = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n" + BOOKMARK[:10].encode()
    with pytest.raises(errors.UnreachableError, match="closed the connection"):
        [each async for each in connect(serve(raw(cut))).watch(CONFIG_MAP)]


async def test_a_server_that_sends_more_than_it_may_is_not_read_to_its_end(serve: Serve, connect: Connect) -> None:
    """Whoever says where a server is must not be able to fill the memory: an answer, an event and a refusal are bounded alike."""
    much, endless = b"x" * (1 << 16), threading.Event()
    announced = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n" + much * 20)
    with pytest.raises(errors.UnreachableError, match="sends more than 1 MiB at once"):
        await connect(serve(announced), largest=1 << 20).get(CONFIG_MAP, "x", "default")
    with pytest.raises(errors.UnreachableError, match="sends more than 1 MiB at once"):
        [each async for each in connect(serve(streamed(*[much] * 20, then=endless)), largest=1 << 20).watch(CONFIG_MAP)]
    refusal = raw(b"HTTP/1.1 500 No\r\nContent-Length: 99999999\r\n\r\n" + much * 20)
    with pytest.raises(errors.UnreachableError, match="sends more than 1 MiB at once"):
        [each async for each in connect(serve(refusal), largest=1 << 20).watch(CONFIG_MAP)]
    endless.set()


async def test_a_watch_may_send_more_in_all_than_at_once(serve: Serve, connect: Connect) -> None:
    events = [BOOKMARK.encode()] * 30
    watch = connect(serve(streamed(*events)), largest=len(events[0]) + 1).watch(CONFIG_MAP)
    assert len([each async for each in watch]) == 30


async def test_every_request_is_told_with_verb_and_status(serve: Serve, connect: Connect) -> None:
    told: list[tuple[str, int]] = []
    missing = json_answer('{"kind":"Status","code":404,"reason":"NotFound","message":"none"}', "404 Not Found")
    server = serve(json_answer(FOUND), missing, json_answer('{"items":[]}'), streamed(), json_answer("ok"), hang_up)
    client = connect(server, on_request=lambda verb, status, seconds: told.append((verb, status)))
    await client.get(CONFIG_MAP, "x", "default")
    assert await client.find(CONFIG_MAP, "x", "default") is None
    await client.list_page(CONFIG_MAP)
    assert [each async for each in client.watch(CONFIG_MAP)] == []
    assert await client.raw("/readyz") == b"ok"
    with pytest.raises(errors.UnreachableError):
        await client.create(CONFIG_MAP, {"metadata": {"name": "x", "namespace": "default"}})
    assert told == [("get", 200), ("get", 404), ("list", 200), ("watch", 200), ("get", 200), ("create", 0)]


async def test_a_token_in_a_file_is_read_again_each_minute_and_when_it_was_refused(tmp_path: Path) -> None:
    path, now = tmp_path / "token", 0.0
    path.write_text("first\n")
    source = TokenSource("first", str(path), clock=lambda: now)
    path.write_text("second\n")
    now = 59.0
    assert source.current() == "first"
    now = 60.0
    assert source.current() == "second"
    path.write_text("third\n")
    assert source.current() == "second"
    source.refused()
    assert source.current() == "third"
    path.unlink()
    now = 200.0
    assert source.current() == "third"


async def test_a_refused_token_is_read_again_for_the_next_request(serve: Serve, connect: Connect, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("new")
    refused = json_answer('{"kind":"Status","code":401,"reason":"Unauthorized","message":"Unauthorized"}', "401 Unauthorized")
    server = serve(refused, json_answer(FOUND))
    client = connect(server, token="old", token_file=str(tmp_path / "token"))
    with pytest.raises(errors.UnauthorizedError):
        await client.get(CONFIG_MAP, "x", "default")
    await client.get(CONFIG_MAP, "x", "default")
    assert ["Bearer old" in head(server), "Bearer new" in head(server, 0, 1)] == [True, True]


def turned_away(retry_after: str) -> Step:
    body = (
        '{"kind":"Status","status":"Failure","message":"too many requests, please try again later","reason":"TooManyRequests","code":429}'
    )

    def answer(connection: ssl.SSLSocket, request: bytes) -> bool:
        header = f"Retry-After: {retry_after}\r\n" if retry_after else ""
        connection.sendall(f"HTTP/1.1 429 Too Many Requests\r\n{header}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        return True

    return answer


async def test_what_a_busy_server_turned_away_is_asked_again_when_it_says(serve: Serve, connect: Connect) -> None:
    told: list[int] = []
    server = serve(turned_away("0"), turned_away("0"), json_answer(FOUND))
    client = connect(server, on_request=lambda verb, status, seconds: told.append(status))
    await client.create(CONFIG_MAP, {"metadata": {"name": "x", "namespace": "default"}})
    assert told == [429, 429, 200]
    assert len({bytes(request) for request in server.requests[0]}) == 1


@pytest.mark.parametrize(("retry_after", "times"), [("", 1), ("soon", 1), ("0", 11)])
async def test_who_is_turned_away_for_good_is_told_so(serve: Serve, connect: Connect, retry_after: str, times: int) -> None:
    server = serve(turned_away(retry_after))
    with pytest.raises(errors.ApiError, match="too many requests, please try again later") as raised:
        await connect(server).get(CONFIG_MAP, "x", "default")
    assert raised.value.code == 429
    assert len(server.requests[0]) == times
