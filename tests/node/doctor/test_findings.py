"""What a doctor makes of facts: every kind of finding is brought about, by the texts of the real programs where there are any."""

from __future__ import annotations

from datetime import timedelta

import pytest
from node.doctor.nodes import (
    ADDRESS,
    COMPONENTS,
    CONFIG,
    CONTROL_PLANE,
    GIB,
    NO_NODE,
    OWN_MEMBER,
    STATUS,
    WORKER,
    but,
    certificate,
    component,
    container,
    disk,
    manifest,
    node,
    unit,
)

from slipway.node.doctor.examination import CHECKS, examine
from slipway.node.doctor.facts import Agent, Api, Clock, Etcd, EtcdEndpoint, Facts, KubeconfigFact, Manifest, Port, Vip
from slipway.workload.alive.values import Values
from slipway.workload.etcdapi import EtcdAlarm

SWAP = (
    'E1116 11:59:50.447207   13343 run.go:72] "command failed" err="failed to run Kubelet: running with swap on is not supported, please '
    'disable swap or set --fail-swap-on flag to false"'
)
UNPARSED = (
    'E1116 11:59:50.100000   13343 file.go:187] "Could not process manifest file" err="/etc/kubernetes/manifests/kube-scheduler.yaml: '
    "couldn't parse as pod(yaml: line 4: mapping values are not allowed in this context), please check config file\" "
    'path="/etc/kubernetes/manifests/kube-scheduler.yaml"'
)
CORRUPT = (
    '{"level":"panic","ts":"2026-11-16T18:27:46.124480Z","caller":"backend/backend.go:205","msg":"failed to open database",'
    '"path":"/var/lib/etcd/member/snap/db","error":"invalid database"}'
)
DRIFT = (
    '{"level":"warn","ts":"2026-11-16T11:59:00.000000Z","caller":"rafthttp/probing_status.go:82","msg":"prober found high clock drift",'
    '"round-tripper-name":"ROUND_TRIPPER_SNAPSHOT","remote-peer-id":"2","clock-drift":"1m2s","rtt":"1ms"}'
)
TOML = (
    "containerd: failed to load TOML: /etc/containerd/config.toml: (2, 2): unexpected token unclosed table key, was expecting a table key"
)
NETWORK = (
    'container runtime condition "NetworkReady" is not true. reason: NetworkPluginNotReady, message: Network plugin returns error: cni '
    "plugin not initialized"
)
OTHER = OWN_MEMBER._replace(id=2, name="cp-2", client_urls=("https://192.0.2.12:2379",))
THIRD = OWN_MEMBER._replace(id=3, name="cp-3", client_urls=("https://192.0.2.13:2379",))
VALUES = Values(vip="192.0.2.100", interface="eth0", address=ADDRESS, peers=("192.0.2.12",), vrid=51)
PLAN = {
    "checksum": "0123456789abcdef",
    "state": "succeeded",
    "attempt": 1,
    "failures": 0,
    "completed": 5,
    "of": 5,
    "started": "2026-11-16T11:00:00Z",
}
REGISTERED = {"registered": True, "configured": True, "server": "https://192.0.2.1:6443", "secret": "fleet/m-1", "plan": PLAN}
OTHERS = tuple(component(name, container(name)) for name in COMPONENTS[1:])


def agent(**plan: object) -> Agent:
    return Agent(unit=WORKER.kubelet.unit, service="slipway-agent", status={**REGISTERED, "plan": {**PLAN, **plan}})


def api(trouble: str, problem: str) -> Facts:
    return but(WORKER, api=Api(server="https://api.example:6443", trouble=trouble, problem=problem))  # type: ignore[arg-type]


def etcd(**changes: object) -> Facts:
    return but(CONTROL_PLANE, **{f"etcd__{name}": value for name, value in changes.items()})


def with_certificate(name: str, **fields: object) -> Facts:
    return but(CONTROL_PLANE, certificates=(certificate(name, **fields),))  # type: ignore[arg-type]


