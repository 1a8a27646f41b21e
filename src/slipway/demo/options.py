"""What the demonstration is told, checked: bad values get a sentence before anything starts."""

from __future__ import annotations

import msgspec

from slipway.api.machinery.errors import UsageError
from slipway.api.machinery.version import Version

CLUSTER = "demo"
NAMESPACE = "cpaas-system"
PLANE, WORKERS = f"{CLUSTER}-control-plane", f"{CLUSTER}-workers"
PLANE_POOL, WORKERS_POOL = f"{PLANE}-pool", f"{WORKERS}-pool"
KNOWN = ("v1.33.13", "v1.34.10", "v1.35.4", "v1.36.3")
"""A release of each minor, for the steps between two versions that are further apart."""
_MOST_HOSTS = 200
_MOST_SPEED = 10_000.0


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """``speed`` is how many times faster than real hosts the simulated ones are."""

    hosts: int = 8
    control_planes: int = 3
    workers: int = 3
    start: str = "v1.34.10"
    to: str = "v1.35.4"
    speed: float = 60.0
    upgrade: bool = True
    keep: bool = False
    fault: str = ""
    report: str = ""
    dashboard: bool = False
    """Whether the manager serves its web page."""

    def __post_init__(self) -> None:
        if self.control_planes < 1 or self.control_planes % 2 == 0:
            raise UsageError(f"{self.control_planes} for --control-planes is not 1, 3, 5 or 7: etcd needs an odd number of members")
        if self.workers < 0:
            raise UsageError(f"{self.workers} for --workers is not a number from 0 on")
        if not 0 < self.speed <= _MOST_SPEED:
            raise UsageError(f"{self.speed:g} for --speed is not a number from 1 to {_MOST_SPEED:g}: how many times faster hosts are")
        if self.hosts > _MOST_HOSTS:
            raise UsageError(f"{self.hosts} for --hosts is more than {_MOST_HOSTS}, which is what one process can show")
        if self.hosts < self.needed:
            one_more = ", and one more, as a single control plane is replaced by another one before it goes" if self.surge else ""
            raise UsageError(
                f"{self.hosts} for --hosts is too few: {self.control_planes} control planes and {self.workers} workers need "
                f"{self.needed}{one_more}"
            )
        steps = self.steps
        if self.upgrade and not steps:
            raise UsageError(f"{self.to} for --to is what --from is already: name a later version, or say --no-upgrade")

    @property
    def pace(self) -> float:
        """How long a second of a host takes."""
        return 1.0 / self.speed

    @property
    def surge(self) -> int:
        """Fewer than three control planes cannot do without one: they need a spare host to be replaced."""
        return 1 if self.control_planes < 3 else 0

    @property
    def needed(self) -> int:
        return self.control_planes + self.surge + self.workers

    @property
    def spare(self) -> int:
        """Hosts that are in no pool."""
        return self.hosts - self.needed

    @property
    def steps(self) -> list[str]:
        """The versions that the control plane goes to, one after the other."""
        return steps(self.start, self.to)

    @property
    def final(self) -> str:
        return self.to if self.upgrade else self.start


def steps(start: str, to: str) -> list[str]:
    """The versions from one to another: a control plane goes up one minor version at a time."""
    known = {Version.parse(version).minor: version for version in KNOWN}
    first, last = _version(start, "--from"), _version(to, "--to")
    for version, flag, text in ((first, "--from", start), (last, "--to", to)):
        if version.major != 1 or version.minor not in known:
            raise UsageError(f"{text} for {flag} is a version that is not known here: take one of v1.{min(known)} to v1.{max(known)}")
    if last < first:
        raise UsageError(f"{to} for --to is older than {start}: Kubernetes cannot go back")
    between = [known[minor] for minor in range(first.minor + 1, last.minor)]
    return [*between, to] if first < last else []


def _version(text: str, flag: str) -> Version:
    try:
        return Version.parse(text)
    except ValueError as error:
        raise UsageError(f"{flag}: {error}") from None
