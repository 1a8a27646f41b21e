"""``make fuzz``: every target in a process of its own for a bounded time, and a table of what came of it.

An input that crashes a parser, takes more than two seconds of a processor or more than 200 MB fails the run; its path is printed,
and ``worker.py replay TARGET FILE`` runs it alone.  Once mended, it belongs into ``tests/fuzz/corpus/<target>/``.
The same ``--seed`` and ``--runs`` try the same inputs.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import msgspec
from fuzz import targets

_WORKER = Path(__file__).with_name("worker.py")
# What libFuzzer calls the files that it writes for an input that failed.
_FINDINGS = ("crash-*", "timeout-*", "oom-*", "leak-*")
_START_SECONDS = 60
_REPLAY_SECONDS = 60
_LINES_SHOWN = 30


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of fuzzing one target."""

    target: str
    inputs: int
    seconds: float
    problem: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"default: all of {', '.join(targets.names())}")
    parser.add_argument("--seconds", type=int, default=60, help="for each target (%(default)s)")
    parser.add_argument("--runs", type=int, default=-1, help="inputs for each target, where the time allows them")
    parser.add_argument("--seed", type=int, default=0, help="another one tries other inputs; 0 chooses one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="targets at a time (%(default)s)")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "slipway-fuzz", help="for reproducers (%(default)s)")
    options = parser.parse_args()
    if unknown := set(options.targets) - set(targets.names()):
        parser.error(f"there is no target {', '.join(sorted(unknown))}: the targets are {', '.join(targets.names())}")
    if importlib.util.find_spec("atheris") is None:
        parser.error("Atheris is not there, which PyPI has for Linux on x86-64: `make install-dev`, and run this with .venv-dev/bin/python")
    seed = options.seed or int.from_bytes(os.urandom(3))
    print(f"seed {seed}, {options.seconds} s each")
    with ThreadPoolExecutor(options.jobs) as pool:
        work = [pool.submit(_explore, name, options.folder / name, seed, options) for name in options.targets or targets.names()]
        outcomes = [each.result() for each in work]
    for outcome in outcomes:
        print(f"{outcome.target:14} {outcome.inputs:9} inputs {outcome.seconds:6.1f} s  {'FAILED' if outcome.problem else 'ok'}")
    for outcome in outcomes:
        if outcome.problem:
            print(f"\n--- {outcome.target}\n{outcome.problem}")
    return 1 if any(outcome.problem for outcome in outcomes) else 0


def _explore(name: str, kept: Path, seed: int, options: argparse.Namespace) -> Outcome:
    """Fuzz until the time is over or something is found that is wrong without the instruments, too."""
    begun, inputs = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix=f"fuzz-{name}-") as work:
        folder = Path(work)
        while (left := options.seconds - int(time.monotonic() - begun)) > 0:
            process = _run("fuzz", name, str(folder), str(seed), str(left), str(options.runs), patience=left + _START_SECONDS)
            inputs += _inputs(process.stderr)
            if process.returncode == 0:
                break
            findings = [path for pattern in _FINDINGS for path in folder.glob(pattern)]
            if not findings:
                return Outcome(target=name, inputs=inputs, seconds=time.monotonic() - begun, problem=_tail(process))
            kept.mkdir(parents=True, exist_ok=True)
            for path in findings:
                reproducer = Path(shutil.move(path, kept / path.name))
                if confirmed := _confirmed(name, reproducer):
                    return Outcome(target=name, inputs=inputs, seconds=time.monotonic() - begun, problem=confirmed)
                reproducer.unlink()
            seed += 1  # it only failed under instruments, which cost time: on with other inputs
    return Outcome(target=name, inputs=inputs, seconds=time.monotonic() - begun)


def _confirmed(name: str, path: Path) -> str:
    """What is wrong with an input where nothing is measured; empty where nothing is."""
    try:
        process = _run("replay", name, str(path), patience=_REPLAY_SECONDS)
    except subprocess.TimeoutExpired:
        return f"hangs: it did not end within {_REPLAY_SECONDS} s"
    return "" if process.returncode == 0 else _tail(process)


def _run(*words: str, patience: float) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(_WORKER), *words]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=patience, check=False)


def _inputs(log: str) -> int:
    numbers = re.findall(r"^(?:stat::number_of_executed_units:\s+|#)(\d+)", log, re.MULTILINE)
    return int(numbers[-1]) if numbers else 0


def _tail(process: subprocess.CompletedProcess[str]) -> str:
    lines = (process.stdout + process.stderr).strip().splitlines()[-_LINES_SHOWN:]
    return "\n".join(lines) or f"ended with exit code {process.returncode} and said nothing"


if __name__ == "__main__":
    sys.exit(main())
