"""A cluster on lab hosts that Slipway and the real kubeadm make and change together."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from e2e.labcli import LabCommands
from support.waiting import eventually_blocking

real_hosts = [
    pytest.mark.root,
    pytest.mark.skipif(os.environ.get("SLIPWAY_E2E") != "1", reason="boots real hosts: run it with `make e2e`"),
]

OURS = "/opt/slipway/bin/slipway"
REAL = "/usr/lib/slipway/kubeadm"
TOKEN = "abcdef.0123456789abcdef"
CERTIFICATE_KEY = "e6a2eb8581237ab72a4f494f30285ec12a9694d750b9785706a83bfcbbbd2204"

# The first two settings of the kubelet are for cgroup v1, the others for a machine whose disk is well used; that of kube-proxy is for a
# machine without CAP_SYS_RESOURCE.
CONFIG = """apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
certificateKey: {key}
bootstrapTokens:
- token: {token}
localAPIEndpoint:
  advertiseAddress: {address}
{init}---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: {version}
controlPlaneEndpoint: {address}:6443
networking:
  podSubnet: {pods}
{cluster}---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
failCgroupV1: false
evictionHard:
  imagefs.available: 1%
  nodefs.available: 1%
imageGCHighThresholdPercent: 100
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
conntrack:
  maxPerCore: 0
  min: 0
