"""Downloads files that have a published checksum, and continues where an interrupted transfer stopped."""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.credentials import tls
from slipway.lab.programs.cache import space_needed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# A machine without a way out should find that out at once; a transfer that has begun may be slow.
_CONNECT_SECONDS = 2
_READ_SECONDS = 30
_CHUNK = 1 << 20
_LARGEST_TEXT = 1 << 20


class UnavailableError(Exception):
    """The site cannot be reached or does not have the file; there may be other ways to get it."""


class UnreachableError(UnavailableError):
    """The site cannot be reached at all: there is no point in asking it for another file."""


class ChecksumError(OperatorError):
    """A file that is not the one that was published."""


class _HTTPConnection(http.client.HTTPConnection):
    def connect(self) -> None:
        self.timeout = _CONNECT_SECONDS
        super().connect()
        self.sock.settimeout(_READ_SECONDS)


class _HTTPSConnection(http.client.HTTPSConnection):
    def connect(self) -> None:
        self.timeout = _CONNECT_SECONDS
        super().connect()
        self.sock.settimeout(_READ_SECONDS)


class _HTTPHandler(urllib.request.HTTPHandler):
    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_HTTPConnection, request)


class _HTTPSHandler(urllib.request.HTTPSHandler):
    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_HTTPSConnection, request, context=tls.trusting())


def text(url: str) -> str:
    """A small text file, such as a checksum."""
    with _open(url) as answer:
        try:
            return answer.read(_LARGEST_TEXT).decode("ascii", "replace")
        except (OSError, http.client.HTTPException) as error:
            raise UnavailableError(f"{url} broke off: {error}") from None


def fetch(url: str, sha256: str, partial: Path, on_bytes: Callable[[int, int | None], None] | None = None) -> None:
    """Make ``partial`` the whole file at ``url``, from what it already holds; a file with another checksum is removed."""
    while True:
        begun_with = partial.stat().st_size if partial.exists() else 0
        _transfer(url, partial, begun_with, on_bytes)
        with partial.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found == sha256:
            return
        partial.unlink()
        # The beginning may be what an earlier run left of another file: the whole is worth one more transfer.
        if not begun_with:
            raise ChecksumError(
                f"{url} has the SHA-256 {found}, but {sha256} was published for it: nothing was kept; "
                f"ask whoever runs the proxy or mirror in between, or give the program in a folder"
            )


def _transfer(url: str, partial: Path, begun_with: int, on_bytes: Callable[[int, int | None], None] | None) -> None:
    try:
        answer = _open(url, {"Range": f"bytes={begun_with}-"} if begun_with else {})
    except _NothingLeftError:
        return
    with answer:
        # A server that does not know ranges answers 200 with the whole file.
        offset = begun_with if answer.status == http.HTTPStatus.PARTIAL_CONTENT else 0
        length = answer.headers.get("Content-Length")
        total = offset + int(length) if length and length.isdigit() else None
        with space_needed(f"the download of {url}", partial.parent, (total or 0) - offset), partial.open("r+b" if offset else "wb") as file:
            file.seek(offset)
            here = offset
            for chunk in _chunks(url, answer):
                file.write(chunk)
                here += len(chunk)
                if on_bytes is not None:
                    on_bytes(here, total)
            file.truncate()
            os.fsync(file.fileno())
    if total is not None and here < total:
        raise UnavailableError(f"{url} broke off after {here} of {total} bytes; the next run continues there")


def _chunks(url: str, answer: http.client.HTTPResponse) -> Iterator[bytes]:
    while True:
        try:
            chunk = answer.read(_CHUNK)
        except (OSError, http.client.HTTPException) as error:
            raise UnavailableError(f"{url} broke off: {error}; the next run continues there") from None
        if not chunk:
            return
        yield chunk


class _NothingLeftError(Exception):
    """The server has no bytes after those that are here."""


def _open(url: str, headers: dict[str, str] | None = None) -> http.client.HTTPResponse:
    opener = urllib.request.build_opener(_HTTPHandler, _HTTPSHandler)
    try:
        answer: http.client.HTTPResponse = opener.open(urllib.request.Request(url, headers=headers or {}))
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise _NothingLeftError from None
        raise UnavailableError(f"{url} answered {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise UnreachableError(f"{url} cannot be reached: {error.reason}") from None
    except (OSError, http.client.HTTPException) as error:
        raise UnreachableError(f"{url} cannot be reached: {error}") from None
    return answer
