"""Measures the agent of a host: how fast it starts, what it holds in memory, and a plan of ten instructions against a shell script.

    python tests/bench/agent.py [--rounds 11]

The agent is a process of its own under a folder, its Secret is on an embedded API server in this one.  A start ends when the agent has
read its Secret; a plan when the Secret has its outcome.  The shell script runs the same ten commands and keeps what they say.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

# Not this folder, in which there is an agent as well.
sys.path.remove(str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

from agent.world import Site, shell
from support.waiting import eventually

from slipway.agent import paths
from slipway.api.elemental.plan import Plan
from slipway.embedded.server import EmbeddedServer
from slipway.kube.aio import AsyncClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

START_BAR, MEMORY_BAR = 0.150, 25 << 10
SCRIPT = "echo {n}; test -d /"
ROUNDS = 11


async def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="slipway-bench-") as folder:
        async with EmbeddedServer() as server, AsyncClient(server.connection()) as client:
            site = Site(client, server.connection(), Path(folder) / "host")
            await site.prepare()
            starts, works, memory, plans = [], [], [], []
            for number in range(rounds):
                began = time.perf_counter()
                async with agent(site) as process:
                    assert process.stdout is not None
                    await process.stdout.readline()
                    starts.append(time.perf_counter() - began)
                    works.append(processor(process.pid))
                    await site.settled("applied")
                    plans.append(await plan(site, number))
                    memory.append(resident(process.pid))
                (site.root / paths.JOURNAL.removeprefix("/")).unlink()
        scripts = [script(Path(folder), number) for number in range(rounds)]
    print("| | median | most | bar | |\n|---|---|---|---|---|")
    print(
        row(
            "start until the Secret is read",
            [f"{seconds * 1000:.0f} ms" for seconds in spread(starts)],
            "150 ms",
            spread(starts)[0] < START_BAR,
        )
    )
    print(row("processor time of that", [f"{seconds * 1000:.0f} ms" for seconds in spread(works)], "", None))
    print(row("memory after a plan", [f"{size / 1024:.1f} MiB" for size in spread(memory)], "25 MiB", spread(memory)[1] < MEMORY_BAR))
    print(row("a plan of ten instructions", [f"{seconds * 1000:.0f} ms" for seconds in spread(plans)], "", None))
    print(row("a shell script of the same ten", [f"{seconds * 1000:.0f} ms" for seconds in spread(scripts)], "", None))


@asynccontextmanager
async def agent(site: Site) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "slipway", "--rootfs", str(site.root), "agent", "run", stdout=asyncio.subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.kill()
        await process.wait()


async def plan(site: Site, number: int) -> float:
    """Seconds from the plan's write to its outcome."""
    made = Plan(instructions=tuple(shell(f"i{n}", f": {number}; {SCRIPT.format(n=n)}") for n in range(10)))
    await eventually(site.data)
    began = time.perf_counter()
    checksum = await site.give(made)
    await site.settled("applied", checksum)
    return time.perf_counter() - began


def script(folder: Path, number: int) -> float:
    """Seconds of a shell that runs the ten commands, each in a shell of its own, and keeps what they say in files."""
    lines = [f"sh -c ': {number}; {SCRIPT.format(n=n)}' > {folder}/said-{n} 2>&1 || exit 1" for n in range(10)]
    file = folder / "script.sh"
    file.write_text("\n".join((*lines, "sync -d " + str(file), "")))
    began = time.perf_counter()
    subprocess.run(["sh", str(file)], check=True)
    return time.perf_counter() - began


def processor(process: int) -> float:
    """Seconds."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(process: int) -> int:
    """Kilobytes."""
    text = Path(f"/proc/{process}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0])


def spread(values: list[float] | list[int]) -> tuple[float, float]:
    return statistics.median(values), max(values)


def row(what: str, shown: list[str], bar: str, good: bool | None) -> str:
    verdict = "" if good is None else "ok" if good else "**over**"
    return f"| {what} | {shown[0]} | {shown[1]} | {bar} | {verdict} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).parents[2] / "src"))
    asyncio.run(main(parser.parse_args().rounds))
