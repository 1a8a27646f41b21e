"""What a certificate says about its holder, as a value; cryptography is not needed to know it."""

from __future__ import annotations

import msgspec

from slipway.api.machinery.duration import Duration

SERVER_AUTH = "1.3.6.1.5.5.7.3.1"
CLIENT_AUTH = "1.3.6.1.5.5.7.3.2"

BACKDATE = Duration.of(minutes=5)
"""How far back a certificate's validity starts, for clocks that are not quite right."""
DEFAULT_VALIDITY = Duration.of(hours=24 * 365)
DEFAULT_CA_VALIDITY = Duration.of(hours=24 * 365 * 10)


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What a certificate says about its holder, whoever signs it."""

    common_name: str
    organizations: tuple[str, ...] = ()
    usages: tuple[str, ...] = ()
    dns_names: tuple[str, ...] = ()
    """Sorted, each one once."""
    addresses: tuple[str, ...] = ()
    """In the order of the configuration, each one once, in canonical form."""
