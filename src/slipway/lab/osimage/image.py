"""OS images: the layer of one Kubernetes version over the Debian base, read-only and named by what is in it.

A host boots an overlay of an image's layers, so switching a host to another image is switching its lower layers.
The same inputs give the same digest, and an image that is there already is not made twice.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import tarfile
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.api.releases import release_for
from slipway.lab.osimage import base, cache, files, slipway
from slipway.lab.osimage.files import File, Link
from slipway.lab.programs.cache import cache_root, checksum, space_needed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from slipway.host.progress import Progress
    from slipway.lab.programs.obtain import Obtained

NodeTool = Literal["slipway", "kubeadm"]
"""Which program answers to ``kubeadm`` on a host."""

_DESCRIPTION = "image.json"
_REQUIRED = ("kubelet", "kubectl", "kubeadm")
_OPTIONAL = ("etcdctl",)
_COMPARISON_KUBEADM = "usr/lib/slipway/kubeadm"
_SPACE_NEEDED = 2 << 30
_SHORTEST_DIGEST = 6


class Description(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is written down about an image, in ``image.json`` beside its layer."""

    name: str
    digest: str
    version: str
    node_tool: NodeTool
    base: str


class OSImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image that hosts can boot."""

    name: str
    digest: str
    version: str
    node_tool: NodeTool
    layers: list[Path]
    """Root file systems to lay over each other, the top one first."""
    built: float
    """When a build last ended with this image, in seconds since the epoch."""


def image_name(version: str, node_tool: NodeTool) -> str:
    """``v1.35.4``, or ``v1.35.4-kubeadm`` for an image with the real kubeadm."""
    return version if node_tool == "slipway" else f"{version}-{node_tool}"


def build(
    version: str,
    *,
    node_tool: NodeTool = "slipway",
    components: Mapping[str, Obtained],
    archives: Mapping[str, Path] | None = None,
    progress: Progress,
) -> OSImage:
    """The image of a Kubernetes version with the programs in ``components`` and the container images in ``archives``."""
    check_node_tool(node_tool)
    release = release_for(Version.parse(version))
    missing = [program for program in _REQUIRED if program not in components]
    if missing:
        raise OperatorError(f"an OS image of {version} needs {', '.join(missing)}: obtain them with `slipway lab components {version}`")
    root = base.ensure(progress)
    cache.require_root("building an OS image")
    name = image_name(version, node_tool)
    with space_needed(f"the OS image {name}", cache.folder(), _SPACE_NEEDED), cache.building(f"image-{name}") as work:
        layer = work / "layer"
        layer.mkdir()
        _write(layer, files.tree(release))
        _install_programs(layer, components, node_tool, root)
        if archives:
            _install_archives(layer / files.ARCHIVES, archives.values())
        _open_folders(layer)
        digest = layer_digest(layer, base.digest(root))
        _write(layer, {files.IMAGE_FILE: files.image_file(name, digest, version, node_tool)})
        description = Description(name=name, digest=digest, version=version, node_tool=node_tool, base=root.name)
        (work / _DESCRIPTION).write_bytes(msgspec.json.encode(description) + b"\n")
        target = cache.folder() / digest[:16]
        if target.exists():
            progress.say(f"[os] The image {name} is as it was: {digest[:16]}")
            os.utime(target / _DESCRIPTION)
        else:
            _settle(work, target)
            progress.say(f"[os] Built the image {name}: {digest[:16]}")
    return find(digest)


def check_node_tool(name: str) -> None:
    if name not in get_args(NodeTool):
        raise OperatorError(f"there is no node tool {name!r}: use {' or '.join(get_args(NodeTool))}")


def list_images() -> list[OSImage]:
    """The images in the cache, the newest first; one whose base is gone cannot boot and is not listed."""
    found = [_opened(path.parent) for path in cache.folder().glob(f"[!.]*/{_DESCRIPTION}")]
    return sorted((image for image in found if image is not None), key=lambda image: image.built, reverse=True)


def find(reference: str) -> OSImage:
    """The image that ``reference`` names: its name, the beginning of its digest, or a reference with one of them as tag."""
    images = list_images()
    for key in _keys(reference):
        for image in images:
            if key in {image.name, image.name.removeprefix("v")}:
                return image
        matching = {image.digest: image for image in images if _is_digest(key) and image.digest.startswith(key)}
        if len(matching) > 1:
            raise OperatorError(
                f"{reference!r} is the beginning of {len(matching)} OS images: {', '.join(digest[:16] for digest in matching)}"
            )
        if matching:
            return next(iter(matching.values()))
    there = ", ".join(dict.fromkeys(image.name for image in images)) or "none"
    raise OperatorError(f"there is no OS image {reference!r} (there are: {there}): build one with `slipway lab image build`")


def layer_digest(layer: Path, base_digest: str) -> str:
    """The digest of an image: of all files and links of its layer, by path, and of its base."""
    total = hashlib.sha256(f"{base_digest}\n".encode())
    for path in sorted(layer.rglob("*")):
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            continue
        content = f"link {os.readlink(path)}" if stat.S_ISLNK(mode) else f"{stat.S_IMODE(mode):o} {checksum(path)}"
        total.update(f"{path.relative_to(layer).as_posix()}\0{content}\n".encode())
    return total.hexdigest()


def _keys(reference: str) -> list[str]:
    """What to look for: the whole, then the digest or the tag of ``registry.example/os:v1.35.4``."""
    return list(dict.fromkeys([reference.removeprefix("sha256:"), reference.rpartition(":")[2]]))


def _is_digest(text: str) -> bool:
    return re.fullmatch(rf"[0-9a-f]{{{_SHORTEST_DIGEST},64}}", text) is not None


def _opened(folder: Path) -> OSImage | None:
    known = msgspec.json.decode((folder / _DESCRIPTION).read_bytes(), type=Description)
    root = cache.folder() / known.base
    if not root.exists():
        return None
    return OSImage(
        name=known.name,
        digest=known.digest,
        version=known.version,
        node_tool=known.node_tool,
        layers=[folder / "layer", root],
        built=(folder / _DESCRIPTION).stat().st_mtime,
    )


def _install_programs(layer: Path, components: Mapping[str, Obtained], node_tool: NodeTool, root: Path) -> None:
    places = {program: f"usr/bin/{program}" for program in (*_REQUIRED, *_OPTIONAL)}
    if node_tool == "slipway":
        places["kubeadm"] = _COMPARISON_KUBEADM
        slipway.install(layer, base=root, wheels=cache.folder() / "wheels")
        _write(layer, {f"usr/bin/{name}": Link(slipway.LAUNCHER) for name in ("slipway", "kubeadm")})
        _write(layer, files.agent(slipway.LAUNCHER))
    for program, place in places.items():
        if program in components:
            _install(components[program].path, layer / place, 0o755)


def _install_archives(folder: Path, archives: Iterable[Path]) -> None:
    """The archives as they are, and one index of them all, by which a host loads them in one go."""
    indexes = []
    for archive in sorted(archives):
        _install(archive, folder / archive.name, 0o644)
        with tarfile.open(archive) as content:
            index = content.extractfile("index.json")
            if index is None:
                raise OperatorError(f"{archive} is not an OCI archive: index.json in it is no file")
            indexes.append(msgspec.json.decode(index.read()))
    (folder / "index.json").write_bytes(msgspec.json.encode(merged_index(indexes)))
    (folder / "index.json").chmod(0o644)


def merged_index(indexes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One OCI index with the images of several."""
    return {**indexes[0], "manifests": [manifest for index in indexes for manifest in index["manifests"]]}


