"""Which certificates are believed: those that Go's crypto/x509 believes, by Python's defaults of any version.

What is expected is what Verify of Go 1.26 said about the same certificates.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from kube import authorities
from kube.authorities import Case

import slipway
from slipway.credentials import tls

pytestmark = pytest.mark.filterwarnings("ignore:Parsed a serial number")


def refusal(context: ssl.SSLContext, case: Case, name: str = "127.0.0.1") -> str:
    """Why a client does not believe a server, after a handshake in memory; empty where it does."""
    showing = tls.server_context(case.shown, case.key, "the server's certificate")
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(to_client, to_server, server_hostname=name)
    server = showing.wrap_bio(to_server, to_client, server_side=True)
    while True:
        try:
            client.do_handshake()
        except ssl.SSLWantReadError:
            try:
                server.do_handshake()
            except ssl.SSLWantReadError:
                continue
        except ssl.SSLCertVerificationError as error:
            return error.verify_message
        else:
            return ""


BELIEVED = [
    authorities.cluster_api,
    authorities.without_key_identifiers,
    authorities.without_key_usages,
    authorities.intermediate,
    authorities.trusted_itself,
]


@pytest.mark.parametrize("make", BELIEVED)
def test_a_certificate_that_go_believes_is_believed(make: Callable[[], Case]) -> None:
    case = make()
    assert refusal(tls.client_context("https://h", ca=case.trusted), case) == ""


@pytest.mark.parametrize("make", BELIEVED)
def test_the_authorities_of_a_file_are_judged_alike(make: Callable[[], Case], tmp_path: Path) -> None:
    case = make()
    (tmp_path / "ca.crt").write_bytes(case.trusted)
    assert refusal(tls.trusting(file=str(tmp_path / "ca.crt")), case) == ""


def test_the_authorities_of_the_machine_are_judged_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = authorities.without_key_identifiers()
    (tmp_path / "roots.pem").write_bytes(case.trusted)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "roots.pem"))
    assert refusal(tls.trusting(), case) == ""


@pytest.mark.parametrize(
    ("make", "name", "why"),
    [
        (authorities.named_by_common_name, "localhost", "Hostname mismatch"),
        (authorities.for_clients_only, "127.0.0.1", "unsuitable certificate purpose"),
        (authorities.not_an_authority, "127.0.0.1", "invalid CA certificate"),
    ],
)
def test_a_certificate_that_go_refuses_is_refused(make: Callable[[], Case], name: str, why: str) -> None:
    case = make()
    assert refusal(tls.trusting(case.trusted.decode()), case, name).startswith(why)


@pytest.mark.parametrize("make", [authorities.another_key_identifier, authorities.renewed_with_the_same_name])
def test_openssl_goes_by_key_identifiers_where_go_tries_every_authority_of_the_name(make: Callable[[], Case]) -> None:
    """docs/compatibility.md tells of it: Go believes these."""
    case = make()
    assert refusal(tls.trusting(case.trusted.decode()), case)


def test_a_client_is_judged_as_a_server_is() -> None:
    made = authorities.cluster_api()
    flags = tls.server_context(made.shown, made.key, "the server's certificate").verify_flags
    assert not flags & ssl.VERIFY_X509_STRICT
    assert flags & ssl.VERIFY_X509_PARTIAL_CHAIN


def test_no_other_module_goes_by_the_defaults_of_python() -> None:
    opened = r"urlopen\((?!.*context=|f?.http:)"
    made_elsewhere = re.compile(rf"SSLContext\(|create_default_context|_create_\w+_context|{opened}|load_default_certs")
    source = Path(slipway.__file__).parent
    found = {str(path.relative_to(source)) for path in source.rglob("*.py") if made_elsewhere.search(path.read_text())}
    # A program of the lab's OS images stands alone there, without Slipway.
    assert found == {"credentials/tls.py", "agent/staging/registry.py"}
