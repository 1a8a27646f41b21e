"""The ``elemental`` command of a virtual host: ``upgrade`` has an OS image deployed beside the one that runs, for the next boot.

Flags and exit codes are those of elemental-toolkit.  The image is complete before anything is changed, and the change is one rename:
a failure leaves what was staged before, or nothing.  Layers that the lab has under their digest are not transferred again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

# On a host the two modules lie in one folder, and there is no package around them.
if TYPE_CHECKING or __name__ != "__main__":
    from slipway.agent.staging import registry
else:
    import registry

DUMP_SOURCE, RUN_CONFIG, FLAGS, SPEC, REBOOT, POWER_OFF, NOT_ROOT, NO_RECOVERY, OTHER = 18, 31, 32, 33, 42, 43, 58, 88, 1
_SWITCHES = {
    "--reboot",
    "--poweroff",
    "--tls-verify",
    "--local",
    "--recovery",
    "--bootloader",
    "--strict",
    "--verify",
    "--debug",
    "--quiet",
}
_VALUES = {"--system", "--system.uri", "--snapshot-labels", "--config-dir", "--logfile"}
_TRUE, _FALSE = {"", "true", "1"}, {"false", "0"}
_OPAQUE, _WHITEOUT = ".wh..wh..opq", ".wh."
_GZIP = 31  # zlib reads the header of gzip


class CommandError(Exception):
    """Why the command ends, and the exit code that says so."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Request(NamedTuple):
    """What the command line asks for."""

    system: str
    reboot: bool
    power_off: bool
    verify: bool
    local: bool
    recovery: bool


class Host:
    """The places of a host, below a root that tests choose."""

    def __init__(self, root: str = "/") -> None:
        base = Path(root)
        self.state = base / "var/lib/slipway-lab"
        self.layers = self.state / "layers"
        """What this host pulled itself."""
        self.shared = base / "run/slipway-lab/os/layers"
        """What the lab has, by digest; a host reads it and does not write it."""
        self.staged = self.state / "staged.json"
        self.staged_root = base / "run/elemental/staged"
        self.config = base / "etc/elemental"
        self.image = base / "etc/slipway-lab-image"
        self.transfers = base / "etc/slipway-lab/transfer-every-layer"
        """Where it is there, every layer comes through the network, as elemental-toolkit has it, whatever is here already."""


def read_flags(words: list[str], host: Host) -> Request:
    """The command line over what the configuration file says."""
    given: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, has_value, value = word.partition("=")
        if name in _SWITCHES:
            given[name] = value
            if value not in _TRUE | _FALSE:
                raise CommandError(OTHER, f'invalid argument "{value}" for "{name}" flag: it is true or false')
        elif name in _VALUES:
            if not has_value and not rest:
                raise CommandError(OTHER, f"flag needs an argument: {name}")
            given[name] = value if has_value else rest.pop(0)
        elif word.startswith("-"):
            raise CommandError(OTHER, f"unknown flag: {name}")
        else:
            raise CommandError(OTHER, f'unexpected argument "{word}"')
    configured = _configuration(Path(given.get("--config-dir", host.config)), required="--config-dir" in given)

    def switch(name: str, default: bool) -> bool:
        return given[name] in _TRUE if name in given else default

    reboot, power_off = switch("--reboot", bool(configured.get("reboot"))), switch("--poweroff", bool(configured.get("poweroff")))
    if reboot and power_off:
        raise CommandError(FLAGS, "--reboot and --poweroff cannot be used together")
    upgrade = configured.get("upgrade") or {}
    named = upgrade.get("system") if isinstance(upgrade, dict) else None
    system = given.get("--system", given.get("--system.uri", str(named or "")))
    if not system:
        raise CommandError(SPEC, "no system to upgrade to: --system IMAGE is missing")
    return Request(system, reboot, power_off, switch("--tls-verify", True), switch("--local", False), switch("--recovery", False))


def _configuration(folder: Path, *, required: bool) -> dict[str, object]:
    path = folder / "config.yaml"
    if not path.exists():
        if required and not folder.is_dir():
            raise CommandError(RUN_CONFIG, f"the configuration folder {folder} is not there")
        return {}
    import yaml  # Debian's, which cloud-init needs as well

    try:
        found = yaml.safe_load(path.read_text())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CommandError(RUN_CONFIG, f"{path} is not YAML: {error}") from error
    if found is not None and not isinstance(found, dict):
        raise CommandError(RUN_CONFIG, f"{path} is not a mapping")
    return found or {}


