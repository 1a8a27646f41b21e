"""The server's certificate authority: what the server shows, and the certificates of its users."""

from __future__ import annotations

import ssl
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING

from slipway.api.machinery.yaml import write as yamlwrite
from slipway.credentials import keys, tls, x509
from slipway.credentials.profile import CLIENT_AUTH, DEFAULT_CA_VALIDITY, DEFAULT_VALIDITY, SERVER_AUTH, Profile
from slipway.kube import kubeconfig as kubeconfigs

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from slipway.embedded.storage.sqlite import Database
    from slipway.kube.connection import Connection

_ALGORITHM = "ECDSA-P256"
_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost")


class Identity:
    """A certificate authority and what it signs."""

    def __init__(self, authority: x509.Authority, clock: Callable[[], datetime]) -> None:
        self.authority, self._clock = authority, clock
        self.ca = x509.pem(authority.certificate)
        self._client = lru_cache(maxsize=1000)(self._signed_client)

    @classmethod
    def load(cls, database: Database | None, clock: Callable[[], datetime]) -> Identity:
        """The authority of a former life, or a new one."""
        kept = database.fact("ca.crt") if database is not None else b""
        if database is not None and kept:
            return cls(x509.Authority(x509.parse(kept)[0], keys.parse_private(database.fact("ca.key"))), clock)
        key = keys.generate(_ALGORITHM)
        valid = x509.period(clock(), DEFAULT_CA_VALIDITY)
        authority = x509.Authority(x509.self_signed(Profile(common_name="kubernetes"), key, valid, sha256_key_id=True), key)
        if database is not None:
            database.keep("ca.crt", x509.pem(authority.certificate))
            database.keep("ca.key", keys.private_pem(key))
        return cls(authority, clock)

    def client(self, user: str, groups: tuple[str, ...]) -> tuple[bytes, bytes]:
        """The certificate and the key of a user, the same ones every time."""
        return self._client(user, groups)

    def server_context(self, hosts: tuple[str, ...]) -> ssl.SSLContext:
        """What the server shows; clients may show a certificate of this authority, or a token instead."""
        addresses = tuple(dict.fromkeys(["127.0.0.1", "::1", *(host for host in hosts if _is_address(host))]))
        names = tuple(sorted({*_NAMES, *(host for host in hosts if not _is_address(host))}))
        profile = Profile(common_name="kube-apiserver", usages=(SERVER_AUTH,), dns_names=names, addresses=addresses)
        context = tls.server_context(*self._signed(profile), "the certificate of the embedded API server")
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=self.ca.decode())
        return context

    def _signed_client(self, user: str, groups: tuple[str, ...]) -> tuple[bytes, bytes]:
        return self._signed(Profile(common_name=user, organizations=groups, usages=(CLIENT_AUTH,)))

    def _signed(self, profile: Profile) -> tuple[bytes, bytes]:
        key = keys.generate(_ALGORITHM)
        valid = x509.period(self._clock(), DEFAULT_VALIDITY)
        return x509.pem(x509.signed(profile, key.public_key(), self.authority, valid)), keys.private_pem(key)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def kubeconfig(connection: Connection, user: str, cluster: str = "embedded", namespace: str = "") -> str:
    """The connection as a kubeconfig."""
    credentials = {"token": connection.token}
    if not connection.token:
        given = {"client-certificate-data": connection.client_certificate, "client-key-data": connection.client_key}
        credentials = {name: kubeconfigs.encoded(data) for name, data in given.items() if data}
    document = kubeconfigs.document(
        server=connection.server, cluster=cluster, user=user, ca=connection.ca, credentials=credentials, namespace=namespace
    )
    return yamlwrite.dump({**document, "preferences": {}})
