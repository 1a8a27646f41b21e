"""The process of one target: fuzzes it by coverage with Atheris (libFuzzer), or replays files without any instrumentation.

usage: worker.py fuzz TARGET FOLDER SEED SECONDS RUNS | worker.py replay TARGET FILE…
"""

from __future__ import annotations

import importlib
import resource
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz import limits, targets

# A parser that has gone wild must not take the machine with it.
_MOST_MEMORY = 2 << 30
# Of the clock, for what does not come back to Python: everything else is ended by the limit of the processor's time.
_HANGING_SECONDS = 30
_PROBLEM = 3


class FoundError(Exception):
    """An input that a target does not take as it should."""


def explore(name: str, folder: Path, seed: int, seconds: int, runs: int) -> None:
    """Look for inputs until the time or the number of runs is over; what is found is written into ``folder``."""
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["slipway"]):
        target = targets.load(name)
        corpus, words = folder / "corpus", folder / "dictionary"
        corpus.mkdir(exist_ok=True)
        for number, data in enumerate(target.seeds):
            (corpus / f"seed-{number}").write_bytes(data)
        words.write_text("".join(map(_quoted, target.dictionary)))

        def one(data: bytes) -> None:
            if found := limits.problem(target.fuzz, data):
                raise FoundError(found)

        options: dict[str, object] = {
            "seed": seed,
            "max_total_time": seconds,
            "runs": runs,
            "timeout": _HANGING_SECONDS,
            "rss_limit_mb": 0,  # judged input by input
            "artifact_prefix": f"{folder}/",
            "print_final_stats": 1,
        }
        if target.dictionary:
            options["dict"] = str(words)
        atheris.Setup([name, *(f"-{option}={value}" for option, value in options.items()), str(corpus)], one)
        atheris.Fuzz()


def _quoted(word: bytes) -> str:
    """A line of libFuzzer's dictionary."""
    escaped = "".join(f"\\x{byte:02x}" for byte in word)
    return f'"{escaped}"\n'


def replay(name: str, files: list[Path]) -> int:
    """Say what is wrong with each file, as a program without instrumentation finds it."""
    target = targets.load(name)
    found = [(path, limits.problem(target.fuzz, path.read_bytes())) for path in files]
    for path, what in found:
        print(f"{path}: {what or 'nothing wrong'}")
    return _PROBLEM if any(what for _, what in found) else 0


def main(command: str, name: str, *words: str) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    if command == "replay":
        return replay(name, [Path(word) for word in words])
    folder, seed, seconds, runs = words
    explore(name, Path(folder), int(seed), int(seconds), int(runs))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