def source(system: str) -> tuple[str, str]:
    """The kind of a source and what is left of it: ``image``, ``dir`` or ``file``."""
    for scheme in ("dir", "file"):
        if system.startswith(f"{scheme}:"):
            path = system.removeprefix(f"{scheme}:")
            path = path.removeprefix("//") if path.startswith("///") else path
            if not path.startswith("/"):
                raise CommandError(SPEC, f"{system}: an absolute path is needed")
            return scheme, path
    reference = system
    for scheme in ("docker:", "oci:"):
        if system.startswith(scheme):
            reference = system.removeprefix(scheme).removeprefix("//")
    try:
        registry.parse(reference)
    except ValueError as error:
        raise CommandError(SPEC, str(error)) from error
    return "image", reference


def upgrade(words: list[str], host: Host) -> Request:
    """Stage a system for the next boot."""
    request = read_flags(words, host)
    if os.geteuid() != 0:
        raise CommandError(NOT_ROOT, "this command needs root")
    if request.recovery:
        raise CommandError(NO_RECOVERY, "a virtual host has no recovery system")
    kind, where = source(request.system)
    if request.local and kind == "image":
        raise CommandError(DUMP_SOURCE, "a virtual host has no store of local OS images: leave --local out")
    host.layers.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        if kind == "image":
            digest, layers = _pull(registry.parse(where), host, verify=request.verify)
        else:
            digest, layers = _taken(kind, Path(where), host)
        _show(layers, host)
    except registry.PullError as error:
        raise CommandError(DUMP_SOURCE, str(error)) from error
    except (OSError, subprocess.CalledProcessError) as error:
        raise CommandError(DUMP_SOURCE, f"{request.system} cannot be deployed: {_told(error)}") from error
    _close_transaction(host, {"reference": request.system, "digest": digest, "layers": layers})
    print(f"The next boot starts from {request.system} ({digest}).", flush=True)
    return request


def _pull(reference: registry.Reference, host: Host, *, verify: bool) -> tuple[str, list[str]]:
    """The digest of the image and the names of its layers, the lowest first; all of them are there afterwards."""
    source = registry.Registry(reference.registry, verify=verify)
    manifest = source.manifest(reference)
    for layer in manifest.layers:
        name = _name(layer.content)
        if host.transfers.exists() and (host.layers / name).is_dir():
            for _ in source.blob(reference, layer.digest):
                # What is here is in use; it need not be written twice.
                continue
            print(f"{layer.digest}: pulled {layer.size} bytes once more", flush=True)
            continue
        if (host.layers / name).is_dir() or ((host.shared / name).is_dir() and not host.transfers.exists()):
            # It need not come twice; but an image that the registry could not give to another host is none.
            if not source.has(reference, layer):
                raise registry.PullError(f"the registry {source.address} lacks the layer {layer.digest} of {reference}")
            print(f"{layer.digest}: already here", flush=True)
            continue
        _unpack(source.blob(reference, layer.digest), layer, host.layers / name)
        print(f"{layer.digest}: pulled {layer.size} bytes", flush=True)
    return manifest.digest, [_name(layer.content) for layer in manifest.layers]


def _unpack(chunks: Iterator[bytes], layer: registry.Layer, target: Path) -> None:
    """A layer as a folder that an overlay can use; it has its name only when every byte was right."""
    if not layer.media_type.endswith((".tar", "+gzip", ".tar.gzip")):
        raise registry.PullError(f"the layer {layer.digest} is {layer.media_type}, which a virtual host cannot unpack: use tar or gzip")
    with _appearing(target) as partial:
        # A host in a container may not make devices, and needs none of the image's.
        command = ["tar", "--extract", "--xattrs", "--numeric-owner", "--anchored", "--exclude=dev/*", "--exclude=./dev/*"]
        command.append(f"--directory={partial}")
        content = hashlib.sha256()
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as tar:
            assert tar.stdin is not None
            assert tar.stderr is not None
            try:
                for chunk in _uncompressed(chunks, layer.media_type):
                    content.update(chunk)
                    tar.stdin.write(chunk)
                tar.stdin.close()
            except BrokenPipeError:
                pass  # tar says why
            except BaseException:
                tar.kill()
                raise
            said = tar.stderr.read().decode(errors="replace")
        if tar.returncode != 0:
            raise registry.PullError(f"the layer {layer.digest} cannot be unpacked: {said.strip()}")
        registry.check(layer.content, f"sha256:{content.hexdigest()}", f"the content of {layer.digest}")
        _convert_whiteouts(partial)


