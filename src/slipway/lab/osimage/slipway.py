"""Slipway on a host of the lab: its wheel and those of its dependencies, in an environment of their own.

The environment is a venv of the host's Python, written here file by file, so that the same Slipway always gives the
same bytes: no installer's records, no paths of the machine that made it.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import slipway
from slipway.api.machinery.errors import OperatorError
from slipway.lab.osimage.base import PYTHON

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

HOME = "/opt/slipway"
LAUNCHER = f"{HOME}/bin/slipway"
"""The program; called by another name, such as kubeadm, it answers to that."""

_SITE = f"lib/python{PYTHON}/site-packages"
_PYVENV = f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {PYTHON}\n"
_LAUNCHER_TEXT = f"#!{HOME}/bin/python3 -I\nfrom slipway.cli.main import entry\n\nentry()\n"

# Markers of requirements for extras, for a Python before ours, or for another one than CPython.
_NOT_ON_A_HOST = re.compile(r"""extra|python_(full_)?version <|implementation(_name)? == ['"]PyPy""")

# Wheels for the C library of the base (glibc 2.36) or an older one.
_GLIBC_MINORS = range(36, 16, -1)


def install(root: Path, *, base: Path, wheels: Path, only: Collection[str] | None = None) -> None:
    """Put the environment into the layer at ``root``; downloaded wheels are kept in the folder ``wheels``.

    ``only`` are the dependencies for a place that runs one command: all of them where it is not given.
    """
    home = root / HOME.lstrip("/")
    site = home / _SITE
    site.mkdir(parents=True)
    (home / "bin").mkdir()
    (home / "bin/python3").symlink_to("/usr/bin/python3")
    (home / "pyvenv.cfg").write_text(_PYVENV)
    launcher = home / "bin/slipway"
    launcher.write_text(_LAUNCHER_TEXT)
    launcher.chmod(0o755)
    wanted = dependencies(slipway.__name__)
    for name, version in sorted((name, version) for name, version in wanted.items() if only is None or name.lower() in only):
        unpack(_wheel(name, version, wheels), site)
    _install_slipway(site, home)
    _compile(root, base)


def dependencies(distribution: str) -> dict[str, str]:
    """What a distribution needs, and what that needs, in the versions that this very program runs with."""
    found: dict[str, str] = {}
    for requirement in importlib.metadata.requires(distribution) or ():
        name, marker = _requirement(requirement)
        if _NOT_ON_A_HOST.search(marker) is None and name not in found:
            found |= {name: importlib.metadata.version(name)} | dependencies(name)
    return found


def unpack(wheel: Path, site: Path) -> None:
    """A wheel is a zip of what lies in site-packages; what a wheel has for other places no dependency of ours has."""
    with zipfile.ZipFile(wheel) as archive:
        elsewhere = [name for name in archive.namelist() if re.match(r"[^/]+\.data/", name)]
        if elsewhere:
            raise OperatorError(
                f"{wheel.name} wants to install {elsewhere[0]}, outside of site-packages: Slipway cannot put it into an OS image"
            )
        archive.extractall(site)


def platforms(machine: str) -> list[str]:
    """The platform tags of wheels that run on the base, best first."""
    return [f"manylinux_2_{minor}_{machine}" for minor in _GLIBC_MINORS] + [f"manylinux2014_{machine}"]


def _requirement(text: str) -> tuple[str, str]:
    """The name and the marker of ``cffi>=1.14; platform_python_implementation != "PyPy"``."""
    specifier, _, marker = text.partition(";")
    name = re.match(r"[A-Za-z0-9._-]+", specifier.strip())
    assert name is not None, f"{text!r} is not a requirement"
    return name.group(0), marker


def _wheel(name: str, version: str, wheels: Path) -> Path:
    """A dependency's wheel for the base's Python, from the folder or downloaded into it."""
    wheels.mkdir(parents=True, exist_ok=True)
    pattern = f"{re.sub(r'[-_.]+', '_', name)}-{version}-*.whl"
    found = next(_glob_case_insensitive(wheels, pattern), None)
    if found is None:
        tags = [f"--platform={tag}" for tag in platforms(os.uname().machine)]
        _pip("download", "--no-deps", "--only-binary=:all:", "--implementation=cp", f"--python-version={PYTHON}", *tags,
             f"--dest={wheels}", f"{name}=={version}")  # fmt: skip
        found = next(_glob_case_insensitive(wheels, pattern), None)
    if found is None:
        raise OperatorError(f"pip downloaded no wheel of {name} {version} for Python {PYTHON} into {wheels}")
    return found


def _glob_case_insensitive(folder: Path, pattern: str) -> Iterator[Path]:
    expression = re.compile(re.escape(pattern).replace(r"\*", ".*"), re.IGNORECASE)
    return (path for path in sorted(folder.iterdir()) if expression.fullmatch(path.name))


def _install_slipway(site: Path, scratch: Path) -> None:
    """Slipway's own wheel, built from its source tree, or the files that an installed wheel left."""
    package = Path(slipway.__file__).parent
    tree = package.parent.parent
    if (tree / "pyproject.toml").exists():
        built = scratch / "wheel"
        _pip("wheel", "--no-deps", "--no-build-isolation", f"--wheel-dir={built}", str(tree))
        (wheel,) = built.iterdir()
        unpack(wheel, site)
        wheel.unlink()
        built.rmdir()
        return
    for file in importlib.metadata.files(slipway.__name__) or ():
        if file.parts[0] == ".." or "__pycache__" in file.parts or file.name in {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}:
            continue
        target = site / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_binary())


def _compile(root: Path, base: Path) -> None:
    """Compile with the base's own Python; the mount vanishes with the process, and the result does not know its time."""
    script = f'mount --bind "$1" "$2/opt" && exec chroot "$2" /usr/bin/python3 -m compileall -q --invalidation-mode unchecked-hash {HOME}'
    command = ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c", script, "sh", str(root / "opt"), str(base)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OperatorError(f"compiling Slipway with the Python of {base} failed:\n{done.stdout}{done.stderr}")


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "No module named pip" in done.stderr:
        raise OperatorError(f"{sys.executable} has no pip: install the package python3-pip, or run `{sys.executable} -m ensurepip`")
    if done.returncode != 0:
        raise OperatorError(f"`{' '.join(command)}` ended with {done.returncode}:\n{done.stderr.strip()}")
