"""The programs of a simulated machine that act on the machine itself: services, addresses, images, cloud-init, power."""

from __future__ import annotations

import posixpath
import re
from functools import partial
from typing import TYPE_CHECKING

from slipway.simulation.host import containers, coreutils, deployment
from slipway.simulation.host.commandline import UsageError
from slipway.simulation.host.files import File, Link
from slipway.simulation.host.machine import MASKS, UNITS, executed
from slipway.simulation.shell.interpreter import Shell
from slipway.simulation.shell.process import NOT_EXECUTABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.simulation.host.machine import Machine
    from slipway.simulation.shell.process import Process

_FOLDERS = ("/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/usr/lib/slipway/")


def find(machine: Machine, name: str) -> Callable[[Process], int] | None:
    """What runs under a name or a path; None where there is no such program."""
    if "/" in name and executed(machine.tree, name) is not None:
        return partial(_started, machine, posixpath.basename(name), partial(_kubernetes, machine))
    base = posixpath.basename(name)
    if name != base and not any(name == folder + base for folder in _FOLDERS):
        return partial(_file, machine) if isinstance(machine.tree.find(name), File) else None
    if base in _PROGRAMS:
        return partial(_started, machine, base, partial(_PROGRAMS[base], machine))
    if base in coreutils.PROGRAMS:
        return partial(_started, machine, base, partial(coreutils.run, machine.tree))
    return None


def _started(machine: Machine, name: str, program: Callable[[Process], int], process: Process) -> int:
    machine.begin_program(name)
    code = machine.faults.fails.get(name)
    if code is not None:
        return process.fail("it fails, as the simulation was told", code)
    try:
        return program(process)
    except UsageError as error:
        return process.fail(f"{error} (this is not simulated)", 2)


def _file(machine: Machine, process: Process) -> int:
    """A script that somebody wrote on the machine."""
    entry = machine.tree.file(process.name)
    if not entry.mode & 0o111:
        return process.fail("Permission denied", NOT_EXECUTABLE)
    first, _, _ = entry.content.partition(b"\n")
    if not re.match(rb"#!\s*(/usr)?/bin/(env )?(ba|da)?sh", first):
        return process.fail("it is no shell script, and nothing else is simulated", NOT_EXECUTABLE)
    return Shell(machine, process, name=process.name, arguments=process.arguments).run(entry.content.decode())


def _shell(machine: Machine, process: Process) -> int:
    words = list(process.arguments)
    options: list[str] = []
    while words and re.fullmatch(r"-[eux]+", words[0]):
        options.append(words.pop(0))
    prefix = "".join(f"set {option}\n" for option in options)
    if words and re.fullmatch(r"-[eux]*c", words[0]):
        if set(words[0]) & set("eux"):
            prefix += f"set {words[0].replace('c', '')}\n"
        _, script, *rest = words
        return Shell(machine, process, name=rest[0] if rest else "sh", arguments=rest[1:]).run(prefix + script)
    if words:
        content = machine.tree.file(process.path(words[0])).content.decode()
        return Shell(machine, process, name=words[0], arguments=words[1:]).run(prefix + content)
    return Shell(machine, process).run(prefix + process.stdin.decode())


def _kubernetes(machine: Machine, process: Process) -> int:
    """kubelet and kubeadm by their paths: they say their version, and kubeadm is the boot's to run."""
    found = executed(machine.tree, process.name)
    assert found is not None
    program, version = found
    if process.arguments == ["--version"] and program == "kubelet":
        process.say(f"Kubernetes {version}")
        return 0
    if process.arguments[:1] == ["version"] and program == "kubeadm":
        process.say(version)
        return 0
    return process.fail(f"{' '.join(process.arguments)}: this is not simulated", 2)


def _kubelet(machine: Machine, process: Process) -> int:
    process.words[0] = "/usr/bin/kubelet"
    return _kubernetes(machine, process)


def _chroot(machine: Machine, process: Process) -> int:
    root, program, *rest = process.arguments
    process.words = [posixpath.join(root, program.lstrip("/")), *rest]
    if executed(machine.tree, process.words[0]) is None:
        return process.fail("only Kubernetes' own programs are run in another root", NOT_EXECUTABLE)
    return _kubernetes(machine, process)


