"""What is gathered of a machine: files that our own phases made, a runtime behind the real wire, machines that do not answer."""

from __future__ import annotations

import json
import os
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cases.certificates import VERSIONS
from cases.certificates import Machine as Prepared
from node.runtime_server import Images, serving
from support.machine import Machine
from support.tlsserver import authority, leaf

from slipway.api.machinery.yaml import goyaml
from slipway.credentials import tls
from slipway.host.cri import cri_pb2
from slipway.host.interface import CommandResult
from slipway.node import paths
from slipway.node.doctor.examination import examine
from slipway.node.doctor.facts import Facts
from slipway.node.doctor.gathering import gather
from slipway.node.etcd import pod as etcdpod
from slipway.node.staticpods import components

# Of this machine, so that no question leaves it; nothing listens on that port.
ADDRESS, PORT = "127.77.0.3", 1
NOBODYS = "255.255.255.255"
"""An address that no machine has, and to which no connection is tried."""
SHOWN = (
    "LoadState=loaded\nActiveState={active}\nSubState={sub}\nUnitFileState=enabled\nNeedDaemonReload=no\nExecMainStatus=0\nNRestarts=0\n"
)
KUBELET_CONFIG = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
healthzPort: 0
rotateCertificates: true
staticPodPath: /etc/kubernetes/manifests
resolvConf: /etc/resolv.conf
containerRuntimeEndpoint: unix:///run.sock
"""
_QUESTIONS = {("systemctl", "show"), ("journalctl", "--no-pager"), ("timedatectl", "show"), ("kubelet", "--version")}


class Patient(Machine):
    """A machine that is only looked at: whatever would change it fails the test, and what it may not see is refused."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.clock = datetime.now(UTC)
        self.refused: tuple[str, ...] = ()
        self.hangs = threading.Event()
        self.hangs.set()
        self.prepared = False

    def now(self) -> datetime:
        return self.clock

    def read(self, path: str, most: int = -1) -> bytes:
        if path.startswith(self.refused):
            raise PermissionError(13, "Permission denied", path)
        return super().read(path, most)

    def run(self, *command: str) -> CommandResult:
        assert command[:2] in _QUESTIONS, f"{command} may change the machine"
        self.hangs.wait(30)
        return super().run(*command)

    def write(self, path: str, content: bytes, mode: int = 0o600, *, like: str = "") -> None:
        self._unchanged()
        super().write(path, content, mode, like=like)

    def _unchanged(self, *arguments: object, **options: object) -> None:
        assert not self.prepared, "a doctor changes nothing"

    keep = make_dir = give = remove = rename = unmount = _unchanged

    def service(self, name: str, active: str = "active", sub: str = "running") -> None:
        wanted = "LoadState,ActiveState,SubState,UnitFileState,NeedDaemonReload,ExecMainStatus,NRestarts,InvocationID"
        self.programs[f"systemctl show {name} --property={wanted}"] = SHOWN.format(active=active, sub=sub)

    def examined(self, **options: Any) -> tuple[Facts, set[str]]:
        self.prepared = True
        facts = gather(self, **options)
        return facts, {finding.name for _, finding in examine(facts).findings}


def machine(root: Path) -> Patient:
    """Fresh from the factory."""
    made = Patient(root)
    made.put("/proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n")
    made.put("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n").put(
        "/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n"
    )
    made.put("/etc/resolv.conf", "nameserver 192.0.2.53\n").put("/proc/sys/net/ipv4/ip_forward", "1\n").put("/etc/fstab", "# nothing\n")
    made.put("/sys/class/net/eth0/ifindex", "2\n").interfaces["eth0"] = [ADDRESS]
    for name in ("slipway-agent", "elemental-system-agent"):
        made.service(name, "inactive", "dead")
        key = next(key for key in made.programs if f"show {name} " in key)
        made.programs[key] = made.programs[key].replace("LoadState=loaded", "LoadState=not-found")
    for name in ("kubelet", "containerd"):
        made.service(name)
    made.programs["kubelet --version"] = "Kubernetes v1.36.3\n"
    made.programs["timedatectl show --property=NTPSynchronized --value"] = "yes\n"
    return made


def _prepared(root: Path, version: str = VERSIONS[-1], case: str = "ecdsa-p256") -> Prepared:
    made = Prepared(root, case, version)
    made.ctx.config.local_api_endpoint.advertise_address, made.ctx.config.local_api_endpoint.bind_port = ADDRESS, PORT
    made.run("certs all")
    made.run("kubeconfig all")
    return made


