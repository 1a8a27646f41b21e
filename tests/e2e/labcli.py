"""A lab as its users have it: through the command line, and what the machine looks like around it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from slipway.lab.network import sysctl


class LabCommands:
    """``slipway lab`` on one lab."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, *words: str, stdin: str = "", check: bool = True, patience: float = 600) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "slipway", "lab", "--lab", self.name, *words]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=patience, check=False)
        assert not check or done.returncode == 0, (
            f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        )
        return done

    def on(self, host: str, script: str, *, stdin: str = "", check: bool = True, patience: float = 600) -> str:
        """What a shell script in a host prints."""
        return self.run("host", "exec", host, "--", "sh", "-ec", script, stdin=stdin, check=check, patience=patience).stdout

    def kubectl(self, words: str, *, host: str = "host-1", stdin: str = "", check: bool = True) -> str:
        return self.on(host, f"kubectl --kubeconfig /etc/kubernetes/admin.conf {words}", stdin=stdin, check=check)

    def hosts(self) -> dict[str, dict[str, Any]]:
        return {row["name"]: row for row in json.loads(self.run("host", "list", "-o", "json").stdout)}


class Surroundings(msgspec.Struct, frozen=True):
    """Everything on the machine that a lab could leave behind, or take with it."""

    mounts: frozenset[str]
    links: frozenset[str]
    routes: frozenset[str]
    rules: frozenset[str]
    cgroups: frozenset[str]
    processes: frozenset[str]
    settings: tuple[str, ...]


def surroundings() -> Surroundings:
    mounts = {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
    groups = {str(path) for path in Path("/sys/fs/cgroup").rglob("slipway-*") if path.is_dir()}
    return Surroundings(
        frozenset(mounts),
        frozenset(os.listdir("/sys/class/net")),
        frozenset(_lines("ip", "route")),
        frozenset(_lines("ip", "rule")),
        frozenset(groups),
        frozenset(_programs()),
        tuple(path.read_text().strip() for path in sysctl.SETTINGS),
    )


def _lines(*command: str) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def _programs() -> list[str]:
    """The programs of labs that run, each with its process id: whatever has another network than ours, and what starts such hosts.

    A server that somebody runs beside the tests is none of a lab.
    """
    ours = os.readlink("/proc/self/ns/net")
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            words = (folder / "cmdline").read_bytes().decode().split("\0")
            elsewhere = os.readlink(folder / "ns/net") != ours
        except OSError:
            continue
        if words[0] and (elsewhere or Path(words[0]).name == "systemd-nspawn" or "slipway.lab.hosts.launcher" in words):
            found.append(f"{folder.name} {' '.join(words)}")
    return found
