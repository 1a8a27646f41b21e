"""Calls of webhooks that others serve: one review posted to a URL, the review that comes back."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec

from slipway.credentials import tls
from slipway.embedded import errors

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    from slipway.api.machinery.objects import Manifest


class WebhookCallError(errors.StatusError):
    """The webhook did not answer as it should."""

    def __init__(self, what: str, why: str) -> None:
        message = f"{what}: {why}"
        super().__init__(500, "InternalError", f"Internal error occurred: {message}", {"causes": [{"message": message}]})
        self.why = why


class WebhookCaller:
    """Keeps connections open between calls."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def call(self, client_config: Mapping[str, Any], review: Manifest, *, timeout: float, what: str) -> Manifest:
        """Post a review; ``what`` begins the sentence of an error."""
        url = client_config.get("url")
        if not url:
            service = client_config.get("service") or {}
            raise WebhookCallError(what, f'service "{service.get("name", "")}" not found: this server reaches webhooks by url only')
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit_per_host=100))
        verb = f'Post "{url}?timeout={timeout:g}s"'
        try:
            async with self._session.post(
                url,
                params={"timeout": f"{timeout:g}s"},
                data=msgspec.json.encode(review),
                headers={"Content-Type": "application/json", "Accept": "application/json, */*"},
                ssl=self._context(str(client_config.get("caBundle") or "")),
                timeout=aiohttp.ClientTimeout(total=timeout),
            ) as response:
                body = await response.read()
                if response.status != 200:
                    raise WebhookCallError(
                        what, f'an error on the server ("{body[:200].decode(errors="replace")}") has prevented the request from succeeding'
                    )
        except TimeoutError:
            raise WebhookCallError(what, f"{verb}: context deadline exceeded") from None
        except aiohttp.ClientError as error:
            raise WebhookCallError(what, f"{verb}: {error}") from None
        try:
            answer = msgspec.json.decode(body)
        except msgspec.DecodeError as error:
            raise WebhookCallError(what, f"the answer is not JSON: {error}") from None
        if not isinstance(answer, dict):
            raise WebhookCallError(what, "the answer is not an object")
        return answer

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _context(self, bundle: str) -> ssl.SSLContext:
        if bundle not in self._contexts:
            # A bundle that rotates is a new one; the old ones are of no more use.
            if len(self._contexts) > 100:
                self._contexts.clear()
            self._contexts[bundle] = tls.trusting(b64decode(bundle).decode())
        return self._contexts[bundle]
