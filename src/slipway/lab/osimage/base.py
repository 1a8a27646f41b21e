"""The base of every OS image: a Debian root file system with systemd, a container runtime and cloud-init.

It is made once with debootstrap, kept in the cache, and never written to again: hosts see it as the lowest layer
of an overlay.  What belongs to a Kubernetes version comes in the layer above it (:mod:`slipway.lab.osimage.image`).

Packages come from where this machine gets its own, apt's sources, read in both of their formats: a machine behind a company's
mirror has that mirror there, and no address is written into Slipway.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.lab.osimage import cache
from slipway.lab.programs.cache import space_needed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slipway.host.progress import Progress

SUITE = "bookworm"
PYTHON = "3.11"
"""The Python of the suite, for which Slipway's dependencies are taken."""

PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "kmod", "mount", "util-linux", "procps", "ca-certificates"),
    *("containerd", "runc", "containernetworking-plugins", "python3", "cloud-init"),
    "python3-cffi-backend",  # cloud-init needs it under a virtual name, which debootstrap does not resolve
    "dmidecode",
    *("iproute2", "iptables", "nftables", "conntrack", "ethtool", "socat", "iputils-ping", "curl"),
    "keepalived",  # for the container image of the virtual address; its own unit is masked
)

RECIPE = 1
"""Goes up when what is done after debootstrap changes, so that an old base is not taken for a new one."""

_PACKAGE_LIST = Path("usr/share/slipway/base-packages")

# The machine's own name and resolver, which debootstrap copies, and what only fills the disk.
_REMOVED = ("etc/hostname", "var/lib/dbus/machine-id")
_EMPTIED = ("etc/machine-id", "etc/resolv.conf")
_EMPTIED_FOLDERS = ("var/cache/apt", "var/lib/apt/lists", "var/log", "tmp", "var/tmp", "run")
_HOSTS = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"

_SPACE_NEEDED = 2 << 30

DEBIAN_MIRROR = "http://deb.debian.org/debian"
"""Debian's own, for a machine whose sources name none for the suite (another distribution, say)."""

_REMOTE = ("http://", "https://")


class Source(msgspec.Struct, frozen=True):
    """One place with binary packages of one suite."""

    uri: str
    suite: str
    components: tuple[str, ...]
    signed_by: str = ""


def inputs_digest(suite: str = SUITE, packages: tuple[str, ...] = PACKAGES, recipe: int = RECIPE) -> str:
    """What the name of a base is made of: the same inputs, the same base."""
    text = "\n".join([suite, str(recipe), *sorted(packages)])
    return hashlib.sha256(text.encode()).hexdigest()


def location() -> Path:
    """Where the base is, or would be."""
    return cache.folder() / f"base-{inputs_digest()[:16]}"


def ensure(progress: Progress) -> Path:
    """The root file system, made unless the cache has it."""
    target = location()
    if target.exists():
        return target
    cache.require_root("making a root file system")
    if shutil.which("debootstrap") is None:
        raise OperatorError("debootstrap is not on PATH: install the package debootstrap")
    with space_needed("the root file system", cache.folder(), _SPACE_NEEDED), cache.building(target.name) as work:
        if target.exists():  # made by another process while this one waited for the lock
            return target
        source = source_for(apt_sources(Path("/etc/apt")), SUITE)
        progress.say(f"[os] Making a Debian {SUITE} root file system (about a minute)")
        root = work / "root"
        _debootstrap(source, root, log=work / "log")
        _finish(root)
        root.rename(target)
    progress.say(f"[os] The root file system is at {target}")
    return target


def digest(base: Path) -> str:
    """What a base is made of: its inputs and the very versions of its packages."""
    return hashlib.sha256(f"{base.name}\n{(base / _PACKAGE_LIST).read_text()}".encode()).hexdigest()


def parse_list(text: str) -> list[Source]:
    """The sources of a ``.list`` file: ``deb [options] uri suite component…``, one a line."""
    found = []
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if not words or words[0] != "deb":
            continue
        options, words = _split_options(words[1:])
        if len(words) >= 2:
            found.append(Source(words[0].rstrip("/"), words[1], tuple(words[2:]), options.get("signed-by", "")))
    return found