def control_plane(root: Path, version: str = VERSIONS[-1], case: str = "ecdsa-p256") -> Patient:
    """The files of a control plane as init makes them, with the kubelet's certificate where it keeps it."""
    prepared = _prepared(root, version, case)
    for component in components.COMPONENTS:
        components.write(prepared.ctx, component)
    if prepared.ctx.config.cluster.etcd.local is not None:
        etcdpod.write_local(prepared.ctx)
    made = machine(root)
    made.put(paths.KUBELET_CONFIG, KUBELET_CONFIG)
    made.put("/var/lib/etcd/member/.keep", "")
    made.programs["kubelet --version"] = f"Kubernetes {version}\n"
    made.clock = prepared.host.clock + timedelta(minutes=1)
    return made


@pytest.mark.parametrize("version", VERSIONS)
def test_the_files_of_a_control_plane_are_understood_in_every_release(version: str, tmp_path: Path) -> None:
    facts, found = control_plane(tmp_path, version).examined()
    assert (facts.role, facts.node) == ("control plane", "cp-1")
    assert {container.name for each in facts.manifests for container in each.containers} == {"etcd", *components.COMPONENTS}
    assert {address for _, address in facts.claimed_addresses} == {ADDRESS, "127.0.0.1"}
    assert len(facts.certificates) == 10 + 5
    # All that is wrong is that nothing runs on it.
    assert found == {"runtime-not-answering", "etcd-not-answering", "api-unreachable"}


def test_a_machine_that_never_was_a_node_is_well(tmp_path: Path) -> None:
    made = machine(tmp_path)
    made.service("kubelet", "activating", "auto-restart")
    facts, found = made.examined()
    assert (facts.role, facts.unseen, found) == ("none", (), {"no-node"})
    assert facts.left == ()


def test_what_a_node_left_behind_is_found(tmp_path: Path) -> None:
    made = machine(tmp_path)
    made.put("/etc/kubernetes/pki/ca.crt", "x").put("/var/lib/etcd/member/wal/0.wal", "x").put(paths.KUBELET_CONFIG, KUBELET_CONFIG)
    facts, found = made.examined()
    assert facts.left == (paths.KUBELET_CONFIG, "/etc/kubernetes/pki/ca.crt", "/var/lib/etcd/member")
    assert "left-behind" in found


@pytest.mark.parametrize("path", ["/etc/default/kubelet", "/etc/sysconfig/kubelet"])
def test_flags_of_the_kubelet_have_precedence_over_its_configuration(path: str, tmp_path: Path) -> None:
    made = control_plane(tmp_path)
    made.put("/proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n/dev/sda2 partition 1 0 -2\n")
    made.put(path, 'KUBELET_EXTRA_ARGS="--fail-swap-on=false --node-ip=192.0.2.99"\n')
    facts, found = made.examined()
    assert facts.kubelet.config["failSwapOn"] is False
    assert "swap-on" not in found
    assert ("the kubelet's --node-ip", "192.0.2.99") in facts.claimed_addresses


def test_a_control_plane_that_lost_its_kubelet_conf_is_not_told_to_reset(tmp_path: Path) -> None:
    made = control_plane(tmp_path)
    os.unlink(tmp_path / "etc/kubernetes/kubelet.conf")
    facts, found = made.examined()
    assert facts.role == "control plane"
    assert "kubeconfig-unusable" in found
    assert "left-behind" not in found


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        (timedelta(days=340), {"certificate-expiring", "kubelet-rotation-late"}),
        (timedelta(days=366), {"certificate-expired", "kubelet-certificate-expired"}),
        (timedelta(days=-1), {"certificate-not-yet-valid"}),
    ],
)
def test_the_time_of_certificates_is_judged_by_the_machines_clock(later: timedelta, expected: set[str], tmp_path: Path) -> None:
    made = control_plane(tmp_path)
    made.clock += later
    _, found = made.examined()
    assert {name for name in found if "certificate" in name or "rotation" in name} == expected


def test_certificates_that_do_not_belong_together_are_found(tmp_path: Path) -> None:
    made = control_plane(tmp_path)
    _prepared(tmp_path / "other")
    pki, foreign = tmp_path / "etc/kubernetes/pki", tmp_path / "other/etc/kubernetes/pki"
    (pki / "etcd/server.crt").write_bytes((foreign / "etcd/server.crt").read_bytes())
    (pki / "front-proxy-client.key").unlink()
    (pki / "front-proxy-client.crt").write_text("nothing")
    (pki / "apiserver-kubelet-client.crt").unlink()
    _, found = made.examined()
    assert {"certificate-distrusted", "certificate-key-differs", "certificate-unreadable", "certificate-missing"} <= found


