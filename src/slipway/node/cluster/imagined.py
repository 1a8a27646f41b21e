"""The cluster that a dry run imagines where it sees none: what the commands that start with reading one find.

Its objects are those of kubeadm's dry run, so that both show the same; only the signature of cluster-info is made for the
token at hand, where kubeadm accepts no token but its own.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

from slipway.workload import clusterinfo, configmaps, kubeproxy

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.api.releases import Release

ENDPOINT = "192.168.0.101:6443"
SERVER = f"https://{ENDPOINT}"


def objects(release: Release, token: str) -> list[Manifest]:
    """``token`` is the bootstrap token with which a node would join; empty where none is used."""
    return [_cluster_info(release, token), _kubeadm_config(release), _kubeadm_certs(), _kube_proxy(), _kubelet_config()]


def lists(release: Release, node_name: str) -> dict[str, list[Manifest]]:
    """The Pods of a control plane on the node, and the Deployment of CoreDNS."""
    components = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")
    return {"Pod": [_pod(name, node_name) for name in components], "Deployment": [_coredns(release)]}


def corefile() -> Manifest:
    return configmaps.config_map("coredns", {"Corefile": ""})


def _pod(component: str, node_name: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{component}-{node_name}",
            "namespace": "kube-system",
            "labels": {"component": component, "tier": "control-plane"},
            "annotations": {"kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint": "0.0.0.0:6443"},
        },
        "spec": {"nodeName": node_name, "containers": [{"name": component, "image": f"registry.k8s.io/{component}:v1.1.1"}]},
        "status": {"phase": "Running"},
    }


def _coredns(release: Release) -> Manifest:
    image = f"registry.k8s.io/coredns/coredns:{release.coredns_version}"
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}},
        "spec": {"template": {"spec": {"containers": [{"image": image}]}}},
    }


def _cluster_info(release: Release, token: str) -> Manifest:
    text = clusterinfo.kubeconfig(SERVER, b64encode(CA_CERTIFICATE.encode()).decode(), release)
    made = clusterinfo.config_map(text)
    if token:
        made["data"][clusterinfo.SIGNATURE_PREFIX + token.partition(".")[0]] = clusterinfo.signature(text, token)
    return made


def _kubeadm_config(release: Release) -> Manifest:
    # The oldest control plane that the release works with.
    return configmaps.config_map(
        configmaps.KUBEADM_CONFIG, {"ClusterConfiguration": _CLUSTER_CONFIGURATION.format(version=f"1.{release.minor - 1}.0")}
    )


def _kubeadm_certs() -> Manifest:
    names = ("ca.crt", "ca.key", "etcd-ca.crt", "etcd-ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "sa.key", "sa.pub")
    metadata = {"name": "kubeadm-certs", "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": dict.fromkeys(names, "")}


def _kube_proxy() -> Manifest:
    return configmaps.config_map(
        kubeproxy.NAME, {"config.conf": _PROXY_CONFIGURATION, "kubeconfig.conf": kubeproxy.kubeconfig(SERVER) + "\n"}
    )


def _kubelet_config() -> Manifest:
    return configmaps.config_map(configmaps.KUBELET_CONFIG, {"kubelet": _KUBELET_CONFIGURATION})


_CLUSTER_CONFIGURATION = """\
apiServer: {{}}
apiVersion: kubeadm.k8s.io/v1beta4
caCertificateValidityPeriod: 87600h0m0s
certificateValidityPeriod: 100h0m0s
certificatesDir: /etc/kubernetes/pki
clusterName: kubernetes
controllerManager:
  extraArgs:
  - name: cluster-signing-duration
    value: 24h
controlPlaneEndpoint: 192.168.0.101:6443
dns: {{}}
encryptionAlgorithm: RSA-2048
etcd:
  local:
    dataDir: /var/lib/etcd
imageRepository: registry.k8s.io
kind: ClusterConfiguration
kubernetesVersion: {version}
networking:
  dnsDomain: cluster.local
  podSubnet: 192.168.0.0/16
  serviceSubnet: 10.96.0.0/12
proxy: {{}}
scheduler: {{}}
"""

_KUBELET_CONFIGURATION = """\
apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous:
    enabled: false
  webhook:
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
authorization:
  mode: Webhook
cgroupDriver: systemd
clusterDNS:
- 10.96.0.10
clusterDomain: cluster.local
healthzBindAddress: 127.0.0.1
healthzPort: 10248
kind: KubeletConfiguration
memorySwap: {}
resolvConf: /run/systemd/resolve/resolv.conf
rotateCertificates: true
staticPodPath: /etc/kubernetes/manifests
"""

_PROXY_CONFIGURATION = """\
apiVersion: kubeproxy.config.k8s.io/v1alpha1
bindAddress: 0.0.0.0
bindAddressHardFail: false
clientConnection:
  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf
clusterCIDR: 192.168.0.0/16
kind: KubeProxyConfiguration
"""

CA_CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIDBTCCAe2gAwIBAgIINJftaB+OWwAwDQYJKoZIhvcNAQELBQAwFTETMBEGA1UE
AxMKa3ViZXJuZXRlczAeFw0yNDA3MDgxMjQwMDRaFw0zNDA3MDYxMjQ1MDRaMBUx
EzARBgNVBAMTCmt1YmVybmV0ZXMwggEiMA0GCSqGSIb3DQEBAQUAA4IBDwAwggEK
AoIBAQDaQDdigOyWim6W/48n3PHoVeVBSid6WcndEWuUq5gBWXdlt996h+VnItlt
8zChl/oR5WfRaRC805Z+oMn/Y8IGVQ3t1hnyImYn4w3vzRXouGeBeiu2SSVjgBwj
XjybbMCmrAdIcbIeZmH66ev5z+5YKmZRUYc3hDaHpXd0EEnZyJV5waZs0XMQUHM7
eqOZAZJ9/mO3NUBplvrPnpOMK7kSEPPg75cU7WHoJHFkeYW593gsgCs2BtUu64cq
bVX9bigrYddpZkoEKKxU8HIwHsI5V8Ron3mKFGlrE17b2l/8CqmAuOvyzLIeiQGX
egIaR/nRHHID9ATi6tX8EaDDpev/AgMBAAGjWTBXMA4GA1UdDwEB/wQEAwICpDAP
BgNVHRMBAf8EBTADAQH/MB0GA1UdDgQWBBQYaCDe6yuVqSaWV73zLjWmGhiaTzAV
BgNVHREEDjAMggprdWJlcm5ldGVzMA0GCSqGSIb3DQEBCwUAA4IBAQCceMnniPaq
GREjGp6XRS7QEYmQrbEd+TV5JQ18o+mW6oGpZ8CA3JAHQDNNPEmPc0yuXDxO9BFX
bg2XRH+KNJ3W2JfQ1TH3TXJEaxfHuX4mB59RClC114klWdHx1j7AmEkuy6tdjnai
fhtSGnxA03bp7b8go3IjW4NpWRN1WG59va0J8BHFh7CDieLn+DMuI63BgkY/y2s0
L/dm9PfqgUK1A3/0dhCV6bECjzA3JBewmdH/+UBOyY2mC05YP33d0p9yykbkdXNq
DN5yAsvMP/OWCnB1eBQTojM82LSqwtvmmMR4tWauh9udVKGck4xBZWudrnKDUUXI
QDMPRgJC/Nx4
-----END CERTIFICATE-----
"""
"""The certificate of an authority that never signed anything; kubeadm 1.33 to 1.36 imagine the same one."""
