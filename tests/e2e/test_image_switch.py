"""A host that is switched from one OS image to another, as an immutable host is upgraded: pulled from a real registry, checked, booted."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from ipaddress import IPv4Network

import pytest
from e2e.labcli import LabCommands

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.environ.get("SLIPWAY_E2E") != "1", reason="boots real hosts: run it with `make e2e`"),
]

OLD, NEW = "v1.34.10", "v1.35.4"
REPOSITORY, TAG = "tkestack/baremetal-base-image", "v0.0.0-dev.0-1.35.4"
STATE = ("/var/lib/kubelet", "/var/lib/containerd", "/var/lib/etcd", "/etc/kubernetes")
SENTINELS = tuple(f"{folder}/of-the-old-cluster" for folder in STATE)
# What a reprovision plan does, in its order, but for the image.
SEED = """
id=0123456789abcdef
stage=/var/lib/slipway/reprovision/$id
mkdir -p $stage/nocloud
printf "instance-id: $id\\nlocal-hostname: node-7\\n" > $stage/nocloud/meta-data
cat > $stage/nocloud/user-data <<END
## template: jinja
#cloud-config
write_files:
- path: /srv/wrote
  content: "{{ ds.meta_data.local_hostname }} {{ ds.meta_data.instance_id }}"
runcmd:
- kubelet --version > /srv/ran
END
cat > $stage/nocloud/network-config <<END
version: 2
ethernets:
  host0:
    match: {macaddress: "$(cat /sys/class/net/host0/address)"}
    set-name: host0
    mtu: 1400
    addresses: [$ADDRESS]
    routes: [{to: 0.0.0.0/0, via: $GATEWAY}]
