"""How the bootstrap provider can be set up."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

import msgspec

from slipway.api.machinery.errors import OperatorError

JoinVersionSource = Literal["control-plane", "machine"]

# A bare-metal host takes up to half an hour from reading its data to kubelet, sometimes twice; with a manager that may be away for
# a while in between.  Cluster API's 15 minutes are made for virtual machines.
DEFAULT_TOKEN_TTL = timedelta(hours=2)
# Shorter ones would end between two looks at them.
_SHORTEST_TTL = timedelta(minutes=1)


class BootstrapOptions(msgspec.Struct, frozen=True, kw_only=True):
    token_ttl: timedelta = DEFAULT_TOKEN_TTL
    """How long a bootstrap token lives after it was made or refreshed."""
    join_version: JoinVersionSource = "control-plane"
    """Whose version the join configuration of a worker is made for."""
    version_file: bool = True
    """Whether every joining worker gets the control plane's version as a file."""

    def __post_init__(self) -> None:
        if self.token_ttl < _SHORTEST_TTL:
            raise OperatorError(f"a bootstrap token must live for at least {_SHORTEST_TTL.seconds} seconds, not {self.token_ttl}")
        if self.join_version not in ("control-plane", "machine"):
            raise OperatorError(f'the join version is that of "control-plane" or "machine", not of "{self.join_version}"')
