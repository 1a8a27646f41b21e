"""The container images of a Kubernetes version as OCI archives, made from the programs and named as kubeadm names them.

An image holds one static program, as the published ones in essence do; kube-proxy's also has the programs with which
it programs the kernel.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from slipway.api.kubeadm.internal import ClusterConfiguration, Etcd, LocalEtcd
from slipway.api.machinery.errors import OperatorError
from slipway.lab.images import libraries, oci
from slipway.lab.programs import cache, catalog
from slipway.workload import images

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.releases import Release
    from slipway.lab.programs.obtain import Obtained

PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "coredns", "pause", "etcd", "etcdctl", "etcdutl")
"""The programs that images are made of."""

# What kube-proxy runs in its iptables and nftables modes, with the Debian package of each.
_PROXY_PROGRAMS = {
    **{f"{tool}{suffix}": "iptables" for tool in ("iptables", "ip6tables") for suffix in ("", "-save", "-restore")},
    "nft": "nftables",
    "conntrack": "conntrack",
}
# iptables loads its matches and targets by name.
_PROXY_PLUGINS = ("xtables/*.so",)


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """What an image is made of: where in it its programs are, and how it is run."""

    programs: dict[str, str]
    entrypoint: tuple[str, ...] = ()
    user: str = ""
    with_proxy_programs: bool = False


class _Record(msgspec.Struct, frozen=True):
    """What the archive of that name holds, so that it is not written again."""

    digest: str
    size: int


def names(release: Release) -> dict[str, str]:
    """The image names of a release, by the last part of each: ``kube-apiserver``, ``coredns`` …"""
    cluster = ClusterConfiguration(
        kubernetes_version=f"v{release.version}", image_repository=images.DEFAULT_REPOSITORY, etcd=Etcd(local=LocalEtcd())
    )
    return {name.rpartition("/")[2].partition(":")[0]: name for name in images.required(cluster, release)}


def recipe(image: str) -> Recipe:
    """How an image is made.  Static Pods name their program without a folder, so it has to lie on the PATH."""
    match image:
        case "coredns":
            return Recipe(programs={"coredns": "/coredns"}, entrypoint=("/coredns",))
        case "pause":
            return Recipe(programs={"pause": "/pause"}, entrypoint=("/pause",), user="65535:65535")
        case "etcd":
            tools = ("etcd", "etcdctl", "etcdutl")
            return Recipe(programs={tool: f"/usr/local/bin/{tool}" for tool in tools}, entrypoint=("/usr/local/bin/etcd",))
        case _:
            path = f"/usr/local/bin/{image}"
            return Recipe(programs={image: path}, entrypoint=(path,), with_proxy_programs=image == "kube-proxy")


def build(version: str, components: Mapping[str, Obtained], *, rootfs: Path | None) -> dict[str, Path]:
    """The archives of all images of ``version`` by image name, written unless the cache has the same.

    ``rootfs`` is the root file system that kube-proxy's helper programs are taken from; without it, this machine's.
    """
    release = catalog.release_named(version)
    folder = cache.cache_root() / "archives" / f"v{release.version}"
    found = {}
    with cache.locked(folder / ".lock"):
        for image, name in names(release).items():
            made = _image(name, recipe(image), components, rootfs or Path("/"))
            found[name] = ensure(made, folder / f"{image}.tar")
    return found


def _image(name: str, made_of: Recipe, components: Mapping[str, Obtained], rootfs: Path) -> oci.Image:
    files: dict[str, oci.Entry] = {}
    for program, path in made_of.programs.items():
        if program not in components:
            raise OperatorError(f"the image {name} needs {program}: obtain it together with the others")
        files[path] = oci.File(oci.FileOnDisk.at(_static(components[program].path)), 0o755)
    if made_of.with_proxy_programs:
        files |= libraries.program_files(rootfs, _PROXY_PROGRAMS, _PROXY_PLUGINS)
    config = oci.ImageConfig(architecture=catalog.architecture(), entrypoint=made_of.entrypoint, user=made_of.user)
    return oci.image(name, files, config)


def _static(program: Path) -> Path:
    """The program, which is the only file of its image."""
    try:
        interpreter = libraries.linkage(program).interpreter
    except libraries.NotELFError as error:
        raise OperatorError(f"{error}, so it cannot run in an image: use the published program, or one built with CGO_ENABLED=0") from None
    if interpreter:
        raise OperatorError(
            f"{program} needs shared libraries, so it cannot run in an image by itself: "
            f"use the published program, or one built with CGO_ENABLED=0"
        )
    return program


def ensure(made: oci.Image, target: Path) -> Path:
    """The archive of an image, written unless it is there as it would be written."""
    wanted = _Record(made.digest, made.archive.size)
    if target.exists() and target.stat().st_size == wanted.size and _read_record(target) == wanted:
        return target
    record = _record_path(target)
    record.unlink(missing_ok=True)
    with cache.space_needed(f"the archive of {made.name}", target.parent, wanted.size), cache.appearing(target) as partial:
        oci.write(made, partial)
    with cache.appearing(record) as partial:
        partial.write_bytes(msgspec.json.encode(wanted) + b"\n")
    return target


def _read_record(archive: Path) -> _Record | None:
    try:
        return msgspec.json.decode(_record_path(archive).read_bytes(), type=_Record)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _record_path(archive: Path) -> Path:
    return archive.with_suffix(".json")
