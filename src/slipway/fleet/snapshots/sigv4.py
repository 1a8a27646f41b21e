"""AWS Signature Version 4, which S3-compatible stores want: the canonical request, and what is signed of it.

Everything is a function of values; the algorithm is described in AWS' "Authenticating Requests (AWS Signature Version 4)".
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED = "UNSIGNED-PAYLOAD"
EMPTY = hashlib.sha256(b"").hexdigest()
_SERVICE = "s3"


class Credentials(NamedTuple):
    access_key: str
    secret_key: str
    session_token: str = ""

    def __repr__(self) -> str:
        return f"Credentials(access_key={self.access_key!r})"


class Request(NamedTuple):
    """``path`` is not encoded; the names of ``headers`` are in lower case, ``host`` among them."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    payload: str = EMPTY
    """The SHA-256 of the body in hexadecimal, or ``UNSIGNED-PAYLOAD``."""


def encoded_path(path: str) -> str:
    return quote(path, safe="/-_.~")


def encoded_query(query: Mapping[str, str]) -> str:
    """In the order that is signed; it is also what is sent."""
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in query.items())
    return "&".join(f"{name}={value}" for name, value in pairs)


def canonical(request: Request) -> str:
    """The canonical request."""
    headers = sorted((name, " ".join(value.split())) for name, value in request.headers.items())
    return "\n".join(
        (
            request.method,
            encoded_path(request.path),
            encoded_query(request.query),
            *(f"{name}:{value}" for name, value in headers),
            "",
            _signed_headers(request),
            request.payload,
        )
    )


def authorized(request: Request, credentials: Credentials, region: str, now: datetime) -> dict[str, str]:
    """The headers to send: those of the request, and what authorizes it."""
    headers = {**request.headers, "x-amz-date": _moment(now), "x-amz-content-sha256": request.payload}
    if credentials.session_token:
        headers["x-amz-security-token"] = credentials.session_token
    whole = request._replace(headers=headers)
    signature = _signature(canonical(whole), credentials, region, now)
    scope = f"{credentials.access_key}/{_scope(region, now)}"
    return {**headers, "authorization": f"{ALGORITHM} Credential={scope},SignedHeaders={_signed_headers(whole)},Signature={signature}"}


def presigned(request: Request, credentials: Credentials, region: str, now: datetime, seconds: int) -> str:
    """The path and the query of a request that needs no header but the host, for so many seconds."""
    query = {
        **request.query,
        "X-Amz-Algorithm": ALGORITHM,
        "X-Amz-Credential": f"{credentials.access_key}/{_scope(region, now)}",
        "X-Amz-Date": _moment(now),
        "X-Amz-Expires": str(seconds),
        "X-Amz-SignedHeaders": _signed_headers(request),
    }
    if credentials.session_token:
        query["X-Amz-Security-Token"] = credentials.session_token
    whole = request._replace(query=query, payload=UNSIGNED)
    signature = _signature(canonical(whole), credentials, region, now)
    return f"{encoded_path(request.path)}?{encoded_query({**query, 'X-Amz-Signature': signature})}"


def _signature(canonical_request: str, credentials: Credentials, region: str, now: datetime) -> str:
    digest = hashlib.sha256(canonical_request.encode()).hexdigest()
    text = "\n".join((ALGORITHM, _moment(now), _scope(region, now), digest))
    key = f"AWS4{credentials.secret_key}".encode()
    for part in (f"{now:%Y%m%d}", region, _SERVICE, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


def _signed_headers(request: Request) -> str:
    return ";".join(sorted(request.headers))


def _scope(region: str, now: datetime) -> str:
    return f"{now:%Y%m%d}/{region}/{_SERVICE}/aws4_request"


def _moment(now: datetime) -> str:
    return f"{now:%Y%m%dT%H%M%SZ}"
