"""Measures the node tool against the real kubeadm, side by side, and prints a table of ratios.  Run it with ``make bench``.

Runs alternate between the two programs, so that a noisy machine disturbs both alike; the figures are medians.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from slipway.lab.programs.gobuild import BuildError, build

VERSION = "v1.35.4"

CONFIG = f"""apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration:
  name: node-1
  criSocket: unix:///var/run/containerd/containerd.sock
localAPIEndpoint:
  advertiseAddress: 10.0.0.11
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: {VERSION}
networking:
  podSubnet: 10.244.0.0/16
"""


class Measurement(NamedTuple):
    """A command and the most that it may take, as a multiple of the real one's time."""

    arguments: str
    bar: float
    rounds: int


MEASUREMENTS = (
    Measurement("version -o short", 1.0, 41),
    Measurement("config validate --config {config}", 2.0, 31),
    Measurement("config migrate --old-config {config}", 2.0, 31),
    Measurement("config print init-defaults", 2.0, 31),
    Measurement("init phase certs all --cert-dir {fresh} --kubernetes-version {version}", 0.7, 21),
    Measurement("init --dry-run --ignore-preflight-errors=all --config {config}", 0.8, 15),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeadm", help="the real kubeadm; built from its Go module where none is given")
    options = parser.parse_args()
    try:
        real = Path(options.kubeadm) if options.kubeadm else build("kubeadm", VERSION)
    except BuildError as error:
        sys.exit(f"no kubeadm to measure against: {error}")
    ours = Path(sys.executable).with_name("slipway")
    with tempfile.TemporaryDirectory(prefix="slipway-bench-") as folder:
        config = Path(folder) / "config.yaml"
        config.write_text(CONFIG)
        print(f"| command | kubeadm {VERSION} | slipway | ratio | bar | |\n|---|---|---|---|---|---|")
        for measurement in MEASUREMENTS:
            print(_row(measurement, real, ours, config, Path(folder) / "fresh"), flush=True)


def _row(measurement: Measurement, real: Path, ours: Path, config: Path, fresh: Path) -> str:
    times: dict[Path, list[float]] = {real: [], ours: []}
    for _ in range(measurement.rounds):
        for program, taken in times.items():
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir()
            taken.append(_seconds(program, measurement.arguments.format(config=config, fresh=fresh, version=VERSION).split(), fresh))
    theirs, mine = (statistics.median(taken) for taken in times.values())
    ratio = mine / theirs
    verdict = "holds" if ratio <= measurement.bar else "MISSED"
    command = measurement.arguments.split(" --")[0]
    return f"| `{command}` | {theirs * 1000:.0f} ms | {mine * 1000:.0f} ms | {ratio:.2f} | {measurement.bar:.1f} | {verdict} |"


def _seconds(program: Path, arguments: list[str], fresh: Path) -> float:
    environment = {"PATH": os.environ["PATH"], "HOME": str(fresh), "KUBEADM_INIT_DRYRUN_DIR": str(fresh)}
    began = time.perf_counter()
    done = subprocess.run([str(program), *arguments], env=environment, capture_output=True, text=True, check=False)
    taken = time.perf_counter() - began
    if done.returncode != 0:
        sys.exit(f"`{program} {' '.join(arguments)}` failed: {done.stderr}")
    return taken


if __name__ == "__main__":
    main()
