"""How the client behaves on the wire, against a TLS server that really speaks TLS; what it says is for the operator."""

from __future__ import annotations

import socket
import ssl
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.tlsserver import Identity, Server, Step, authority, hang_up, json_answer, leaf, raw

from slipway import __version__
from slipway.api.machinery.errors import OperatorError
from slipway.kube import errors
from slipway.kube.client import Client
from slipway.kube.connection import Connection

CA = authority()
CONFIG_MAP = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"default"}}'
Serve = Callable[..., Server]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    started: list[Server] = []

    def start(*steps: Step, identity: Identity | None = None, address: str = "127.0.0.1", clients: Identity | None = None) -> Server:
        started.append(Server(tmp_path, identity or leaf(CA), *steps, address=address, clients=clients))
        return started[-1]

    yield start
    for server in started:
        server.close()


def client(
    server: Server, *, ca: Identity = CA, timeout: float = 10, environment: dict[str, str] | None = None, **fields: object
) -> Client:
    connection = Connection(server=server.url, ca=ca.certificate, **fields)  # type: ignore[arg-type]
    return Client(connection, timeout=timeout, environment=environment or {})


def get(made: Client) -> dict[str, object] | None:
    return made.get("v1", "ConfigMap", "x", "default")


def test_a_request_says_who_asks_for_what(serve: Serve) -> None:
    server = serve(json_answer(CONFIG_MAP))
    found = get(client(server, token="abc"))
    assert found is not None
    assert found["metadata"] == {"name": "x", "namespace": "default"}
    head = server.requests[0][0].decode()
    assert head.startswith("GET /api/v1/namespaces/default/configmaps/x HTTP/1.1\r\n")
    # The server takes the part before the slash for the manager of the fields, and kubeadm's objects have kubeadm there.
    assert f"User-Agent: kubeadm/{__version__} slipway\r\n" in head
    assert "Authorization: Bearer abc\r\n" in head


def test_requests_share_a_connection(serve: Serve) -> None:
    server = serve(json_answer(CONFIG_MAP))
    made = client(server)
    for _ in range(3):
        get(made)
    assert [len(asked) for asked in server.requests] == [3]


