"""Records the component configurations that the real kubeadm makes, and its warnings; needs root and Go.

Each case of tests/golden/components is a part of ``init --dry-run``, whose ConfigMaps hold the configurations.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import yaml

from slipway.lab.programs.gobuild import build

RELEASES = ("v1.33.13", "v1.34.10", "v1.35.4", "v1.36.3")
GOLDEN = Path(__file__).parents[1] / "golden/components"
HASH = "kubeadm.kubernetes.io/component-config.hash"
# What is left makes certificates and kubeconfigs, without which the ConfigMaps cannot be made, and those.
SKIPPED = (
    "preflight,etcd,control-plane,kubelet-start,wait-control-plane,upload-config/kubeadm,upload-certs,mark-control-plane,"
    "bootstrap-token,kubelet-finalize,addon/coredns,show-join-command"
)


def configuration(case: dict[str, Any], version: str) -> str:
    documents: list[dict[str, Any]] = [
        {
            "apiVersion": "kubeadm.k8s.io/v1beta4",
            "kind": "InitConfiguration",
            "localAPIEndpoint": {"advertiseAddress": case.get("address", "10.0.0.5")},
            "nodeRegistration": {"criSocket": "unix:///run/containerd/containerd.sock", "name": "node"},
        },
        {
            "apiVersion": "kubeadm.k8s.io/v1beta4",
            "kind": "ClusterConfiguration",
            "kubernetesVersion": version,
            "networking": case.get("networking", {}),
            **({"certificatesDir": case["certificatesDir"]} if "certificatesDir" in case else {}),
        },
    ]
    if "kubelet" in case:
        documents.append({"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", **case["kubelet"]})
    if "kubeproxy" in case:
        documents.append({"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", **case["kubeproxy"]})
    return yaml.safe_dump_all(documents)


def record(kubeadm: Path, text: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"
        config.write_text(text)
        command = [str(kubeadm), "init", "--config", str(config), "--dry-run", "--skip-phases", SKIPPED]
        environment = {**os.environ, "KUBEADM_INIT_DRYRUN_DIR": folder}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}:\n{done.stderr}\n{text}")
    kubelet = attached(done.stdout, "kubelet-config")
    proxy = attached(done.stdout, "kube-proxy")
    return {
        "kubelet": kubelet["data"]["kubelet"],
        "kubelet_hash": hash_of(kubelet),
        "kubeproxy": proxy["data"]["config.conf"],
        "kubeproxy_kubeconfig": proxy["data"]["kubeconfig.conf"],
        "kubeproxy_hash": hash_of(proxy),
        "warnings": re.findall(r"^W\d{4} .*?\] (The recommended value .*)$", done.stderr, re.MULTILINE),
        "strict": re.findall(r'strict decoding error: ((?:unknown field "[^"]*"(?:, )?)+)', done.stderr),
    }


def attached(output: str, name: str) -> dict[str, Any]:
    """The ConfigMap of a name, as the dry run shows it: between the line that announces it and the next message."""
    for block in output.split("[dryrun] Attached object:\n")[1:]:
        manifest = yaml.safe_load(re.split(r"^\[", block, maxsplit=1, flags=re.MULTILINE)[0])
        if manifest["kind"] == "ConfigMap" and manifest["metadata"]["name"] == name:
            return dict(manifest)
    raise SystemExit(f"no ConfigMap {name} in:\n{output}")


def hash_of(manifest: dict[str, Any]) -> str:
    return str(manifest["metadata"].get("annotations", {}).get(HASH, ""))


def main() -> None:
    programs = {version: build("kubeadm", version) for version in RELEASES}
    recorded = []
    for case in yaml.safe_load((GOLDEN / "documents.cases.yaml").read_text()):
        print(case["name"], flush=True)
        outcomes = {version: record(program, configuration(case, version)) for version, program in programs.items()}
        first = outcomes[RELEASES[0]]
        same = all(outcome == first for outcome in outcomes.values())
        recorded.append({**case, "outcome": {"all": first} if same else outcomes})
    (GOLDEN / "documents.json").write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
