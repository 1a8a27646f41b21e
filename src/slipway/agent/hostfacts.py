"""What the host says of itself while no plan is in flight, for those who decide on its next one: preflight, claims, the inventory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from slipway.agent import paths
from slipway.agent.machine import CannotStartError, Command, HttpGet

if TYPE_CHECKING:
    from slipway.agent.machine import Machine
    from slipway.host.interface import Host

PERIOD = 300.0
"""Seconds between two looks."""
RENEWAL = 3600.0
"""Seconds after which facts are told again though they are the same: each time the whole Secret is written, and there may be many hosts."""
_NEWS = 0.1
"""The part by which free space must have changed."""
_FOLDERS = ("/", "/var", "/var/lib/containerd", "/.snapshots")
_TIMEOUT = 5.0
_OS_RELEASE = ("/etc/os-release", "/usr/lib/os-release")
_KUBELET_TIMEOUT = 10.0
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_KUBELET_MASKS = ("/etc/systemd/system/kubelet.service", "/run/systemd/system/kubelet.service")
_CONTAINERS = "/run/containerd/io.containerd.runtime.v2.task/k8s.io"
_UNITS = "/etc/systemd/system"


def gather(machine: Machine, registry: str, booted: dict[str, str], plan: str, staging: dict[str, object] | None = None) -> dict[str, Any]:
    """``booted`` is the image, which is looked at once a boot, ``plan`` the checksum of the plan that is applied, ``staging`` the image
    that the host is to have ahead."""
    facts: dict[str, Any] = {
        "freeBytes": {folder: free for folder in _FOLDERS if (free := machine.free_bytes(folder)) is not None},
        "image": booted,
        **_state(machine.host, plan),
    }
    if registry:
        reachable, message = reach(machine, registry)
        facts["registry"] = {"address": registry, "reachable": reachable, "message": message}
    return {**facts, "staging": staging} if staging is not None else facts


def after(before: bytes, host: Host, plan: str) -> bytes:
    """Facts with what a plan that was just applied may have changed: they are written with its outcome, so that nobody goes by old ones."""
    return msgspec.json.encode({**_known(before), **_state(host, plan)})


def _state(host: Host, plan: str) -> dict[str, Any]:
    now = host.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"bootId": boot_id(host), "clean": is_clean(host), "plan": plan, "observedAt": now}


def is_news(before: bytes, facts: dict[str, Any], age: float) -> bool:
    """Whether facts are worth a write: when something changed that is more than some bytes of free space, or the told ones are old."""
    known = _known(before)
    if age >= RENEWAL or any(known.get(key) != facts.get(key) for key in ("bootId", "image", "clean", "plan", "registry", "staging")):
        return True
    return _has_changed(known.get("freeBytes"), facts["freeBytes"])


def _has_changed(before: object, now: dict[str, int]) -> bool:
    if not isinstance(before, dict) or before.keys() != now.keys():
        return True
    return any(not isinstance(was := before[path], int) or abs(free - was) > was * _NEWS for path, free in now.items())


def _known(facts: bytes) -> dict[str, Any]:
    """Facts as they were told; none where somebody wrote something else there."""
    try:
        return msgspec.json.decode(facts or b"{}", type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


def registry_of(facts: bytes) -> str:
    """The registry that facts tell of."""
    try:
        return str(_known(facts)["registry"]["address"])
    except (KeyError, TypeError):
        return ""


def staging_of(facts: bytes) -> object:
    """What facts tell of the image that the host is to have ahead."""
    return _known(facts).get("staging")


def boot_id(host: Host) -> str:
    return _text(host, _BOOT_ID)


def image(machine: Machine) -> dict[str, str]:
    """The booted operating system: the image that it came from, as it says itself, and the version of its kubelet."""
    fields = os_release(machine.host)
    reference = fields.get("IMAGE") or ":".join(filter(None, (fields.get("IMAGE_ID"), fields.get("IMAGE_VERSION"))))
    found = {"reference": reference, "digest": fields.get("IMAGE_DIGEST", ""), "version": kubelet_version(machine)}
    return {name: value for name, value in found.items() if value}


def kubelet_version(machine: Machine, program: str = "kubelet", folder: str = paths.WORK) -> str:
    """Empty where there is no kubelet, or none that says what it is."""
    command = Command(program=program, arguments=("--version",), folder=folder, timeout=_KUBELET_TIMEOUT)
    try:
        said = machine.execute(command, stop=lambda: False).output.decode(errors="replace").split()
    except CannotStartError:
        return ""
    return said[1] if len(said) == 2 and said[0] == "Kubernetes" else ""


def os_release(host: Host) -> dict[str, str]:
    for path in _OS_RELEASE:
        if lines := _text(host, path).splitlines():
            pairs = (line.partition("=") for line in lines if "=" in line and not line.startswith("#"))
            return {key.strip(): value.strip().strip("\"'") for key, _, value in pairs}
    return {}


def is_clean(host: Host) -> bool:
    """Whether nothing of a cluster runs or would run after a boot: the kubelet is held back, and no container of Kubernetes is left."""
    try:
        held_back = any(_is_mask(host, path) for path in _KUBELET_MASKS) or _is_disabled(host)
        running = any(_runs(host, f"{_CONTAINERS}/{task}") for task in host.list_dir(_CONTAINERS))
    except OSError:
        # It went away while it was looked at, or is something else than expected: the next look may know.
        return False
    return held_back and not running


def _is_mask(host: Host, path: str) -> bool:
    """systemd takes a unit that is a link to /dev/null, or an empty file, for masked."""
    return host.exists(path) and not host.read(path, 1)


def _is_disabled(host: Host) -> bool:
    """A unit that is a file of its own where masks are cannot be masked: it is held back where no target wants it."""
    if not host.exists(_KUBELET_MASKS[0]):
        return False
    unit = _KUBELET_MASKS[0].rpartition("/")[2]
    folders = [f"{_UNITS}/{name}" for name in host.list_dir(_UNITS) if name.endswith((".wants", ".requires"))]
    return not any(unit in host.list_dir(folder) for folder in folders)


def _runs(host: Host, task: str) -> bool:
    """A folder that containerd could not remove is left behind by a container that has ended."""
    number = _text(host, f"{task}/init.pid")
    return not number.isdigit() or host.exists(f"/proc/{number}")


def reach(machine: Machine, registry: str) -> tuple[bool, str]:
    """Whether a registry answers, by HTTPS or else by HTTP; one that asks who is there has answered."""
    import ssl

    place = (registry.partition("://")[2] or registry).partition("/")[0]
    try:
        status = machine.status(HttpGet(url=f"https://{place}/v2/", timeout=_TIMEOUT))
        message = ""
    except ssl.SSLCertVerificationError as error:
        return True, f"its certificate is not trusted by this host ({error.verify_message}), which pulls from it only without verifying"
    except OSError as secure:
        try:
            status = machine.status(HttpGet(url=f"http://{place}/v2/", timeout=_TIMEOUT))
        except OSError:
            return False, f"{place} does not answer: {secure.strerror or secure}"
        message = "it answers in plain HTTP only"
    return (False, f"{place} answers with status {status}") if status >= 500 else (True, message)


def _text(host: Host, path: str) -> str:
    try:
        return host.read(path).decode(errors="replace").strip()
    except OSError:
        return ""
