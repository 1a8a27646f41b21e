"""The container image of a control plane's virtual address: Debian's keepalived and curl, and Slipway for the side car.

The image is a root file system made in a folder: programs of the OS images' base with their libraries, the part of Python's library that
the side car can have a use for, and Slipway with the two packages that a blocking client needs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from slipway.api.machinery.errors import OperatorError
from slipway.lab.images import archives, libraries, oci
from slipway.lab.osimage import cache as oscache
from slipway.lab.osimage import slipway
from slipway.lab.osimage.base import PYTHON
from slipway.lab.programs import cache, catalog
from slipway.workload.alive import DEFAULT_IMAGE

_PROGRAMS = {"keepalived": "keepalived", "curl": "curl", "python3": "python3"}
# Modules of Python in C that are not built in: what ssl, http.client, msgspec and subprocess import.
_EXTENSIONS = ("_contextvars", "_decimal", "_hashlib", "_json", "_queue", "_ssl", "_typing", "_uuid", "_zoneinfo", "mmap", "resource")
# Wheels are linked with parts of the C library that it has had in one file since, and keeps the names of.
_C_LIBRARY = ("libpthread.so.0", "libdl.so.2", "librt.so.1", "libm.so.6")
_LIBRARY = f"usr/lib/python{PYTHON}"
# Parts of Python's library that no command of Slipway runs with.
_LEFT_OUT = (
    *("__pycache__", "lib-dynload", "test", "unittest", "pydoc_data", "idlelib", "lib2to3", "ensurepip", "distutils", "tkinter"),
    *("turtledemo", "xmlrpc", "wsgiref", "curses", "dbm", "sqlite3", "venv"),
)
_DEPENDENCIES = ("msgspec", "pyyaml")
# keepalived runs its scripts as a user that it looks up.
_ACCOUNTS = {"etc/passwd": "root:x:0:0:root:/root:/usr/sbin/nologin\n", "etc/group": "root:x:0:\n"}


def build(rootfs: Path) -> dict[str, Path]:
    """The archive by the name of its image, made with programs of the OS images' base at ``rootfs``."""
    folder = cache.cache_root() / "archives" / "alive"
    with cache.locked(folder / ".lock"), tempfile.TemporaryDirectory(dir=folder) as scratch:
        root = Path(scratch) / "root"
        _fill(root, rootfs)
        config = oci.ImageConfig(architecture=catalog.architecture())
        made = oci.image(DEFAULT_IMAGE, tree(root), config)
        # By its digest: another Slipway on this machine may make another one while this one goes into an OS image.
        return {DEFAULT_IMAGE: archives.ensure(made, folder / f"alive-{made.digest.removeprefix('sha256:')[:16]}.tar")}


def tree(root: Path) -> dict[str, oci.Entry]:
    """All files and links of a folder as entries of an image, by their paths in it."""
    found: dict[str, oci.Entry] = {}
    for path in sorted(root.rglob("*")):
        name = f"/{path.relative_to(root).as_posix()}"
        if path.is_symlink():
            found[name] = oci.Link(os.readlink(path))
        elif path.is_file():
            found[name] = oci.File(oci.FileOnDisk.at(path), 0o755 if os.access(path, os.X_OK) else 0o644)
    return found


def _fill(root: Path, rootfs: Path) -> None:
    extensions = [f"python{PYTHON}/lib-dynload/{name}.*.so" for name in _EXTENSIONS]
    for name, entry in libraries.program_files(rootfs, _PROGRAMS, (*extensions, *_C_LIBRARY)).items():
        _put(root / name.lstrip("/"), entry)
    shutil.copytree(rootfs / _LIBRARY, root / _LIBRARY, ignore=shutil.ignore_patterns(*_LEFT_OUT), dirs_exist_ok=True)
    for name, text in _ACCOUNTS.items():
        _put(root / name, oci.File(oci.Text(text.encode())))
    slipway.install(root, base=rootfs, wheels=oscache.folder() / "wheels", only=_DEPENDENCIES)
    _compile(root)


def _put(path: Path, entry: oci.Entry) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    match entry:
        case oci.Link(target):
            path.symlink_to(target)
        case oci.File(content, mode):
            with path.open("wb") as stream:
                stream.writelines(content.chunks())
            path.chmod(mode)
        case oci.Folder(mode):
            path.mkdir(mode=mode, exist_ok=True)


def _compile(root: Path) -> None:
    """Compile Python's library with the Python of the image itself; the result does not know its time."""
    _run(root, "/usr/bin/python3", "-I", "-m", "compileall", "-q", "--invalidation-mode=unchecked-hash", f"/{_LIBRARY}")
    # What the image lacks must not be found out by a host.
    _run(root, f"{slipway.HOME}/bin/python3", "-I", "-B", "-c", "import slipway.kube.transport, slipway.workload.alive.sidecar")


def _run(root: Path, *command: str) -> None:
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(["/usr/sbin/chroot", str(root), *command], env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OperatorError(f"`{' '.join(command)}` in the image {DEFAULT_IMAGE} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