def test_a_kubeconfig_of_another_cluster_is_found(tmp_path: Path) -> None:
    made = control_plane(tmp_path)
    _prepared(tmp_path / "other")
    (tmp_path / "etc/kubernetes/scheduler.conf").write_bytes((tmp_path / "other/etc/kubernetes/scheduler.conf").read_bytes())
    _, found = made.examined()
    assert "kubeconfig-foreign-authority" in found


@pytest.mark.parametrize(
    ("name", "change", "kind"),
    [
        (
            "kube-apiserver.yaml",
            lambda text: text.replace(f"--advertise-address={ADDRESS}", f"--advertise-address={NOBODYS}"),
            "address-not-here",
        ),
        ("etcd.yaml", lambda text: text.replace(f"https://{ADDRESS}:2380", f"https://{NOBODYS}:2380"), "address-not-here"),
        ("kube-scheduler.yaml", lambda text: text + "\n  oops: [", "manifest-unreadable"),
        ("kube-scheduler.yaml", lambda text: "", "manifest-unreadable"),
        ("kube-scheduler.yaml.bak", lambda text: text, "manifest-twice"),
        (".kube-scheduler.yaml.swp", lambda text: text, ""),
    ],
)
def test_what_is_wrong_with_a_manifest_is_found(name: str, change: Callable[[str], str], kind: str, tmp_path: Path) -> None:
    made = control_plane(tmp_path)
    folder = tmp_path / "etc/kubernetes/manifests"
    source = folder / (f"{name.strip('.').partition('.')[0]}.yaml")
    (folder / name).write_text(change(source.read_text()))
    _, found = made.examined()
    assert {each for each in found if each.startswith(("manifest", "address"))} == ({kind} if kind else set())


def test_an_external_etcd_is_asked_with_the_api_servers_certificates(tmp_path: Path) -> None:
    made = control_plane(tmp_path, case="external-etcd")
    made.answers["https://10.9.9.9:2379/version"] = [OSError("Connection refused")]
    facts, found = made.examined()
    assert facts.etcd is not None
    assert facts.etcd.external
    assert "etcd-external-not-answering" in found
    assert not {name for name in found if name.startswith("certificate")}, "etcd's own certificates are not here, and need not be"


def test_without_root_it_says_what_it_could_not_see(tmp_path: Path) -> None:
    made = control_plane(tmp_path)
    made.uid, made.refused = 1000, ("/etc/kubernetes/manifests", "/etc/kubernetes/kubelet.conf", "/etc/kubernetes/admin.conf")
    facts, _ = made.examined()
    assert facts.role == "control plane"
    unseen = {each.what: each.why for each in facts.unseen}
    assert unseen["/etc/kubernetes/manifests/kube-apiserver.yaml"] == "permission denied"
    assert unseen["/etc/kubernetes/kubelet.conf"] == "permission denied"
    assert unseen["who listens on the node's ports"] == "run it as root"


def test_who_does_not_answer_in_time_is_left_behind(tmp_path: Path) -> None:
    made = machine(tmp_path)
    made.hangs.clear()
    try:
        facts, _ = made.examined(deadline=0.2)
    finally:
        made.hangs.set()
    assert {each.what for each in facts.unseen} == {"the kubelet", "the container runtime", "the clock"}
    assert {each.why for each in facts.unseen} == {"no answer within 0 s"}


def test_the_agents_plan_is_looked_at(tmp_path: Path) -> None:
    plan = {"checksum": "1", "state": "failed", "failures": 2, "message": "no space", "completed": 0, "of": 1, "attempt": 2, "started": ""}
    _, found = machine(tmp_path).examined(agent=lambda: {"registered": True, "plan": plan})
    assert "plan-failed" in found


def container(name: str, state: Any) -> Any:
    labels = {"io.kubernetes.pod.name": f"{name}-cp-1", "io.kubernetes.pod.namespace": "kube-system"}
    metadata = cri_pb2.ContainerMetadata(name=name)
    return cri_pb2.Container(id=name, metadata=metadata, state=state, created_at=1, labels=labels, pod_sandbox_id=name)


