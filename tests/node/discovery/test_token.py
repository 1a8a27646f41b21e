"""Discovery by a token against servers with real TLS: whom it believes, what it waits for, and what it says when it gives up."""

from __future__ import annotations

import datetime
from base64 import b64decode
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from node.tlsserver import DAY, NOW, Answer, Authority, Bundle, cluster_info, serving
from support.machine import Machine

from slipway.api.kubeadm.internal import BootstrapTokenDiscovery
from slipway.api.machinery.errors import OperatorError
from slipway.host.waiting import TimedOutError
from slipway.node.discovery import token as tokendiscovery
from slipway.workload import clusterinfo

if TYPE_CHECKING:
    from node.conftest import Lines

TOKEN = "abcdef.0123456789abcdef"
OTHER = "zzzzzz.0123456789abcdef"
PATH = "/api/v1/namespaces/kube-public/configmaps/cluster-info"


class ApiServer:
    """What a server answers for cluster-info, one after another; the last one stays."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority()
        self.answers: list[Answer] = [(200, cluster_info(self.authority, TOKEN))]
        self.asked: list[tuple[str, str]] = []

    def answer(self, path: str, credentials: str) -> Answer:
        self.asked.append((path, credentials))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def discover(
        self, lines: Lines, *, token: str = TOKEN, pins: tuple[str, ...] | None = None, timeout: float = 0.4, pem: bytes = b""
    ) -> Any:
        with serving(self.folder, pem or self.authority.server_pem(), self.answer) as address:
            hashes = [self.authority.pin] if pins is None else list(pins)
            wanted = BootstrapTokenDiscovery(token=token, api_server_endpoint=address, ca_cert_hashes=hashes)
            return tokendiscovery.discover(wanted, Machine(self.folder), lines, timeout)


@pytest.fixture
def server(tmp_path: Path) -> ApiServer:
    return ApiServer(tmp_path)


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time in which a new token signs has passed."""
    monkeypatch.setattr(tokendiscovery, "SETTLING", 0.0)


def test_a_pinned_cluster_is_asked_twice_and_never_told_the_token(server: ApiServer, lines: Lines) -> None:
    found = server.discover(lines)
    assert found["clusters"][0]["cluster"]["server"] == "https://10.0.0.1:6443"
    assert server.asked == [(PATH, ""), (PATH, "")]
    assert lines.said == []


def test_without_a_pin_the_signature_alone_is_believed(server: ApiServer, lines: Lines) -> None:
    server.discover(lines, pins=(), pem=Authority("somebody else").server_pem())
    assert server.asked == [(PATH, "")]


def test_a_signature_that_comes_later_is_waited_for(server: ApiServer, lines: Lines) -> None:
    server.answers.insert(0, (200, cluster_info(server.authority)))
    server.discover(lines, timeout=30)
    assert lines.said == ['[discovery] Waiting up to 30s for a JWS signature in the cluster-info ConfigMap for token ID "abcdef"']


@pytest.mark.parametrize(("status", "reason"), [(404, "NotFound"), (403, "Forbidden"), (503, "ServiceUnavailable")])
def test_a_cluster_that_is_coming_up_is_waited_for(status: int, reason: str, server: ApiServer, lines: Lines) -> None:
    server.answers.insert(0, (status, {"kind": "Status", "code": status, "reason": reason, "message": "not now"}))
    server.discover(lines, timeout=30)
    assert [line.startswith("[discovery] Waiting up to 30s for the cluster-info ConfigMap: ") for line in lines.said] == [True]


def test_a_wrong_secret_is_known_at_once(server: ApiServer, lines: Lines) -> None:
    with pytest.raises(OperatorError, match=r'failed to verify JWS signature.*a token with the id "abcdef", but with another secret'):
        server.discover(lines, token="abcdef.0123456789abcdee", timeout=300)
    assert len(server.asked) == 1


def test_an_unknown_token_is_given_up_where_others_have_signed(server: ApiServer, lines: Lines, settled: None) -> None:
    with pytest.raises(OperatorError, match='token id "zzzzzz" is invalid for this cluster or it has expired'):
        server.discover(lines, token=OTHER, timeout=300)


def test_an_unknown_token_is_waited_for_where_none_has_signed(server: ApiServer, lines: Lines, settled: None) -> None:
    server.answers = [(200, cluster_info(server.authority))]
    with pytest.raises(TimedOutError, match=r'token id "abcdef" is invalid for this cluster or it has expired.*\(gave up after 300ms\)'):
        server.discover(lines, timeout=0.3)


