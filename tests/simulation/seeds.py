"""NoCloud seeds as the bootstrap provider and the bare-metal provider make them, for worlds without a manager."""

from __future__ import annotations

from datetime import UTC, datetime

from slipway.api.machinery.yaml import goyaml
from slipway.fleet import certificates
from slipway.fleet.bootstrap.data import cloudinit
from slipway.simulation.boot import Life
from slipway.simulation.cloudinit import SEED
from slipway.workload import alive

TOKEN = "abcdef.0123456789abcdef"
PAIRS = {
    purpose: certificates.generate(purpose, "ECDSA-P256", 10, datetime.now(UTC))
    for purpose in (certificates.CA, certificates.ETCD_CA, certificates.FRONT_PROXY_CA, certificates.SERVICE_ACCOUNT)
}


def node_registration(name: str) -> dict[str, object]:
    return {
        "name": "{{ ds.meta_data.local_hostname }}",
        "criSocket": "unix:///var/run/containerd/containerd.sock",
        "kubeletExtraArgs": [{"name": "provider-id", "value": f"baremetal:///{name}"}],
    }


def init(name: str, version: str, endpoint: str, files: list[dict[str, str]] | None = None) -> bytes:
    cluster = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "kubernetesVersion": version,
        "controlPlaneEndpoint": endpoint,
        "networking": {"podSubnet": "192.168.0.0/16"},
    }
    own = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "InitConfiguration",
        "bootstrapTokens": [{"token": TOKEN}],
        "nodeRegistration": node_registration(name),
    }
    setup = cloudinit.HostSetup(files=[*_authorities(), *(files or [])])
    return cloudinit.init_control_plane(setup, goyaml.dump(cluster), goyaml.dump(own))


def join(name: str, endpoint: str, *, control_plane: bool, files: list[dict[str, str]] | None = None, token: str = TOKEN) -> bytes:
    document = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "JoinConfiguration",
        "discovery": {
            "bootstrapToken": {
                "apiServerEndpoint": endpoint,
                "token": token,
                "caCertHashes": certificates.ca_hashes(PAIRS[certificates.CA].certificate),
            }
        },
        "nodeRegistration": node_registration(name),
    }
    if not control_plane:
        return cloudinit.join_worker(cloudinit.HostSetup(files=files or []), goyaml.dump(document))
    text = goyaml.dump({**document, "controlPlane": {"localAPIEndpoint": {}}})
    return cloudinit.join_control_plane(cloudinit.HostSetup(files=[*_authorities(), *(files or [])]), text)


def alive_files(vip: str, address: str, peers: list[str]) -> list[dict[str, str]]:
    values = alive.host_values(vip=vip, interface="eth0", address=address, peers=peers, vrid=7)
    return [{"path": file.path, "content": file.content, "permissions": file.mode} for file in alive.files(values)]


def place(host: Life, instance: str, user_data: bytes) -> None:
    """As the reprovision plan leaves it."""
    tree = host.machine.tree
    tree.make_dirs(SEED)
    tree.write(f"{SEED}/user-data", user_data)
    tree.write(f"{SEED}/meta-data", goyaml.dump({"instance-id": instance, "local-hostname": host.machine.hardware.name}).encode())


def _authorities() -> list[dict[str, str]]:
    return certificates.files(certificates.for_control_plane({}), PAIRS)
