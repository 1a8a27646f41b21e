"""Runs kubeadm's own black-box suite, unmodified, with the real kubeadm and with slipway in its place.  See ``make kubeadm-suite``.

The suite is the Go package cmd/kubeadm/test/cmd of Kubernetes, compiled from the Go module of each release and kept in the
cache.  Verdict: every test that passes with the real kubeadm passes with slipway.  What fails with both says something of
the machine: no way to the release server, no default route.  Neither program changes the machine: each ``init`` is a dry
run into a folder that is removed, each ``join`` is refused, and each ``reset`` asks first and gets no answer.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from slipway.lab.programs import gobuild
from slipway.node.config.version import ACT_AS

VERSIONS = ("v1.33.13", "v1.34.10", "v1.35.4", "v1.36.3")
PACKAGE = "cmd/kubeadm/test/cmd"
_SECONDS = 600
_NAME_WIDTH = 80

_RUN = re.compile(r"^=== RUN\s+(\S+)$")
_RESULT = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+) \(")


class Outcome(NamedTuple):
    """How one test ended, and what it printed."""

    passed: bool
    output: str


class Comparison(NamedTuple):
    """The suite of one release, by both programs."""

    real: dict[str, Outcome]
    ours: dict[str, Outcome]

    def word(self, test: str) -> str:
        """What the table says of a test."""
        if test not in self.real and test not in self.ours:
            return "-"
        real, ours = self.real.get(test), self.ours.get(test)
        match (real is not None and real.passed, ours is not None and ours.passed):
            case (True, True):
                return "pass"
            case (True, False):
                return "FAIL"
            case (False, True):
                return "ours only"
            case _:
                return "both fail"

    def failures(self) -> list[str]:
        """The tests that pass with the real kubeadm and not with ours."""
        return [test for test in self.real if self.word(test) == "FAIL"]


def outcomes(output: str) -> dict[str, Outcome]:
    """What ``-test.v`` printed, by test; a test that has parts is its parts."""
    printed: dict[str, list[str]] = {}
    passed: dict[str, bool] = {}
    current: list[str] = []
    for line in output.splitlines():
        if match := _RUN.match(line):
            current = printed.setdefault(match[1], [])
        elif match := _RESULT.match(line):
            passed[match[2]] = match[1] != "FAIL"
        else:
            current.append(line)
    # A test that never ended, because the suite itself died, did not pass.
    return {
        name: Outcome(passed.get(name, False), "\n".join(lines))
        for name, lines in printed.items()
        if not any(other.startswith(f"{name}/") for other in printed)
    }


def run(suite: Path, folder: Path, program: Path, **settings: str) -> dict[str, Outcome]:
    """Run the compiled suite in the folder of its sources with ``program`` as kubeadm."""
    with tempfile.TemporaryDirectory(prefix="kubeadm-suite-") as scratch:
        # The suite has `init --dry-run` write into the folder for temporary files itself.
        environment = {**os.environ, "KUBEADM_PATH": str(program), "TMPDIR": scratch, **settings}
        done = subprocess.run(
            [str(suite), "-test.v"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    found = outcomes(done.stdout)
    if not found:
        raise SystemExit(f"the suite ran no test with {program}:\n{done.stdout}")
    return found


def compare(version: str, ours: Path) -> Comparison:
    real, suite = gobuild.build("kubeadm", version), compiled(version)
    folder = gobuild.module_source(gobuild.KUBERNETES, version) / PACKAGE
    return Comparison(real=run(suite, folder, real), ours=run(suite, folder, ours, **{ACT_AS: version}))


def compiled(version: str) -> Path:
    return gobuild.build_tests("kubeadm-suite", f"{gobuild.KUBERNETES}/{PACKAGE}", version)


def table(found: dict[str, Comparison]) -> str:
    """Every test of every release, a row each."""
    tests = list(dict.fromkeys(test for each in found.values() for test in (*each.real, *each.ours)))
    rows = [("", *found), *((_short(test), *(each.word(test) for each in found.values())) for test in tests)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def _short(test: str) -> str:
    return test if len(test) <= _NAME_WIDTH else f"{test[: _NAME_WIDTH - 1]}…"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*", default=VERSIONS, help="releases of Kubernetes; those of tests/golden where none is named")
    parser.add_argument("--slipway", type=Path, default=Path(sys.executable).parent / "slipway", help="the program to test")
    options = parser.parse_args()
    # What is compiled is compiled one after another; Go uses all processors.
    for version in options.versions:
        print(f"{version}: the real kubeadm and its suite", flush=True)
        gobuild.build("kubeadm", version)
        compiled(version)
    with tempfile.TemporaryDirectory(prefix="kubeadm-suite-") as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        ours = Path(folder, "kubeadm")
        ours.symlink_to(options.slipway.absolute())
        found = dict(zip(options.versions, pool.map(lambda version: compare(version, ours), options.versions), strict=True))
    print(table(found))
    for version, each in found.items():
        passing = sum(outcome.passed for outcome in each.real.values())
        print(f"{version}: {passing - len(each.failures())} of the {passing} tests that pass with the real kubeadm pass with slipway")
        for test in each.failures():
            print(f"{version} {test}:\n{each.ours[test].output if test in each.ours else 'not run'}")
    return 1 if any(each.failures() for each in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
