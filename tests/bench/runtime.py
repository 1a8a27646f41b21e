"""What the runtime alone costs: 10,000 objects listed and 10,000 watch events reconciled, against a real API server.

    python tests/bench/runtime.py [--kubeconfig FILE] [--objects 10000] [--namespace bench-runtime]

The objects are ConfigMaps with a kilobyte of data in a namespace of their own, which is deleted at the end.  They are written by
another process, so that the figures are those of the one that lists, watches and reconciles.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from e2e.planes import connection_of, management_plane

from slipway.api.cluster.kinds import CONFIG_MAP, NAMESPACE
from slipway.kube.aio import AsyncClient, PatchType
from slipway.kube.connection import Connection
from slipway.kube.errors import AlreadyExistsError, ConflictError
from slipway.runtime import logs
from slipway.runtime.controller import Watch
from slipway.runtime.manager import Manager, ManagerOptions
from slipway.runtime.objects import DONE, Request, Result
from slipway.runtime.rbac import Rule

WRITERS = 20


class Counting:
    """Reads its object from the cache, decodes it, and sets ``reached`` when it has seen ``expected`` objects of a round."""

    name = "bench"
    watches = (Watch(CONFIG_MAP),)
    rules: Sequence[Rule] = ()

    def __init__(self, manager: Manager, expected: int) -> None:
        self._manager = manager
        self.expected = expected
        self.reached = {"0": asyncio.Event(), "1": asyncio.Event()}
        self._seen: dict[str, set[Request]] = {"0": set(), "1": set()}
        self.reconciles = 0

    async def reconcile(self, request: Request) -> Result:
        self.reconciles += 1
        found = await self._manager.cache.get(CONFIG_MAP, request.name, request.namespace)
        if found is not None:
            number = str(found.content()["data"]["round"])
            self._seen[number].add(request)
            if len(self._seen[number]) == self.expected:
                self.reached[number].set()
        return DONE


async def create(connection: Connection, namespace: str, count: int) -> None:
    async with AsyncClient(connection) as client:
        with suppress(AlreadyExistsError):
            await client.create(NAMESPACE, {"metadata": {"name": namespace}})

        async def write(numbers: range) -> None:
            for number in numbers:
                manifest = {
                    "metadata": {"name": f"object-{number:05d}", "namespace": namespace, "labels": {"of": "bench"}},
                    "data": {"round": "0", "filling": "x" * 1000},
                }
                try:
                    await client.create(CONFIG_MAP, manifest)
                except AlreadyExistsError:
                    patch = {"data": {"round": "0"}}
                    await client.patch(CONFIG_MAP, f"object-{number:05d}", namespace, patch, type=PatchType.MERGE)

        await asyncio.gather(*(write(range(first, count, WRITERS)) for first in range(WRITERS)))


async def change(connection: Connection, namespace: str, count: int) -> None:
    async with AsyncClient(connection) as client:

        async def write(numbers: range) -> None:
            for number in numbers:
                await client.patch(CONFIG_MAP, f"object-{number:05d}", namespace, {"data": {"round": "1"}}, type=PatchType.MERGE)

        await asyncio.gather(*(write(range(first, count, WRITERS)) for first in range(WRITERS)))


def elsewhere(work: str, kubeconfig: str, namespace: str, count: int) -> None:
    asyncio.run({"create": create, "change": change}[work](connection_of(Path(kubeconfig)), namespace, count))


def memory() -> float:
    """Megabytes resident at present."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Table:
    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), cpu()
        self.rows = [("", "wall s", "CPU s", "RSS MB")]

    def row(self, what: str) -> None:
        wall, used = time.perf_counter(), cpu()
        self.rows.append((what, f"{wall - self._wall:.2f}", f"{used - self._cpu:.2f}", f"{memory():.0f}"))
        self._wall, self._cpu = time.perf_counter(), cpu()

    def __str__(self) -> str:
        return "\n".join(f"{what:<52}{wall:>9}{used:>9}{size:>9}" for what, wall, used, size in self.rows)


async def measure(kubeconfig: str, namespace: str, count: int) -> Table:
    context = multiprocessing.get_context("spawn")
    await asyncio.to_thread(_run, context, "create", kubeconfig, namespace, count)
    manager = Manager(connection_of(Path(kubeconfig)), ManagerOptions(namespace=namespace))
    manager.cache.restrict(CONFIG_MAP, labels="of=bench")
    counting = Counting(manager, count)
    manager.add(counting)
    stop = asyncio.Event()
    table = Table()
    table.row("before")
    running = asyncio.create_task(manager.run(stop))
    try:
        await asyncio.wait_for(counting.reached["0"].wait(), 600)
        table.row(f"{count:,} objects listed and reconciled")
        writer = context.Process(target=elsewhere, args=("change", kubeconfig, namespace, count))
        writer.start()
        await asyncio.wait_for(counting.reached["1"].wait(), 600)
        table.row(f"{count:,} watch events reconciled ({counting.reconciles:,} in all)")
        await asyncio.to_thread(writer.join)
    finally:
        stop.set()
        await running
    return table


def _run(context: multiprocessing.context.SpawnContext, work: str, kubeconfig: str, namespace: str, count: int) -> None:
    process = context.Process(target=elsewhere, args=(work, kubeconfig, namespace, count))
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"the process that was to {work} the objects ended with {process.exitcode}")


async def clean(connection: Connection, namespace: str) -> None:
    async with AsyncClient(connection) as client:
        try:
            await client.delete(NAMESPACE, namespace)
        except ConflictError as error:
            print(error.message, file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kubeconfig", default="", help="that of a management plane; one is made otherwise, which needs root")
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--namespace", default="bench-runtime")
    parser.add_argument("--keep", action="store_true", help="leave the namespace there")
    given = parser.parse_args()
    logs.configure("text")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        kubeconfig = given.kubeconfig or str(stack.enter_context(management_plane(Path(folder) / "plane")).kubeconfig)
        try:
            print(asyncio.run(measure(kubeconfig, given.namespace, given.objects)))
        finally:
            if not given.keep:
                asyncio.run(clean(connection_of(Path(kubeconfig)), given.namespace))


if __name__ == "__main__":
    main()
