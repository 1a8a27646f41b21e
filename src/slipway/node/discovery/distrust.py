"""Why a server whose certificate did not verify is not believed, in words for whoever must find out: clocks, or another machine."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from datetime import datetime

    from cryptography.x509 import Certificate

_PATIENCE = 5.0


def distrust(message: str, server: str, ca: bytes, now: datetime) -> OperatorError:
    """The error for a connection that was refused because of the certificate of ``server``; ``message`` is what TLS says."""
    certificates = {"the CA of the cluster": _parsed(ca), f"the certificate of {server}": _parsed(_shown_by(server))}
    for what, certificate in certificates.items():
        if certificate is not None and (problem := out_of_time(what, certificate, now)):
            return OperatorError(problem)
    return OperatorError(
        f"{message}. Whoever answers at {server} is not an API server of the cluster that cluster-info tells of: "
        "a man in the middle, a proxy that ends TLS, or an API server under a name that its certificate lacks"
    )


def out_of_time(what: str, certificate: Certificate, now: datetime) -> str:
    """What is wrong with the period of a certificate at a time; empty where it is valid."""
    clock = f"the clock of this machine says {_time(now)}"
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < begins:
        return f"{what} is not valid before {_time(begins)}, and {clock}: set the clocks of both machines right"
    if now > ends:
        return f"{what} expired at {_time(ends)}, and {clock}: renew the certificate, or set the clock if it is wrong"
    return ""


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _shown_by(server: str) -> bytes:
    """The certificate that a server shows, unverified; nothing where it shows none: this is only for a better explanation."""
    import ssl

    address = urlsplit(server)
    try:
        return ssl.get_server_certificate((address.hostname or "", address.port or 443), timeout=_PATIENCE).encode()
    except (OSError, ValueError):
        return b""


def _parsed(pem: bytes) -> Certificate | None:
    from slipway.credentials import x509

    try:
        return x509.parse(pem)[0] if pem else None
    except ValueError:
        return None