END
cloud-init clean --logs --seed
[ ! -e /var/lib/cloud/seed ]
elemental upgrade --reboot=false --system $IMAGE
mkdir -p /var/lib/cloud/seed
mv -T $stage/nocloud /var/lib/cloud/seed/nocloud
touch /var/lib/slipway/clear-kubernetes-state
"""


class Switch:
    """A lab of one host with a registry that has the next image."""

    def __init__(self, lab: LabCommands) -> None:
        self.lab = lab
        self.registry = lab.run("registry", "up", patience=3600).stdout.strip()
        (pushed,) = json.loads(lab.run("registry", "push", f"{REPOSITORY}:{TAG}", "--image", NEW, "-o", "json").stdout)
        self.reference, self.digest = pushed["reference"], pushed["digest"]

    def upgrade(self, system: str) -> subprocess.CompletedProcess[str]:
        return self.lab.run("host", "exec", "host-1", "--", "elemental", "upgrade", "--reboot=false", "--system", system, check=False)

    def staged(self) -> str:
        return str(self.lab.hosts()["host-1"]["stagedImage"])


@pytest.fixture(scope="module")
def switch() -> Iterator[Switch]:
    commands = LabCommands(f"switch-{os.getpid() % 10000}")
    try:
        for version in (OLD, NEW):
            commands.run("image", "build", "--kubernetes-version", version, patience=3600)
        commands.run("up", "--image", OLD, "--hosts", "1")
        yield Switch(commands)
    finally:
        commands.run("down", check=False)


def test_slipway_is_the_kubeadm_of_its_image(switch: Switch) -> None:
    lab = switch.lab
    assert "slipwayVersion" in lab.on("host-1", "kubeadm version -o json")
    listed = lab.on("host-1", f"kubeadm config images list --kubernetes-version {OLD}").split()
    assert f"registry.k8s.io/kube-apiserver:{OLD}" in listed
    # Everything that a control plane needs is there without a registry.
    lab.on("host-1", "systemctl start slipway-lab-images")
    assert set(listed) <= set(lab.on("host-1", "ctr -n k8s.io images ls -q").split())


def test_a_host_has_the_firmware_tables_of_a_machine_of_its_own(switch: Switch) -> None:
    row = switch.lab.hosts()["host-1"]
    told = switch.lab.on("host-1", "dmidecode -t 0,1,2,3,4,11")
    for line in (f"UUID: {row['uuid']}", f"Serial Number: {row['serial']}", "Manufacturer: Slipway", "String 2: host=host-1"):
        assert f"\t{line}\n" in told
    for title in ("BIOS Information", "Base Board Information", "Chassis Information", "Processor Information"):
        assert f"\n{title}\n" in told


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("{registry}/{repository}:nowhere", "has no image"),
        ("{registry}/{repository}@sha256:" + "0" * 64, "has no image"),
        ("{gateway}:9/{repository}:{tag}", "does not answer"),
    ],
)
def test_an_image_that_cannot_be_had_stages_nothing_and_ends_with_18(switch: Switch, reference: str, words: str) -> None:
    gateway = switch.registry.partition(":")[0]
    done = switch.upgrade(reference.format(registry=switch.registry, repository=REPOSITORY, tag=TAG, gateway=gateway))
    assert done.returncode == 18
    assert words in done.stderr
    assert switch.staged() == ""


def test_a_registry_that_is_down_stages_nothing_until_it_is_back(switch: Switch) -> None:
    switch.lab.run("registry", "down")
    done = switch.upgrade(switch.reference)
    assert (done.returncode, "does not answer" in done.stderr) == (18, True)
    assert switch.staged() == ""
    switch.lab.run("registry", "up")
    assert switch.upgrade(f"docker:{switch.reference}@{switch.digest}").returncode == 0
    assert switch.staged() == f"docker:{switch.reference}@{switch.digest}"
    # What is staged can be looked at, and what runs is as it was.
    assert switch.lab.on("host-1", "/run/elemental/staged/usr/bin/kubelet --version").strip() == f"Kubernetes {NEW}"
    assert switch.lab.on("host-1", "kubelet --version").strip() == f"Kubernetes {OLD}"


def test_a_reprovisioned_host_boots_the_new_image_with_a_new_seed_and_without_its_old_state(switch: Switch) -> None:
    lab = switch.lab
    row = lab.hosts()["host-1"]
    network = IPv4Network(f"{row['address']}/24", strict=False)
    for sentinel in SENTINELS:
        lab.on("host-1", f"mkdir -p $(dirname {sentinel}) && touch {sentinel}")
    lab.on("host-1", "touch /srv/kept /var/lib/kept /etc/kept /var/lib/slipway-kept")
    values = f"ADDRESS={row['address']}/24 GATEWAY={network[1]} IMAGE={switch.reference}"
    lab.on("host-1", f"export {values}\n{SEED}")

    lab.run("host", "reboot", "host-1")
    lab.on("host-1", "cloud-init status --wait")

    assert lab.hosts()["host-1"]["version"] == NEW
    assert lab.on("host-1", "cat /srv/ran").strip() == f"Kubernetes {NEW}"
    assert lab.on("host-1", "cat /srv/wrote") == "node-7 0123456789abcdef"
    assert lab.on("host-1", "hostname; cat /sys/class/net/host0/mtu").split() == ["node-7", "1400"]
    assert f"{row['address']}/24" in lab.on("host-1", "ip -brief address show host0")
    assert lab.on("host-1", f"ls {' '.join(SENTINELS)} 2>/dev/null", check=False) == ""
    lab.on("host-1", "ls /srv/kept /var/lib/kept /etc/kept /var/lib/slipway-kept")
    assert lab.on("host-1", "ls /var/lib/slipway").split() == ["reprovision"]


def test_a_power_cut_repeats_nothing_of_a_seed(switch: Switch) -> None:
    lab = switch.lab
    lab.on("host-1", "rm /srv/ran; touch /var/lib/etcd/of-the-new-cluster")
    lab.run("host", "power-off", "host-1")
    lab.run("host", "start", "host-1")
    lab.on("host-1", "cloud-init status --wait; [ ! -e /srv/ran ]; ls /var/lib/etcd/of-the-new-cluster")
    assert lab.on("host-1", "hostname").strip() == "node-7"
