"""Obtains the programs of a Kubernetes version, each from the first source that has it, and says which one that was.

The sources, in this order: a folder that the operator gives, PATH with the right version, the cache, the official
download with its published checksum, the Go build from module sources.  No program is handed out before it was asked
for its version or compared with the checksum that was recorded when it was.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
import time
from contextlib import suppress
from functools import partial as bound
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.lab.programs import cache, catalog, download, gobuild

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from slipway.host.progress import Progress

ALL = tuple(catalog.PROGRAMS)
"""Every program that a lab may need."""

_BINARY_MODE = 0o755
_REDRAW_SECONDS = 0.1
_BAR_WIDTH = 30


class Obtained(msgspec.Struct, frozen=True):
    """A program that may be used: where it is, its own version, and where it came from."""

    program: str
    path: Path
    version: str
    source: str


def obtain(
    version: str,
    wanted: Iterable[str],
    *,
    folder: Path | None = None,
    progress: Progress,
    sites: Mapping[str, str] = catalog.SITES,
) -> dict[str, Obtained]:
    """The programs ``wanted`` for the Kubernetes ``version``, by name."""
    release = catalog.release_named(version)
    names = list(wanted)
    for name in names:
        if name not in catalog.PROGRAMS and name not in catalog.TOOLS:
            raise OperatorError(f'there is no program "{name}" in a Kubernetes release: one of {", ".join(ALL)} is wanted')
    if folder is not None and not folder.is_dir():
        raise OperatorError(f"{folder} is not a folder: give the folder that has the programs in it")
    search = _Search(folder, progress, sites)
    return {name: search.find(name, catalog.wanted_version(name, release)) for name in names}


class _Search:
    """One run over the sources; it remembers which sites cannot be reached."""

    def __init__(self, folder: Path | None, progress: Progress, sites: Mapping[str, str]) -> None:
        self._folder = folder
        self._progress = progress
        self._sites = sites
        self._root = cache.cache_root()
        self._unreachable: dict[str, str] = {}

    def find(self, name: str, version: str) -> Obtained:
        found = (
            self._in_folder(name, version) or self._on_path(name, version) or self._in_cache(name, version) or self._fetch(name, version)
        )
        self._progress.say(f"[components] {name} {version}: {found.source}")
        return found

    def _in_folder(self, name: str, version: str) -> Obtained | None:
        path = self._folder / name if self._folder else None
        if path is None or not path.exists():
            return None
        problem = mismatch(name, version, path)
        if problem:
            self._progress.warn(f"[components] {problem}: looking for {name} elsewhere")
            return None
        return Obtained(name, path.resolve(), version, f"folder {self._folder}")

    def _on_path(self, name: str, version: str) -> Obtained | None:
        path = shutil.which(name)
        # Another version on PATH is nothing to tell: it has its own purpose there.
        if path is None or mismatch(name, version, Path(path)):
            return None
        return Obtained(name, Path(path).resolve(), version, f"PATH ({path})")

    def _in_cache(self, name: str, version: str) -> Obtained | None:
        """A damaged program counts as none: it is for the holder of the lock to deal with."""
        with suppress(cache.DamagedError):
            return self._undamaged(name, version)
        return None

    def _undamaged(self, name: str, version: str) -> Obtained | None:
        path = cache.find(self._root, name, version)
        return Obtained(name, path, version, "cache") if path else None

    def _fetch(self, name: str, version: str) -> Obtained:
        """What no folder of this machine has: downloaded or built, and put into the cache."""
        target = cache.place(self._root, name, version)
        waiting = bound(self._progress.say, f"[components] Waiting for another run that obtains {cache.shelf(name, version)}")
        with cache.locked(target.parent / ".lock", waiting):
            try:
                # Another run may have obtained it in the meantime.
                found = self._undamaged(name, version)
            except cache.DamagedError as error:
                self._progress.warn(f"[components] {error}: obtaining it anew")
                cache.discard(target)
                found = None
            if found:
                return found
            try:
                source = self._download(name, version)
            except download.UnavailableError as unavailable:
                source = self._build(name, version, str(unavailable))
            return Obtained(name, target, version, source)

    def _download(self, name: str, version: str) -> str:
        artifact = catalog.artifact(name, version, catalog.architecture(), self._sites)
        if artifact is None:
            raise download.UnavailableError(f"{name} is not published as a program")
        site = self._sites[catalog.project_of(name)]
        if site in self._unreachable:
            raise download.UnreachableError(self._unreachable[site])
        try:
            digest = catalog.published_checksum(download.text(artifact.checksum_url), artifact.url)
        except download.UnreachableError as error:
            self._unreachable[site] = str(error)
            raise
        if digest is None:
            raise download.UnavailableError(f"{artifact.checksum_url} holds no SHA-256 for the file")
        partial = cache.place(self._root, name, version).with_name(f".{digest}.part")
        with Meter(f"{name} {version}") as meter:
            download.fetch(artifact.url, digest, partial, meter.transferred)
        source = f"download {artifact.url}"
        if not artifact.members:
            self._keep(name, version, partial, source)
        else:
            self._unpack(artifact, version, partial, source)
        return source

    def _unpack(self, artifact: catalog.Artifact, version: str, archive: Path, source: str) -> None:
        """Every program of the archive, as the next one that is wanted is likely to be in it too."""
        with tarfile.open(archive) as tar:
            for name, member in artifact.members.items():
                try:
                    content = tar.extractfile(member)
                except KeyError:
                    content = None
                if content is None:
                    raise OperatorError(f"{artifact.url} has no file {member} in it: its project changed how it publishes")
                partial = archive.with_name(f".{name}.part")
                with cache.space_needed(f"unpacking {artifact.url}", archive.parent), partial.open("wb") as file:
                    shutil.copyfileobj(content, file)
                self._keep(name, version, partial, source)
        archive.unlink()

    def _build(self, name: str, version: str, unavailable: str) -> str:
        self._progress.say(f"[components] Building {name} {version} with Go, as the download is not available ({unavailable})")
        try:
            with Meter(f"{name} {version}") as meter:
                path = gobuild.build(name, version, on_package=meter.compiled)
        except gobuild.BuildError as error:
            raise OperatorError(
                f"{name} {version} was found neither in a folder given, on PATH nor in the cache, "
                f"could not be downloaded ({unavailable}), and not be built: {error.message}"
            ) from error
        source = "Go build"
        problem = mismatch(name, version, path)
        if problem:
            cache.discard(path)
            raise OperatorError(f"the Go build made a program that cannot be used: {problem}")
        cache.record(path, version, source)
        return source

    def _keep(self, name: str, version: str, whole: Path, source: str) -> None:
        """Give a downloaded program its final name, when it is what it should be."""
        whole.chmod(_BINARY_MODE)
        problem = mismatch(name, version, whole)
        if problem:
            whole.unlink()
            raise OperatorError(f"{source} cannot be used: {problem}")
        target = cache.place(self._root, name, version)
        cache.discard(target)
        whole.rename(target)
        cache.record(target, version, source)


def mismatch(name: str, version: str, path: Path) -> str:
    """Why the program at ``path`` is not ``version``; empty when it is."""
    try:
        stated = catalog.stated_version(name, path)
    except catalog.NoAnswerError as error:
        return str(error)
    return "" if stated == version else f"{path} is {stated}, not {version}"


class Meter:
    """One line on a terminal that says how far a long step is, drawn over itself; nothing where nobody looks at a terminal.

    As a context manager it wipes the line at the end.
    """

    def __init__(self, label: str, stream: IO[str] | None = None) -> None:
        self._label = label
        self._stream = stream or sys.stderr
        self._drawn = 0.0
        self._packages = 0

    def __enter__(self) -> Meter:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def transferred(self, here: int, total: int | None) -> None:
        """Bytes arrived; ``total`` is how many there will be."""
        self._draw(transfer_text(here, total))

    def compiled(self, package: str) -> None:
        """The Go compiler began with another package."""
        self._packages += 1
        self._draw(f"{self._packages} packages, {package}")

    def _draw(self, text: str) -> None:
        now = time.monotonic()
        if now - self._drawn < _REDRAW_SECONDS or not self._stream.isatty():
            return
        self._drawn = now
        columns = shutil.get_terminal_size().columns
        self._stream.write("\r\x1b[K" + f"{self._label}: {text}"[: columns - 1])
        self._stream.flush()


def transfer_text(here: int, total: int | None) -> str:
    """A bar where the end is known, a count of bytes otherwise."""
    if not total:
        return f"{here / 1e6:.1f} MB"
    filled = _BAR_WIDTH * here // total
    return f"[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {here / 1e6:.1f} of {total / 1e6:.1f} MB"