"""

# What a lab host cannot have: the kernel's configuration, two processors of its own, and a cgroup v2.
IGNORED = "--ignore-preflight-errors=SystemVerification,NumCPU,Mem"


class Nodes:
    """The hosts of one lab as the nodes of one cluster; ``tool`` is the program that does a step."""

    def __init__(self, lab: LabCommands, version: str) -> None:
        self.lab = lab
        self.version = version

    def address(self, host: str) -> str:
        return str(self.lab.hosts()[host]["address"])

    def add_host(self, host: str, image: str = "") -> None:
        self.lab.run("host", "create", host, "--image", image or self.version)
        self.lab.run("host", "start", host)
        self.settle(host)

    def renew_host(self, host: str) -> None:
        """A machine fresh from the factory under the same name and address."""
        image = self.lab.hosts()[host]["image"]
        self.lab.run("host", "delete", host)
        self.add_host(host, image)

    def settle(self, *hosts: str) -> None:
        for host in hosts:
            self.lab.on(host, "systemctl start slipway-lab-images || { journalctl --no-pager -n 20 -u slipway-lab-images >&2; exit 1; }")

    def write_config(self, host: str, *, init: str = "", cluster: str = "", version: str = "") -> None:
        row = self.lab.hosts()[host]
        pods = ".".join(row["podRange"].split(".")[:2]) + ".0.0/16"
        text = CONFIG.format(
            key=CERTIFICATE_KEY, token=TOKEN, address=row["address"], version=version or self.version, pods=pods, init=init, cluster=cluster
        )
        self.lab.on(host, "cat > /srv/kubeadm.yaml", stdin=text)

    def init(self, host: str = "host-1", tool: str = OURS, *flags: str) -> str:
        self.write_config(host)
        return self.lab.on(host, f"{tool} init --config /srv/kubeadm.yaml --upload-certs {IGNORED} {' '.join(flags)}")

    def join_words(self, *flags: str, control_plane: bool = False, to: str = "host-1") -> str:
        role = ["--control-plane", "--certificate-key", CERTIFICATE_KEY] if control_plane else []
        return " ".join(
            [f"join {self.address(to)}:6443 --token {TOKEN} --discovery-token-ca-cert-hash {self.pin(to)}", IGNORED, *role, *flags]
        )

    def join(self, host: str, tool: str = OURS, *flags: str, control_plane: bool = False, to: str = "host-1") -> str:
        return self.lab.on(host, f"{tool} {self.join_words(*flags, control_plane=control_plane, to=to)}")

    def pin(self, host: str = "host-1") -> str:
        ca = x509.load_pem_x509_certificate(self.lab.on(host, "cat /etc/kubernetes/pki/ca.crt").encode())
        return "sha256:" + hashlib.sha256(ca.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()

    def load(self, host: str, version: str) -> None:
        """What an upgrade to a version needs; the kubelet that runs stays the old one."""
        self.lab.run("host", "install", host, "--image", version)

    def renew_kubelet(self, host: str) -> None:
        self.lab.on(host, "systemctl restart kubelet")

    def versions(self, host: str = "host-1") -> dict[str, str]:
        rows = self.lab.kubectl(
            "get nodes -o jsonpath='{range .items[*]}{.metadata.name} {.status.nodeInfo.kubeletVersion}{\"\\n\"}{end}'", host=host
        )
        return dict(line.split() for line in rows.splitlines())

    def api_server_images(self, host: str = "host-1") -> dict[str, str]:
        """The tag of every control-plane container, by Pod."""
        path = '{range .items[*]}{.metadata.name} {.spec.containers[0].image}{"\\n"}{end}'
        rows = self.lab.kubectl(f"-n kube-system get pods -l tier=control-plane -o jsonpath='{path}'", host=host)
        return {name: image.rpartition(":")[2] for name, image in (line.split() for line in rows.splitlines())}

    def etcd_members(self, host: str = "host-1") -> dict[str, bool]:
        """Whether each member is a learner, by name."""
        pki = "/etc/kubernetes/pki/etcd"
        text = self.lab.on(
            host, f"etcdctl --cacert {pki}/ca.crt --cert {pki}/server.crt --key {pki}/server.key member list -w json --hex=false"
        )
        return {member.get("name", ""): member.get("isLearner", False) for member in json.loads(text)["members"]}

    def control_planes(self, host: str = "host-1") -> list[str]:
        return [
            name.removeprefix("node/")
            for name in self.lab.kubectl("get nodes -l node-role.kubernetes.io/control-plane -o name", host=host).split()
        ]

    def unready(self, host: str = "host-1") -> list[str]:
        """The Nodes and Pods that are not ready; an API server that is just being exchanged is not ready either."""
        command = "kubectl --kubeconfig /etc/kubernetes/admin.conf get nodes,pods -A -o json"
        done = self.lab.run("host", "exec", host, "--", "sh", "-ec", command, check=False)
        if done.returncode != 0:
            return [done.stderr.strip()]
        return [f"{item['kind']} {item['metadata']['name']}" for item in json.loads(done.stdout)["items"] if not _is_ready(item)]

    def wait_healthy(self, host: str = "host-1", patience: float = 240) -> None:
        """Until every Node and every Pod is ready."""
        eventually_blocking(lambda: not self.unready(host), lambda: f"ready: {self.unready(host)}", patience, pause=1)

    def killed_in(self, host: str, command: str, phase: str, *, after: str = "") -> str:
        """Run a command with ``-o json`` and kill it with signal 9 when a phase begins, or says ``after`` in it; what it said."""
        done = self.lab.run(
            "host", "exec", host, "--", "/opt/slipway/bin/python3", "-c", _KILLER, f"{command} -o json", phase, after, check=False
        )
        assert done.returncode in (0, 3), (
            f"{command} killed in {phase}: exit code {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )
        return "killed" if done.returncode == 0 else "finished before"


def _is_ready(item: dict[str, Any]) -> bool:
    if item["status"].get("phase") == "Succeeded":
        return True
    return any(row["type"] == "Ready" and row["status"] == "True" for row in item["status"].get("conditions", []))


# Runs a command, reads its events, and kills it in the phase that is named; 3 where the command ended before.
_KILLER = """
import json, os, shlex, signal, subprocess, sys
command, phase, after = sys.argv[1:]
process = subprocess.Popen(shlex.split(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
inside = False
for line in process.stdout:
    sys.stdout.write(line)
    try:
        event = json.loads(line)
    except ValueError:
        continue
    inside = inside or (event.get("event") == "started" and event.get("phase") == phase)
    if inside and (not after or after in event.get("text", "")):
        process.send_signal(signal.SIGKILL)
        process.wait()
        sys.exit(0)
code = process.wait()
sys.exit(3 if code == 0 else 4)
"""


@contextmanager
def nodes(version: str, hosts: int, name: str) -> Iterator[Nodes]:
    """A lab of fresh hosts of one Kubernetes version, gone afterwards."""
    commands = LabCommands(f"{name}-{os.getpid() % 10000}")
    try:
        commands.run("image", "build", "--kubernetes-version", version, patience=3600)
        commands.run("up", "--image", version, "--hosts", str(hosts))
        made = Nodes(commands, version)
        made.settle(*commands.hosts())
        yield made
    finally:
        commands.run("down", check=False)


def minor(version: str) -> int:
    return int(re.split(r"[v.]", version)[2])
