"""The programs that a lab needs: which release each belongs to, and how each tells its own version."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.api.releases import release_for

if TYPE_CHECKING:
    from pathlib import Path

    from slipway.api.releases import Release

_ANSWER_SECONDS = 10
# etcd's server and its client are modules of their own, and not every patch has both; a client serves every patch of its minor.
_ETCDCTL = {"v3.5.24": "v3.5.35"}


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
        Program("coredns", "coredns", ("-version",), r"CoreDNS-(\S+)"),
        # Kubernetes' own says "pause.c 3.10.1", ours "pause 3.10.1".
        Program("pause", "pause", ("-v",), r"pause(?:\.c)? (\S+)"),
    )
}

CLUSTER_API = {
    "cluster-api-core": "core",
    "cluster-api-bootstrap": "bootstrap/kubeadm",
    "cluster-api-control-plane": "controlplane/kubeadm",
}
"""Upstream's managers, which ours are tested and measured beside, and the package of each; they do not tell their version."""


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
    return PROGRAMS[name].project if name in PROGRAMS else "kubernetes"


def wanted_version(name: str, release: Release) -> str:
    """The version of a program that goes with a Kubernetes release, spelled as its project tags it."""
    match project_of(name):
        case "etcd":
            # The image's tag counts its own rebuilds after a dash.
            version = "v" + release.etcd_version.partition("-")[0]
            return _ETCDCTL.get(version, version) if name == "etcdctl" else version
        case "coredns":
            return release.coredns_version
        case "pause":
            return release.pause_version
        case _:
            return f"v{release.version}"


def stated_version(name: str, path: Path) -> str:
    """The version that the program at ``path`` says it has, spelled as its project tags it."""
    program = PROGRAMS[name]
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