def test_a_wrong_pin_is_known_at_once_and_named(server: ApiServer, lines: Lines) -> None:
    wrong = "sha256:" + "0" * 64
    with pytest.raises(OperatorError, match=f"its public key is {server.authority.pin}, and none but {wrong} is pinned"):
        server.discover(lines, pins=(wrong,), timeout=300)


def test_a_man_in_the_middle_who_passes_cluster_info_on_is_found_by_his_certificate(server: ApiServer, lines: Lines) -> None:
    with pytest.raises(OperatorError, match="a man in the middle") as raised:
        server.discover(lines, pem=Authority("kubernetes").server_pem(), timeout=300)
    assert "its certificate is not signed by the CA of the cluster" in raised.value.message


def test_a_man_in_the_middle_who_changes_cluster_info_is_found_by_the_difference(server: ApiServer, lines: Lines) -> None:
    forged = cluster_info(server.authority, TOKEN, server="https://10.6.6.6:6443")
    server.answers.insert(0, (200, forged))
    with pytest.raises(OperatorError, match="was different from the first"):
        server.discover(lines, timeout=300)


@pytest.mark.parametrize(
    ("period", "complaint"),
    [
        ((DAY, 2 * DAY), f"is not valid before {NOW + DAY:%Y-%m-%dT%H:%M:%SZ}, and the clock of this machine says {NOW:%Y-%m-%d}"),
        ((-2 * DAY, -DAY), f"expired at {NOW - DAY:%Y-%m-%dT%H:%M:%SZ}, and the clock of this machine says {NOW:%Y-%m-%d}"),
    ],
    ids=["not yet valid", "expired"],
)
def test_clocks_that_differ_are_told_with_both_times(
    period: tuple[datetime.timedelta, datetime.timedelta], complaint: str, server: ApiServer, lines: Lines
) -> None:
    with pytest.raises(OperatorError) as raised:
        server.discover(lines, pem=server.authority.server_pem(period), timeout=300)
    assert complaint in raised.value.message


def test_of_a_bundle_only_the_pinned_certificates_are_kept(server: ApiServer, lines: Lines) -> None:
    """The other one came along with whoever answered: a server of it must not be trusted for ever after."""
    other = Authority("another")
    server.answers = [(200, cluster_info(Bundle(server.authority.pem + other.pem), TOKEN))]
    found = server.discover(lines)
    assert b64decode(found["clusters"][0]["cluster"]["certificate-authority-data"]) == server.authority.pem


def test_a_server_of_the_certificate_that_is_not_pinned_is_refused(server: ApiServer, lines: Lines) -> None:
    other = Authority("another")
    server.answers = [(200, cluster_info(Bundle(server.authority.pem + other.pem), TOKEN))]
    with pytest.raises(OperatorError, match="is not an API server of the cluster that cluster-info tells of"):
        server.discover(lines, pem=other.server_pem())


@pytest.mark.parametrize("data", [[], {"kubeconfig": 5}, {"kubeconfig": {}, "jws-kubeconfig-abcdef": "x"}, "text"])
def test_data_of_another_shape_is_told(data: object, server: ApiServer, lines: Lines) -> None:
    server.answers = [(200, {**cluster_info(server.authority, TOKEN), "data": data})]
    with pytest.raises(OperatorError, match=r"is no ConfigMap|no kubeconfig key"):
        server.discover(lines)


@pytest.mark.parametrize(
    "text",
    [
        "clusters: 5",
        "clusters: [5]",
        "clusters: [{name: x, cluster: 5}]",
        "clusters: [{name: [], cluster: {}}]",
        "current-context: []\nclusters: [{name: x, cluster: {server: y}}]",
        "contexts: [{name: a, context: 5}]\ncurrent-context: a",
        "clusters: [{name: x, cluster: {certificate-authority-data: 5}}]",
        "- 1",
        "",
    ],
)
def test_a_signed_kubeconfig_of_another_shape_is_told(text: str, server: ApiServer, lines: Lines) -> None:
    data = {"kubeconfig": text, "jws-kubeconfig-abcdef": clusterinfo.signature(text, TOKEN)}
    server.answers = [(200, {**cluster_info(server.authority, TOKEN), "data": data})]
    with pytest.raises(OperatorError):
        server.discover(lines)
