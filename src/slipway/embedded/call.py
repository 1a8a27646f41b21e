"""One request on its way through the server, or a write of the server's own: who wants what of which object, and what they are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from slipway.embedded.access.authentication import User
    from slipway.embedded.registry.resources import Resource


class Call(msgspec.Struct, kw_only=True):
    """Made when a request has been authorized; it goes down to the registry and the webhooks, and is gone with its answer."""

    user: User
    resource: Resource
    verb: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    manager: str = "unknown"
    """Who owns the fields that are written."""
    dry_run: bool = False
    field_validation: str = "Warn"
    force: bool | None = None
    """Whether an apply takes fields from others; None where the request does not say."""
    warnings: list[str] = []
    """What the client is told besides the answer."""
