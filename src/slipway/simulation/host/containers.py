"""The programs of a simulated machine for its processes and containers; the only processes that stay are those of containers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slipway.simulation.host.commandline import UsageError, options

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.simulation.host.machine import Machine
    from slipway.simulation.shell.process import Process


def _kill(machine: Machine, process: Process) -> int:
    words, kill = list(process.arguments), False
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word == "-s":
            word = f"-{words.pop(0)}"
        kill = word in ("-9", "-KILL", "-SIGKILL")
    for word in words:
        if not machine.signal(int(word), kill=kill):
            return process.fail(f"({word}) - No such process")
    return 0


def _pidof(machine: Machine, process: Process) -> int:
    _, names = options(process, "sx")
    found = [str(container.pid) for container in machine.containers.values() if container.name in names]
    if found:
        process.say(" ".join(found))
    return 0 if found else 1


def _pkill(machine: Machine, process: Process) -> int:
    words = list(process.arguments)
    name = words.pop()
    kill = any(word in ("-9", "-KILL", "-SIGKILL") for word in words)
    pids = [container.pid for container in machine.containers.values() if re.search(name, container.name)]
    for pid in pids:
        if process.name.endswith("pkill"):
            machine.signal(pid, kill=kill)
        else:
            process.say(str(pid))
    return 0 if pids else 1


def _crictl(machine: Machine, process: Process) -> int:
    words = list(process.arguments)
    while words and words[0].startswith("-"):
        words = words[1:] if "=" in words[0] else words[2:]
    if "containerd.service" not in machine.active:
        return process.fail("validate service connection: dial unix /run/containerd/containerd.sock: connect: no such file or directory")
    if not words:
        raise UsageError("crictl")
    verb, rest = words[0], words[1:]
    if verb in ("pods", "ps"):
        for container in machine.containers.values():
            process.say(container.id)
    elif verb in ("rmp", "rm", "stopp", "stop"):
        everything = bool({"-a", "--all", "-fa", "-af"} & set(rest))
        for container in list(machine.containers.values()):
            if everything or container.id in rest:
                _end(machine, container.pid)
    else:
        raise UsageError(f"crictl {verb}")
    return 0


def _ctr(machine: Machine, process: Process) -> int:
    words = list(process.arguments)
    while words and words[0].startswith("-"):
        words = words[1:] if "=" in words[0] else words[2:]
    if "containerd.service" not in machine.active:
        return process.fail('failed to dial "/run/containerd/containerd.sock": no such file or directory')
    noun, verb, rest = words[0], words[1], [word for word in words[2:] if not word.startswith("-")]
    if verb in ("list", "ls"):
        for container in machine.containers.values():
            process.say(container.id)
        return 0
    if noun not in ("tasks", "task", "t", "containers", "container", "c") or verb not in ("kill", "delete", "rm"):
        raise UsageError(f"ctr {noun} {verb}")
    named = [word for word in rest if word in machine.containers]
    for name in named:
        if verb == "kill":
            machine.signal(machine.containers[name].pid, kill="SIGKILL" in words)
    return 0 if named or verb != "kill" else process.fail(f"no running task found: {rest[-1:]}: not found")


def _end(machine: Machine, pid: int) -> None:
    """As a runtime does: asked first, made to after that."""
    machine.signal(pid)
    machine.signal(pid, kill=True)


PROGRAMS: dict[str, Callable[[Machine, Process], int]] = {
    "kill": _kill,
    "pidof": _pidof,
    "pkill": _pkill,
    "pgrep": _pkill,
    "crictl": _crictl,
    "ctr": _ctr,
}
