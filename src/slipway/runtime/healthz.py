"""/healthz, /readyz and /metrics: small HTTP servers for probes and for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiohttp import web

from slipway.api.machinery.errors import OperatorError
from slipway.runtime.metrics import CONTENT_TYPE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from slipway.runtime.metrics import Metrics

    # The name of a check and what is wrong; empty: nothing.
    Checks = Callable[[], Iterable[tuple[str, str]]]


class Address(NamedTuple):
    """Where to listen; no host: on all addresses; port 0: on one that is free."""

    host: str
    port: int


def parse_address(text: str, flag: str) -> Address | None:
    """``host:port``, ``:port`` or ``[address]:port``; None for ``0`` and nothing, which switch a server off."""
    if text in ("", "0"):
        return None
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        colon = ""
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise OperatorError(f'{flag} "{text}" is not an address to listen on: write host:port, :port for all addresses, or 0 for none')
    return Address(host, int(port))


def report(name: str, checks: Iterable[tuple[str, str]], *, verbose: bool) -> tuple[int, str]:
    """The status and the text of a probe, in the form of the API server's own: a line for each check when one fails or it is asked for."""
    found = list(checks)
    failed = any(problem for _, problem in found)
    if not failed and not verbose:
        return 200, "ok"
    lines = [f"[-]{check} failed: {problem}" if problem else f"[+]{check} ok" for check, problem in found]
    lines.append(f"{name} check {'failed' if failed else 'passed'}")
    return 500 if failed else 200, "\n".join(lines) + "\n"


class Server:
    """An HTTP server of a few GET paths, from ``start`` to ``stop``."""

    def __init__(self, address: Address, routes: Mapping[str, Callable[[web.Request], web.Response]], *, flag: str) -> None:
        self._address, self._flag = address, flag
        self.port = 0
        application = web.Application()
        for path, answer in routes.items():
            application.router.add_get(path, _handler(answer))
        self._runner = web.AppRunner(application, handle_signals=False, access_log=None, shutdown_timeout=5.0)

    async def start(self) -> None:
        await self._runner.setup()
        host, port = self._address
        site = web.TCPSite(self._runner, host or None, port)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise OperatorError(f"cannot listen on {host}:{port}, which {self._flag} asks for: {error.strerror or error}") from None
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        await self._runner.cleanup()


def health_routes(healthz: Checks, readyz: Checks) -> dict[str, Callable[[web.Request], web.Response]]:
    def probe(name: str, checks: Checks) -> Callable[[web.Request], web.Response]:
        def answer(request: web.Request) -> web.Response:
            status, text = report(name, checks(), verbose="verbose" in request.query)
            return web.Response(status=status, text=text)

        return answer

    return {"/healthz": probe("healthz", healthz), "/readyz": probe("readyz", readyz)}


def metrics_routes(metrics: Metrics) -> dict[str, Callable[[web.Request], web.Response]]:
    return {"/metrics": lambda _: web.Response(body=metrics.render(), headers={"Content-Type": CONTENT_TYPE})}


def _handler(answer: Callable[[web.Request], web.Response]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        return answer(request)

    return handle