def _systemctl(machine: Machine, process: Process) -> int:
    words = [word for word in process.arguments if word not in ("--now", "--quiet", "-q", "--no-block", "--system")]
    now = "--now" in process.arguments
    if not words:
        raise UsageError("a verb is missing")
    verb, *units = words
    units = [unit if "." in unit else f"{unit}.service" for unit in units]
    if verb in ("reboot", "poweroff", "kexec"):
        return _reboot(machine, process) if verb == "reboot" else _poweroff(machine, process)
    if verb == "daemon-reload":
        return 0
    for unit in units:
        code = _unit(machine, process, verb, unit, now=now)
        if code:
            return code
    return 0


def _unit(machine: Machine, process: Process, verb: str, unit: str, *, now: bool) -> int:
    known = unit in UNITS or machine.tree.exists(f"/etc/systemd/system/{unit}")
    if not known and verb not in ("mask", "unmask", "is-active", "is-enabled"):
        return process.fail(f"Unit {unit} could not be found." if verb == "cat" else f"Unit {unit} not loaded.", 1 if verb == "cat" else 5)
    match verb:
        case "start" | "restart" | "reload" | "reload-or-restart":
            if not machine.start(unit):
                return process.fail(f"Failed to start {unit}: Unit {unit} is masked.")
        case "stop" | "kill":
            machine.stop(unit)
        case "mask":
            if not machine.is_masked(unit):
                machine.tree.remove(f"{MASKS}/{unit}")
                machine.tree.link(f"{MASKS}/{unit}", "/dev/null")
            if now:
                machine.stop(unit)
        case "unmask":
            if machine.is_masked(unit):
                machine.tree.remove(f"{MASKS}/{unit}")
        case "enable" | "disable":
            if now:
                machine.start(unit) if verb == "enable" else machine.stop(unit)
        case "cat":
            process.say(f"# /usr/lib/systemd/system/{unit}")
        case "is-active":
            process.say("active" if unit in machine.active else "inactive")
            return 0 if unit in machine.active else 3
        case "is-enabled":
            process.say("masked" if machine.is_masked(unit) else "enabled")
            return 1 if machine.is_masked(unit) or not known else 0
        case _:
            raise UsageError(f"systemctl {verb}")
    return 0


def _systemd_run(machine: Machine, process: Process) -> int:
    words = list(process.arguments)
    while words and words[0].startswith("-"):
        words.pop(0)
    if words not in (["systemctl", "reboot"], ["reboot"], ["/sbin/reboot"], ["/usr/bin/systemctl", "reboot"]):
        raise UsageError(f"systemd-run {' '.join(words)}")
    return _reboot(machine, process)


def _reboot(machine: Machine, process: Process) -> int:
    machine.reboot_wanted.set()
    machine.changed()
    return 0


def _poweroff(machine: Machine, process: Process) -> int:
    machine.power_off()
    machine.check_power(machine.boots)
    return 0


def _seq(machine: Machine, process: Process) -> int:
    numbers = [int(word) for word in process.arguments]
    first, last = (1, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[-1])
    for number in range(first, last + 1):
        process.say(str(number))
    return 0


def _sleep(machine: Machine, process: Process) -> int:
    machine.pause(float(process.arguments[0].removesuffix("s")), machine.boots)
    return 0


def _ip(machine: Machine, process: Process) -> int:
    words = [word for word in process.arguments if word not in ("-4", "-6", "-br", "-brief")]
    one_line = "-o" in words
    words = [word for word in words if word not in ("-o", "-oneline")]
    if words[:1] not in (["addr"], ["address"], ["a"]):
        raise UsageError(f"ip {' '.join(words)}")
    verb, rest = (words[1] if len(words) > 1 else "show"), words[2:]
    given = dict(zip(rest[::2], rest[1::2], strict=False))
    if verb in ("show", "list"):
        return _show_addresses(machine, process, given, one_line=one_line)
    device = rest[rest.index("dev") + 1]
    address = rest[0]
    held = machine.addresses.setdefault(device, [])
    if verb in ("del", "delete"):
        matching = [each for each in held if each == address or each.partition("/")[0] == address]
        if not matching:
            return process.fail("RTNETLINK answers: Cannot assign requested address", 2)
        held.remove(matching[0])
    elif verb in ("add", "replace"):
        if address in held and verb == "add":
            return process.fail("RTNETLINK answers: File exists", 2)
        held.append(address if "/" in address else f"{address}/32")
    else:
        raise UsageError(f"ip addr {verb}")
    machine.changed()
    return 0


