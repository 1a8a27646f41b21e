"""A kubeadm configuration file, as anybody writes it, through ``config validate`` and both ways of ``config migrate``."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from slipway.api.kubeadm.migrate import migrate
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.api.releases import NEWEST, release_for
from slipway.host.real import RealHost
from slipway.node.config import documents

_GOLDEN = Path(__file__).parents[1] / "golden"


# A machine without files: what it is told must not depend on where it runs.
class _Offline(RealHost):
    def fetch_public(self, url: str, *, timeout: float) -> bytes:
        return f"v{_RELEASE.version}".encode()


_HOST = _Offline("/nonexistent", environment={})
_RELEASE = release_for(NEWEST)
# Every kind of value that has a form of its own.
_FORMS = b"""\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens:
- {token: abcdef.0123456789abcdef, ttl: 24h0m0s, usages: [signing], groups: ["system:bootstrappers:a"]}
- {token: abcdef.0123456789abcdee, expires: "2030-01-02T03:04:05+01:00"}
nodeRegistration:
  name: node
  criSocket: unix:///run/containerd/containerd.sock
  imagePullPolicy: IfNotPresent
  taints: [{key: a, effect: NoSchedule, timeAdded: "2030-01-02T03:04:05Z"}]
  kubeletExtraArgs: [{name: v, value: "4"}]
  ignorePreflightErrors: [Swap]
localAPIEndpoint: {advertiseAddress: 10.0.0.1, bindPort: 6443}
certificateKey: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
timeouts: {controlPlaneComponentHealthCheck: 4m0s, discovery: 5m}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.35.4
controlPlaneEndpoint: "host.example.com:6443"
networking: {podSubnet: "10.0.0.0/16,fd00::/56", serviceSubnet: 10.96.0.0/16, dnsDomain: cluster.local}
certificateValidityPeriod: 8760h
caCertificateValidityPeriod: 87600h
encryptionAlgorithm: RSA-2048
featureGates: {NodeLocalCRISocket: true}
controllerManager:
  extraArgs: [{name: node-cidr-mask-size-ipv4, value: "24"}]
apiServer:
  certSANs: ["*.example.com", 10.0.0.2]
  extraEnvs:
  - name: A
    valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1Mi}}
  - name: B
    valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1.5}}
etcd:
  external: {endpoints: ["https://10.0.0.3:2379"], caFile: /ca.crt, certFile: /a.crt, keyFile: /a.key}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
caCertPath: /etc/kubernetes/pki/ca.crt
discovery:
  bootstrapToken: {token: abcdef.0123456789abcdef, apiServerEndpoint: "[fd00::1]:6443", caCertHashes: ["sha256:00"]}
nodeRegistration: {name: node, taints: []}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ResetConfiguration
unmountFlags: [MNT_FORCE]
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
syncFrequency: 1m
clusterDNS: [10.96.0.10]
systemReserved: {cpu: 100m}
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
iptables: {syncPeriod: 30s}
"""


def seeds() -> list[bytes]:
    """Documents to begin with: those of the recorded runs, of every version."""
    old = [path.read_bytes() for path in sorted(_GOLDEN.glob("history/**/*.yaml"))]
    cases = [goyaml.load(path.read_text())[0].value for path in sorted(_GOLDEN.glob("cases/*.yaml"))]
    return [_FORMS, *old] + [case["config"].encode() for case in cases if isinstance(case.get("config"), str)]


def fuzz(data: bytes) -> None:
    """Only a sentence may come of it."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    for step in (_validate, _migrate, _migrate_as_kubeadm):
        with suppress(OperatorError):
            step(text)


def _validate(text: str) -> None:
    documents.validate(text, _HOST, _ignore, source="kubeadm.yaml")


def _migrate(text: str) -> None:
    migrate(text, "kubeadm.yaml")


def _migrate_as_kubeadm(text: str) -> None:
    documents.migrate_as_kubeadm(text, _RELEASE, _HOST, source="kubeadm.yaml")


def _ignore(warning: str) -> None:
    """What is said of a file that is taken."""
