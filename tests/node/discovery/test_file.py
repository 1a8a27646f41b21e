"""Discovery by a kubeconfig, from a file and from an https address, against servers with real TLS."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from node.tlsserver import Answer, Authority, cluster_info, serving
from support import tlsserver
from support.machine import Machine
from support.tlsserver import Server

from slipway.api.machinery.errors import OperatorError
from slipway.node.discovery import file as filediscovery

if TYPE_CHECKING:
    from node.conftest import Lines

FILE = "/discovery.conf"
FORBIDDEN = (403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "not you"})


def kubeconfig(address: str, cluster: dict[str, Any], user: dict[str, Any] | None = None) -> dict[str, Any]:
    document: dict[str, Any] = {"clusters": [{"name": "x", "cluster": {"server": f"https://{address}", **cluster}}]}
    if user is not None:
        document |= {"users": [{"name": "me", "user": user}], "current-context": "c"}
        document["contexts"] = [{"name": "c", "context": {"cluster": "x", "user": "me"}}]
    return document


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def discover(machine: Machine, lines: Lines, document: dict[str, Any], timeout: float = 0.3) -> Any:
    machine.put(FILE, json.dumps(document))
    return filediscovery.discover(FILE, machine, lines, timeout)


def test_files_that_it_names_are_embedded_and_the_token_is_shown_to_the_server(
    authority: Authority, machine: Machine, lines: Lines, tmp_path: Path
) -> None:
    machine.put("/ca.crt", authority.pem.decode()).put("/token", "secret\n")
    asked = []

    def answer(path: str, credentials: str) -> Answer:
        asked.append(credentials)
        return 200, cluster_info(authority, server=f"https://{address}")

    with serving(tmp_path, authority.server_pem(), answer) as address:
        found = discover(machine, lines, kubeconfig(address, {"certificate-authority": "/ca.crt"}, {"tokenFile": "/token"}))
    assert asked == ["Bearer secret"]
    assert found["users"][0]["user"] == {"token": "secret"}
    assert found["clusters"][0]["cluster"] == {
        "server": f"https://{address}",
        "certificate-authority-data": b64encode(authority.pem).decode(),
    }
    assert lines.warned == []


def test_a_server_of_another_authority_is_refused_at_once(authority: Authority, machine: Machine, lines: Lines, tmp_path: Path) -> None:
    data = {"certificate-authority-data": b64encode(authority.pem).decode()}
    with (
        serving(tmp_path, Authority().server_pem(), lambda path, credentials: FORBIDDEN) as address,
        pytest.raises(OperatorError, match="a man in the middle"),
    ):
        discover(machine, lines, kubeconfig(address, data), timeout=300)


def test_whoever_may_not_read_cluster_info_goes_by_the_file(authority: Authority, machine: Machine, lines: Lines, tmp_path: Path) -> None:
    data = {"certificate-authority-data": b64encode(authority.pem).decode()}
    with serving(tmp_path, authority.server_pem(), lambda path, credentials: FORBIDDEN) as address:
        found = discover(machine, lines, kubeconfig(address, data))
    assert found["clusters"][0]["cluster"]["server"] == f"https://{address}"
    assert ["TLS cert is valid so proceeding" in text for text in lines.warned] == [True]


def test_another_endpoint_in_cluster_info_is_only_warned_of(authority: Authority, machine: Machine, lines: Lines, tmp_path: Path) -> None:
    data = {"certificate-authority-data": b64encode(authority.pem).decode()}
    with serving(tmp_path, authority.server_pem(), lambda path, credentials: (200, cluster_info(authority))) as address:
        found = discover(machine, lines, kubeconfig(address, data))
    assert found["clusters"][0]["cluster"]["server"] == f"https://{address}"
    assert ['different from the endpoint "https://10.0.0.1:6443"' in text for text in lines.warned] == [True]


def test_a_plugin_for_credentials_is_refused(authority: Authority, machine: Machine, lines: Lines) -> None:
    data = {"certificate-authority-data": b64encode(authority.pem).decode()}
    with pytest.raises(OperatorError, match="exec"):
        discover(machine, lines, kubeconfig("127.0.0.1:1", data, {"exec": {"command": "login"}}))


def test_a_file_at_an_address_is_fetched_from_a_server_that_the_machine_trusts(
    authority: Authority, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = kubeconfig("10.0.0.1:6443", {})
    (tmp_path / "roots.pem").write_bytes(authority.pem)
    with serving(tmp_path, authority.server_pem(), lambda path, credentials: (200, document)) as address:
        with pytest.raises(OperatorError, match=r"failed to fetch the discovery file .*certificate verify failed"):
            filediscovery.load(f"https://{address}/discovery", machine)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "roots.pem"))
        assert filediscovery.load(f"https://{address}/discovery", machine) == document


def test_an_address_without_a_file_is_told(authority: Authority, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "roots.pem").write_bytes(authority.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "roots.pem"))
    with (
        serving(tmp_path, authority.server_pem(), lambda path, credentials: (404, {})) as address,
        pytest.raises(OperatorError, match=r"failed to fetch the discovery file .*: Not Found"),
    ):
        filediscovery.load(f"https://{address}/discovery", machine)


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Server]:
    """Makes servers that the machine trusts and that answer with bytes."""
    issuer = tlsserver.authority()
    (tmp_path / "roots.pem").write_bytes(issuer.certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "roots.pem"))
    return lambda *answers: Server(tmp_path, tlsserver.leaf(issuer), *map(tlsserver.raw, answers))


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "does not answer in HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nclusters:", "not to the end"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "not to the end"),
        (
            b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/x\r\nContent-Length: 0\r\n\r\n",
            "is redirected to http:",
        ),
        (b"HTTP/1.1 302 Found\r\nLocation: ftp://127.0.0.1/x\r\nContent-Length: 0\r\n\r\n", "is redirected to ftp:"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n" + b"#" * 5_000_000, "it is larger than 4 MiB"),
    ],
)
def test_an_address_that_answers_oddly_is_told(answer: bytes, complaint: str, machine: Machine, trusted: Callable[..., Server]) -> None:
    server = trusted(answer)
    try:
        with pytest.raises(OperatorError, match=complaint):
            filediscovery.load(f"https://127.0.0.1:{server.port}/discovery", machine)
    finally:
        server.close()


@pytest.mark.parametrize("url", ["https://127.0.0.1:port/x", "https://[::1/x", "https://", "https://127.0.0.1:1/a b"])
def test_an_address_that_is_none_is_told(url: str, machine: Machine) -> None:
    with pytest.raises(OperatorError, match="failed to fetch the discovery file"):
        filediscovery.load(url, machine)