def parse_deb822(text: str) -> list[Source]:
    """The sources of a ``.sources`` file: stanzas of fields, each with any number of addresses and suites."""
    found = []
    for fields in _stanzas(text):
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() in {"no", "false", "0", "off"}:
            continue
        components = tuple(fields.get("components", "").split())
        keyring = fields.get("signed-by", "")
        # A key may also stand in the stanza itself, over many lines; debootstrap can only use a file.
        signed_by = keyring if keyring.startswith("/") and len(keyring.split()) == 1 else ""
        found += [
            Source(uri.rstrip("/"), suite, components, signed_by)
            for uri in fields.get("uris", "").split()
            for suite in fields.get("suites", "").split()
        ]
    return found


def apt_sources(apt: Path) -> list[Source]:
    """All sources of the machine whose ``/etc/apt`` is ``apt``, in the order in which apt reads them."""
    files = [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))]
    found = []
    for path in files:
        if path.suffix in {".list", ".sources"} and path.is_file():
            parse = parse_list if path.suffix == ".list" else parse_deb822
            found += parse(path.read_text())
    return found


def source_for(sources: Iterable[Source], suite: str) -> Source:
    """The source that a root file system of ``suite`` is made from: the first with its main component, or Debian's own."""
    for source in sources:
        if source.suite == suite and "main" in source.components and source.uri.startswith(_REMOTE):
            return source
    return Source(DEBIAN_MIRROR, suite, ("main",))


def debootstrap_command(source: Source, root: Path) -> list[str]:
    """The command that fills ``root``; it runs apart, so that what it mounts and starts ends when it ends or is killed."""
    keyring = [f"--keyring={source.signed_by}"] if source.signed_by else []
    return [
        *("setpriv", "--pdeathsig", "KILL", "--"),
        *("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--"),
        *("debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", *keyring),
        *(SUITE, str(root), source.uri),
    ]


def installed_packages(status: str) -> list[str]:
    """``name version`` of every package in dpkg's status file, sorted."""
    found = []
    for stanza in status.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version|Status): (.*)$", stanza, re.MULTILINE))
        if fields.get("Status", "").endswith(" installed"):
            found.append(f"{fields['Package']} {fields['Version']}")
    return sorted(found)


def _debootstrap(source: Source, root: Path, *, log: Path) -> None:
    # Settings of this program's Python (PYTHONDONTWRITEBYTECODE, say) are not meant for the one in the new root.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | {"LC_ALL": "C.UTF-8"}
    with log.open("wb") as output:
        done = subprocess.run(debootstrap_command(source, root), env=environment, stdout=output, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        own_log = root / "debootstrap/debootstrap.log"
        lines = [line for path in (log, own_log) if path.exists() for line in path.read_text(errors="replace").splitlines()[-10:]]
        raise OperatorError(
            f"debootstrap ended with {done.returncode}, with packages from {source.uri}; is that mirror reachable? Its last words:\n"
            + "\n".join(lines)
        )


def _finish(root: Path) -> None:
    """Take out what belongs to the machine that made it, so that every host starts as a machine of its own."""
    for name in _EMPTIED_FOLDERS:
        for path in (root / name).iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    for name in _REMOVED:
        (root / name).unlink(missing_ok=True)
    for name in _EMPTIED:
        (root / name).unlink(missing_ok=True)
        (root / name).write_text("")
    (root / "etc/hosts").write_text(_HOSTS)
    (root / "etc/apt/sources.list").write_text(f"deb {DEBIAN_MIRROR} {SUITE} main\n")
    packages = installed_packages((root / "var/lib/dpkg/status").read_text())
    (root / _PACKAGE_LIST).parent.mkdir(parents=True, exist_ok=True)
    (root / _PACKAGE_LIST).write_text("\n".join(packages) + "\n")


def _split_options(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """``[arch=amd64 signed-by=/x]`` in front of an address, as words, and the words after it."""
    if not words or not words[0].startswith("["):
        return {}, words
    end = next((number for number, word in enumerate(words) if word.endswith("]")), len(words) - 1)
    inner = " ".join(words[: end + 1]).strip("[]").split()
    options = dict(word.split("=", 1) for word in inner if "=" in word)
    return {name.lower(): value for name, value in options.items()}, words[end + 1 :]


def _stanzas(text: str) -> Iterator[dict[str, str]]:
    fields: dict[str, str] = {}
    name = ""
    for line in [*text.splitlines(), ""]:
        if line.startswith("#"):
            continue
        if not line.strip():
            if fields:
                yield fields
            fields, name = {}, ""
        elif line[0].isspace():
            fields[name] = f"{fields.get(name, '')} {line.strip()}"
        else:
            name, _, value = line.partition(":")
            name = name.strip().lower()
            fields[name] = value.strip()
