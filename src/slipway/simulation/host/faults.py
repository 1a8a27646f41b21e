"""What goes wrong on a simulated host, and when."""

from __future__ import annotations

import random
from typing import Literal, NamedTuple

import msgspec


class PowerLost(BaseException):
    """The machine is off, in the middle of whatever it did."""


class AgentKilled(BaseException):
    """The agent is no more, in the middle of whatever it did."""


class Interruption(NamedTuple):
    """What happens to an agent in one of the instructions of a plan, counted from 1."""

    what: Literal["power", "agent"]
    """What goes: the power of the host, or the agent alone."""
    instruction: int
    done: bool = False
    """When the instruction has done its work, and the agent knows nothing of it yet; else before it does anything."""


class Faults(msgspec.Struct):
    """Each is a switch that a test or a demonstration turns; the rates are of what happens by chance."""

    dead: bool = False
    """The host does not come up when it is switched on."""
    hangs_at_boot: bool = False
    """The host stays in its initramfs."""
    boots_fallback: bool = False
    """The boot loader falls back to the image before."""
    cannot_upgrade: int = 0
    """With which code ``elemental upgrade`` ends, whatever the registry says."""
    fails: dict[str, int] = {}
    """Programs that end with a code instead of doing anything."""
    power_cut_at: str = ""
    """The program at whose start the power goes, once; ``name:n`` at its n-th start since the boot."""
    interruptions: list[Interruption] = []
    """Each happens once, and one after the other."""
    keepalived_hangs: bool = False
    """keepalived does not end when it is told to."""
    keepalived_fails: bool = False
    """keepalived ends as soon as it starts, and holds no address."""
    etcd_fails: bool = False
    """etcd ends as soon as it starts."""
    cut_off: bool = False
    """The host is on, and reaches nobody of its cluster; nobody reaches it.  The management plane is reached by another way."""
    disk_full: bool = False
    """Nothing can be written to the host's disk."""
    clock: float = 0.0
    """By how many seconds the host's clock is ahead; behind where it is less than 0."""
    upgrade_failures: float = 0.0
    """The share of upgrades that fail."""
    boot_failures: float = 0.0
    """The share of boots that hang."""


class Chance:
    """Chance that can be repeated: the same seed, the same failures."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def happens(self, rate: float) -> bool:
        return rate > 0 and self._random.random() < rate

    def around(self, seconds: float, jitter: float) -> float:
        """Some seconds more or less; ``jitter`` is a share of them."""
        return seconds * self._random.uniform(1 - jitter, 1 + jitter) if jitter else seconds
