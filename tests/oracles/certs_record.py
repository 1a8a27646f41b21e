"""Records what the real kubeadm makes of every certificate case.  It needs root (for --rootfs) and Go.

Every command runs with a root folder of its own, so that paths are the same everywhere.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import cases.certificate_state as state
from cases.certificates import VERSIONS, cases_and_versions, changed_files, described_tree, kubeadm_file, without_times, write_golden

from slipway.lab.programs.gobuild import build


def main() -> None:
    for name, version in cases_and_versions():
        write_golden(name, version, _recorded_case(name, version))
    for version in VERSIONS:
        write_golden("states", version, _recorded_states(version))


def _recorded_case(name: str, version: str) -> dict[str, Any]:
    """All commands that make or read certificates, one after the other on one machine."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "config.yaml").write_text(kubeadm_file(name, version))
        outcome: dict[str, Any] = {}
        outcome["certs"] = _lines(_run(version, root, "init phase certs all --config /config.yaml"))
        # Certificates start with whole seconds, and when each one starts is recorded.
        time.sleep(1.1)
        outcome["kubeconfig"] = _lines(_run(version, root, "init phase kubeconfig all --config /config.yaml"))
        outcome["files"] = described_tree(root)
        outcome["certs again"] = _lines(_run(version, root, "init phase certs all --config /config.yaml"))
        outcome["kubeconfig again"] = _lines(_run(version, root, "init phase kubeconfig all --config /config.yaml"))
        for output in ("text", "json", "yaml"):
            shown = _run(version, root, f"certs check-expiration --config /config.yaml -o {output}").stdout
            outcome[f"check-expiration {output}"] = without_times(shown)
        time.sleep(1.1)
        outcome["renew"] = _lines(_run(version, root, "certs renew all --config /config.yaml"))
        outcome["renewed files"] = changed_files(outcome["files"], described_tree(root))
        requests = root / "requests"
        arguments = "certs generate-csr --config /config.yaml --cert-dir /requests/pki --kubeconfig-dir /requests"
        # The real one goes through a map, in any order.
        outcome["generate-csr"] = sorted(_lines(_run(version, root, arguments)))
        outcome["requests"] = described_tree(requests)
        outcome["users"] = {command: _user(version, root, command) for command in state.USERS}
    return outcome


def _user(version: str, root: Path, command: str) -> dict[str, Any]:
    done = _run(version, root, f"kubeconfig user --config /config.yaml {command}")
    folder = root / "user"
    (folder / "etc/kubernetes/pki").mkdir(parents=True, exist_ok=True)
    (folder / "etc/kubernetes/pki/ca.crt").write_bytes((root / "etc/kubernetes/pki/ca.crt").read_bytes())
    (folder / "user.conf").write_text(done.stdout)
    described: dict[str, Any] = {"user.conf": described_tree(folder)["user.conf"][1:]}
    return described


def _recorded_states(version: str) -> dict[str, Any]:
    """What the real one says to files that are not quite right."""
    outcome = {}
    for name, (phase, change) in state.STATES.items():
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "config.yaml").write_text(kubeadm_file("ecdsa-p256", version))
            for made in ("certs", "kubeconfig"):
                _run(version, root, f"init phase {made} all --config /config.yaml")
            change(root / "etc/kubernetes")
            before = state.contents(root)
            done = _run(version, root, f"init phase {phase} --config /config.yaml", check=False)
            outcome[name] = {
                "exit code": done.returncode,
                "said": done.stdout.splitlines(),
                "changed": state.changes(before, state.contents(root)),
            }
    return outcome


def _run(version: str, root: Path, command: str, *, check: bool = True) -> subprocess.CompletedProcess[str]:
    program = build("kubeadm", version)
    done = subprocess.run([program, *command.split(), f"--rootfs={root}"], capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise SystemExit(f"{version}: kubeadm {command}: {done.stderr}")
    return done


def _lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    return done.stdout.splitlines()


if __name__ == "__main__":
    main()