def _show_addresses(machine: Machine, process: Process, given: dict[str, str], *, one_line: bool) -> int:
    for number, (device, addresses) in enumerate(machine.addresses.items(), 1):
        if given.get("dev", device) != device:
            continue
        wanted = [each for each in addresses if "to" not in given or each.partition("/")[0] == given["to"].partition("/")[0]]
        if not one_line and (wanted or "to" not in given):
            process.say(f"{number}: {device}: <UP>")
        for address in wanted:
            process.say(
                f"{number}: {device}    inet {address} scope global {device}" if one_line else f"    inet {address} scope global {device}"
            )
    return 0


def _cloud_init(machine: Machine, process: Process) -> int:
    if process.arguments[:1] != ["clean"]:
        raise UsageError(f"cloud-init {' '.join(process.arguments)}")
    unknown = set(process.arguments[1:]) - {"--logs", "--seed", "-l", "-s", "--machine-id"}
    if unknown:
        raise UsageError(f"cloud-init clean {unknown.pop()}")
    seed = {"--seed", "-s"} & set(process.arguments)
    if machine.tree.is_dir("/var/lib/cloud"):
        for name in machine.tree.names("/var/lib/cloud"):
            if name != "seed" or seed:
                machine.tree.remove(f"/var/lib/cloud/{name}")
    if {"--logs", "-l"} & set(process.arguments):
        for log in ("/var/log/cloud-init.log", "/var/log/cloud-init-output.log"):
            machine.tree.remove(log)
    return 0


def _dmidecode(machine: Machine, process: Process) -> int:
    hardware = machine.hardware
    process.out += (
        "# dmidecode 3.4\nGetting SMBIOS data from sysfs.\nSMBIOS 3.0.0 present.\n\n"
        "Handle 0x0000, DMI type 0, 26 bytes\nBIOS Information\n\tVendor: Slipway\n\tVersion: 1.0\n\tRelease Date: 01/01/2026\n\n"
        "Handle 0x0001, DMI type 1, 27 bytes\nSystem Information\n"
        f"\tManufacturer: {hardware.vendor}\n\tProduct Name: {hardware.product}\n\tVersion: 1\n\tSerial Number: {hardware.serial}\n"
        f"\tUUID: {hardware.uuid}\n\tWake-up Type: Power Switch\n\tSKU Number: Not Specified\n\tFamily: Simulated\n\n"
        f"Handle 0x0003, DMI type 3, 22 bytes\nChassis Information\n\tManufacturer: {hardware.vendor}\n\tType: Rack Mount Chassis\n"
        f"\tSerial Number: {hardware.serial}\n\n"
    ).encode()
    return 0


def _hostname(machine: Machine, process: Process) -> int:
    process.say(machine.hostname)
    return 0


def _hostnamectl(machine: Machine, process: Process) -> int:
    machine.hostname = process.arguments[-1]
    return 0


def _nothing(machine: Machine, process: Process) -> int:
    return 0


def _true(machine: Machine, process: Process) -> int:
    return 0


def _env(machine: Machine, process: Process) -> int:
    words = list(process.arguments)
    while words and "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        process.environment = {**process.environment, name: value}
    program = find(machine, words[0]) if words else None
    if program is None:
        return process.fail(f"'{words[0] if words else ''}': No such file or directory", 127)
    process.words = words
    return program(process)


def _readable(machine: Machine, process: Process) -> int:
    entry = machine.tree.find(process.path(process.arguments[-1]), follow=False)
    return 1 if entry is None or isinstance(entry, Link) else 0


_PROGRAMS: dict[str, Callable[[Machine, Process], int]] = {
    "sh": _shell,
    "bash": _shell,
    "dash": _shell,
    "kubelet": _kubelet,
    "chroot": _chroot,
    "systemctl": _systemctl,
    "systemd-run": _systemd_run,
    "reboot": _reboot,
    "poweroff": _poweroff,
    "seq": _seq,
    "sleep": _sleep,
    "ip": _ip,
    "cloud-init": _cloud_init,
    "dmidecode": _dmidecode,
    "hostname": _hostname,
    "hostnamectl": _hostnamectl,
    "env": _env,
    "mountpoint": _readable,
    "sysctl": _nothing,
    "modprobe": _nothing,
    "swapoff": _nothing,
    "true": _true,
    **containers.PROGRAMS,
    **deployment.PROGRAMS,
}