def test_threads_do_not_mix_their_answers(serve: Serve) -> None:
    def echo(connection: ssl.SSLSocket, request: bytes) -> bool:
        name = request.split(b" ", 2)[1].rpartition(b"/")[2].decode()
        return json_answer(f'{{"metadata":{{"name":"{name}"}}}}')(connection, request)

    made = client(serve(echo))
    wrong: list[str] = []

    def ask(name: str) -> None:
        for _ in range(20):
            found = made.get("v1", "ConfigMap", name, "default") or {}
            if found["metadata"]["name"] != name:
                wrong.append(name)

    threads = [threading.Thread(target=ask, args=(f"name-{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_client_certificate_is_presented_and_leaves_no_file(serve: Serve) -> None:
    server = serve(json_answer(CONFIG_MAP), clients=CA)
    mine = leaf(CA, names=())
    get(client(server, client_certificate=mine.certificate, client_key=mine.key))
    assert server.peers == ["kube-apiserver"]


def test_a_key_of_another_certificate_is_refused(serve: Serve) -> None:
    with pytest.raises(OperatorError, match=r"the client certificate and key for https://.* cannot be used together"):
        client(serve(json_answer("{}")), client_certificate=leaf(CA).certificate, client_key=leaf(CA).key)


def test_an_address_of_ipv6_is_reached(serve: Serve) -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    assert get(client(serve(json_answer(CONFIG_MAP), address="::1"))) is not None


def test_the_server_may_have_another_name(serve: Serve) -> None:
    server = serve(json_answer(CONFIG_MAP), identity=leaf(CA, names=("kubernetes.default",)))
    assert get(client(server, tls_server_name="kubernetes.default")) is not None
    with pytest.raises(errors.UntrustedError, match=r"its certificate is for other names: .*127\.0\.0\.1"):
        get(client(server))


@pytest.mark.parametrize(
    ("identity", "message"),
    [
        (leaf(authority()), "cannot be trusted: its certificate is not signed by the CA of the cluster"),
        (leaf(CA, begins=-3, ends=-1), "its certificate has expired; .*the clock of this machine says 20"),
        (
            leaf(CA, begins=1, ends=2),
            "its certificate is not valid yet: the clocks of the two machines differ; the clock of this machine says 20",
        ),
    ],
)
def test_a_certificate_that_proves_nothing_is_not_worth_another_try(serve: Serve, identity: Identity, message: str) -> None:
    with pytest.raises(errors.UntrustedError, match=message) as caught:
        get(client(serve(json_answer(CONFIG_MAP), identity=identity)))
    assert not errors.is_transient(caught.value)


def test_discovery_believes_any_certificate(serve: Serve) -> None:
    server = serve(json_answer(CONFIG_MAP), identity=leaf(authority(), ends=-0.5))
    assert get(Client(Connection(server=server.url, insecure=True), environment={})) is not None


def test_a_server_is_not_to_be_verified_and_believed_anyway(serve: Serve) -> None:
    with pytest.raises(OperatorError, match=r"verified with a CA certificate and is not to be verified"):
        client(serve(json_answer(CONFIG_MAP)), insecure=True)


def test_a_refused_connection_may_be_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    made = Client(Connection(server=f"https://127.0.0.1:{port}", ca=CA.certificate), environment={})
    with pytest.raises(errors.UnreachableError, match=f"cannot reach https://127.0.0.1:{port}: Connection refused") as caught:
        get(made)
    assert errors.is_transient(caught.value)


def test_a_server_that_is_silent_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(errors.UnreachableError, match=f"{url} did not answer within 0.2s") as caught:
            get(Client(Connection(server=url, ca=CA.certificate), timeout=0.2, environment={}))
    assert errors.is_transient(caught.value)


def test_something_that_does_not_speak_tls_is_said_to(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet() -> None:
            accepted, _ = listener.accept()
            with accepted:
                accepted.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
                accepted.recv(1024)

        threading.Thread(target=greet, daemon=True).start()
        with pytest.raises(errors.UnreachableError, match=r"no TLS connection to https://127\.0\.0\.1"):
            get(Client(Connection(server=f"https://127.0.0.1:{listener.getsockname()[1]}", ca=CA.certificate), environment={}))


def test_an_answer_that_is_not_http_is_said_to(serve: Serve) -> None:
    with pytest.raises(errors.UnreachableError, match="something that is not HTTP"):
        get(client(serve(raw(b"220 mail.example.com ESMTP\r\n"))))


def test_an_answer_that_is_not_json_is_shown(serve: Serve) -> None:
    with pytest.raises(errors.ApiError, match="not an answer of a Kubernetes API server: '<html>hello</html>'"):
        get(client(serve(json_answer("<html>hello</html>"))))


def test_a_load_balancer_without_servers_may_be_tried_again(serve: Serve) -> None:
    with pytest.raises(errors.ApiError, match="the server answered with status 503: no backend") as caught:
        get(client(serve(json_answer("no backend", "503 Service Unavailable"))))
    assert errors.is_transient(caught.value)


STATUS = '{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"{message}","reason":"{reason}","code":{code}}}'


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (401, "Unauthorized", errors.UnauthorizedError),
        (403, "Forbidden", errors.ForbiddenError),
        (404, "NotFound", errors.NotFoundError),
        (409, "AlreadyExists", errors.AlreadyExistsError),
        (409, "Conflict", errors.ConflictError),
        (422, "Invalid", errors.ApiError),
    ],
)
def test_a_status_is_an_error_with_the_words_of_the_server(serve: Serve, code: int, reason: str, kind: type[errors.ApiError]) -> None:
    made = client(serve(json_answer(STATUS.format(message="because", reason=reason, code=code), f"{code} {reason}")))
    with pytest.raises(kind, match=r"^because$") as caught:
        made.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}})
    assert (caught.value.code, caught.value.reason) == (code, reason)
    assert not errors.is_transient(caught.value)


