"""One GET over HTTP or HTTPS: with the trust and the identity of files, or of what anybody may read."""

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


def fetch_public(url: str, *, timeout: float, limit: int = 4096) -> bytes:
    """What is at an address of the internet, through the proxies of the environment and over redirects; OSError where nothing is.

    The question is asked on a thread of its own, which is left behind where it takes too long: nothing else limits the time
    in which a name is looked up.
    """
    from threading import Thread
    from urllib.error import URLError
    from urllib.request import urlopen

    from slipway.credentials import tls

    answers: list[bytes | Exception] = []

    def ask() -> None:
        try:
            with urlopen(url, timeout=timeout, context=tls.trusting()) as answer:
                answers.append(answer.read(limit))
        except (OSError, ValueError) as error:
            answers.append(error)

    asking = Thread(target=ask, name="release server", daemon=True)
    asking.start()
    asking.join(timeout)
    if not answers:
        raise OSError(f"no answer within {timeout:.0f}s")
    found = answers[0]
    if isinstance(found, bytes):
        return found
    raise OSError(str(found.reason if isinstance(found, URLError) else found)) from found