def _install(source: Path, target: Path, mode: int) -> None:
    """Nothing writes to a cached file or to a layer, so that they can share the disk space; a file from elsewhere is copied."""
    target.parent.mkdir(parents=True, exist_ok=True)
    found = source.stat()
    cached = source.resolve().is_relative_to(cache_root().resolve())
    if cached and stat.S_IMODE(found.st_mode) == mode and found.st_dev == target.parent.stat().st_dev and found.st_uid == 0:
        target.hardlink_to(source.resolve())
    else:
        shutil.copyfile(source, target)
        target.chmod(mode)


def _write(layer: Path, tree: Mapping[str, File | Link]) -> None:
    for name, entry in tree.items():
        path = layer / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(entry, Link):
            path.symlink_to(entry.target)
        else:
            path.write_text(entry.content)
            path.chmod(entry.mode)


def _open_folders(layer: Path) -> None:
    """A folder of the top layer gives the merged folder its mode, whatever the umask was here."""
    for path in [layer, *_folders(layer)]:
        path.chmod(0o755)


def _folders(layer: Path) -> Iterable[Path]:
    return (path for path in layer.rglob("*") if path.is_dir() and not path.is_symlink())


def _settle(work: Path, target: Path) -> None:
    """Give the finished image its name in one step."""
    finished = work.with_name(f"{work.name}.whole")
    if finished.exists():
        shutil.rmtree(finished)
    finished.mkdir(mode=0o755)
    for path in list(work.iterdir()):
        path.rename(finished / path.name)
    finished.rename(target)
