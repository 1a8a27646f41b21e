"""The virtual address of a control plane on real hosts: keepalived in static Pods, and everything that takes its holder away.

Somebody asks by ARP all along who has the address.  Two answers to one question are two owners, and there must never be any, but where a
test keeps the hosts from hearing each other.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import getpid

import pytest
from e2e.apiprobe import ApiProbe
from e2e.arp import Owners, bridge_of
from e2e.labcli import LabCommands
from e2e.nodes import CERTIFICATE_KEY, CONFIG, IGNORED, OURS, TOKEN, Nodes, real_hosts
from support.waiting import eventually_blocking

from slipway.workload import alive

pytestmark = real_hosts

VERSION = "v1.35.4"
HOSTS = ("host-1", "host-2", "host-3")
DEVICE = "host0"
VRID = 51
ALIVE, API_SERVER = "/etc/kubernetes/manifests/alive.yaml", "/etc/kubernetes/manifests/kube-apiserver.yaml"
CONFIGURATION = "/etc/keepalived/keepalived.conf"

# Three advertisements of a second each that do not come, and the wait of the last of three hosts; the rest is for a busy machine.
LOST_SECONDS = 8.0
# Three checks of a second each, and another host's wait after the holder said that it leaves.
FAULT_SECONDS = 12.0
LEFT_SECONDS = 8.0


class Plane:
    """Three hosts that share an address, and who asks for it."""

    def __init__(self, cluster: Nodes, owners: Owners, api: ApiProbe, vip: str, macs: dict[str, str]) -> None:
        self.cluster, self.owners, self.api, self.vip, self.macs = cluster, owners, api, vip, macs
        self.lab = cluster.lab

    def holder(self) -> str:
        """The host that answers for the address at present; empty where none does."""
        return next((host for host, mac in self.macs.items() if mac == self.owners.owner), "")

    def wait_for_holder(self, seconds: float, *, other_than: str = "") -> str:
        found = eventually_blocking(lambda: self.holder() not in ("", other_than) and self.holder(), "somebody has the address", seconds)
        return str(found)

    def has_address(self, host: str) -> bool:
        return f"{self.vip}/32" in self.lab.on(host, f"ip -4 address show dev {DEVICE}")

    def wait_healthy(self) -> None:
        """All three can have the address, so that the next test finds what the first one found."""
        self.cluster.wait_healthy(self.wait_for_holder(60))

    @contextmanager
    def moving(self, told: Callable[[str, object], None], seconds: float) -> Iterator[str]:
        """The holder, which is to lose the address in the block; the next one must have it within so many seconds, and alone."""
        before, doubled = self.wait_for_holder(30), len(self.owners.doubled)
        began = time.monotonic()
        yield before
        after = self.wait_for_holder(seconds + 30, other_than=before)
        eventually_blocking(self.api.answers, "the API answers at the address", 30)
        # Whoever has it now has it alone: one answer more or less would not show that.
        settled = time.monotonic()
        eventually_blocking(lambda: time.monotonic() - settled > 2, pause=0.1)
        gap, outage = self.owners.silence(began), self.api.outage(began)
        told("moved", f"{before} to {after}")
        told("seconds without an owner", round(gap, 2))
        told("seconds without an API", round(outage, 2))
        print(f"{before} to {after}: {gap:.2f} s without an owner, {outage:.2f} s without an API")
        assert outage < seconds
        assert self.owners.announced(self.macs[after], began)
        assert self.owners.doubled[doubled:] == []


@pytest.fixture(scope="module")
def plane() -> Iterator[Plane]:
    lab = LabCommands(f"vip-{getpid() % 10000}")
    try:
        built = lab.run("image", "build", "--kubernetes-version", VERSION, patience=3600).stdout
        # By its digest: another build of the same version must not come in between.
        lab.run("up", "--image", built.split()[-1], "--hosts", str(len(HOSTS)))
        cluster = Nodes(lab, VERSION)
        cluster.settle(*HOSTS)
        addresses = {host: cluster.address(host) for host in HOSTS}
        network = addresses["host-1"].rpartition(".")[0]
        vip = f"{network}.100"
        for host, address in addresses.items():
            known = alive.host_values(vip=vip, interface=DEVICE, address=address, peers=addresses.values(), vrid=VRID)
            for file in alive.files(known):
                lab.on(host, f"mkdir -p $(dirname {file.path}); cat >{file.path}; chmod {file.mode} {file.path}", stdin=file.content)
        macs = {host: lab.on(host, f"cat /sys/class/net/{DEVICE}/address").strip() for host in HOSTS}
        with Owners(bridge_of(f"{network}."), vip) as owners, ApiProbe(vip) as api:
            yield Plane(cluster, owners, api, vip, macs)
    finally:
        lab.run("down", check=False)


def test_keepalived_takes_the_file_of_every_host(plane: Plane) -> None:
    for host in HOSTS:
        plane.lab.on(host, f"keepalived --config-test --use-file={CONFIGURATION}")


def test_a_first_init_goes_through_the_address(plane: Plane) -> None:
    row = plane.lab.hosts()["host-1"]
    pods = ".".join(row["podRange"].split(".")[:2]) + ".0.0/16"
    text = CONFIG.format(key=CERTIFICATE_KEY, token=TOKEN, address=row["address"], version=VERSION, pods=pods, init="", cluster="")
    text = re.sub("controlPlaneEndpoint: .*", f"controlPlaneEndpoint: {plane.vip}:6443", text)
    plane.lab.on("host-1", "cat > /srv/kubeadm.yaml", stdin=text)
    plane.lab.on("host-1", f"{OURS} init --config /srv/kubeadm.yaml --upload-certs {IGNORED}")
    assert plane.holder() == "host-1"
    assert plane.vip in plane.lab.on("host-1", "cat /etc/kubernetes/admin.conf")


def test_a_reboot_of_the_only_node_brings_the_address_back(plane: Plane, record_property: Callable[[str, object], None]) -> None:
    began = time.monotonic()
    plane.lab.run("host", "reboot", "host-1")
    plane.wait_for_holder(180)
    eventually_blocking(plane.api.answers, "the API answers at the address", 60)
    outage = plane.api.outage(began)
    record_property("seconds without an API", round(outage, 2))
    print(f"reboot of the only node: {outage:.2f} s without an API")
    plane.cluster.wait_healthy()


def test_two_more_join_through_the_address(plane: Plane) -> None:
    join = f"{OURS} join {plane.vip}:6443 --token {TOKEN} --discovery-token-ca-cert-hash {plane.cluster.pin()} {IGNORED}"
    for host in HOSTS[1:]:
        plane.lab.on(host, f"{join} --control-plane --certificate-key {CERTIFICATE_KEY}")
    plane.wait_healthy()
    assert plane.holder() == "host-1"
    pods = plane.lab.kubectl("-n kube-system get pods -l app=alive -o name").split()
    assert pods == [f"pod/alive-{host}" for host in HOSTS]
    assert plane.owners.doubled == []


def test_the_lease_names_the_holder(plane: Plane) -> None:
    def named() -> bool:
        shown = plane.lab.kubectl("-n kube-system get lease alive -o jsonpath={.spec.holderIdentity}")
        return shown == plane.holder()

    eventually_blocking(named, "the Lease names who has the address", pause=0.5)


def test_new_peers_reach_keepalived_without_the_address_moving(plane: Plane) -> None:
    holder, began, doubled = plane.wait_for_holder(30), time.monotonic(), len(plane.owners.doubled)
    addresses = [plane.cluster.address(host) for host in HOSTS]
    new = f"{plane.vip.rpartition('.')[0]}.14"
    for peers in ([*addresses, new], addresses):
        made = alive.config_map(vip=plane.vip, peers=peers, ips=addresses)
        lines = "\n".join(f"  {key}: {value}" for key, value in made["data"].items())
        manifest = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: alive\n  namespace: kube-system\ndata:\n{lines}\n"
        plane.lab.kubectl("apply -f -", stdin=manifest)
        for host in HOSTS:
            eventually_blocking(
                lambda host=host, peers=peers: (new in plane.lab.on(host, f"cat {CONFIGURATION}")) == (new in peers),  # type: ignore[misc]
                f"{host} has the peers",
                pause=0.2,
            )
    assert plane.holder() == holder
    assert plane.owners.silence(began) < 1
    assert plane.owners.doubled[doubled:] == []


def test_it_moves_when_the_holders_api_server_ends(plane: Plane, record_property: Callable[[str, object], None]) -> None:
    with plane.moving(record_property, FAULT_SECONDS) as holder:
        plane.lab.on(holder, f"mv {API_SERVER} /srv/ && pkill -KILL kube-apiserver")
    assert not plane.has_address(holder)
    after = plane.holder()
    plane.lab.on(holder, f"mv /srv/kube-apiserver.yaml {API_SERVER}")
    plane.wait_healthy()
    # Who comes back takes nothing away.
    assert plane.holder() == after


def test_it_moves_when_the_pod_of_the_holder_is_ended(plane: Plane, record_property: Callable[[str, object], None]) -> None:
    with plane.moving(record_property, LEFT_SECONDS) as holder:
        plane.lab.on(holder, f"mv {ALIVE} /srv/")
    assert not plane.has_address(holder)
    eventually_blocking(lambda: plane.lab.on(holder, "pgrep keepalived || true") == "", "keepalived is gone", 60, pause=0.5)
    plane.lab.on(holder, f"mv /srv/alive.yaml {ALIVE}")
    plane.wait_healthy()


def test_it_moves_when_keepalived_gets_a_sigterm(plane: Plane, record_property: Callable[[str, object], None]) -> None:
    with plane.moving(record_property, LEFT_SECONDS) as holder:
        plane.lab.on(holder, "pkill -TERM -o keepalived")
        eventually_blocking(lambda: not plane.has_address(holder), "the address is gone", LEFT_SECONDS)
    plane.wait_healthy()


def test_a_killed_keepalived_leaves_no_second_owner_behind(plane: Plane, record_property: Callable[[str, object], None]) -> None:
    with plane.moving(record_property, LOST_SECONDS) as holder:
        # The child first, which would otherwise end as it should when its parent is gone.
        script = "parent=$(pgrep -o keepalived); kill -STOP $parent; pkill -KILL -P $parent; kill -KILL $parent"
        plane.lab.on(holder, script)
    plane.wait_healthy()
    assert not plane.has_address(holder)


@pytest.mark.parametrize("which", ["$(pgrep -P $(pgrep -o keepalived) keepalived)", "$(pgrep keepalived)"], ids=["child", "both"])
def test_it_moves_when_keepalived_hangs(plane: Plane, record_property: Callable[[str, object], None], which: str) -> None:
    with plane.moving(record_property, LOST_SECONDS) as holder:
        plane.lab.on(holder, f"kill -STOP {which}")
        eventually_blocking(lambda: not plane.has_address(holder), "the address is taken away", LOST_SECONDS)
    plane.wait_healthy()
    assert not plane.has_address(holder)
    # The kubelet has started another one.
    eventually_blocking(lambda: "T" not in plane.lab.on(holder, "ps -o stat= -C keepalived"), "a keepalived that works", 120, pause=0.5)


def test_it_moves_when_the_holder_is_cut_off(plane: Plane, record_property: Callable[[str, object], None]) -> None:
    with plane.moving(record_property, LOST_SECONDS) as holder:
        plane.lab.run("host", "cut", holder)
    plane.lab.run("host", "restore", holder)
    plane.wait_healthy()
    assert not plane.has_address(holder)


def test_it_moves_when_the_holder_loses_its_power(plane: Plane, record_property: Callable[[str, object], None]) -> None:
    with plane.moving(record_property, LOST_SECONDS) as holder:
        plane.lab.run("host", "power-off", holder)
    plane.lab.run("host", "start", holder)
    plane.wait_healthy()
    assert not plane.has_address(holder)


def test_of_two_masters_one_gives_way(plane: Plane, record_property: Callable[[str, object], None]) -> None:
    """A network that carries everything but VRRP: what the Lease is for."""
    holder, doubled = plane.wait_for_holder(30), len(plane.owners.doubled)
    rule = "-p 112 -j DROP"
    plane.lab.on(holder, f"iptables -I INPUT {rule} && iptables -I OUTPUT {rule}")
    eventually_blocking(lambda: len(plane.owners.doubled) > doubled, "a second master", 30)
    began = time.monotonic()

    def alone() -> bool:
        """Nobody else has answered for as long as a host waits before it takes over, and it is the holder of the Lease."""
        last = plane.owners.doubled[-1][0]
        return time.monotonic() - last > LOST_SECONDS and plane.holder() == holder

    eventually_blocking(alone, "one master", 90, pause=0.5)
    seconds = plane.owners.doubled[-1][0] - began
    record_property("seconds with two owners", round(seconds, 1))
    print(f"two masters that do not hear each other: {seconds:.1f} s until one was left")
    plane.lab.on(holder, f"iptables -D INPUT {rule} && iptables -D OUTPUT {rule}")


def test_the_side_car_is_small(plane: Plane, record_property: Callable[[str, object], None]) -> None:
    sizes = [int(plane.lab.on(host, "grep VmRSS /proc/$(pgrep -o -f 'slipway alive')/status").split()[1]) // 1024 for host in HOSTS]
    record_property("MiB", sizes)
    print(f"side car: {sizes} MiB")
    assert max(sizes) < 40
