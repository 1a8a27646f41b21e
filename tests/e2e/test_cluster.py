"""Real clusters in lab hosts, made by the real kubeadm: what the lab is for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

import pytest
from e2e import service
from e2e.labcli import LabCommands, Surroundings, surroundings
from e2e.nodes import CERTIFICATE_KEY, CONFIG, TOKEN, real_hosts
from support.waiting import eventually_blocking

pytestmark = real_hosts

VERSION = "v1.35.4"

# A question for an A record, asked of a name server by its address: hosts have no other resolver.
RESOLVE = """
import socket, struct, sys
name, server = sys.argv[1:]
question = b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + bytes(1) + struct.pack(">HH", 1, 1)
asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asking.settimeout(5)
asking.sendto(struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + question, (server, 53))
print(socket.inet_ntoa(asking.recv(512)[-4:]))
"""

FETCH = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())"


@pytest.fixture(scope="module")
def before() -> Surroundings:
    return surroundings()


@pytest.fixture(scope="module")
def lab(before: Surroundings) -> Iterator[LabCommands]:
    commands = LabCommands(f"e2e-{os.getpid() % 10000}")
    try:
        commands.run("image", "build", "--kubernetes-version", VERSION, "--node-tool", "kubeadm", patience=3600)
        commands.run("up", "--image", f"{VERSION}-kubeadm", "--hosts", "2")
        yield commands
    finally:
        commands.run("down", check=False)


@pytest.fixture(scope="module")
def cluster(lab: LabCommands) -> LabCommands:
    """A control plane on host-1 and a worker on host-2, made by the real kubeadm."""
    hosts = lab.hosts()
    address = hosts["host-1"]["address"]
    pods = ".".join(hosts["host-1"]["podRange"].split(".")[:2]) + ".0.0/16"
    settle(lab, "host-1", "host-2")
    config = CONFIG.format(key=CERTIFICATE_KEY, token=TOKEN, address=address, version=VERSION, pods=pods, init="", cluster="")
    lab.on("host-1", "cat > /srv/kubeadm.yaml", stdin=config)
    lab.on("host-1", "kubeadm init --config /srv/kubeadm.yaml --upload-certs --ignore-preflight-errors=all")
    join(lab, "host-2")
    return lab


def settle(lab: LabCommands, *hosts: str) -> None:
    """Until the images are imported, which goes on when a host is up."""
    for host in hosts:
        assert lab.on(host, "systemctl is-system-running --wait", check=False).strip() == "running"


def join(lab: LabCommands, host: str, *flags: str) -> None:
    address = lab.hosts()["host-1"]["address"]
    words = [f"{address}:6443", "--token", TOKEN, "--discovery-token-unsafe-skip-ca-verification", "--ignore-preflight-errors=all", *flags]
    lab.on(host, f"kubeadm join {' '.join(words)}")


@pytest.mark.smoke
def test_nodes_are_ready_and_dns_answers(cluster: LabCommands) -> None:
    cluster.kubectl("wait --for=condition=Ready nodes --all --timeout=120s")
    assert cluster.kubectl("get nodes -o jsonpath='{.items[*].status.nodeInfo.kubeletVersion}'") == f"{VERSION} {VERSION}"
    cluster.kubectl("-n kube-system rollout status deployment/coredns --timeout=120s")
    ask = "python3 - kubernetes.default.svc.cluster.local 10.96.0.10"
    # kube-proxy of a host writes its rules a moment after the Endpoints are there.
    eventually_blocking(lambda: cluster.on("host-2", ask, stdin=RESOLVE, check=False).strip() == "10.96.0.1", "DNS answers", 60, pause=1.0)


@pytest.mark.smoke
def test_pods_reach_each_other_across_hosts_and_services_work(cluster: LabCommands) -> None:
    url_of_service = service.deploy(cluster, "DaemonSet")
    rows = cluster.kubectl("get pods -l app=server -o jsonpath='{range .items[*]}{.spec.nodeName} {.status.podIP}{\"\\n\"}{end}'")
    address = dict(line.split() for line in rows.splitlines())
    # From inside the Pod on host-1: its network namespace, with the host's programs.
    inside = "nsenter -n -t $(pgrep -f /etc/server/Corefile | head -n 1)"
    for host, where, url in (
        ("host-1", inside, f"http://{address['host-2']}:8080/health"),
        ("host-1", inside, url_of_service),
        ("host-2", "", url_of_service),
    ):
        fetched = partial(_fetched, cluster, host, f"{where} python3 - {url}")
        eventually_blocking(fetched, f"{url} answers on {host}", 60, pause=1.0)


def _fetched(cluster: LabCommands, host: str, command: str) -> bool:
    return cluster.on(host, command, stdin=FETCH, check=False).strip() == "OK"


def test_two_more_control_planes_join(cluster: LabCommands) -> None:
    for host in ("host-3", "host-4"):
        cluster.run("host", "create", host, "--image", f"{VERSION}-kubeadm")
        cluster.run("host", "start", host)
        settle(cluster, host)
        join(cluster, host, "--control-plane", "--certificate-key", CERTIFICATE_KEY)
    cluster.kubectl("wait --for=condition=Ready nodes --all --timeout=120s")
    planes = cluster.kubectl("get nodes -l node-role.kubernetes.io/control-plane -o name").split()
    assert planes == ["node/host-1", "node/host-3", "node/host-4"]
    pki = "/etc/kubernetes/pki/etcd"
    listed = cluster.on("host-1", f"etcdctl --cacert {pki}/ca.crt --cert {pki}/server.crt --key {pki}/server.key member list")
    assert sorted(line.split(", ")[2] for line in listed.splitlines()) == ["host-1", "host-3", "host-4"]


@pytest.mark.smoke
def test_a_worker_is_reset(cluster: LabCommands) -> None:
    cluster.on("host-2", "kubeadm reset --force")
    left = cluster.on("host-2", "find /etc/kubernetes/manifests /etc/kubernetes/pki /etc/kubernetes/kubelet.conf -type f", check=False)
    assert left == ""


@pytest.mark.smoke
def test_down_leaves_nothing(before: Surroundings, lab: LabCommands) -> None:
    lab.run("down")
    after = surroundings()
    # What ran before may have ended by itself; all else is as it was.
    assert after.processes <= before.processes
    for field in ("mounts", "links", "routes", "rules", "cgroups", "settings"):
        assert getattr(after, field) == getattr(before, field), field
