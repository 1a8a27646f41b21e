"""A TLS server on a loopback port that answers with the JSON it is given, and certificates for it of any authority and period."""

from __future__ import annotations

import datetime
import ipaddress
import json
import ssl
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from slipway.api.machinery.version import Version
from slipway.api.releases import release_for
from slipway.credentials import x509 as credentials
from slipway.workload import clusterinfo

NOW = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
DAY = datetime.timedelta(days=1)
Answer = tuple[int, dict[str, Any]]


class Authority:
    """A CA with a key of its own."""

    def __init__(self, name: str = "kubernetes") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        basic = x509.BasicConstraints(ca=True, path_length=None)
        self._certificate = self._signed(self._name, self._key, (-DAY, 10 * DAY)).add_extension(basic, critical=True)
        self.pem = self._certificate.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)

    @property
    def pin(self) -> str:
        return credentials.public_key_pins(self.pem)[0]

    def server_pem(self, period: tuple[datetime.timedelta, datetime.timedelta] = (-DAY, DAY), name: str = "kube-apiserver") -> bytes:
        """A certificate for 127.0.0.1 with its key; the period is told from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._signed(subject, key, period).add_extension(names, critical=False).sign(self._key, hashes.SHA256())
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        return certificate.public_bytes(Encoding.PEM) + secret

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, period: tuple[datetime.timedelta, datetime.timedelta]
    ) -> x509.CertificateBuilder:
        builder = x509.CertificateBuilder(self._name, subject, key.public_key(), x509.random_serial_number())
        return builder.not_valid_before(NOW + period[0]).not_valid_after(NOW + period[1])


@contextmanager
def serving(folder: Path, pem: bytes, answer: Callable[[str, str], Answer]) -> Iterator[str]:
    """Serve until the block ends; ``answer`` gets path and Authorization header.  The value is host:port."""
    certificate = folder / f"server-{id(answer)}.pem"
    certificate.write_bytes(pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, body = answer(self.path, self.headers.get("Authorization", ""))
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            """Nobody reads it."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that does not trust the server goes away in the middle."""

        def get_request(self) -> tuple[ssl.SSLSocket, Any]:
            connection, address = self.socket.accept()
            return context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def cluster_info(authority: Authority, *tokens: str, server: str = "https://10.0.0.1:6443") -> dict[str, Any]:
    """The ConfigMap as the controller manager leaves it, signed with tokens."""
    text = clusterinfo.kubeconfig(server, b64encode(authority.pem).decode(), release_for(Version(1, 35, 4)))
    found = clusterinfo.config_map(text)
    found["data"] |= {clusterinfo.SIGNATURE_PREFIX + token.partition(".")[0]: clusterinfo.signature(text, token) for token in tokens}
    return found
