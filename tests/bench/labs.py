"""Measures the lab: booting, a warm ``lab up``, the management plane, and with ``--cold`` how long components take from nothing.

Run it with ``make bench-lab`` as root.  The figures are medians of whole commands.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

VERSION = "v1.35.4"
LAB = "bench"


class Figure(NamedTuple):
    """A measurement, and the most that it may be."""

    what: str
    seconds: float
    bar: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold", action="store_true", help="also obtain all components with empty caches: about 15 minutes")
    options = parser.parse_args()
    print("| what | seconds | bar | |\n|---|---|---|---|")
    for figure in [*_labs(options.rounds), *_planes(options.rounds), *(_cold() if options.cold else [])]:
        verdict = "holds" if figure.seconds <= figure.bar else "MISSED"
        print(f"| {figure.what} | {figure.seconds:.1f} | {figure.bar:.0f} | {verdict} |", flush=True)


def _labs(rounds: int) -> list[Figure]:
    _lab("image", "build", "--kubernetes-version", VERSION, "--node-tool", "kubeadm")
    ups, boots = [], []
    for _ in range(rounds):
        try:
            ups.append(_lab("up", "--image", f"{VERSION}-kubeadm", "--hosts", "3"))
            _lab("host", "stop", "host-1")
            boots.append(_lab("host", "start", "host-1"))
        finally:
            _lab("down")
    return [
        Figure("a host, from off to multi-user.target", statistics.median(boots), 8),
        Figure("a warm `lab up` of 3 hosts", statistics.median(ups), 20),
    ]


def _planes(rounds: int) -> list[Figure]:
    times = []
    for _ in range(rounds):
        try:
            times.append(_lab("management", "up", "--kubernetes-version", VERSION))
        finally:
            _lab("management", "down")
    return [Figure("`lab management up`, new certificates", statistics.median(times), 10)]


def _cold() -> list[Figure]:
    """With nothing but the sources that were downloaded: no cached programs, no compiled packages."""
    with tempfile.TemporaryDirectory(prefix="slipway-cold-") as folder:
        environment = {**os.environ, "XDG_CACHE_HOME": folder, "GOCACHE": f"{folder}/go-build"}
        return [Figure(f"components of {VERSION} from nothing", _lab("components", VERSION, environment=environment), 900)]


def _lab(*words: str, environment: dict[str, str] | None = None) -> float:
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "slipway", "lab", "--lab", LAB, *words], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"`slipway lab {' '.join(words)}` failed: {done.stderr}")
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
