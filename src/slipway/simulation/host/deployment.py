"""The programs of a simulated machine that fetch images and deploy them: ``elemental``, and ``fetch-image`` of the agent."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slipway.simulation.host.commandline import UsageError
from slipway.simulation.host.files import File
from slipway.simulation.host.images import OsImage
from slipway.simulation.host.machine import executed

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.simulation.host.machine import Machine
    from slipway.simulation.shell.process import Process

# elemental-toolkit's codes (facts from its sources): the source cannot be deployed; a snapshot cannot be made.
_NOT_DEPLOYABLE, _NO_SNAPSHOT = 18, 84
_DIR = "dir:"
# Between two looks whether there is power, while a layer does not get on.
_LOOK = 0.05
# Seconds, of an image of some gigabytes: through the network, and from the host's own disk.
_PULL, _COPY = 30.0, 8.0


def _elemental(machine: Machine, process: Process) -> int:
    words = list(process.arguments)
    if words[:1] == ["version"]:
        process.say("v2.3.0")
        return 0
    if words[:1] != ["upgrade"]:
        raise UsageError(f"elemental {' '.join(words)}")
    given: dict[str, str] = {}
    words.pop(0)
    while words:
        name, equals, value = words.pop(0).partition("=")
        if name not in ("--system", "--reboot", "--poweroff", "--tls-verify", "--local", "--strict", "--verify", "--bootloader"):
            raise UsageError(f"elemental upgrade {name}")
        given[name] = value if equals else (words.pop(0) if name == "--system" else "true")
    return _upgrade(machine, process, given)


def _upgrade(machine: Machine, process: Process, given: dict[str, str]) -> int:
    reference = given.get("--system", "")
    is_copy = reference.startswith(_DIR)
    machine.pause(machine.chance.around(_COPY if is_copy else _PULL, 0.5), machine.boots, process.stopped)
    if machine.faults.cannot_upgrade:
        return process.fail("the upgrade fails, as the simulation was told", machine.faults.cannot_upgrade)
    image = _unpacked(machine, reference.removeprefix(_DIR)) if is_copy else machine.registry.pull(reference)
    if image is not None and not is_copy and not _flows(machine):
        return process.fail(f"ERRO failed to deploy {reference}: unexpected EOF in a layer", _NOT_DEPLOYABLE)
    if image is None or machine.chance.happens(machine.faults.upgrade_failures):
        why = "there is no root file system" if is_copy else _why(machine)
        return process.fail(f"ERRO failed to deploy {reference}: {why}", _NOT_DEPLOYABLE)
    if machine.faults.disk_full or machine.free_bytes() < image.size:
        return process.fail("ERRO cannot create a snapshot: no space left on device", _NO_SNAPSHOT)
    machine.stage(image)
    process.say(f"INFO Upgrade completed: {reference} ({image.digest})")
    if given.get("--reboot") == "true":
        machine.reboot_wanted.set()
        machine.changed()
    return 0


def _flows(machine: Machine) -> bool:
    """Whether a layer comes to its end, once it gets on."""
    while not machine.registry.flows.wait(_LOOK):
        machine.check_power(machine.boots)
    broken = machine.registry.broken > 0
    machine.registry.broken -= broken
    return not broken


def _unpacked(machine: Machine, root: str) -> OsImage | None:
    """The image that somebody unpacked into a folder: it says itself what it is."""
    described, kubelet = machine.tree.find(f"{root}/etc/os-release"), executed(machine.tree, f"{root}/usr/bin/kubelet")
    found = re.search(r'^IMAGE="(.*)"$', described.content.decode(), re.MULTILINE) if isinstance(described, File) else None
    return OsImage(found[1], kubelet[1]) if found is not None and kubelet is not None else None


def _why(machine: Machine) -> str:
    return "no such image" if machine.registry.reachable else "the registry does not answer"


def _slipway(machine: Machine, process: Process) -> int:
    """``slipway agent fetch-image``, which is all of it that the agent itself starts."""
    if process.arguments[:2] != ["agent", "fetch-image"]:
        raise UsageError(f"slipway {' '.join(process.arguments)}")
    words = process.arguments[2:]
    given = dict(word.removeprefix("--").split("=", 1) for word in words if word.startswith("--"))
    reference = next(word for word in words if not word.startswith("--"))
    machine.pause(0.1, machine.boots, process.stopped)
    image = machine.registry.pull(reference)
    if image is None:
        return process.fail(f"{reference}: {_why(machine)}")
    if not _flows(machine):
        return process.fail(f"{reference}: unexpected EOF in a layer")
    digest = image.digest
    if digest == given.get("unless"):
        process.say(f'{{"digest":"{digest}","same":true}}')
        return 0
    if machine.free_bytes() < 2 * image.size:
        return process.fail(f"there is no room to fetch {reference} ahead: {machine.free_bytes() >> 20} MiB are free")
    machine.unpack(image, given["into"])
    machine.pause(machine.chance.around(_PULL, 0.5), machine.boots, process.stopped)
    if process.stopped():
        return 143
    process.say(f'{{"digest":"{digest}","bytes":{image.size}}}')
    return 0


PROGRAMS: dict[str, Callable[[Machine, Process], int]] = {"elemental": _elemental, "slipway": _slipway}
