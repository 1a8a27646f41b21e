"""The host's token, renewed through the host's own Secret while it is still good.

A host may do nothing but read and write its Secret, so that it asks there for another token, and finds it there.  It is tried, kept in the
connection file, and only then taken out of the Secret: an agent that is killed in between finds it again.  Without it a host would have to
register anew when its token ends, for which its registration must still be there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.agent import connection
from slipway.agent.secret import SecretClient
from slipway.api.elemental import plan as plans
from slipway.api.elemental.plancodec import from_base64
from slipway.kube.client import Client
from slipway.kube.errors import UnauthorizedError, UntrustedError

if TYPE_CHECKING:
    from slipway.agent.connection import Place
    from slipway.agent.machine import Machine
    from slipway.agent.plan.decision import PlanSecret

_PART = 2 / 3
"""Of a token's life, after which another is asked for: a host may be off for the rest of it."""
PERIOD = 3600.0
"""Seconds between two looks: a clock that is set makes a token older or younger."""
NOTHING_OWED = {plans.TOKEN: b"", plans.TOKEN_REQUEST: b""}
"""What stands in the Secret after a token was taken from it."""


class Life(NamedTuple):
    """Of a token, in seconds since 1970."""

    issued: float
    ends: float

    @property
    def renewal(self) -> float:
        return self.issued + (self.ends - self.issued) * _PART


class _Claims(msgspec.Struct):
    iat: float
    exp: float


def life(token: str) -> Life | None:
    """None where a token says nothing of that: it is no JSON web token, or is one that does not end."""
    _, _, rest = token.partition(".")
    body, _, _ = rest.partition(".")
    raw = from_base64((body + "=" * (-len(body) % 4)).replace("-", "+").replace("_", "/"))
    try:
        claims = msgspec.json.decode(raw or b"", type=_Claims)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return Life(claims.iat, claims.exp) if claims.iat < claims.exp else None


def wanted(secret: PlanSecret, token: str, now: float) -> tuple[str, float | None]:
    """What to do with a Secret, and when to look again: ``take`` the token that is there, ``clear`` one that is of no use, ``ask``."""
    own, offered = life(token), secret.text(plans.TOKEN)
    if own is None:
        # A person's, or one of Elemental's, which does not end.
        return "", None
    if offered:
        other = life(offered)
        return ("take" if other is not None and other.ends > own.ends else "clear"), 0.0
    if secret.text(plans.TOKEN_REQUEST):
        return "", PERIOD
    left = own.renewal - now
    return ("ask", PERIOD) if left <= 0 else ("", min(left, PERIOD))


def take(machine: Machine, place: Place, token: str) -> str:
    """Keep a token, for the next connection; why not, where the API server does not know it.  Raises what other requests do."""
    changed = msgspec.structs.replace(place.connection, token=token)
    client = SecretClient(Client(changed, environment=machine.host.environment, program="slipway-agent"), place)
    try:
        client.read()
    except (UnauthorizedError, UntrustedError) as error:
        return f"the token that came with the Secret is of no use: {error.message}"
    finally:
        client.close()
    connection.renew(machine, token)
    return ""
