"""Measures the node tool on real hosts against the real kubeadm, side by side: init, joins and an upgrade.

Run it with ``make bench-clusters`` as root.  Each round gives either program hosts fresh from the factory with the container
images loaded; rounds alternate, so that a noisy machine disturbs both alike; the figures are medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from e2e.nodes import IGNORED, OURS, REAL, TOKEN, Nodes, nodes

VERSION, NEXT = "v1.35.4", "v1.36.3"
BARS = {
    "init, until all components are healthy and the add-ons applied": 0.8,
    "join of a worker": 1.0,
    "join of a second control plane": 0.6,
    f"upgrade apply to {NEXT}, two control planes": 0.4,
    "upgrade node on the second control plane": 0.4,
}
INIT, WORKER, PLANE, APPLY, NODE = BARS

# Runs a command in a host: its seconds, and the most memory that it or a process of its had, in kB.
METER = """
import json, os, shlex, subprocess, sys, time
began = time.perf_counter()
process = subprocess.Popen(shlex.split(sys.argv[1]), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
error = process.stderr.read()
_, status, usage = os.wait4(process.pid, 0)
print(json.dumps({"seconds": time.perf_counter() - began, "memory": usage.ru_maxrss}))
if status:
    sys.stderr.buffer.write(error)
    sys.exit(1)
"""


class Run(NamedTuple):
    """One run of one command."""

    seconds: float
    memory: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--part", choices=("making", "upgrading"), help="measure one of the two alone: a real upgrade takes 7 minutes a round"
    )
    parser.add_argument("--only", choices=("ours", "real"), help="one of the two programs alone")
    options = parser.parse_args()
    runs: dict[str, dict[str, list[Run]]] = {tool: {what: [] for what in BARS} for tool in (REAL, OURS)}
    chosen = {"ours": [OURS], "real": [REAL], None: [REAL, OURS]}[options.only]
    for number in range(options.rounds):
        for tool in chosen:
            for what, run in _round(tool, options.part).items():
                runs[tool][what].append(run)
                print(f"round {number + 1}: {Path(tool).name}: {what}: {run.seconds:.2f} s, {run.memory / 1024:.0f} MB", file=sys.stderr)
    print(f"| command | kubeadm {VERSION} | slipway | ratio | bar | | memory: kubeadm | slipway |\n|---|---|---|---|---|---|---|---|")
    for what, bar in BARS.items():
        if all(runs[tool][what] for tool in (REAL, OURS)):
            print(_row(what, bar, runs[REAL][what], runs[OURS][what]))


def _row(what: str, bar: float, real: list[Run], ours: list[Run]) -> str:
    theirs, mine = (statistics.median(run.seconds for run in found) for found in (real, ours))
    memory = [statistics.median(run.memory for run in found) / 1024 for found in (real, ours)]
    verdict = "holds" if mine <= bar * theirs else "MISSED"
    return f"| {what} | {theirs:.2f} s | {mine:.2f} s | {mine / theirs:.2f} | {bar} | {verdict} | {memory[0]:.0f} MB | {memory[1]:.0f} MB |"


def _round(tool: str, part: str | None) -> dict[str, Run]:
    with nodes(VERSION, 3, "bench") as cluster:
        cluster.write_config("host-1")
        found = {INIT: _metered(cluster, "host-1", f"{tool} init --config /srv/kubeadm.yaml --upload-certs {IGNORED}")}
        _await_signature(cluster)
        cluster.wait_healthy()
        found[WORKER] = _metered(cluster, "host-3", f"{tool} {cluster.join_words()}")
        cluster.wait_healthy()
        found[PLANE] = _metered(cluster, "host-2", f"{tool} {cluster.join_words(control_plane=True)}")
        cluster.wait_healthy()
        if part != "making":
            cluster.lab.run("image", "build", "--kubernetes-version", NEXT, patience=3600)
            for host in ("host-1", "host-2", "host-3"):
                cluster.load(host, NEXT)
            cluster.wait_healthy()
            found[APPLY] = _metered(cluster, "host-1", f"{tool} upgrade apply {NEXT} --yes {IGNORED}")
            found[NODE] = _metered(cluster, "host-2", f"{tool} upgrade node {IGNORED}")
            cluster.wait_healthy()
    return {what: run for what, run in found.items() if part != "upgrading" or what in (APPLY, NODE)}


def _await_signature(cluster: Nodes) -> None:
    """A token can be used once the controller manager has signed with it; how long that takes is no matter of a join."""
    deadline = time.monotonic() + 60
    while f"jws-kubeconfig-{TOKEN.partition('.')[0]}" not in cluster.lab.kubectl("-n kube-public get configmap cluster-info -o json"):
        if time.monotonic() > deadline:
            sys.exit("the token never signed cluster-info")
        time.sleep(0.5)


def _metered(cluster: Nodes, host: str, command: str) -> Run:
    done = cluster.lab.run("host", "exec", host, "--", "/usr/bin/python3", "-c", METER, command, check=False, patience=1200)
    if done.returncode != 0:
        sys.exit(f"`{command}` failed on {host}: {done.stderr}")
    measured = json.loads(done.stdout)
    return Run(measured["seconds"], measured["memory"])


if __name__ == "__main__":
    main()
