"""What a soak is told, and what follows from it."""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import msgspec

from slipway.api.machinery.errors import UsageError

VERSIONS = ("v1.33.13", "v1.34.10", "v1.35.4", "v1.36.3")
"""What a cluster walks up, minor by minor; it comes down by being deleted and made anew at the first."""
NAMESPACE = "cpaas-system"
PLANES, WORKERS = 3, 2
"""Of every cluster at rest."""
WORKER_HOSTS = 3
_MOST_CLUSTERS = 200
# The manager may be killed in the first share of the time; the one that is there then lives to the end, and its memory is measured.
_MORTAL = 0.45
_ROUNDS = 12
_SHORTEST, _LONGEST = 20.0, 300.0
# Who waits for a deadline writes nothing until then: so long after it nothing comes any more, on a busy machine, or with all mended.
_STALLED, _STALLED_AT_REST = 210.0, 30.0


class Options(msgspec.Struct, frozen=True, kw_only=True):
    minutes: float = 60.0
    seed: int = 0
    clusters: int = 20
    kills: int = 0
    """How often the manager is killed; 0: as often as it happens in the first part."""
    deadline: float = 90.0
    """How many seconds a host may take for a plan, and for its join: far more than it takes on this machine."""
    only: tuple[str, ...] = ()
    """The kinds of faults that there are to be; empty: all."""
    report: Path = Path("soak-report")
    """A folder."""
    json: bool = False

    @property
    def seconds(self) -> float:
        return self.minutes * 60

    @property
    def round(self) -> float:
        """How long clusters are rolled before everything comes to rest once."""
        return min(max(self.seconds / _ROUNDS, _SHORTEST), _LONGEST)

    @property
    def mortal(self) -> float:
        """In how many of the seconds, from the first on, managers die."""
        return self.seconds * _MORTAL

    @property
    def stalled(self) -> float:
        """Nothing of a cluster is without a write for so many seconds while it is on its way."""
        return self.deadline + _STALLED

    @property
    def stalled_at_rest(self) -> float:
        """Where rest has not come after so many seconds without a write, it does not come."""
        return self.deadline + _STALLED_AT_REST

    @property
    def standby(self) -> int:
        """Hosts in no pool, which take the place of dead ones."""
        return 2 + self.clusters // 4

    @property
    def hosts(self) -> int:
        return self.clusters * (PLANES + WORKER_HOSTS) + self.standby


def parse(words: list[str], kinds: tuple[str, ...]) -> Options:
    """``kinds`` are the faults that there are."""
    parser = argparse.ArgumentParser(
        prog="make soak ARGS=…", description="Rolls simulated clusters up and down while things go wrong, and watches what must never be."
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="for how long, once the clusters are made (60)")
    parser.add_argument("--seed", type=int, help="the same seed brings the same operations and faults in the same order")
    parser.add_argument("--clusters", type=int, default=20, help="how many clusters, of three control planes and two workers (20)")
    parser.add_argument("--kills", type=int, default=0, help="kill the manager exactly so often, and fail where the time is too short")
    parser.add_argument(
        "--deadline", type=float, default=90.0, help="seconds that a host may take for a plan or a join: more on a slow machine (90)"
    )
    parser.add_argument("--only", default="", help=f"let only these happen, comma-separated: {', '.join(kinds)}")
    parser.add_argument("--report", type=Path, default=Path("soak-report"), help="the folder of the report (soak-report)")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="lines for people, or one JSON event a line")
    given = parser.parse_args(words)
    only = tuple(each for each in given.only.split(",") if each)
    unknown = [each for each in only if each not in kinds]
    if unknown:
        raise UsageError(f'"{unknown[0]}" is no kind of fault for --only: use {", ".join(kinds)}')
    if not 0 < given.minutes <= 24 * 60:
        raise UsageError(f"--minutes must be more than 0 and at most a day, not {given.minutes:g}")
    if not 1 <= given.clusters <= _MOST_CLUSTERS:
        raise UsageError(f"--clusters must be 1 to {_MOST_CLUSTERS}, as each needs a virtual router ID of its own, not {given.clusters}")
    if not 5 <= given.deadline <= 3600:
        raise UsageError(f"--deadline must be 5 s to an hour, not {given.deadline:g} s")
    if given.kills < 0:
        raise UsageError(f"--kills must not be negative, as {given.kills} is")
    if given.report.exists() and not given.report.is_dir():
        raise UsageError(f"--report must be a folder: {given.report} is not one")
    return Options(
        minutes=given.minutes,
        seed=given.seed if given.seed is not None else random.SystemRandom().randrange(1 << 32),
        clusters=given.clusters,
        kills=given.kills,
        deadline=given.deadline,
        only=only,
        report=given.report,
        json=given.output == "json",
    )
