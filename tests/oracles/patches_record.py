"""Records what the real kubeadm makes of folders of patches; needs root and Go.

Each case of tests/golden/patches/folders.cases.yaml is a phase of ``init --dry-run``, once without and once with the folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import yaml

from slipway.lab.programs.gobuild import build

# The oldest and the newest: Pods differ between them in what Go prints for a zero time.
RELEASES = ("v1.33.13", "v1.36.3")
GOLDEN = Path(__file__).parents[1] / "golden/patches"
CRI_SOCKET = "unix:///run/containerd/containerd.sock"


def configuration(version: str, folder: Path | None) -> str:
    init: dict[str, Any] = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "InitConfiguration",
        "localAPIEndpoint": {"advertiseAddress": "10.0.0.5"},
        "nodeRegistration": {"criSocket": CRI_SOCKET, "name": "node"},
    }
    if folder is not None:
        init["patches"] = {"directory": str(folder)}
    cluster = {"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", "kubernetesVersion": version}
    return yaml.safe_dump_all([init, cluster])


def run(kubeadm: Path, version: str, target: str, files: dict[str, str] | None) -> dict[str, Any]:
    phase = {"etcd": ["etcd", "local"], "kubeletconfiguration": ["kubelet-start"]}.get(
        target, ["control-plane", target.removeprefix("kube-")]
    )
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        patches = root / "patches"
        for path, content in (files or {}).items():
            (patches / path).parent.mkdir(parents=True, exist_ok=True)
            (patches / path).write_text(content)
        dry = root / "dry"
        dry.mkdir()
        config = root / "config.yaml"
        config.write_text(configuration(version, patches if files is not None else None))
        command = [str(kubeadm), "init", "phase", *phase, "--config", str(config), "--dry-run"]
        environment = {**os.environ, "KUBEADM_INIT_DRYRUN_DIR": str(dry)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        artefact = dry / ("config.yaml" if target == "kubeletconfiguration" else f"{target}.yaml")
        error = "" if done.returncode == 0 else done.stderr.replace(str(patches), "PATCHES")
        said = [line.replace(str(patches), "PATCHES") for line in done.stdout.splitlines() if line.startswith("[patches]")]
        return {"artefact": artefact.read_text() if not error else "", "said": said, "error": error}


def main() -> None:
    programs = {version: build("kubeadm", version) for version in RELEASES}
    cases = yaml.safe_load((GOLDEN / "folders.cases.yaml").read_text())
    bases = {
        target: {version: run(program, version, target, None)["artefact"] for version, program in programs.items()}
        for target in dict.fromkeys(case["target"] for case in cases)
    }
    recorded = []
    for case in cases:
        print(case["name"], flush=True)
        outcomes = {version: run(program, version, case["target"], case["files"]) for version, program in programs.items()}
        recorded.append({**case, "outcome": outcomes})
    (GOLDEN / "folders.json").write_text(json.dumps({"bases": bases, "cases": recorded}, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
