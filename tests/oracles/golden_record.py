"""Records what the real kubeadm does with every golden case.  Run it with ``make golden``; it needs root and Go.

Each run has a machine of its own: a root folder with nothing in it but the program, and network, host name and process
namespaces that hold just what the case says.  So the outcome does not depend on the machine that records.
"""

from __future__ import annotations

import argparse
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from cases.golden import GOLDEN, Case, all_cases, described_files, golden_folder, normalised_stdout, write_golden

from slipway.lab.programs.cache import cache_root
from slipway.lab.programs.gobuild import build

# Answers "active" for the services of the case; the real systemctl needs a systemd.
SYSTEMCTL = """package main

import (
	"os"
	"strings"
)

func main() {
	for _, name := range strings.Fields(os.Getenv("ACTIVE_SERVICES")) {
		if len(os.Args) > 2 && strings.TrimSuffix(os.Args[len(os.Args)-1], ".service") == name {
			os.Stdout.WriteString("active\\n")
			return
		}
	}
	os.Exit(3)
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="the cases to record; all of them where none is named")
    wanted = set(parser.parse_args().names)
    cases = [case for case in all_cases() if not wanted or case.name in wanted]
    systemctl = _systemctl()
    for number, case in enumerate(cases, 1):
        for version in case.releases:
            print(f"[{number}/{len(cases)}] {case.name} {version}", flush=True)
            folder = golden_folder(case, version)
            shutil.rmtree(folder, ignore_errors=True)
            write_golden(case, version, record(case, version, systemctl))
    if not wanted:
        _remove_stale(cases)


def record(case: Case, version: str, systemctl: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="slipway-golden-") as root:
        _furnish(Path(root), case, version, systemctl)
        done = subprocess.run(
            ["unshare", "--mount", "--net", "--uts", "--pid", "--fork", "sh", "-ec", _script(case, version), root],
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return {
            "exit": done.returncode,
            "stdout": normalised_stdout(done.stdout, "/dry", case),
            "error": _error_line(done.stderr) if done.returncode else "",
            "files": described_files(Path(root) / "dry", done.stdout),
        }


def _furnish(root: Path, case: Case, version: str, systemctl: Path) -> None:
    for folder in ["/proc", "/dev", "/tmp", "/dry", "/case", "/bin", "/etc", "/var/lib", *case.host.folders]:
        (root / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
    # What a program started from there is given as its standard input.
    os.mknod(root / "dev/null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    for path, text in case.host.files.items():
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text.replace("${VERSION}", version))
    if case.config:
        (root / "case/config.yaml").write_text(case.config_text(version))
    shutil.copy2(build("kubeadm", version), root / "bin/kubeadm")
    if case.host.active_services:
        shutil.copy2(systemctl, root / "bin/systemctl")


def _script(case: Case, version: str) -> str:
    lines = [
        f"hostname {case.host.hostname}",
        "ip link set lo up",
        "ip link add eth0 type veth peer name far-end",
        "ip link set eth0 up",
        "ip link set far-end up",
    ]
    for address in case.host.addresses:
        family = "-6" if ":" in address else "-4"
        lines.append(f"ip {family} addr add {address} dev eth0" + (" nodad" if ":" in address else ""))
        lines.append(f"ip {family} route replace default dev eth0")
    environment = {
        "PATH": "/bin",
        "KUBEADM_INIT_DRYRUN_DIR": "/dry",
        "KUBEADM_JOIN_DRYRUN_DIR": "/dry",
        "KUBEADM_UPGRADE_DRYRUN_DIR": "/dry",
        "ACTIVE_SERVICES": " ".join(case.host.active_services),
        **case.host.environment,
    }
    settings = " ".join(f"'{name}={value}'" for name, value in environment.items())
    arguments = " ".join(f"'{word}'" for word in case.argv(version))
    lines += ['mount -t proc proc "$0/proc"', f'exec env -i {settings} "$(command -v chroot)" "$0" /bin/kubeadm {arguments}']
    return "\n".join(lines)


def _error_line(stderr: str) -> str:
    """The sentence that the program ended with, without log lines and the hint about stack traces."""
    lines = [line for line in stderr.splitlines() if line and not line.startswith(("\t[WARNING", "W1", "I1", "To see the stack trace"))]
    return "\n".join(lines)


def _systemctl() -> Path:
    target = cache_root() / "bin" / "systemctl-stand-in"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        source = target.with_suffix(".go")
        source.write_text(SYSTEMCTL)
        subprocess.run(["go", "build", "-o", str(target), str(source)], check=True, env={**os.environ, "CGO_ENABLED": "0"})
    return target


def _remove_stale(cases: list[Case]) -> None:
    """Outcomes of cases that are no longer there."""
    current = {golden_folder(case, version) for case in cases for version in case.releases}
    for outcome in GOLDEN.glob("v*/*/outcome.json"):
        if outcome.parent not in current:
            shutil.rmtree(outcome.parent)


if __name__ == "__main__":
    main()
