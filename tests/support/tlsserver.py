"""A TLS server that answers each request with the bytes that a test gave it, and certificates for it.

It is a server of sockets, not of HTTP: a test decides on every byte and on when the connection ends.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NOW = datetime.now(UTC).replace(microsecond=0)
"""What the periods of certificates count from: the start of the tests."""

Step = Callable[[ssl.SSLSocket, bytes], bool]
"""Answers one request; whether the connection stays open."""


class Identity:
    """A certificate with its key, in PEM."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self.signer = (certificate, key)
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM)
        self.key = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )

    @property
    def pem(self) -> bytes:
        return self.certificate + self.key


def authority(name: str = "kubernetes") -> Identity:
    return _issued(name, None, timedelta(days=-1), timedelta(days=10), ())


def leaf(
    issuer: Identity,
    *,
    names: tuple[str, ...] = ("127.0.0.1", "::1"),
    begins: float = -1,
    ends: float = 1,
    common_name: str = "kube-apiserver",
) -> Identity:
    """A certificate that is valid from and until so many days from :data:`NOW`."""
    return _issued(common_name, issuer, timedelta(days=begins), timedelta(days=ends), names)


def _issued(name: str, issuer: Identity | None, begins: timedelta, ends: timedelta, names: tuple[str, ...]) -> Identity:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.signer[0].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW + begins)
        .not_valid_after(NOW + ends)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName([_general(item) for item in names]), critical=False)
    return Identity(builder.sign(issuer.signer[1] if issuer else key, hashes.SHA256()), key)


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


class Server:
    """Answers the connections that come, each in a thread; ``requests`` is what was asked, by connection."""

    def __init__(
        self, folder: Path, identity: Identity | bytes, *steps: Step, address: str = "127.0.0.1", clients: Identity | None = None
    ) -> None:
        self._steps, self._lock = list(steps), threading.Lock()
        self.requests: list[list[bytes]] = []
        self.peers: list[str] = []
        """The common names of the clients' certificates."""
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        (folder / "server.pem").write_bytes(identity if isinstance(identity, bytes) else identity.pem)
        self._context.load_cert_chain(folder / "server.pem")
        if clients:
            self._context.verify_mode = ssl.CERT_REQUIRED
            self._context.load_verify_locations(cadata=clients.certificate.decode())
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listener = socket.create_server((address, 0), family=family)
        self.port = self._listener.getsockname()[1]
        self.url = f"https://[{address}]:{self.port}" if ":" in address else f"https://{address}:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        try:
            with self._context.wrap_socket(plain, server_side=True) as connection:
                asked: list[bytes] = []
                self.requests.append(asked)
                self.peers.append(_common_name(connection))
                while (request := _request(connection)) is not None:
                    asked.append(request)
                    with self._lock:
                        step = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]
                    if not step(connection, request):
                        return
        except OSError:
            # A client that does not trust the server hangs up.
            return


def json_answer(body: str, status: str = "200 OK") -> Step:
    def answer(connection: ssl.SSLSocket, request: bytes) -> bool:
        content = body.encode()
        connection.sendall(
            f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content
        )
        return True

    return answer


def hang_up(connection: ssl.SSLSocket, request: bytes) -> bool:
    """The end of an idle connection that crosses a request on its way."""
    return False


def raw(content: bytes) -> Step:
    def answer(connection: ssl.SSLSocket, request: bytes) -> bool:
        connection.sendall(content)
        return False

    return answer


def _request(connection: ssl.SSLSocket) -> bytes | None:
    """A request with its body; None where the client is gone."""
    received = b""
    while b"\r\n\r\n" not in received:
        more = connection.recv(65536)
        if not more:
            return None
        received += more
    head, _, body = received.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def _common_name(connection: ssl.SSLSocket) -> str:
    presented = connection.getpeercert(binary_form=True)
    if presented is None:
        return ""
    subject = x509.load_der_x509_certificate(presented).subject
    return str(subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)