# kind → facts, words of the finding or its evidence, words of the fix
CASES: dict[str, tuple[Facts, str, str]] = {
    "no-node": (NO_NODE, "this machine is no node of a cluster", "slipway join"),
    "left-behind": (
        but(NO_NODE, left=("/etc/kubernetes/pki/ca.crt", "/var/lib/etcd/member")),
        "what one left behind: /etc/kubernetes/pki/ca.crt and 1 more",
        "slipway reset",
    ),
    "containers-left": (but(NO_NODE, runtime__left=3), "3 containers of Pods are still on it", "slipway reset"),
    "join-unfinished": (but(WORKER, left=("/etc/kubernetes/bootstrap-kubelet.conf",)), "join did not end", "slipway token create"),
    "kubelet-not-installed": (but(WORKER, kubelet__unit=unit("inactive", "dead", loaded=False)), "no service kubelet", "install"),
    "kubelet-stopped": (but(WORKER, kubelet__unit=unit("inactive", "dead")), "is inactive (dead)", "systemctl start kubelet"),
    "kubelet-failing": (
        but(WORKER, kubelet__unit=unit("activating", "auto-restart", SWAP, exit_code=1)),
        "ends with exit code 1: swap is on; turn it off ('swapoff -a')",
        "journalctl -u kubelet",
    ),
    "kubelet-unhealthy": (
        but(WORKER, kubelet__health="Get http://127.0.0.1:10248/healthz: status code 500"),
        "status code 500",
        "restart kubelet",
    ),
    "kubelet-not-enabled": (
        but(WORKER, kubelet__unit=unit("active", "running", enabled="disabled")),
        "after a reboot",
        "systemctl enable kubelet",
    ),
    "kubelet-masked": (but(WORKER, kubelet__unit=unit("inactive", "dead", enabled="masked")), "is masked", "systemctl unmask kubelet"),
    "kubelet-unit-stale": (but(WORKER, kubelet__unit=unit("active", "running", stale=True)), "was changed", "systemctl daemon-reload"),
    "kubelet-config-unusable": (
        but(WORKER, kubelet__config_problem="/var/lib/kubelet/config.yaml: no such file"),
        "config.yaml: no such file",
        "slipway upgrade node phase kubelet-config",
    ),
    "kubelet-version-skew": (but(WORKER, kubelet__version="v1.36.3"), "kubelet is v1.36.3 and the API server v1.35.4", "install a kubelet"),
    "runtime-stopped": (
        but(WORKER, runtime__unit=unit("failed", "failed", TOML, exit_code=1), runtime__problem="container runtime is not running"),
        "is failed (failed): its configuration /etc/containerd/config.toml is not valid: (2, 2)",
        "correct /etc/containerd/config.toml",
    ),
    "runtime-not-answering": (
        but(WORKER, runtime__problem="the container runtime at /run/containerd/containerd.sock did not answer Version within 20 s"),
        "does not answer",
        "systemctl restart containerd",
    ),
    "runtime-not-ready": (but(WORKER, runtime__not_ready=("not true",)), "not ready", "restart containerd"),
    "pod-network-missing": (but(WORKER, runtime__network_not_ready=(NETWORK,)), "cni plugin not initialized", "/etc/cni/net.d"),
    "cgroup-driver-differs": (
        but(WORKER, runtime__cgroup_driver="cgroupfs"),
        "systemd, and the container runtime cgroupfs",
        "cgroupDriver: cgroupfs",
    ),
    "runtime-not-enabled": (
        but(WORKER, runtime__unit=unit("active", "running", enabled="disabled")),
        "after a reboot",
        "enable containerd",
    ),
    "manifest-unreadable": (
        but(
            CONTROL_PLANE,
            manifests=(Manifest(path="/etc/kubernetes/manifests/etcd.yaml", problem="yaml: line 4"), *CONTROL_PLANE.manifests[1:]),
        ),
        "yaml: line 4",
        "slipway init phase etcd local",
    ),
    "manifest-twice": (
        but(
            CONTROL_PLANE,
            manifests=(*CONTROL_PLANE.manifests, Manifest(path="/etc/kubernetes/manifests/etcd.yaml.bak", pod="kube-system/etcd")),
        ),
        "/etc/kubernetes/manifests/etcd.yaml and /etc/kubernetes/manifests/etcd.yaml.bak define one Pod, kube-system/etcd",
        "/etc/kubernetes/manifests",
    ),
    "manifest-missing": (
        but(CONTROL_PLANE, manifests=CONTROL_PLANE.manifests[:3]),
        "no manifest of kube-scheduler",
        "slipway init phase control-plane",
    ),
    "container-exited": (
        but(CONTROL_PLANE, runtime__components=(component("etcd", container("etcd", CORRUPT, state="exited", code=2)), *OTHERS)),
        "etcd has exited with exit code 2: its database file is damaged (invalid database)",
        "etcdutl snapshot restore",
    ),
    "container-not-started": (
        but(
            CONTROL_PLANE,
            kubelet__unit=unit("active", "running", UNPARSED),
            runtime__components=(*CONTROL_PLANE.runtime.components[:3], component("kube-scheduler")),  # type: ignore[index]
        ),
        "has not started kube-scheduler: the kubelet cannot read the manifest: yaml: line 4: mapping values are not allowed",
        "correct the file",
    ),
    "image-missing": (
        but(CONTROL_PLANE, runtime__components=(component("etcd", image_missing=True), *OTHERS)),
        "the image of etcd is not on this node",
        "crictl pull registry.k8s.io/etcd:v1.35.4",
    ),
    "container-flapping": (
        but(
            CONTROL_PLANE, runtime__components=(component("etcd", container("etcd", state="exited", code=1, again=True, exits=4)), *OTHERS)
        ),
        "etcd runs, and ended 5 times before, the last time 60 s ago",
        "crictl logs",
    ),
    "component-not-answering": (
        but(
            CONTROL_PLANE,
            runtime__components=(component("etcd", container("etcd"), answer="Get https://127.0.0.1:1/livez: status code 500"),),
        ),
        "etcd runs, and does not answer",
        "crictl logs",
    ),
    "etcd-not-answering": (
        etcd(own=EtcdEndpoint(url="https://127.0.0.1:2379", problem="https://127.0.0.1:2379: timed out")),
        "https://127.0.0.1:2379: timed out",
        "crictl logs",
    ),
    "etcd-no-leader": (etcd(own=EtcdEndpoint(url="https://127.0.0.1:2379", status=STATUS._replace(leader=0))), "no leader", "member list"),
    "etcd-alarm": (etcd(alarms=(EtcdAlarm(1, "NOSPACE"),)), "alarm NOSPACE: its database has reached its quota", "alarm disarm"),
    "etcd-nearly-full": (
        etcd(own=EtcdEndpoint(url="https://127.0.0.1:2379", status=STATUS._replace(db_size=1800 << 20))),
        "1800 of 2048 MiB",
        "defrag",
    ),
    "etcd-learner": (
        etcd(own=EtcdEndpoint(url="https://127.0.0.1:2379", status=STATUS._replace(is_learner=True))),
        "has no vote",
        "slipway join phase",
    ),
    "etcd-not-a-member": (etcd(members=(OTHER,)), "does not count this node among its members", "slipway reset"),
    "etcd-member-lost": (
        etcd(members=(OWN_MEMBER, OTHER, THIRD), others=(EtcdEndpoint(url=OTHER.client_urls[0], problem="connection refused"),)),
        "the member cp-2 of etcd does not answer: 0 more may be lost",
        "member remove 2",
    ),
    "etcd-data-missing": (etcd(data_missing=True), "/var/lib/etcd, is not there", "slipway reset"),
    "etcd-data-unreadable": (etcd(owner_problem="0.wal is not a write-ahead log of etcd"), "are not those of an etcd", "slipway reset"),
    "etcd-external-not-answering": (
        but(CONTROL_PLANE, etcd=Etcd(external=True, others=(EtcdEndpoint(url="https://192.0.2.50:2379", problem="Connection refused"),))),
        "the external etcd at https://192.0.2.50:2379 does not answer",
        "--etcd-cafile",
    ),
    "etcd-clock-differs": (etcd(drift=DRIFT), "clock-drift", "timedatectl"),
    "certificate-expired": (
        with_certificate("controller-manager.conf", end=timedelta(days=-1)),
        "to 2026-11-15 12:00 UTC; it is 2026-11-16 12:00 UTC here",
        "slipway certs renew controller-manager.conf",
    ),
    "certificate-not-yet-valid": (with_certificate("etcd-peer", begin=timedelta(hours=3)), "this machine's clock is behind", "timedatectl"),
    "certificate-expiring": (with_certificate("etcd-peer", end=timedelta(days=9)), "expires in 9 days", "slipway certs renew etcd-peer"),
    "authority-expired": (
        with_certificate("ca", end=timedelta(days=-1), authority=True),
        "nothing that it signed is believed",
        "slipway certs renew all",
    ),
    "authority-expiring": (with_certificate("ca", end=timedelta(days=100), authority=True), "expires in 100 days", "replacement"),
    "certificate-unreadable": (
        with_certificate("etcd-peer", problem="no PEM"),
        "etcd-peer cannot be read",
        "slipway init phase certs etcd-peer",
    ),
    "certificate-distrusted": (
        with_certificate("etcd-peer", distrust="other CA"),
        "not signed by its authority",
        "init phase certs etcd-peer",
    ),
    "certificate-key-differs": (
        with_certificate("etcd-peer", key_problem="its key is that of another"),
        "its key is that of another",
        "init phase certs",
    ),
    "certificate-missing": (
        but(CONTROL_PLANE, missing_certificates=("/etc/kubernetes/pki/etcd/peer.crt",)),
        "pki/etcd/peer.crt is missing",
        "init phase certs etcd-peer",
    ),
    "certificate-lacks-address": (
        with_certificate("apiserver", names=("kubernetes", "192.0.2.99")),
        f"is not valid for {ADDRESS}",
        "slipway init phase certs apiserver",
    ),
    "kubeconfig-unusable": (
        but(CONTROL_PLANE, kubeconfigs=(KubeconfigFact(path="/etc/kubernetes/scheduler.conf", problem="no such file"),)),
        "/etc/kubernetes/scheduler.conf cannot be used",
        "slipway init phase kubeconfig scheduler",
    ),
    "kubeconfig-foreign-authority": (
        but(WORKER, kubeconfigs=(KubeconfigFact(path="/etc/kubernetes/kubelet.conf", foreign_ca=True),)),
        "one of both is of another cluster",
        "join again",
    ),
    "kubelet-certificate-expired": (
        with_certificate("kubelet.conf", end=timedelta(hours=-1), rotates=True),
        "has expired",
        "--client-name system:node:cp-1",
    ),
    "kubelet-certificate-missing": (
        but(WORKER, kubelet__rotating_file="/var/lib/kubelet/pki/kubelet-client-current.pem"),
        "which is not there",
        "--client-name system:node:w-1",
    ),
    "kubelet-rotation-late": (
        with_certificate("kubelet.conf", begin=timedelta(days=-340), end=timedelta(days=25), rotates=True),
        "in 25 days",
        "kubectl get csr",
    ),
    "kubelet-rotation-off": (
        but(
            with_certificate("kubelet.conf", begin=timedelta(days=-340), end=timedelta(days=25), rotates=True),
            kubelet__config={**CONFIG, "rotateCertificates": False},
        ),
        "does not renew its client certificate",
        "rotateCertificates: true",
    ),
    "address-not-here": (
        but(CONTROL_PLANE, claimed_addresses=(("--advertise-address in /etc/kubernetes/manifests/kube-apiserver.yaml", "192.0.2.99"),)),
        "kube-apiserver.yaml says 192.0.2.99, and this machine does not have that address",
        "/etc/kubernetes/manifests/kube-apiserver.yaml",
    ),
    "node-address-differs": (but(WORKER, addresses=("127.0.0.1", "192.0.2.77")), f"knows this node by {ADDRESS}", "--node-ip"),
    "port-taken": (
        but(WORKER, ports=(Port(number=10250, component="kubelet", owner="python3"),)),
        "port 10250 of kubelet is taken by python3",
        "ss -ltnp",
    ),
    "nameserver-missing": (but(WORKER, nameservers=()), "no name server is set in /etc/resolv.conf", "nameserver ADDRESS"),
    "nameserver-loopback": (
        but(WORKER, nameservers=("127.0.0.53",)),
        "CoreDNS would ask itself without end",
        "/run/systemd/resolve/resolv.conf",
    ),
    "resolv-conf-missing": (but(WORKER, resolv_conf_problem="no such file"), "no Pod starts", "resolvConf"),
    "forwarding-off": (but(WORKER, forwarding_off=("/proc/sys/net/ipv4/ip_forward",)), "(net.ipv4.ip_forward)", "sysctl --system"),
    "api-name-unknown": (api("name", "api.example: Name or service not known"), "cannot be resolved", "getent hosts api.example"),
    "api-unreachable": (api("unreachable", "connection refused"), "cannot be reached from here", "curl -k https://api.example:6443/livez"),
    "api-untrusted": (api("untrusted", "certificate has expired"), "does not prove to be", "slipway certs check-expiration"),
    "api-refused": (api("refused", "Unauthorized"), "refuses this node's kubelet", "system:node:w-1"),
    "api-failing": (api("failing", "etcdserver: request timed out"), "etcdserver: request timed out", "slipway doctor"),
    "node-missing": (but(WORKER, api__node=None), "has no Node w-1", "systemctl restart kubelet"),
    "node-not-ready": (but(WORKER, api__node=node(Ready="False")), "is not Ready: ReadyFalse", "kubectl describe node w-1"),
    "node-under-pressure": (but(WORKER, api__node=node(DiskPressure="True")), "tells DiskPressure", "df -h"),
    "node-cordoned": (but(WORKER, api__node={**node(), "spec": {"unschedulable": True}}), "cordoned", "kubectl uncordon w-1"),
    "vip-values-unusable": (
        but(CONTROL_PLANE, vip=Vip(problem="/etc/keepalived/alive.json: no such file")),
        "alive.json: no such file",
        "Machine",
    ),
    "vip-not-configured": (
        but(CONTROL_PLANE, vip=Vip(values=VALUES, configured=False)),
        "no configuration for the shared address",
        "side-car",
    ),
    "vip-device-missing": (but(CONTROL_PLANE, vip=Vip(values=VALUES, interface_missing=True)), "no network device eth0", "networkDevice"),
    "vip-not-answering": (
        but(CONTROL_PLANE, vip=Vip(values=VALUES, answer="No route to host")),
        "(another machine has it, or none)",
        "ip address show dev eth0",
    ),
    "vip-here": (but(CONTROL_PLANE, vip=Vip(values=VALUES, holds=True)), "this machine has the shared address 192.0.2.100", ""),
    "swap-on": (but(WORKER, swaps=("/dev/sda2",)), "/proc/swaps: /dev/sda2", "swapoff -a"),
    "swap-on-before-join": (but(NO_NODE, swaps=("/dev/sda2",)), "swap is on", "swapoff -a"),
    "swap-returns": (but(WORKER, swap_in_fstab=("/dev/sda2 none swap sw 0 0",)), "after a reboot", "/etc/fstab"),
    "clock-not-synchronized": (but(WORKER, clock=Clock(synchronized=False)), "NTPSynchronized=no", "timedatectl set-ntp true"),
    "clock-differs": (but(WORKER, api__ahead=-90.0), "90 s behind the API server's", "timedatectl set-ntp true"),
    "disk-full": (
        but(WORKER, disks=(disk("/var/lib/etcd", "etcd's data", 0.0),)),
        "/var/lib/etcd is full (0 MiB of 102400 MiB are free): etcd's data",
        "du -xh",
    ),
    "disk-low": (
        but(WORKER, disks=(disk("/var/lib/kubelet", "the kubelet and the volumes of Pods", 0.08),)),
        "8.0 % free, and below nodefs.available<10%",
        "crictl rmi",
    ),
    "inodes-low": (
        but(WORKER, disks=(disk("/var/lib/kubelet", "the kubelet and the volumes of Pods", 0.5, inodes_free=0.03),)),
        "3.0 % of its inodes free",
        "df -i",
    ),
    "cgroups-missing": (but(WORKER, unified=None), "no cgroups are mounted", "systemd"),
    "cgroup-v1-refused": (
        but(WORKER, unified=False, kubelet__unit=unit("activating", "auto-restart")),
        "cgroup v1, with which kubelet v1.35.4 does not start",
        "failCgroupV1: false",
    ),
    "cgroup-v1": (
        but(WORKER, unified=False, kubelet__config={**CONFIG, "failCgroupV1": False}),
        "kubelets from v1.35 on",
        "unified_cgroup_hierarchy",
    ),
    "cgroup-controllers-missing": (
        but(WORKER, controllers=("cpu", "cpuset", "pids")),
        "no cgroup controllers memory",
        "cgroup_enable=memory",
    ),
    "agent-stopped": (
        but(NO_NODE, agent=Agent(unit=unit("failed", "failed"), service="slipway-agent", status=REGISTERED)),
        "it takes no plans",
        "systemctl enable --now slipway-agent",
    ),
    "agent-not-registered": (
        but(NO_NODE, agent=Agent(status={"configured": True, "registered": False})),
        "is not registered",
        "slipway agent register",
    ),
    "agent-files-unusable": (
        but(NO_NODE, agent=Agent(status={"problem": "journal.json cannot be read"})),
        "journal.json cannot be read",
        "agent register",
    ),
    "plan-failed": (
        but(NO_NODE, agent=agent(state="failed", failures=3, message="upgrade-system: exit code 18")),
        "upgrade-system: exit code 18",
        "agent status",
    ),
    "plan-canceled": (but(NO_NODE, agent=agent(state="canceled")), "was canceled", "slipway agent status"),
    "plan-running": (
        but(NO_NODE, agent=agent(state="running", completed=2, instruction="drain")),
        "2 of 5 instructions",
        "slipway agent status",
    ),
    "plan-not-reported": (but(NO_NODE, agent=agent(reported=False)), "not told to the management cluster", "https://192.0.2.1:6443"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_kind_of_finding_is_found_with_what_would_help(name: str) -> None:
    facts, words, fix = CASES[name]
    found = {finding.name: finding for _, finding in examine(facts).findings}
    assert name in found
    assert words in f"{found[name].finding}\n{found[name].evidence}"
    assert fix in "\n".join(found[name].fix)


def test_every_kind_of_finding_is_brought_about() -> None:
    assert {kind.name for check in CHECKS for kind in check.kinds} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_check_tells_only_what_it_says_that_it_tells(name: str) -> None:
    facts = CASES[name][0]
    for check in CHECKS:
        assert {finding.name for finding in check.find(facts)} <= {kind.name for kind in check.kinds}


@pytest.mark.parametrize("facts", [CONTROL_PLANE, WORKER, NO_NODE], ids=lambda facts: facts.role)
def test_a_machine_on_which_nothing_is_wrong_is_well(facts: Facts) -> None:
    report = examine(facts)
    assert report.is_well
    assert [finding.name for _, finding in report.findings] == ([] if facts.is_node else ["no-node"])


THRESHOLD = (disk("/var/lib/kubelet", "the kubelet and the volumes of Pods", 0.02),)
ENDED_ONCE = container("etcd", state="exited", again=True, exits=1)
ENDED_LONG_AGO = container("etcd", state="exited", again=True, exits=9, ago=86400)
ANSWERING = Etcd(external=True, others=(EtcdEndpoint(url="https://192.0.2.50:2379"),))
WELL = {
    "swap that the kubelet is told of": but(WORKER, swaps=("/dev/sda2",), kubelet__config={**CONFIG, "failSwapOn": False}),
    "eviction below 1 %": but(WORKER, kubelet__config={**CONFIG, "evictionHard": {"nodefs.available": "1%"}}, disks=THRESHOLD),
    "eviction below 1 GiB": but(WORKER, kubelet__config={**CONFIG, "evictionHard": {"nodefs.available": "1Gi"}}, disks=THRESHOLD),
    "logs, of which the kubelet evicts nothing": but(WORKER, disks=(disk("/var/log", "logs", 0.05),)),
    "a kubelet three minors older": but(WORKER, kubelet__version="v1.32.0"),
    "addresses that every machine has": but(CONTROL_PLANE, claimed_addresses=(("a", "127.0.0.1"), ("b", "0.0.0.0"), ("c", "::"))),
    "a container that ended once": but(CONTROL_PLANE, runtime__components=(component("etcd", ENDED_ONCE), *OTHERS)),
    "a container that ended long ago": but(CONTROL_PLANE, runtime__components=(component("etcd", ENDED_LONG_AGO), *OTHERS)),
    "a kubelet that waits for its configuration": but(NO_NODE, kubelet__unit=unit("activating", "auto-restart")),
    "a plan that is applied": but(NO_NODE, agent=agent()),
    "an external etcd that answers": but(CONTROL_PLANE, etcd=ANSWERING, manifests=CONTROL_PLANE.manifests[1:]),
    "a database below a bigger quota": etcd(
        own=EtcdEndpoint(url="https://127.0.0.1:2379", status=STATUS._replace(db_size=1800 << 20)), quota=8 * GIB
    ),
}


@pytest.mark.parametrize("name", WELL)
def test_what_is_as_it_should_be_is_no_finding(name: str) -> None:
    report = examine(WELL[name])
    assert report.is_well, report.findings


@pytest.mark.parametrize(("version", "refused"), [("v1.33.13", False), ("v1.34.10", False), ("v1.35.4", True), ("v1.36.3", True)])
def test_cgroup_v1_is_refused_by_the_releases_that_refuse_it(version: str, refused: bool) -> None:
    facts = but(
        WORKER,
        unified=False,
        kubelet__version=version,
        api__version=version,
        kubelet__unit=unit("inactive", "dead"),
        controllers=("cpu", "cpuacct", "cpuset", "devices", "freezer", "memory", "pids"),
    )
    expected = {"kubelet-stopped", "cgroup-v1-refused" if refused else "cgroup-v1"}
    assert {finding.name for _, finding in examine(facts).findings} == expected


def test_a_kubelet_that_runs_on_cgroup_v1_was_told_so_by_whatever() -> None:
    facts = but(WORKER, unified=False, controllers=("cpu", "cpuacct", "cpuset", "devices", "freezer", "memory", "pids"))
    assert [finding.name for _, finding in examine(facts).findings] == ["cgroup-v1"]


def test_what_follows_from_a_stopped_kubelet_is_not_told_as_a_fault_of_its_own() -> None:
    facts = but(CONTROL_PLANE, kubelet__unit=unit("inactive", "dead"), runtime__components=tuple(component(name) for name in COMPONENTS))
    assert [finding.name for _, finding in examine(facts).findings] == ["kubelet-stopped"]


def fixes(facts: Facts, name: str) -> str:
    """All that is advised for what was found."""
    found = [finding for _, finding in examine(facts).findings if finding.name == name]
    assert found, f"{name} is not found"
    return "; ".join(line for finding in found for line in finding.fix)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("certificate-unreadable", {"problem": "no certificate in it"}),
        ("certificate-key-differs", {"key_problem": "its key is that of another certificate"}),
        ("certificate-not-yet-valid", {"begin": timedelta(hours=1)}),
    ],
)
def test_nobody_is_told_to_make_a_new_authority(name: str, fault: dict[str, object]) -> None:
    advice = fixes(with_certificate("ca", authority=True, **fault), name)
    assert "init phase certs" not in advice
    assert "certs renew" not in advice