def _uncompressed(chunks: Iterator[bytes], media_type: str) -> Iterator[bytes]:
    if not media_type.endswith("gzip"):
        yield from chunks
        return
    inflate = zlib.decompressobj(_GZIP)
    try:
        for chunk in chunks:
            yield inflate.decompress(chunk)
        yield inflate.flush()
    except zlib.error as error:
        raise registry.PullError(f"a layer is not compressed as it says: {error}") from error


def _convert_whiteouts(root: Path) -> None:
    """What a layer removes: marker files in a tar, device nodes and attributes in an overlay."""
    for folder, _, names in os.walk(root):
        for name in names:
            if not name.startswith(_WHITEOUT):
                continue
            path = Path(folder, name)
            path.unlink()
            if name == _OPAQUE:
                os.setxattr(folder, "trusted.overlay.opaque", b"y")
            else:
                os.mknod(Path(folder, name.removeprefix(_WHITEOUT)), 0o20000)


def _taken(kind: str, path: Path, host: Host) -> tuple[str, list[str]]:
    """A folder or a tar archive of a root file system, copied: it may change or go before the next boot."""
    if kind == "dir":
        if not path.is_dir():
            raise registry.PullError(f"{path} is not a folder")
        # What is in it has no digest of its own; each copy is a system of its own.
        digest = f"sha256:{os.urandom(32).hex()}"
        with _appearing(host.layers / _name(digest)) as partial:
            subprocess.run(["cp", "--archive", "--reflink=auto", f"{path}/.", str(partial)], check=True, capture_output=True)
        return digest, [_name(digest)]
    if not path.is_file():
        raise registry.PullError(f"{path} is not a file")
    with path.open("rb") as stream:
        digest = f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"
    if not (host.layers / _name(digest)).is_dir():
        with _appearing(host.layers / _name(digest)) as partial:
            # A disk image would need a loop device, which a container has not.
            subprocess.run(
                ["tar", "--extract", "--xattrs", "--numeric-owner", f"--directory={partial}", f"--file={path}"],
                check=True,
                capture_output=True,
            )
    return digest, [_name(digest)]


@contextmanager
def _appearing(target: Path) -> Iterator[Path]:
    """A folder that has its name only when it is whole."""
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        yield partial
        partial.chmod(0o755)
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _show(layers: list[str], host: Host) -> None:
    """Mount the staged system where it can be looked at before the reboot, read-only."""
    folders = [str(host.shared / name if (host.shared / name).is_dir() else host.layers / name) for name in reversed(layers)]
    if not any(Path(folder, name).exists() for folder in folders for name in ("sbin/init", "usr/sbin/init", "usr/lib/systemd/systemd")):
        raise registry.PullError("there is no root file system in it: it has no init")
    target = host.staged_root
    target.mkdir(parents=True, exist_ok=True)
    while os.path.ismount(target):
        subprocess.run(["umount", "--lazy", str(target)], check=True, capture_output=True)
    # An overlay without a layer to write to needs two others.
    options = ["--types", "overlay", "--options", f"ro,lowerdir={':'.join(folders)}", "staged"]
    single = ["--bind", "--options", "ro", folders[0]]
    subprocess.run(["mount", *(options if len(folders) > 1 else single), str(target)], check=True, capture_output=True)


def _close_transaction(host: Host, staged: dict[str, object]) -> None:
    partial = host.staged.with_suffix(".new")
    with partial.open("w") as stream:
        json.dump(staged, stream)
        stream.flush()
        os.fsync(stream.fileno())
    partial.rename(host.staged)
    os.sync()


def _name(digest: str) -> str:
    return digest.removeprefix("sha256:")


def _told(error: BaseException) -> str:
    said = error.stderr.decode(errors="replace").strip() if isinstance(error, subprocess.CalledProcessError) and error.stderr else ""
    return said or str(error)


def run(words: list[str], host: Host) -> None:
    """The command line, after the name of the program."""
    command, *rest = words or [""]
    if command == "version":
        print(host.image.read_text(), end="")
    elif command == "upgrade":
        request = upgrade(rest, host)
        for wanted, verb, code in ((request.reboot, "reboot", REBOOT), (request.power_off, "poweroff", POWER_OFF)):
            if wanted and subprocess.run(["systemctl", verb], check=False).returncode != 0:
                raise CommandError(code, f"systemctl {verb} failed")
    else:
        raise CommandError(OTHER, f'unknown command "{command}" for "elemental": it has upgrade and version')


def main() -> NoReturn:
    try:
        run(sys.argv[1:], Host())
    except CommandError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(error.code)
    sys.exit(0)


if __name__ == "__main__":
    main()