def test_etcd_without_a_leader_may_be_tried_again(serve: Serve) -> None:
    answer = json_answer(STATUS.format(message="etcdserver: leader changed", reason="InternalError", code=500), "500 Internal Server Error")
    with pytest.raises(errors.ApiError) as caught:
        get(client(serve(answer)))
    assert errors.is_transient(caught.value)


def test_a_question_on_a_connection_that_just_ended_is_asked_again(serve: Serve) -> None:
    server = serve(json_answer(CONFIG_MAP), hang_up, json_answer(CONFIG_MAP))
    made = client(server)
    get(made)
    assert get(made) is not None
    assert [len(asked) for asked in server.requests] == [2, 1]


def test_a_change_on_a_connection_that_just_ended_is_not_made_twice(serve: Serve) -> None:
    server = serve(json_answer(CONFIG_MAP), hang_up, json_answer(CONFIG_MAP))
    made = client(server)
    get(made)
    with pytest.raises(errors.UnreachableError, match="closed the connection without an answer"):
        made.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}})
    assert [len(asked) for asked in server.requests] == [2]


def test_a_change_does_not_use_a_connection_that_has_ended(serve: Serve) -> None:
    ended = threading.Event()

    def last(connection: ssl.SSLSocket, request: bytes) -> bool:
        json_answer(CONFIG_MAP)(connection, request)
        connection.shutdown(socket.SHUT_RDWR)
        ended.set()
        return False

    server = serve(last, json_answer(CONFIG_MAP))
    made = client(server)
    get(made)
    assert ended.wait(10)
    made.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}})
    assert [len(asked) for asked in server.requests] == [1, 1]


def chunk(text: str) -> bytes:
    return f"{len(text):x}\r\n{text}\r\n".encode()


CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
ADDED = '{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n'
MODIFIED = '{"type":"MODIFIED","object":{"metadata":{"name":"a","labels":{"x":"y"}}}}\n'


def test_a_watch_yields_events_whatever_the_chunks(serve: Serve) -> None:
    both = ADDED + MODIFIED
    made = client(serve(raw(CHUNKED + chunk(both[:20]) + chunk(both[20:70]) + chunk(both[70:]) + chunk(""))))
    events = list(made.watch("v1", "Node", timeout=10))
    assert [event.type for event in events] == ["ADDED", "MODIFIED"]
    assert events[1].object["metadata"]["labels"] == {"x": "y"}


def test_a_watch_ends_with_its_time(serve: Serve) -> None:
    released = threading.Event()

    def stay(connection: ssl.SSLSocket, request: bytes) -> bool:
        connection.sendall(CHUNKED + chunk(ADDED))
        return released.wait(10)

    server = serve(stay)
    assert [event.type for event in client(server).watch("v1", "Node", labels={"a": "b"}, fields={"metadata.name": "x"}, timeout=0.3)] == [
        "ADDED"
    ]
    released.set()
    line = server.requests[0][0].decode().split("\r\n")[0]
    assert line == "GET /api/v1/nodes?labelSelector=a%3Db&fieldSelector=metadata.name%3Dx&watch=1&timeoutSeconds=1 HTTP/1.1"


def test_a_watch_on_which_nothing_comes_is_told_from_one_that_has_nothing_to_say(serve: Serve) -> None:
    ended = threading.Event()

    def silent(connection: ssl.SSLSocket, request: bytes) -> bool:
        connection.sendall(CHUNKED + chunk(ADDED))
        return ended.wait(20)

    server = serve(silent)
    with pytest.raises(errors.SilentError, match=r"said nothing for 0\.2s"):
        list(client(server).watch("v1", "Node", timeout=20, silence=0.2))
    ended.set()
    assert b"allowWatchBookmarks=true" in server.requests[0][0]


def test_a_watch_whose_connection_is_lost_says_so(serve: Serve) -> None:
    with pytest.raises(errors.UnreachableError):
        list(client(serve(raw(CHUNKED + chunk(ADDED) + b"5\r\n{"))).watch("v1", "Node", timeout=10))


