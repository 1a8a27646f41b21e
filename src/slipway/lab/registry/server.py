"""The registry of a lab: the server of the distribution project as a process on the lab's bridge, over plain HTTP.

Hosts pull the OS images that they are upgraded to from it.  It can be ended and started again, as registries of production can.
"""

from __future__ import annotations

import re
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.host.real import RealHost
from slipway.lab import processes
from slipway.lab.network import addresses
from slipway.lab.processes import Process  # noqa: TC001 - msgspec reads it
from slipway.lab.programs import gobuild
from slipway.lab.registry import layers
from slipway.lab.registry.storage import Storage

if TYPE_CHECKING:
    from pathlib import Path

    from slipway.host.progress import Progress
    from slipway.lab.osimage.image import OSImage
    from slipway.lab.record import Lab

PORT = 5000
DISTRIBUTION = "v3.1.2"
"""The version of the server, which is built from its Go module."""
_HEALTHY_WITHIN = 30.0
_ENDED_WITHIN = 10.0
_LOOK_AGAIN = 0.05
_NAME = re.compile(r"(?P<repository>[a-z0-9]+(?:[._/-]+[a-z0-9]+)*):(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127})")


class Registry(msgspec.Struct, frozen=True, kw_only=True):
    """A registry on record."""

    address: str
    """Host and port, as references begin."""
    process: Process | None = None


class Pushed(msgspec.Struct, frozen=True, kw_only=True):
    """An OS image that a registry has."""

    reference: str
    digest: str


def folder(lab: Lab) -> Path:
    return lab.folder / "registry"


def load(lab: Lab) -> Registry | None:
    """The registry of a lab; None where it has none."""
    try:
        return msgspec.json.decode(_record(lab).read_bytes(), type=Registry)
    except FileNotFoundError:
        return None


def is_running(lab: Lab) -> bool:
    found = load(lab)
    return found is not None and found.process is not None and processes.is_running(found.process)


def up(lab: Lab, progress: Progress) -> Registry:
    """Start the registry of a lab whose network is up, and wait until it answers; one that runs is left alone."""
    record = lab.record
    program = gobuild.build("registry", DISTRIBUTION)
    found = load(lab) or Registry(address=f"{addresses.gateway(record.host_network)}:{PORT}")
    if not is_running(lab):
        folder(lab).mkdir(mode=0o700, exist_ok=True)
        config = folder(lab) / "config.yml"
        config.write_text(configuration(found.address, storage(lab).folder))
        # Not one of its flags or variables is the operator's: it gets no environment but PATH.
        processes.start([str(program), "serve", str(config)], _log(lab), lambda process: _save(lab, found.address, process))
        _await(lab, found.address)
        progress.say(f"[registry] {found.address}: answers")
    running = load(lab)
    assert running is not None
    return running


def down(lab: Lab, progress: Progress) -> None:
    """End the registry; what it has stays."""
    found = load(lab)
    if found is None or found.process is None:
        return
    processes.stop(found.process, _ENDED_WITHIN)
    _save(lab, found.address, None)
    progress.say(f"[registry] {found.address}: ended")


def push(lab: Lab, image: OSImage, name: str, progress: Progress) -> Pushed:
    """Give the registry an OS image under ``repository:tag``; layers that it has are not made again."""
    parts = _NAME.fullmatch(name)
    if parts is None:
        raise OperatorError(f"{name!r} cannot be the name of an image: write REPOSITORY:TAG, such as os/base-image:{image.name}")
    found = load(lab)
    if found is None:
        raise OperatorError(f'the lab "{lab.name}" has no registry: start it with `slipway lab registry up`')
    made = layers.oci_image(image, tuple(_layer(lab, layer) for layer in reversed(image.layers)))
    storage(lab).add(made, parts["repository"], parts["tag"])
    pushed = Pushed(reference=f"{found.address}/{name}", digest=made.manifest.digest)
    progress.say(f"[registry] {pushed.reference}: {image.name}, {pushed.digest}")
    return pushed


def storage(lab: Lab) -> Storage:
    return Storage(folder(lab) / "storage")


def configuration(address: str, root: Path) -> str:
    """The server's configuration: a folder, an address, and nothing that leaves the machine."""
    return goyaml.dump(
        {
            "version": "0.1",
            "log": {"level": "warn", "accesslog": {"disabled": True}},
            "storage": {"filesystem": {"rootdirectory": str(root)}, "redirect": {"disable": True}},
            "http": {"addr": address, "draintimeout": "1s"},
        }
    )


def _layer(lab: Lab, source: Path) -> layers.Blob:
    """The blob of a layer of an OS image, written once."""
    known = folder(lab) / "blobs" / f"{source.parent.name}-{source.name}.json"
    if known.exists():
        blob = msgspec.json.decode(known.read_bytes(), type=layers.Blob)
        if storage(lab).has(blob.digest):
            layers.share(source, blob.hex)
            return blob
    blob = layers.write_layer(source, known.parent)
    storage(lab).take(known.parent / blob.hex, blob.digest)
    RealHost().write(str(known), msgspec.json.encode(blob), 0o600)
    return blob


def _await(lab: Lab, address: str) -> None:
    deadline = time.monotonic() + _HEALTHY_WITHIN
    while True:
        try:
            with urllib.request.urlopen(f"http://{address}/v2/", timeout=5):
                return
        except (urllib.error.URLError, OSError) as error:
            if is_running(lab) and time.monotonic() < deadline:
                time.sleep(_LOOK_AGAIN)
                continue
            words = _log(lab).read_text(errors="replace").splitlines()[-3:] if _log(lab).exists() else []
            said = "".join(f"\n  {line}" for line in words)
            raise OperatorError(f"the registry at {address} does not answer: {error}{said}") from error


def _record(lab: Lab) -> Path:
    return folder(lab) / "registry.json"


def _log(lab: Lab) -> Path:
    return folder(lab) / "registry.log"


def _save(lab: Lab, address: str, process: Process | None) -> None:
    RealHost().write(str(_record(lab)), msgspec.json.encode(Registry(address=address, process=process)), 0o600)