def test_a_container_that_ended_is_found_with_what_it_wrote(tmp_path: Path) -> None:
    made = control_plane(tmp_path)
    scheduler = goyaml.load(made.read(f"{paths.MANIFESTS_DIR}/kube-scheduler.yaml").decode(), "kube-scheduler.yaml")[0].value
    runtime = Images(scheduler["spec"]["containers"][0]["image"])
    runtime.network_ready = False
    exited, running = 2, 1
    names = {"etcd": exited, "kube-apiserver": running, "kube-controller-manager": running}
    runtime.containers = [container(name, state) for name, state in names.items()]
    log = "/var/log/pods/etcd.log"
    fatal = '{"level":"panic","caller":"backend/backend.go:205","msg":"failed to open database","path":"db","error":"invalid database"}'
    made.put(log, f"2026-11-16T18:27:46.124480Z stderr F {fatal}\n")
    for name in names:
        runtime.statuses[name] = cri_pb2.ContainerStatus(log_path=log if name == "etcd" else "", exit_code=2, metadata={"name": name})
    with serving(runtime, tmp_path):
        facts, found = made.examined()
    assert facts.runtime.version == "containerd v2.3.7"
    report = {finding.name: finding for _, finding in examine(facts).findings}
    assert report["container-exited"].finding == "etcd has exited with exit code 2: its database file is damaged (invalid database)"
    assert report["container-exited"].evidence == fatal
    assert report["container-not-started"].finding == "the kubelet has not started kube-scheduler"
    assert {"pod-network-missing", "component-not-answering"} <= found


@contextmanager
def api_server(answers: Mapping[str, tuple[int, dict[str, Any]]], date: str = "") -> Iterator[str]:
    """Answers with these objects, at the time of ``date``."""

    class Api(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, content = answers.get(self.path, (404, {"kind": "Status", "reason": "NotFound", "code": 404}))
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def date_time_string(self, timestamp: float | None = None) -> str:
            return date or super().date_time_string(timestamp)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the base class has
            pass

    identity = leaf(CA)
    with ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        server.socket = tls.server_context(identity.certificate, identity.key, "the server").wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"https://127.0.0.1:{server.server_port}"
        server.shutdown()


CA = authority()
VERSION_ANSWER = (200, {"gitVersion": "v1.36.3", "major": "1", "minor": "36"})
REFUSED = (401, {"kind": "Status", "code": 401, "reason": "Unauthorized", "message": "Unauthorized"})
NODE = {
    "metadata": {"name": "node-1"},
    "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "m"}]},
}


@pytest.mark.parametrize(
    ("answers", "date", "expected"),
    [
        ({"/version": VERSION_ANSWER}, "", {"node-missing"}),
        ({"/version": VERSION_ANSWER, "/api/v1/nodes/node-1": (200, NODE)}, "", {"node-not-ready"}),
        ({"/version": VERSION_ANSWER}, "Mon, 16 Nov 2026 00:00:00 GMT", {"node-missing", "clock-differs"}),
        ({"/version": REFUSED}, "", {"api-refused"}),
        ({"/version": (500, {"kind": "Status", "code": 500, "message": "etcdserver: request timed out"})}, "", {"api-failing"}),
    ],
)
def test_the_api_server_is_asked_as_the_kubelet(
    answers: Mapping[str, tuple[int, dict[str, Any]]], date: str, expected: set[str], tmp_path: Path
) -> None:
    facts, found = worker_of(answers, date, CA.certificate, tmp_path)
    assert facts.role == "worker"
    assert found == expected


def test_whoever_answers_for_the_api_server_is_not_believed(tmp_path: Path) -> None:
    _, found = worker_of({}, "", authority().certificate, tmp_path)
    assert found == {"api-untrusted"}


def worker_of(answers: Mapping[str, tuple[int, dict[str, Any]]], date: str, ca: bytes, tmp_path: Path) -> tuple[Facts, set[str]]:
    """What is found on a worker whose API server gives these answers."""
    made = machine(tmp_path)
    made.clock = datetime.now(UTC)
    made.put(paths.KUBELET_CONFIG, KUBELET_CONFIG)
    with api_server(answers, date) as server, serving(Images(), tmp_path):
        users = [{"name": "u", "user": {"token": "t"}}]
        contexts = [{"name": "c", "context": {"cluster": "k", "user": "u"}}]
        config = {
            "clusters": [{"name": "k", "cluster": {"server": server, "certificate-authority-data": b64encode(ca).decode()}}],
            "contexts": contexts,
            "current-context": "c",
            "users": users,
        }
        made.put(paths.KUBELET_CONF, json.dumps({"apiVersion": "v1", "kind": "Config", **config}))
        return made.examined()
