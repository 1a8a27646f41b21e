"""What groups of processes have taken of the machine, told apart: managers, hosts, API server, etcd."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.request import urlopen

import msgspec

_TICKS = os.sysconf("SC_CLK_TCK")
_REQUESTS = re.compile(r"^rest_client_requests_total\{.*\} (\S+)$", re.MULTILINE)
_RECONCILES = re.compile(r'^controller_runtime_reconcile_total\{controller="([\w-]+)",.*\} (\S+)$', re.MULTILINE)
_ASKED = re.compile(r'^apiserver_request_total\{.*resource="(\w*)".*subresource="(\w*)",verb="(\w+)".*\} (\S+)$', re.MULTILINE)
MANAGER = "manager"
_QUIET = 0.05
"""Of a core: a manager that takes less has nothing to do."""


class Taken(msgspec.Struct, frozen=True):
    """Until a moment; ``cpu`` is in seconds, by group."""

    at: float
    cpu: dict[str, float]
    requests: float
    reconciles: dict[str, float]
    """By controller."""

    def since(self, before: Taken) -> Taken:
        return Taken(
            self.at - before.at, _less(self.cpu, before.cpu), self.requests - before.requests, _less(self.reconciles, before.reconciles)
        )


class Meter:
    """``groups`` are the processes of each group; ``metrics`` the pages on which managers count their requests."""

    def __init__(self, groups: Mapping[str, Sequence[int]], metrics: Sequence[str]) -> None:
        self._groups, self._metrics = groups, metrics

    def cpu(self) -> dict[str, float]:
        return {group: sum(map(cpu_seconds, pids)) for group, pids in self._groups.items()}

    def taken(self, now: float, *, begin: bool = False) -> Taken:
        """``begin``: of the begin of what is measured, which the making of the pages of metrics is no part of."""
        cpu = self.cpu()
        requests, reconciles = 0.0, dict[str, float]()
        for page in map(_page, self._metrics):
            requests += sum(map(float, _REQUESTS.findall(page)))
            for controller, count in _RECONCILES.findall(page):
                reconciles[controller] = reconciles.get(controller, 0.0) + float(count)
        return Taken(now, self.cpu() if begin else cpu, requests, reconciles)

    def memory(self, field: str = "VmRSS", group: str = MANAGER) -> float:
        """In MB; ``VmHWM`` is the most that it was."""
        return sum(memory(pid, field) for pid in self._groups[group])

    def each(self, group: str = MANAGER) -> list[tuple[float, float]]:
        """Of every process of a group: seconds of processor, and MB at most."""
        return [(cpu_seconds(pid), memory(pid, "VmHWM")) for pid in self._groups[group]]


def _less(counts: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    return {name: count - before.get(name, 0.0) for name, count in counts.items()}


def asked(page: str) -> dict[str, float]:
    """How often an API server was asked for what, by whomever, from its page of metrics."""
    found: dict[str, float] = {}
    for resource, subresource, verb, count in _ASKED.findall(page):
        if verb not in ("WATCH", "CONNECT"):
            what = f"{verb} {resource}{f'/{subresource}' if subresource else ''}"
            found[what] = found.get(what, 0.0) + float(count)
    return found


async def quiet(cpu: Callable[[], float]) -> None:
    """Until managers have nothing to do, by the processor time that they have taken so far, or a minute has gone."""
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        before, began = cpu(), time.monotonic()
        await asyncio.sleep(2)
        if cpu() - before < _QUIET * (time.monotonic() - began):
            return


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory(pid: int, field: str) -> float:
    """Of a process, in MB: a line of its status."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith(f"{field}:")).split()[1]) / 1024


def _page(url: str) -> str:
    found: bytes = urlopen(url, timeout=60).read()
    return found.decode()