def test_a_watch_that_the_server_refuses_midway_is_an_error(serve: Serve) -> None:
    gone = '{"type":"ERROR","object":{"kind":"Status","message":"too old resource version","reason":"Expired","code":410}}\n'
    with pytest.raises(errors.ApiError, match="too old resource version") as caught:
        list(client(serve(raw(CHUNKED + chunk(gone) + chunk("")))).watch("v1", "Node", timeout=10))
    assert caught.value.code == 410


def test_a_long_list_is_read_to_its_end(serve: Serve) -> None:
    server = serve(
        json_answer('{"metadata":{"continue":"next"},"items":[{"metadata":{"name":"a"}}]}'),
        json_answer('{"metadata":{},"items":[{"metadata":{"name":"b"}}]}'),
    )
    found = client(server).list("v1", "Node")
    assert found == [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}} for name in ("a", "b")]
    assert b"continue=next" in server.requests[0][1]


def test_a_proxy_is_asked_for_a_tunnel(serve: Serve) -> None:
    server = serve(json_answer(CONFIG_MAP), identity=leaf(CA, names=("api.example.com",)))
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def tunnel() -> None:
            near, _ = listener.accept()
            asked.append(near.recv(65536))
            far = socket.create_connection(("127.0.0.1", server.port))
            near.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            threading.Thread(target=_pump, args=(near, far), daemon=True).start()
            _pump(far, near)

        threading.Thread(target=tunnel, daemon=True).start()
        proxy = f"http://user:secret@127.0.0.1:{listener.getsockname()[1]}"
        connection = Connection(server="https://api.example.com:6443", ca=CA.certificate)
        assert get(Client(connection, environment={"HTTPS_PROXY": proxy})) is not None
    assert asked[0].startswith(b"CONNECT api.example.com:6443 HTTP/1.")
    assert b"Proxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n" in asked[0]


@pytest.mark.parametrize("kubeconfig", [True, False])
def test_a_proxy_that_does_not_answer_is_named_without_its_password(kubeconfig: bool) -> None:
    proxy = "http://user:secret@127.0.0.1:1"
    connection = Connection(server="https://me:hidden@api.example.com:6443", ca=CA.certificate, proxy_url=proxy if kubeconfig else "")
    with pytest.raises(errors.UnreachableError) as caught:
        get(Client(connection, environment={"HTTPS_PROXY": proxy}))
    assert caught.value.message == (
        "cannot reach https://xxxxx@api.example.com:6443 through the proxy http://xxxxx@127.0.0.1:1: Connection refused"
    )


@pytest.mark.parametrize("server", ["http://me:hidden@h:6443", "https://me:hidden@h:99999", "https://me:hid/den@h:6443"])
def test_a_server_that_is_no_address_is_named_without_its_password(server: str) -> None:
    with pytest.raises(OperatorError, match=r'^the server "https?://xxxxx@h:') as caught:
        Client(Connection(server=server), environment={})
    assert "hid" not in "".join(traceback.format_exception(caught.value))


def test_this_machine_is_reached_without_a_proxy(serve: Serve) -> None:
    assert get(client(serve(json_answer(CONFIG_MAP)), environment={"HTTPS_PROXY": "http://127.0.0.1:1"})) is not None


@pytest.mark.parametrize("server", ["http://127.0.0.1:6443", "https://", "https://host:99999"])
def test_a_server_must_be_an_address_of_https(server: str) -> None:
    with pytest.raises(OperatorError, match=f'the server "{server}"'):
        Client(Connection(server=server), environment={})


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        return


def test_who_was_not_verified_cannot_send_without_end(serve: Serve) -> None:
    """As a joining node asks for cluster-info before it knows whom to trust."""
    server = serve(raw(b"HTTP/1.1 200 OK\r\nContent-Length: 900000000\r\n\r\n" + b" " * (5 << 20)))
    made = Client(Connection(server=server.url, insecure=True), environment={})
    with pytest.raises(OperatorError, match="answers with more than 4 MiB, and it was not verified who it is"):
        get(made)
