"""One GET over HTTP or HTTPS, with the trust and the identity of files."""

from __future__ import annotations


def fetch(url: str, *, ca: str, identity: tuple[str, str] | None, timeout: float) -> bytes:
    """What a server answers; OSError where it does not, cannot be trusted, or tells of a failure of its own.

    ``ca`` and ``identity`` (a certificate and its key) are paths; without a CA the system's are trusted.
    """
    from http.client import HTTPConnection, HTTPException, HTTPSConnection
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme == "https":
        from slipway.credentials import tls

        context = tls.trusting(file=ca)
        if identity is not None:
            context.load_cert_chain(*identity)
        connection: HTTPConnection = HTTPSConnection(host, parts.port, timeout=timeout, context=context)
    else:
        connection = HTTPConnection(host, parts.port, timeout=timeout)
    try:
        connection.request("GET", parts.path or "/")
        response = connection.getresponse()
        if response.status >= 500:
            raise OSError(f"server responded with non-successful status: {response.status} {response.reason}")
        return response.read()
    except HTTPException as error:
        raise OSError(f"no answer in HTTP: {error!r}") from error
    finally:
        connection.close()