def test_what_a_control_plane_left_behind_is_to_be_kept_before_it_is_reset() -> None:
    advice = fixes(but(NO_NODE, left=("/etc/kubernetes/pki/ca.crt", "/var/lib/etcd/member")), "left-behind")
    assert advice.index("copy /etc/kubernetes/pki and /var/lib/etcd first") < advice.index("slipway reset")
    assert fixes(but(NO_NODE, left=("/etc/kubernetes/pki/ca.crt",)), "left-behind") == "slipway reset"


@pytest.mark.parametrize(("member", "said"), [(OTHER.id, "keep this node as it is: the member is cp-2"), (0, "endpoint hashkv --cluster")])
def test_a_member_whose_data_are_good_is_not_to_be_reset_for_another_one(member: int, said: str) -> None:
    advice = fixes(etcd(members=(OWN_MEMBER, OTHER, THIRD), alarms=(EtcdAlarm(member, "CORRUPT"),)), "etcd-alarm")
    assert said in advice
    assert "slipway reset here" not in advice


def test_errors_come_before_warnings_and_notes() -> None:
    facts = but(
        WORKER,
        api__node={**node(), "spec": {"unschedulable": True}},
        clock=Clock(synchronized=False),
        kubelet__unit=unit("inactive", "dead"),
    )
    assert [finding.severity for _, finding in examine(facts).findings] == ["error", "warning", "note"]


def test_a_manifest_that_another_program_uses_is_left_alone() -> None:
    assert examine(but(CONTROL_PLANE, manifests=(*CONTROL_PLANE.manifests, manifest("node-exporter")))).is_well


def test_a_component_that_only_waited_for_another_one_is_told_after_it() -> None:
    lost = container("kube-scheduler", 'E1116 19:38:50.123456       1 server.go:319] "Leaderelection lost"', state="exited", code=1)
    broken = container("etcd", CORRUPT, state="exited", code=2)
    facts = but(CONTROL_PLANE, runtime__components=(component("kube-scheduler", lost), component("etcd", broken)))
    exited = [finding.finding for _, finding in examine(facts).findings if finding.name == "container-exited"]
    assert [text.split()[0] for text in exited] == ["etcd", "kube-scheduler"]
