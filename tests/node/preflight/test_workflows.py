"""Preflight checks on machines of all kinds; rows of kubeadm's preflight/checks_test.go (1.36.3)."""

from __future__ import annotations

from threading import Barrier
from typing import TYPE_CHECKING

import pytest
from support.machine import Machine

from slipway.api.kubeadm.internal import (
    APIEndpoint,
    BootstrapTokenDiscovery,
    ClusterConfiguration,
    Discovery,
    Etcd,
    ExternalEtcd,
    InitConfiguration,
    JoinConfiguration,
    JoinControlPlane,
    LocalEtcd,
    Networking,
    NodeRegistrationOptions,
)
from slipway.api.machinery.errors import PreflightError
from slipway.api.machinery.version import Version
from slipway.api.releases import release_for
from slipway.kube.proxies import proxy_for
from slipway.node.preflight import check, machine, workflows
from slipway.node.preflight.check import Check, Findings

if TYPE_CHECKING:
    from pathlib import Path

    from node.conftest import Lines

pytestmark = pytest.mark.upstream_table

RELEASE = release_for(Version(1, 36, 3))


@pytest.fixture
def host(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def one(name: str, errors: tuple[str, ...] = (), warnings: tuple[str, ...] = ()) -> Check:
    return Check(name, lambda host: Findings(errors, warnings))


def test_warnings_are_told_and_do_not_fail(host: Machine, lines: Lines) -> None:
    check.run([one("fine"), one("Odd", warnings=("strange",))], host, lines, set())
    assert lines.warned == ["\t[WARNING Odd]: strange"]


def test_all_errors_are_told_at_once(host: Machine, lines: Lines) -> None:
    with pytest.raises(PreflightError):
        check.run([one("First", ("a", "b")), one("Second", ("c",), ("d",))], host, lines, set())
    assert lines.warned == [
        "\t[WARNING Second]: d",
        "[preflight] Some fatal errors occurred:\n\t[ERROR First]: a\n\t[ERROR First]: b\n\t[ERROR Second]: c\n"
        "[preflight] If you know what you are doing, you can make a check non-fatal with `--ignore-preflight-errors=...`",
    ]


@pytest.mark.parametrize("ignored", [{"first", "second"}, {"all"}])
def test_errors_of_ignored_checks_are_warnings(ignored: set[str], host: Machine, lines: Lines) -> None:
    check.run([one("First", ("a",), ("w",)), one("Second", ("b",))], host, lines, ignored)
    assert lines.warned == ["\t[WARNING First]: w", "\t[WARNING First]: a", "\t[WARNING Second]: b"]


def test_only_the_named_checks_are_ignored(host: Machine, lines: Lines) -> None:
    with pytest.raises(PreflightError):
        check.run([one("First", ("a",)), one("Second", ("b",))], host, lines, {"first"})
    assert "[ERROR First]" not in lines.warned[-1]


def test_only_root_is_privileged(host: Machine) -> None:
    assert machine.privileged_user().find(host) == Findings()
    host.uid = 1000
    assert machine.privileged_user().find(host).errors == ("user is not running as root",)


@pytest.mark.parametrize(("cpus", "fails"), [(0, True), (1, True), (2, False), (64, False)])
def test_a_control_plane_needs_two_processors(cpus: int, fails: bool, host: Machine) -> None:
    host.cpus = cpus
    assert bool(machine.cpus().find(host).errors) is fails


@pytest.mark.parametrize(("kilobytes", "fails"), [(1699 * 1024, True), (1700 * 1024, False), (0, True)])
def test_a_control_plane_needs_memory(kilobytes: int, fails: bool, host: Machine) -> None:
    host.put("/proc/meminfo", f"MemTotal:       {kilobytes} kB\nMemFree:  1 kB\n")
    assert bool(machine.memory().find(host).errors) is fails


def test_a_port_must_be_free(host: Machine) -> None:
    host.busy = {6443}
    assert machine.port(6443).find(host).errors == ("Port 6443 is in use",)
    assert machine.port(6443).name == "Port-6443"
    assert machine.port(10250).find(host) == Findings()


def test_files_and_folders_must_be_free(host: Machine) -> None:
    host.put("/etc/kubernetes/manifests/etcd.yaml", "")
    taken = machine.file_available("/etc/kubernetes/manifests/etcd.yaml")
    assert taken.name == "FileAvailable--etc-kubernetes-manifests-etcd.yaml"
    assert taken.find(host).errors == ("/etc/kubernetes/manifests/etcd.yaml already exists",)
    assert machine.file_available("/nowhere").find(host) == Findings()
    full = machine.directory_available("/etc/kubernetes")
    assert (full.name, full.find(host).errors) == ("DirAvailable--etc-kubernetes", ("/etc/kubernetes is not empty",))
    host.make_dir("/empty")
    assert machine.directory_available("/empty").find(host) == Findings()
    assert machine.directory_available("/nowhere").find(host) == Findings()


@pytest.mark.parametrize(
    ("content", "error"),
    [("1\n", ""), ("1", ""), ("0\n", "contents are not set to 1"), ("", "contents are not set to 1"), (None, "does not exist")],
)
def test_forwarding_must_be_switched_on(content: str | None, error: str, host: Machine) -> None:
    if content is not None:
        host.put(machine.IPV4_FORWARDING, content)
    wanted = machine.switched_on(machine.IPV4_FORWARDING)
    assert wanted.name == "FileContent--proc-sys-net-ipv4-ip_forward"
    assert wanted.find(host).errors == ((f"{machine.IPV4_FORWARDING} {error}",) if error else ())


def test_swap_is_only_warned_of(host: Machine) -> None:
    header = "Filename\tType\tSize\tUsed\tPriority\n"
    assert machine.swap().find(host) == Findings()
    assert machine.swap().find(host.put("/proc/swaps", header)) == Findings()
    found = machine.swap().find(host.put("/proc/swaps", header + "/swap file 1 0 -2\n"))
    assert (len(found.warnings), found.errors) == (1, ())


@pytest.mark.parametrize(("name", "warnings"), [("known", 0), ("unknown", 2), ("-known", 3), ("k" * 64, 3)])
def test_a_node_name_should_be_a_dns_name_and_resolve(name: str, warnings: int, host: Machine) -> None:
    assert len(machine.hostname(name).find(host).warnings) == warnings


# The minor of the kubelet, that of the control plane (0: not known), and what is wrong.
@pytest.mark.parametrize(
    ("kubelet", "control_plane", "error"),
    [
        ("v1.36.3", "v1.36.3", ""),
        ("v1.36.0-rc.1", "v1.36.3", ""),
        ("v1.33.0", "v1.36.3", ""),
        ("v1.32.9", "v1.36.3", "is lower than kubeadm can support"),
        ("v1.37.0", "v1.36.3", "is higher than the control plane version"),
        ("v1.37.0", "", ""),
        ("nonsense", "v1.36.3", "Unable to parse output from Kubelet"),
    ],
)
def test_the_kubelet_must_fit_the_control_plane(kubelet: str, control_plane: str, error: str, host: Machine) -> None:
    host.programs["kubelet --version"] = f"Kubernetes {kubelet}\n"
    version = Version.parse(control_plane) if control_plane else None
    found = machine.kubelet_version(version, RELEASE.version).find(host)
    assert [error in text for text in found.errors] == ([True] if error else [])


def test_a_machine_without_a_kubelet_is_told_so(host: Machine) -> None:
    assert machine.kubelet_version(None, RELEASE.version).find(host).errors == (
        "couldn't get kubelet version: cannot execute 'kubelet --version': executable file not found in $PATH",
    )


@pytest.mark.parametrize(
    ("programs", "failing", "warning"),
    [
        ({}, set(), "no supported init system detected"),
        ({"systemctl show --property=LoadState --value kubelet": "not-found\n"}, set(), "kubelet service does not exist"),
        (
            {"systemctl show --property=LoadState --value kubelet": "loaded\n"},
            {"systemctl is-enabled kubelet"},
            "kubelet service is not enabled",
        ),
        ({"systemctl show --property=LoadState --value kubelet": "loaded\n"}, set(), ""),
    ],
)
def test_the_kubelet_should_start_with_the_machine(programs: dict[str, str], failing: set[str], warning: str, host: Machine) -> None:
    host.programs, host.failing = programs, failing
    found = machine.kubelet_service().find(host)
    assert [text.startswith(warning) for text in found.warnings] == ([True] if warning else [])
    assert found.errors == ()


def test_an_active_firewall_is_told_the_ports(host: Machine) -> None:
    host.programs = {"systemctl show --property=LoadState --value firewalld": "loaded\n", "systemctl is-active firewalld": "active\n"}
    assert machine.firewalld(6443, 10250).find(host).warnings == (
        "firewalld is active, please ensure ports [6443 10250] are open or your cluster may not function correctly",
    )


@pytest.mark.parametrize(
    ("kubernetes", "warns"), [("v1.36.3", False), ("v1.35.0", False), ("v1.36.9", False), ("v1.37.0-alpha.1", True), ("v2.0.0", True)]
)
def test_a_newer_kubernetes_is_warned_of(kubernetes: str, warns: bool, host: Machine) -> None:
    assert bool(machine.kubernetes_version(Version.parse(kubernetes), RELEASE.version).find(host).warnings) is warns


PROXY = {"HTTPS_PROXY": "https://proxy.example.com:3128"}


# Tables of checks_test.go (TestHTTPProxyCIDRCheck) and of Go's net/http rules.
@pytest.mark.parametrize(
    ("host", "environment", "proxied"),
    [
        ("10.0.0.1", {}, False),
        ("10.0.0.1", PROXY, True),
        ("10.0.0.1", {"https_proxy": "proxy:1"}, True),
        ("10.0.0.1", {"HTTP_PROXY": "http://proxy:1"}, False),
        ("127.0.0.1", PROXY, False),
        ("localhost", PROXY, False),
        ("10.0.0.1", {**PROXY, "NO_PROXY": "10.0.0.1"}, False),
        ("10.0.0.1", {**PROXY, "NO_PROXY": "example.com,10.0.0.0/8"}, False),
        ("10.0.0.1", {**PROXY, "no_proxy": "192.168.0.0/16"}, True),
        ("10.0.0.1", {**PROXY, "NO_PROXY": "*"}, False),
        ("2001:db8::1", {**PROXY, "NO_PROXY": "2001:db8::/48"}, False),
        ("2001:db9::1", {**PROXY, "NO_PROXY": "2001:db8::/48"}, True),
        ("api.example.com", {**PROXY, "NO_PROXY": "example.com"}, False),
        ("api.example.com", {**PROXY, "NO_PROXY": ".example.com"}, False),
        ("example.com", {**PROXY, "NO_PROXY": ".example.com"}, True),
    ],
)
def test_a_connection_takes_the_proxy_that_go_would_take(host: str, environment: dict[str, str], proxied: bool) -> None:
    assert (proxy_for(host, environment) is not None) is proxied


@pytest.mark.parametrize(("cidr", "warnings", "errors"), [("", 0, 0), ("10.96.0.0/12", 1, 0), ("nonsense", 0, 1)])
def test_subnets_should_be_reached_directly(cidr: str, warnings: int, errors: int, tmp_path: Path) -> None:
    found = machine.direct_subnet(cidr).find(Machine(tmp_path, PROXY))
    assert (len(found.warnings), len(found.errors)) == (warnings, errors)


def test_a_proxy_in_between_is_told(tmp_path: Path) -> None:
    assert machine.direct("10.0.0.1").find(Machine(tmp_path, PROXY)).warnings == (
        'Connection to "https://10.0.0.1" uses proxy "https://proxy.example.com:3128". If that is not intended, adjust your proxy settings',
    )


def test_the_password_of_a_proxy_is_not_told(tmp_path: Path) -> None:
    behind_proxy = Machine(tmp_path, {"HTTPS_PROXY": "http://user:secret@proxy.example.com:3128"})
    for direct in (machine.direct("10.0.0.1"), machine.direct_subnet("10.96.0.0/12")):
        (warning,) = direct.find(behind_proxy).warnings
        assert 'uses proxy "http://xxxxx@proxy.example.com:3128"' in warning


def init_configuration(etcd: Etcd | None = None, *, address: str = "10.0.0.1", subnet: str = "10.96.0.0/12") -> InitConfiguration:
    return InitConfiguration(
        cluster=ClusterConfiguration(
            kubernetes_version="v1.36.3",
            networking=Networking(service_subnet=subnet),
            etcd=etcd or Etcd(local=LocalEtcd(data_dir="/var/lib/etcd")),
        ),
        local_api_endpoint=APIEndpoint(advertise_address=address, bind_port=6443),
        node_registration=NodeRegistrationOptions(name="n1"),
    )


def names(checks: list[Check]) -> list[str]:
    return [check.name for check in checks]


def test_init_checks_are_kubeadms_in_its_order() -> None:
    # InitNodeChecks and addCommonChecks of preflight/checks.go.
    assert names(workflows.init_checks(init_configuration(), RELEASE)) == [
        "NumCPU",
        "Mem",
        "KubernetesVersion",
        "Firewalld",
        "Port-6443",
        "Port-10259",
        "Port-10257",
        "FileAvailable--etc-kubernetes-manifests-kube-apiserver.yaml",
        "FileAvailable--etc-kubernetes-manifests-kube-controller-manager.yaml",
        "FileAvailable--etc-kubernetes-manifests-kube-scheduler.yaml",
        "FileAvailable--etc-kubernetes-manifests-etcd.yaml",
        "HTTPProxy",
        "HTTPProxyCIDR",
        "HTTPProxyCIDR",
        "CRI",
        "ContainerRuntimeVersion",
        "Swap",
        "FileExisting-losetup",
        "FileExisting-mount",
        "FileExisting-cp",
        "SystemVerification",
        "Hostname",
        "KubeletVersion",
        "Service-kubelet",
        "Port-10250",
        "FileContent--proc-sys-net-ipv4-ip_forward",
        "Port-2379",
        "Port-2380",
        "DirAvailable--var-lib-etcd",
    ]


@pytest.mark.parametrize(
    ("version", "runtime_version", "service"),
    [("v1.33.13", False, "Service-Kubelet"), ("v1.34.10", False, "Service-Kubelet"), ("v1.35.4", True, "Service-kubelet")],
)
def test_older_releases_do_not_ask_the_runtime_for_its_cgroup_driver(version: str, runtime_version: bool, service: str) -> None:
    release = release_for(Version.parse(version))
    checks = names(workflows.init_checks(init_configuration(), release))
    assert ("ContainerRuntimeVersion" in checks) is runtime_version
    assert service in checks
    upgrade = names(workflows.upgrade_checks(init_configuration(), release))
    assert upgrade == ["SystemVerification", *(["ContainerRuntimeVersion"] if runtime_version else [])]


def test_checks_that_wait_are_told_in_the_order_of_the_list(host: Machine, lines: Lines) -> None:
    both = Barrier(2, timeout=10)

    def waits(name: str) -> Check:
        # Neither ends before the other has begun.
        return Check(name, lambda host: Findings(warnings=(f"{both.wait() * 0}",)), waits=True)

    check.run([waits("First"), one("Second", warnings=("b",)), waits("Third")], host, lines, set())
    assert [line.split("]")[0] for line in lines.warned] == ["\t[WARNING First", "\t[WARNING Second", "\t[WARNING Third"]


def test_a_check_that_breaks_is_not_taken_for_a_finding(host: Machine, lines: Lines) -> None:
    def breaks(host: Machine) -> Findings:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        check.run([Check("First", breaks, waits=True), Check("Second", breaks, waits=True)], host, lines, {"all"})  # type: ignore[arg-type]


def test_what_a_check_shows_comes_before_its_warnings(host: Machine, lines: Lines) -> None:
    check.run([Check("System", lambda host: Findings(("bad",), (), "a report\n"))], host, lines, {"all"})
    assert (lines.shown, lines.warned) == (["a report\n"], ["\t[WARNING System]: bad"])


@pytest.mark.parametrize(("owner", "fine"), [("kube-apiserver", True), ("nginx", False), ("", False)])
def test_a_port_may_be_held_by_the_component_of_an_earlier_run(owner: str, fine: bool, host: Machine) -> None:
    host.busy, host.owners = {6443}, {6443: owner}
    assert (machine.port(6443, "kube-apiserver").find(host) == Findings()) is fine
    assert machine.port(6443).find(host).errors == ("Port 6443 is in use",)


FORWARDING_4 = "FileContent--proc-sys-net-ipv4-ip_forward"
FORWARDING_6 = "FileContent--proc-sys-net-ipv6-conf-default-forwarding"


@pytest.mark.parametrize(
    ("address", "subnet", "expected"),
    [
        ("10.0.0.1", "10.96.0.0/12", {FORWARDING_4}),
        ("fd00::1", "fd00:1::/108", {FORWARDING_6}),
        ("10.0.0.1", "10.96.0.0/12,fd00:1::/108", {FORWARDING_4, FORWARDING_6}),
        ("fd00::1", "10.96.0.0/12", {FORWARDING_4, FORWARDING_6}),
    ],
)
def test_packets_are_forwarded_for_each_family_in_use(address: str, subnet: str, expected: set[str]) -> None:
    checks = workflows.init_checks(init_configuration(address=address, subnet=subnet), RELEASE)
    assert {name for name in names(checks) if name.startswith("FileContent")} == expected


def test_an_external_etcd_needs_its_files_and_no_ports(host: Machine) -> None:
    external = ExternalEtcd(endpoints=["https://e:2379"], ca_file="/e/ca.crt", cert_file="/e/c.crt", key_file="/e/c.key")
    checks = workflows.init_checks(init_configuration(Etcd(external=external)), RELEASE)
    assert names(checks)[-4:] == ["ExternalEtcdVersion", *["ExternalEtcdClientCertificates"] * 3]
    assert "Port-2379" not in names(checks)
    assert [check.find(host).errors for check in checks[-3:]] == [
        (f"{path} doesn't exist",) for path in ("/e/ca.crt", "/e/c.crt", "/e/c.key")
    ]


def test_a_joining_control_plane_does_not_repeat_the_checks_of_every_node() -> None:
    checks = names(workflows.init_checks(init_configuration(), RELEASE, joining=True))
    assert "Swap" not in checks
    assert checks[-3:] == ["Port-2379", "Port-2380", "DirAvailable--var-lib-etcd"]


@pytest.mark.parametrize(
    ("endpoint", "control_plane", "last"),
    [
        ("10.0.0.1:6443", None, ["FileAvailable--etc-kubernetes-pki-ca.crt", "HTTPProxy", FORWARDING_4]),
        ("[fd00::1]:6443", None, ["FileAvailable--etc-kubernetes-pki-ca.crt", "HTTPProxy", FORWARDING_6]),
        ("api.example.org:6443", None, ["FileAvailable--etc-kubernetes-pki-ca.crt", "HTTPProxy"]),
        ("10.0.0.1:6443", JoinControlPlane(), ["Port-10250", "HTTPProxy", FORWARDING_4]),
    ],
)
def test_join_checks_depend_on_the_endpoint_and_the_role(endpoint: str, control_plane: JoinControlPlane | None, last: list[str]) -> None:
    config = JoinConfiguration(
        ca_cert_path="/etc/kubernetes/pki/ca.crt",
        control_plane=control_plane,
        discovery=Discovery(bootstrap_token=BootstrapTokenDiscovery(api_server_endpoint=endpoint)),
    )
    checks = names(workflows.join_checks(config, RELEASE))
    assert checks[:2] == ["FileAvailable--etc-kubernetes-kubelet.conf", "FileAvailable--etc-kubernetes-bootstrap-kubelet.conf"]
    assert checks[-len(last) :] == last
