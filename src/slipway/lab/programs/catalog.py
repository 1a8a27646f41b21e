"""The programs that a lab needs: which release each belongs to, how each tells its own version, and where its project publishes it."""

from __future__ import annotations

import platform
import re
import subprocess
from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.api.releases import release_for

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from slipway.api.releases import Release

_ANSWER_SECONDS = 10
# etcd's server and its tools are modules of their own, and not every patch has all of them; a tool serves every patch of its minor.
_ETCD_TOOLS = {"v3.5.24": "v3.5.35"}
# They belong to no Kubernetes release; one of their own serves them all.
_HELM = "v3.22.0"
_PROMETHEUS = "v3.15.0"
_VERSITYGW = "v1.8.0"


class Program(msgspec.Struct, frozen=True):
    """One program: the project that releases it, and the question to which it answers with its version."""

    name: str
    project: str
    question: tuple[str, ...]
    answer: str


_KUBERNETES = r"Kubernetes (v\S+)"

PROGRAMS = {
    program.name: program
    for program in (
        Program("kube-apiserver", "kubernetes", ("--version",), _KUBERNETES),
        Program("kube-controller-manager", "kubernetes", ("--version",), _KUBERNETES),
        Program("kube-scheduler", "kubernetes", ("--version",), _KUBERNETES),
        Program("kubelet", "kubernetes", ("--version",), _KUBERNETES),
        Program("kubectl", "kubernetes", ("version", "--client"), r"Client Version: (v\S+)"),
        Program("kube-proxy", "kubernetes", ("--version",), _KUBERNETES),
        Program("kubeadm", "kubernetes", ("version", "--output", "short"), r"(v\S+)"),
        Program("etcd", "etcd", ("--version",), r"etcd Version: (\S+)"),
        Program("etcdctl", "etcd", ("version",), r"etcdctl version: (\S+)"),
        Program("etcdutl", "etcd", ("version",), r"etcdutl version: (\S+)"),
        Program("coredns", "coredns", ("-version",), r"CoreDNS-(\S+)"),
        # Kubernetes' own says "pause.c 3.10.1", ours "pause 3.10.1".
        Program("pause", "pause", ("-v",), r"pause(?:\.c)? (\S+)"),
    )
}
"""What every lab has."""

TOOLS = {
    "helm": Program("helm", "helm", ("version", "--template", "{{.Version}}"), r"(v\S+)"),
    "promtool": Program("promtool", "prometheus", ("--version",), r"promtool, version (\S+)"),
    "versitygw": Program("versitygw", "versitygw", ("--version",), r"Version *: (\S+)"),
}
"""What is obtained by whoever asks for it."""

CLUSTER_API = {
    "cluster-api-core": "core",
    "cluster-api-bootstrap": "bootstrap/kubeadm",
    "cluster-api-control-plane": "controlplane/kubeadm",
    "clusterctl": "cmd/clusterctl",
}
"""Upstream's managers, which ours are tested and measured beside, its command line, and the package of each; the managers do not tell
their version."""
REGISTRY = "registry"
"""The registry of the distribution project, for the OS images of a lab."""


SITES: Mapping[str, str] = {
    "kubernetes": "https://dl.k8s.io/release",
    "etcd": "https://github.com/etcd-io/etcd/releases/download",
    "coredns": "https://github.com/coredns/coredns/releases/download",
    "helm": "https://get.helm.sh",
    "prometheus": "https://github.com/prometheus/prometheus/releases/download",
}
"""The site of each project that publishes programs; pause is published as an image only."""

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64le", "s390x": "s390x"}


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A file to download: itself the program, or an archive with the programs as members."""

    url: str
    checksum_url: str
    members: dict[str, str]
    """Path in the archive by program; empty where the file is the program."""


class NoAnswerError(Exception):
    """A program that does not say its version; the text says how it failed."""


def release_named(version: str) -> Release:
    """The release of a Kubernetes version as an operator writes it, with or without the v."""
    try:
        return release_for(Version.parse(version))
    except ValueError:
        raise OperatorError(f'"{version}" is not a Kubernetes version: one with three numbers is wanted, such as v1.35.4') from None


def project_of(name: str) -> str:
    """The project that releases a program; what is not in the table is one of Kubernetes' many commands."""
    if name in CLUSTER_API:
        return "cluster-api"
    if name == REGISTRY:
        return "distribution"
    program = PROGRAMS.get(name) or TOOLS.get(name)
    return program.project if program is not None else "kubernetes"


def wanted_version(name: str, release: Release) -> str:
    """The version of a program that goes with a Kubernetes release, spelled as its project tags it."""
    match project_of(name):
        case "etcd":
            # The image's tag counts its own rebuilds after a dash.
            version = "v" + release.etcd_version.partition("-")[0]
            return version if name == "etcd" else _ETCD_TOOLS.get(version, version)
        case "coredns":
            return release.coredns_version
        case "pause":
            return release.pause_version
        case "helm":
            return _HELM
        case "prometheus":
            return _PROMETHEUS
        case "versitygw":
            return _VERSITYGW
        case _:
            return f"v{release.version}"


def stated_version(name: str, path: Path) -> str:
    """The version that the program at ``path`` says it has, spelled as its project tags it."""
    program = PROGRAMS.get(name) or TOOLS[name]
    try:
        done = subprocess.run(
            [path, *program.question], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise NoAnswerError(f"{path} did not tell its version within {_ANSWER_SECONDS} s") from None
    except (OSError, UnicodeDecodeError) as error:
        raise NoAnswerError(f"{path} cannot be run: {error}") from None
    found = re.search(program.answer, done.stdout)
    if done.returncode != 0 or found is None:
        raise NoAnswerError(f"{path} did not tell its version: `{' '.join(program.question)}` ended with exit code {done.returncode}")
    version = found.group(1)
    return version if program.project in ("kubernetes", "pause") else f"v{version.removeprefix('v')}"


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
    project = project_of(program)
    if project not in sites:
        return None
    match project:
        case "etcd":
            name = f"etcd-{version}-linux-{arch}"
            members = {tool: f"{name}/{tool}" for tool in ("etcd", "etcdctl", "etcdutl")}
            folder = f"{sites[project]}/{version}"
            return Artifact(url=f"{folder}/{name}.tar.gz", checksum_url=f"{folder}/SHA256SUMS", members=members)
        case "coredns":
            url = f"{sites[project]}/{version}/coredns_{version.removeprefix('v')}_linux_{arch}.tgz"
            return Artifact(url=url, checksum_url=f"{url}.sha256", members={"coredns": "coredns"})
        case "helm":
            url = f"{sites[project]}/helm-{version}-linux-{arch}.tar.gz"
            return Artifact(url=url, checksum_url=f"{url}.sha256sum", members={"helm": f"linux-{arch}/helm"})
        case "prometheus":
            name = f"prometheus-{version.removeprefix('v')}.linux-{arch}"
            folder = f"{sites[project]}/{version}"
            members = {"promtool": f"{name}/promtool"}
            return Artifact(url=f"{folder}/{name}.tar.gz", checksum_url=f"{folder}/sha256sums.txt", members=members)
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
