"""Small shell scripts that answer the question for their version as the real programs do."""

from __future__ import annotations

from pathlib import Path

# What the real programs print: Kubernetes v1.35.4, etcd v3.6.6, CoreDNS v1.13.1, Kubernetes' pause 3.10.1.
ANSWERS = {
    "kubectl": ("version --client", "Client Version: {0}\\nKustomize Version: v5.7.1\\n"),
    "kubeadm": ("version --output short", "{0}\\n"),
    "etcd": ("--version", "etcd Version: {1}\\nGit SHA: Not provided (use ./build instead of go build)\\nGo Version: go1.26.8\\n"),
    "etcdutl": ("version", "etcdutl version: {1}\\nAPI version: 3.6\\n"),
    "etcdctl": ("version", "etcdctl version: {1}\\nAPI version: 3.6\\n"),
    "coredns": ("-version", "CoreDNS-{1}\\nlinux/amd64, go1.26.8, \\n"),
    "pause": ("-v", "pause.c {0}\\n"),
    "promtool": ("--version", "promtool, version {1} (branch: , revision: unknown)\\n"),
    "helm": ("version --template {{.Version}}", "{0}"),
}
KUBERNETES = ("--version", "Kubernetes {0}\\n")


def script(program: str, version: str) -> str:
    question, answer = ANSWERS.get(program, KUBERNETES)
    text = answer.format(version, version.removeprefix("v"))
    return f'#!/bin/sh\n[ "$*" = "{question}" ] || exit 64\nprintf "{text}"\n'


def install(folder: Path, program: str, version: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / program
    path.write_text(script(program, version))
    path.chmod(0o755)
    return path
