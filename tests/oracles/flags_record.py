"""Records the flags that the components of each release accept: src/slipway/api/components/flags.json.  It needs Go.

Run as ``python tests/oracles/flags_record.py [VERSION …]``; what the table says of other releases stays.

The flags of Kubernetes' components are asked of the components' own code (tests/oracles/flags); those that ``--help``
lists, where the cache has the program, must be among them.  etcd's code keeps its flag set to itself, so that every word of its
sources that could be a flag is tried on the program.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from slipway.api.machinery.version import Version
from slipway.api.releases import release_for
from slipway.lab.programs import cache, catalog, gobuild
from slipway.lab.programs.cache import place

RELEASES = ("v1.33.13", "v1.34.10", "v1.35.4", "v1.36.3")
ROOT = Path(__file__).parents[2]
TABLE = ROOT / "src/slipway/api/components/flags.json"
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
ORACLE = "slipway.example/flags"
# A program that parses this, and nothing before it is wrong, ends here.
UNKNOWN = "--no-component-has-this-flag"


def of_kubernetes(version: str) -> dict[str, set[str]]:
    """The flags of Kubernetes' own components."""
    work = cache.cache_root() / "build" / version / "flags"
    (work / "flags").mkdir(parents=True, exist_ok=True)
    upstream = gobuild.module_source(gobuild.KUBERNETES, version)
    go_mod = gobuild.wrapper_go_mod((upstream / "go.mod").read_text(), version)
    # In a module of its own, the oracle is built with just the packages that the lab's programs are, which Go's cache then has.
    (work / "go.mod").write_text(f"{go_mod}\nrequire {ORACLE} v0.0.0\n\nreplace {ORACLE} => ./flags\n")
    (work / "flags/go.mod").write_text(f"module {ORACLE}\n\ngo 1.24.0\n\nrequire {gobuild.KUBERNETES} {version}\n")
    shutil.copyfile(upstream / "go.sum", work / "go.sum")
    shutil.copyfile(Path(__file__).parent / "flags/main.go", work / "flags/main.go")
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    command = [
        "go",
        "build",
        "-mod=mod",
        "-trimpath",
        "-buildvcs=false",
        "-ldflags",
        gobuild.version_flags(version),
        "-o",
        "oracle",
        ORACLE,
    ]
    subprocess.run(command, cwd=work, env=environment, check=True)
    found: dict[str, set[str]] = {}
    for component in COMPONENTS:
        done = subprocess.run([str(work / "oracle"), component], capture_output=True, text=True, check=True)
        found[component] = set(json.loads(done.stdout))
        program = place(cache.cache_root(), component, version)
        missing = listed(program) - found[component] if program.exists() else set()
        if missing:
            raise SystemExit(f"{component} {version} --help lists {sorted(missing)}, which its code does not")
    return found


def listed(program: Path) -> set[str]:
    """The flags in a program's help text."""
    done = subprocess.run([str(program), "--help"], capture_output=True, text=True, check=True)
    return set(re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)", done.stdout, re.MULTILINE))


def of_etcd(version: str) -> set[str]:
    """The words in the sources of etcd's command line that the program takes for flags."""
    sources = gobuild.module_source("go.etcd.io/etcd/server/v3", version)
    words = {word for path in ("etcdmain", "embed") for file in (sources / path).glob("*.go") for word in candidates(file.read_text())}
    program = gobuild.build("etcd", version)
    return {word for word in words if accepts(program, word)}


def candidates(source: str) -> list[str]:
    return re.findall(r'"([a-z][a-z0-9]*(?:-[a-z0-9]+)*)"', source)


def accepts(program: Path, name: str) -> bool:
    """Whether etcd has a flag; the one after it, which it has not, keeps it from doing anything."""
    done = subprocess.run([str(program), f"--{name}=", UNKNOWN], capture_output=True, text=True, check=False, timeout=10)
    refused = re.search(r"flag provided but not defined: -(\S+)", done.stderr + done.stdout)
    return refused is None or refused[1] != name


def table(found: dict[int, set[str]]) -> dict[str, str]:
    """The names that the same minors have, under the list of those minors."""
    spans: dict[str, list[str]] = {}
    for name in sorted(set().union(*found.values())):
        spans.setdefault(" ".join(str(minor) for minor, names in sorted(found.items()) if name in names), []).append(name)
    return {span: " ".join(names) for span, names in sorted(spans.items(), key=lambda item: (-len(item[0]), item[0]))}


def recorded() -> dict[str, dict[int, set[str]]]:
    """What the table says, the other way round."""
    found: dict[str, dict[int, set[str]]] = {}
    for component, spans in (json.loads(TABLE.read_text()) if TABLE.exists() else {}).items():
        for minors, names in spans.items():
            for minor in minors.split():
                found.setdefault(component, {}).setdefault(int(minor), set()).update(names.split())
    return found


def main() -> None:
    found = recorded()
    for version in sys.argv[1:] or RELEASES:
        release = release_for(Version.parse(version))
        etcd = catalog.wanted_version("etcd", release)
        print(f"{version}, etcd {etcd}", flush=True)
        for component, names in of_kubernetes(version).items():
            found.setdefault(component, {})[release.minor] = names
        found.setdefault("etcd", {})[Version.parse(etcd).minor] = of_etcd(etcd)
    TABLE.write_text(json.dumps({component: table(by_minor) for component, by_minor in sorted(found.items())}, indent=1) + "\n")


if __name__ == "__main__":
    main()
