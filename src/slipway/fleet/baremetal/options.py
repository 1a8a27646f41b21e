"""How the bare-metal provider can be set up."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.workload.alive import DEFAULT_IMAGE

# From the plan applied to the Node: a boot of a big server with its firmware, and kubeadm.
DEFAULT_JOIN_DEADLINE = timedelta(minutes=20)
REGISTRY_SECRET = "platform-registry"
_SHORTEST_DEADLINE = timedelta(seconds=1)


class BaremetalOptions(msgspec.Struct, frozen=True, kw_only=True):
    catalog_namespace: str = ""
    """Where the image catalog and the platform registry's Secret are; empty: in the namespace of each BaremetalMachine."""
    registry_secret: str = REGISTRY_SECRET
    """The Secret whose key ``address`` is the registry of Clusters that do not name one by their annotation."""
    join_deadline: timedelta = DEFAULT_JOIN_DEADLINE
    """How long a host may take from its plan applied to its Node before that is told as a fault."""
    host_deadline: timedelta = timedelta(minutes=30)
    """How long a host may take for a plan before that is told as a fault."""
    alive_image: str = DEFAULT_IMAGE
    """The image of the virtual address's static Pod."""
    max_failures: int = 3
    """How often a host tries a plan."""
    staging_hosts: int = 10
    """How many hosts of a pool fetch an image ahead at a time."""

    def __post_init__(self) -> None:
        for name in ("join_deadline", "host_deadline"):
            if getattr(self, name) < _SHORTEST_DEADLINE:
                raise OperatorError(f"the {name.replace('_', ' ')} must be at least a second, not {getattr(self, name)}")
        if self.staging_hosts < 1:
            raise OperatorError(f"at least one host of a pool must be allowed to fetch an image at a time, not {self.staging_hosts}")
        if self.max_failures < 1:
            raise OperatorError(f"a host must be allowed to try a plan at least once, not {self.max_failures} times")
