"""Where the projects publish their programs, and the checksums that go with them."""

from __future__ import annotations

import platform
import re
from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.lab.programs import catalog

if TYPE_CHECKING:
    from collections.abc import Mapping

SITES: Mapping[str, str] = {
    "kubernetes": "https://dl.k8s.io/release",
    "etcd": "https://github.com/etcd-io/etcd/releases/download",
    "coredns": "https://github.com/coredns/coredns/releases/download",
}
"""The site of each project that publishes programs; pause is published as an image only."""

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64le", "s390x": "s390x"}


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A file to download: itself the program, or an archive with the programs as members."""

    url: str
    checksum_url: str
    members: dict[str, str]
    """Path in the archive by program; empty where the file is the program."""


def architecture(machine: str | None = None) -> str:
    """This machine's architecture as Go and the download sites call it."""
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURES:
        raise OperatorError(
            f"Kubernetes is not published for this machine's architecture, {machine}: one of {', '.join(_ARCHITECTURES)} is needed"
        )
    return _ARCHITECTURES[machine]


def artifact(program: str, version: str, arch: str, sites: Mapping[str, str] = SITES) -> Artifact | None:
    """The file that holds ``program``; None where its project publishes none."""
    project = catalog.project_of(program)
    if project not in sites:
        return None
    match project:
        case "etcd":
            name = f"etcd-{version}-linux-{arch}"
            members = {tool: f"{name}/{tool}" for tool in ("etcd", "etcdctl")}
            folder = f"{sites[project]}/{version}"
            return Artifact(url=f"{folder}/{name}.tar.gz", checksum_url=f"{folder}/SHA256SUMS", members=members)
        case "coredns":
            url = f"{sites[project]}/{version}/coredns_{version.removeprefix('v')}_linux_{arch}.tgz"
            return Artifact(url=url, checksum_url=f"{url}.sha256", members={"coredns": "coredns"})
        case _:
            url = f"{sites[project]}/{version}/bin/linux/{arch}/{program}"
            return Artifact(url=url, checksum_url=f"{url}.sha256", members={})


def published_checksum(text: str, url: str) -> str | None:
    """The SHA-256 of the file at ``url``, out of a checksum file: a bare sum, or lines of sum and file name."""
    wanted = url.rpartition("/")[2]
    for line in text.splitlines():
        digest, _, name = line.strip().partition(" ")
        # sha256sum marks a binary file with a star; some projects list files with their folder.
        if re.fullmatch(r"[0-9a-fA-F]{64}", digest) and name.strip(" *").rpartition("/")[2] in ("", wanted):
            return digest.lower()
    return None
