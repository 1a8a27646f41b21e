"""Serves one snapshot to hosts over HTTPS while it is restored, at a path that nobody can guess and with an authority of its own."""

from __future__ import annotations

import ipaddress
import secrets
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from aiohttp import web

from slipway.api.kubeadm.addresses import join_host_port
from slipway.api.machinery.duration import Duration
from slipway.api.machinery.errors import OperatorError
from slipway.credentials import keys, tls, x509
from slipway.credentials.profile import SERVER_AUTH, Profile
from slipway.fleet.snapshots.hostscript import Download
from slipway.runtime.healthz import parse_address

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

_VALIDITY = Duration.of(hours=24 * 7)
_ALGORITHM = "ECDSA-P256"
_FLAG = "--serve"


def address(text: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT``; the host is what hosts call, so it must be one."""
    parsed = parse_address(text, _FLAG)
    if parsed is None or not parsed[0]:
        raise OperatorError(f'"{text}" for {_FLAG} is not an address that hosts can call: write HOST:PORT')
    return parsed[0], parsed[1]


@asynccontextmanager
async def served(file: Path, sha256: str, host: str, port: int, on_fetch: Callable[[str], None]) -> AsyncIterator[Download]:
    """Where the file can be had during the block; ``on_fetch`` hears the address of who asks for it."""
    now = datetime.now(UTC)
    authority_key, key = keys.generate(_ALGORITHM), keys.generate(_ALGORITHM)
    valid = x509.period(now, _VALIDITY)
    root = x509.self_signed(Profile(common_name="slipway restore"), authority_key, valid, sha256_key_id=True)
    profile = Profile(common_name=host, usages=(SERVER_AUTH,), **_names(host))
    certificate = x509.signed(profile, key.public_key(), x509.Authority(root, authority_key), valid)
    path = f"/{secrets.token_urlsafe(32)}"

    async def answer(request: web.Request) -> web.StreamResponse:
        on_fetch(request.remote or "somebody")
        return web.FileResponse(file)

    app = web.Application()
    app.router.add_get(path, answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        context = tls.server_context(x509.pem(certificate), keys.private_pem(key), "the certificate of the snapshot's server")
        site = web.TCPSite(runner, host, port, ssl_context=context)
        try:
            await site.start()
        except OSError as error:
            raise OperatorError(f"the snapshot cannot be served at {join_host_port(host, port)}: {error.strerror or error}") from error
        port = port or runner.addresses[0][1]
        yield Download(f"https://{join_host_port(host, port)}{path}", sha256, x509.pem(root))
    finally:
        await runner.cleanup()


def _names(host: str) -> dict[str, tuple[str, ...]]:
    try:
        return {"addresses": (str(ipaddress.ip_address(host)),)}
    except ValueError:
        return {"dns_names": (host,)}
