"""A doctor on real nodes that are broken in one way after the other: what it says, that its commands mend it, and how long it takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from e2e.nodes import OURS, Nodes, nodes, real_hosts
from e2e.test_node_failures import CERTIFY
from support.waiting import eventually_blocking

pytestmark = real_hosts

VERSION = "v1.35.4"
PLANE, WORKER = "host-1", "host-2"
MANIFESTS, PKI = "/etc/kubernetes/manifests", "/etc/kubernetes/pki"
_SECONDS = 15.0
# With a purpose, without which a certificate cannot be renewed.
_CLIENT = CERTIFY.replace(
    ".add_extension(names, False)",
    ".add_extension(names, False).add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), False)",
).replace("from cryptography import x509\n", "from cryptography import x509\nfrom cryptography.x509.oid import ExtendedKeyUsageOID\n")


class Told:
    """What a doctor said."""

    def __init__(self, code: int, report: dict[str, Any]) -> None:
        self.code = code
        self.report = report
        # Of several of one name the first: what only waits for another comes after it.
        self.findings = {finding["name"]: finding for finding in reversed(report["findings"])}

    @property
    def faults(self) -> set[str]:
        return {name for name, finding in self.findings.items() if finding["severity"] != "note"}


def examine(cluster: Nodes, host: str, user: str = "") -> Told:
    done = cluster.lab.run("host", "exec", host, "--", "sh", "-ec", f"{user} {OURS} doctor -o json", check=False)
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1), done.stdout + done.stderr
    told = Told(done.returncode, json.loads(done.stdout))
    print(f"{host}: exit code {told.code} after {told.report['seconds']} s: {sorted(told.findings)} {told.report['unseen']}")
    assert told.report["seconds"] < _SECONDS
    assert told.code == (0 if told.report["well"] else 1)
    return told


def says(cluster: Nodes, host: str, name: str, patience: float = 60) -> Told:
    """What the doctor says once it has found something."""
    latest: list[Told] = []

    def found() -> bool:
        latest[:] = [examine(cluster, host)]
        return name in latest[0].findings

    eventually_blocking(found, lambda: f"{name} among {sorted(latest[0].findings)}", patience, pause=1)
    return latest[0]


def well(cluster: Nodes, host: str, patience: float = 180) -> None:
    latest: list[Told] = []

    def found() -> bool:
        latest[:] = [examine(cluster, host)]
        return latest[0].code == 0

    eventually_blocking(found, lambda: f"well: {latest[0].report['findings']}", patience, pause=2)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Nodes]:
    with nodes(VERSION, 2, "doctor") as made:
        told = examine(made, WORKER)
        assert (told.code, told.report["role"], set(told.findings) - {"cgroup-v1"}) == (0, "none", {"no-node"})
        made.init(PLANE)
        made.join(WORKER)
        made.wait_healthy()
        yield made


@pytest.mark.parametrize("host", [PLANE, WORKER])
def test_a_healthy_node_ends_with_0(cluster: Nodes, host: str) -> None:
    told = examine(cluster, host)
    assert told.code == 0, told.report["findings"]
    assert told.report["unseen"] == []


def test_without_root_it_says_what_it_did_not_see(cluster: Nodes) -> None:
    told = examine(cluster, PLANE, user="setpriv --reuid=65534 --regid=65534 --clear-groups")
    assert told.report["role"] == "control plane"
    assert {"/etc/kubernetes/kubelet.conf", "the container runtime and its containers"} <= {each["what"] for each in told.report["unseen"]}
    assert told.faults == set(), told.report["findings"]


def test_a_table_is_what_people_get(cluster: Nodes) -> None:
    cluster.lab.on(WORKER, "systemctl stop kubelet")
    try:
        done = cluster.lab.run("host", "exec", WORKER, "--", OURS, "doctor", check=False)
    finally:
        cluster.lab.on(WORKER, "systemctl start kubelet")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0].split() == ["SEVERITY", "FINDING", "EVIDENCE", "FIX"]
    assert "systemctl start kubelet" in done.stdout
    assert "\033" not in done.stdout
    well(cluster, WORKER)


def mended(cluster: Nodes, host: str, told: Told, name: str, steps: slice = slice(None)) -> None:
    """The commands that it named, run."""
    for command in told.findings[name]["fix"][steps]:
        cluster.lab.on(host, command.replace("slipway ", f"{OURS} ", 1) if command.startswith("slipway ") else command)
    well(cluster, host)


def test_a_stopped_kubelet(cluster: Nodes) -> None:
    cluster.lab.on(WORKER, "systemctl stop kubelet")
    told = says(cluster, WORKER, "kubelet-stopped")
    assert told.faults <= {"kubelet-stopped", "node-not-ready"}
    mended(cluster, WORKER, told, "kubelet-stopped")


def test_a_kubelet_whose_configuration_is_wrong(cluster: Nodes) -> None:
    config = "/var/lib/kubelet/config.yaml"
    cluster.lab.on(WORKER, f"cp {config} /srv/config.yaml; sed -i /^healthzPort:/d {config}; echo 'healthzPort: 99999' >> {config}")
    cluster.lab.on(WORKER, "systemctl restart kubelet", check=False)
    try:
        told = says(cluster, WORKER, "kubelet-failing")
        assert "its configuration is not valid: invalid configuration: healthzPort" in told.findings["kubelet-failing"]["finding"]
    finally:
        cluster.lab.on(WORKER, f"cp /srv/config.yaml {config}; systemctl restart kubelet")
    well(cluster, WORKER)


def test_a_stopped_container_runtime(cluster: Nodes) -> None:
    # Masked, since the kubelet's unit would start it again.
    cluster.lab.on(WORKER, "systemctl mask --runtime --now containerd")
    told = says(cluster, WORKER, "runtime-stopped")
    assert told.findings["runtime-stopped"]["fix"] == ["systemctl unmask containerd", "systemctl start containerd"]
    cluster.lab.on(WORKER, "systemctl unmask --runtime containerd; systemctl start containerd kubelet")
    well(cluster, WORKER)


def test_a_full_disk(cluster: Nodes) -> None:
    folder = "/var/lib/etcd"
    cluster.lab.on(
        WORKER, f"mkdir -p {folder}; mount -t tmpfs -o size=1m tmpfs {folder}; dd if=/dev/zero of={folder}/much bs=64k", check=False
    )
    try:
        told = says(cluster, WORKER, "disk-full")
        assert told.faults == {"disk-full"}
        assert folder in told.findings["disk-full"]["finding"]
    finally:
        cluster.lab.on(WORKER, f"umount {folder}")
    well(cluster, WORKER)


def test_swap_that_comes_back(cluster: Nodes) -> None:
    cluster.lab.on(WORKER, "cp /etc/fstab /srv/fstab 2>/dev/null || :> /srv/fstab; echo '/dev/sda2 none swap sw 0 0' >> /etc/fstab")
    try:
        assert examine(cluster, WORKER).faults == {"swap-returns"}
    finally:
        cluster.lab.on(WORKER, "cp /srv/fstab /etc/fstab")


@pytest.mark.parametrize(
    ("days", "name"), [(-400, "certificate-expired"), (1, "certificate-not-yet-valid"), (-290, "certificate-expiring")]
)
def test_a_certificate_out_of_its_time(cluster: Nodes, days: int, name: str) -> None:
    """One that is valid from tomorrow on is what a machine sees whose clock is a day behind."""
    pair = f"{PKI}/front-proxy-client"
    cluster.lab.on(PLANE, f"/opt/slipway/bin/python3 - 127.0.0.1 {PKI}/front-proxy-ca {days} {pair}.crt {pair}.key", stdin=_CLIENT)
    told = says(cluster, PLANE, name)
    assert told.faults == {name}
    assert f"{pair}.crt" in told.findings[name]["evidence"]
    cluster.lab.on(PLANE, f"{OURS} certs renew front-proxy-client")
    well(cluster, PLANE)


def test_the_kubelets_certificate_is_gone(cluster: Nodes) -> None:
    current = "/var/lib/kubelet/pki/kubelet-client-current.pem"
    target = cluster.lab.on(WORKER, f"readlink {current}").strip()
    cluster.lab.on(WORKER, f"rm {current}")
    try:
        assert current in says(cluster, WORKER, "kubelet-certificate-missing").findings["kubelet-certificate-missing"]["evidence"]
    finally:
        cluster.lab.on(WORKER, f"ln -s {target} {current}")
    well(cluster, WORKER)


def test_damaged_data_of_etcd(cluster: Nodes) -> None:
    database = "/var/lib/etcd/member/snap/db"

    def without_etcd(change: str) -> None:
        cluster.lab.on(PLANE, f"mv {MANIFESTS}/etcd.yaml /srv/etcd.yaml")
        eventually_blocking(lambda: not cluster.lab.on(PLANE, "pgrep -x etcd", check=False).strip(), "etcd has ended", 90, pause=1)
        cluster.lab.on(PLANE, f"{change}; mv /srv/etcd.yaml {MANIFESTS}/etcd.yaml")

    without_etcd(f"cp -a /var/lib/etcd/member /srv/member; dd if=/dev/zero of={database} bs=4096 count=4 conv=notrunc")
    try:

        def damage() -> dict[str, Any] | None:
            """Until the new container has tried, the one that ended well is what is seen."""
            found: dict[str, Any] = says(cluster, PLANE, "container-exited", patience=120).findings["container-exited"]
            return found if "its database file is damaged" in found["finding"] else None

        found = eventually_blocking(damage, "the damage is told", 120, pause=2)
        assert "etcdutl snapshot restore" in found["fix"][0]
    finally:
        without_etcd("rm -r /var/lib/etcd/member; cp -a /srv/member /var/lib/etcd/member")
    cluster.wait_healthy()
    well(cluster, PLANE)


def test_a_wrong_address_in_a_manifest(cluster: Nodes) -> None:
    address, wrong, path = cluster.address(PLANE), "203.0.113.7", f"{MANIFESTS}/kube-apiserver.yaml"
    change = "sed -i 's/--advertise-address={}/--advertise-address={}/' {}"
    cluster.lab.on(PLANE, change.format(address, wrong, path))
    try:
        told = says(cluster, PLANE, "address-not-here")
        assert told.findings["address-not-here"]["finding"].startswith(f"--advertise-address in {path} says {wrong}")
        assert "certificate-lacks-address" in told.findings
    finally:
        cluster.lab.on(PLANE, change.format(wrong, address, path))
    cluster.wait_healthy()
    well(cluster, PLANE)


def test_a_copy_of_a_manifest_beside_it(cluster: Nodes) -> None:
    copy = f"{MANIFESTS}/kube-scheduler.yaml.bak"
    cluster.lab.on(PLANE, f"cp {MANIFESTS}/kube-scheduler.yaml {copy}")
    try:
        assert copy in says(cluster, PLANE, "manifest-twice").findings["manifest-twice"]["finding"]
    finally:
        cluster.lab.on(PLANE, f"rm {copy}")
    cluster.wait_healthy()
    well(cluster, PLANE)


def test_a_node_that_was_taken_out_of_the_cluster(cluster: Nodes) -> None:
    cluster.lab.on(WORKER, "systemctl stop kubelet")
    cluster.lab.kubectl(f"delete node {WORKER}")
    told = says(cluster, WORKER, "node-missing")
    assert told.faults == {"kubelet-stopped", "node-missing"}
    cluster.lab.on(WORKER, "systemctl start kubelet")
    well(cluster, WORKER)


def test_what_a_node_leaves_behind(cluster: Nodes) -> None:
    cluster.lab.on(WORKER, f"cp {PKI}/ca.crt /srv/ca.crt; {OURS} reset --force")
    assert examine(cluster, WORKER).code == 0
    cluster.lab.on(WORKER, f"mkdir -p {PKI}; cp /srv/ca.crt {PKI}/ca.crt")
    told = examine(cluster, WORKER)
    assert told.faults == {"left-behind"}
    cluster.lab.on(WORKER, f"{OURS} reset --force")
    assert examine(cluster, WORKER).code == 0
