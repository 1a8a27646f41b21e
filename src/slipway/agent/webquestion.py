"""One GET, of which only the status matters: for probes, and for whether a registry answers."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from slipway.credentials import tls

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from slipway.agent.machine import HttpGet


def status(question: HttpGet, location: Callable[[str], str]) -> int:
    """OSError where there is no answer, and ssl.SSLCertVerificationError among them where the server is not believed."""
    try:
        return _asked(question, location)
    except http.client.InvalidURL as error:
        raise OSError(f"{question.url} is not an address: {error}") from None
    except http.client.HTTPException as error:
        raise OSError(f"no answer in HTTP: {error!r}") from error
    except ValueError as error:
        if isinstance(error, OSError):
            raise
        # A name that no DNS can have, a port or a path that is none.
        raise OSError(f"{question.url} is not an address: {error}") from None


def _asked(question: HttpGet, location: Callable[[str], str]) -> int:
    parts = urlsplit(question.url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise OSError(f"{question.url} is not an address of the form https://host:port/path")
    if parts.scheme == "https":
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=question.timeout, context=_context(question, location)
        )
    else:
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=question.timeout)
    try:
        connection.request("GET", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
        return connection.getresponse().status
    finally:
        connection.close()


def _context(question: HttpGet, location: Callable[[str], str]) -> ssl.SSLContext:
    if question.insecure:
        context = tls.client_context(question.url, insecure=True)
    else:
        # As elemental-system-agent: the CA is believed beside those of the machine.
        context = tls.trusting()
        if question.ca:
            context.load_verify_locations(cafile=location(question.ca))
    if question.certificate and question.key:
        context.load_cert_chain(location(question.certificate), location(question.key))
    return context
