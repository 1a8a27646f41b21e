"""Checks of the machine itself: processors, memory, ports, files, programs, names, services, proxies."""

from __future__ import annotations

import re
from ipaddress import ip_network
from typing import TYPE_CHECKING

from slipway.api.machinery.version import Version
from slipway.kube.proxies import proxy_for, redacted
from slipway.node.preflight.check import FINE, Check, Findings

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.host.interface import Host


CONTROL_PLANE_CPUS = 2
CONTROL_PLANE_MEMORY_MB = 1700
IPV4_FORWARDING = "/proc/sys/net/ipv4/ip_forward"
IPV6_FORWARDING = "/proc/sys/net/ipv6/conf/default/forwarding"

_KUBELET_VERSION = re.compile(r"Kubernetes v(\S+)")
_QUALIFIED_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")


def privileged_user() -> Check:
    return Check("IsPrivilegedUser", lambda host: _error_if(host.user_id() != 0, "user is not running as root"))


def cpus(required: int = CONTROL_PLANE_CPUS) -> Check:
    def find(host: Host) -> Findings:
        count = host.cpu_count()
        return _error_if(count < required, f"the number of available CPUs {count} is less than the required {required}")

    return Check("NumCPU", find)


def memory(required: int = CONTROL_PLANE_MEMORY_MB) -> Check:
    def find(host: Host) -> Findings:
        try:
            content = host.read("/proc/meminfo")
        except OSError as error:
            return Findings(errors=(f"failed to get system info: {error}",))
        match = re.search(rb"(?m)^MemTotal:\s+(\d+) kB", content)
        megabytes = int(match[1]) // 1024 if match else 0
        return _error_if(megabytes < required, f"the system RAM ({megabytes} MB) is less than the minimum {required} MB")

    return Check("Mem", find)


def port(number: int, own: str = "") -> Check:
    """A port that is free, or held by a process of an earlier run."""

    def find(host: Host) -> Findings:
        taken = host.port_in_use(number) and not (own and host.port_owner(number) == own)
        return _error_if(taken, f"Port {number} is in use")

    return Check(f"Port-{number}", find)


def file_available(path: str) -> Check:
    return Check(f"FileAvailable-{_dashed(path)}", lambda host: _error_if(host.exists(path), f"{path} already exists"))


def file_existing(path: str, name: str = "") -> Check:
    return Check(name or f"FileExisting-{_dashed(path)}", lambda host: _error_if(not host.exists(path), f"{path} doesn't exist"))


def directory_available(path: str) -> Check:
    return Check(f"DirAvailable-{_dashed(path)}", lambda host: _error_if(bool(host.list_dir(path)), f"{path} is not empty"))


def switched_on(path: str) -> Check:
    """A setting of the kernel that must be 1."""

    def find(host: Host) -> Findings:
        try:
            content = host.read(path)
        except OSError:
            return Findings(errors=(f"{path} does not exist",))
        return _error_if(not content.startswith(b"1"), f"{path} contents are not set to 1")

    return Check(f"FileContent-{_dashed(path)}", find)


def program(name: str) -> Check:
    return Check(f"FileExisting-{_dashed(name)}", lambda host: _error_if(host.which(name) is None, f"{name} not found in system path"))


def swap() -> Check:
    def find(host: Host) -> Findings:
        if not host.exists("/proc/swaps") or len(host.read("/proc/swaps").splitlines()) < 2:
            return FINE
        return Findings(
            warnings=(
                "swap is supported for cgroup v2 only. The kubelet must be properly configured to use swap. Please refer to "
                "https://kubernetes.io/docs/concepts/architecture/nodes/#swap-memory, or disable swap on the node",
            )
        )

    return Check("Swap", find)


def hostname(node_name: str) -> Check:
    """The kubelet runs no static Pods under a name that is no DNS name."""

    def find(host: Host) -> Findings:
        warnings = []
        if len(node_name) > 63 or not _QUALIFIED_NAME.fullmatch(node_name):
            warnings.append(
                f"invalid node name format \"{node_name}\": at most 63 letters, digits, '-', '_' and '.', "
                "with a letter or a digit at both ends"
            )
        try:
            host.resolve(node_name)
        except OSError as error:
            warnings += [f'hostname "{node_name}" could not be reached', f'hostname "{node_name}": {error}']
        return Findings(warnings=tuple(warnings))

    return Check("Hostname", find, waits=True)


def kubernetes_version(kubernetes: Version, release: Version) -> Check:
    newer = (kubernetes.major, kubernetes.minor) > (release.major, release.minor)
    warning = (
        "Kubernetes version is greater than kubeadm version. Please consider to upgrade kubeadm. "
        f"Kubernetes version: {kubernetes}. Kubeadm version: {release.major}.{release.minor}.x"
    )
    return Check("KubernetesVersion", lambda host: Findings(warnings=(warning,)) if newer else FINE)


class InstalledKubelet:
    """The kubelet on the machine, asked for its version once, whichever check asks first."""

    def __init__(self) -> None:
        from threading import Lock

        self._lock = Lock()
        self._answer: Version | ValueError | None = None

    def version(self, host: Host) -> Version:
        """ValueError says why there is none."""
        with self._lock:
            if self._answer is None:
                try:
                    self._answer = installed_kubelet(host)
                except ValueError as error:
                    self._answer = error
        if isinstance(self._answer, ValueError):
            raise self._answer
        return self._answer


def kubelet_version(kubernetes: Version | None, release: Version, kubelet: InstalledKubelet | None = None) -> Check:
    """The installed kubelet may be three minors older than the release, and not newer than the control plane."""
    asked = kubelet or InstalledKubelet()

    def find(host: Host) -> Findings:
        try:
            installed = asked.version(host)
        except ValueError as error:
            return Findings(errors=(f"couldn't get kubelet version: {error}",))
        if (installed.major, installed.minor) < (release.major, release.minor - 3):
            return Findings(errors=(f'Kubelet version "{installed}" is lower than kubeadm can support. Please upgrade kubelet',))
        if kubernetes is not None and (installed.major > kubernetes.major or installed.minor > kubernetes.minor):
            return Findings(
                errors=(
                    "the kubelet version is higher than the control plane version. This is not a supported version skew and may lead "
                    f'to a malfunctional cluster. Kubelet version: "{installed}" Control plane version: "{kubernetes}"',
                )
            )
        return FINE

    return Check("KubeletVersion", find, waits=True)


def installed_kubelet(host: Host) -> Version:
    """The version of the kubelet on this machine; ValueError says why there is none."""
    if host.which("kubelet") is None:
        raise ValueError("cannot execute 'kubelet --version': executable file not found in $PATH")
    answer = host.run("kubelet", "--version").stdout.strip()
    match = _KUBELET_VERSION.fullmatch(answer)
    if match is None:
        raise ValueError(f'Unable to parse output from Kubelet: "{answer}"')
    return Version.parse(match[1])


def kubelet_service(name: str = "Service-kubelet") -> Check:
    """Whether the kubelet comes back after a reboot."""

    def find(host: Host) -> Findings:
        if not _exists(host, "kubelet"):
            return Findings(warnings=("kubelet service does not exist",))
        if host.run("systemctl", "is-enabled", "kubelet").code != 0:
            return Findings(warnings=("kubelet service is not enabled, please run 'systemctl enable kubelet.service'",))
        return FINE

    return Check(name, _with_systemd(find), waits=True)


def firewalld(*ports: int) -> Check:
    def find(host: Host) -> Findings:
        if not _exists(host, "firewalld") or host.run("systemctl", "is-active", "firewalld").stdout.strip() not in ("active", "activating"):
            return FINE
        listed = " ".join(str(number) for number in ports)
        return Findings(
            warnings=(f"firewalld is active, please ensure ports [{listed}] are open or your cluster may not function correctly",)
        )

    return Check("Firewalld", _with_systemd(find), waits=True)


def _with_systemd(find: Callable[[Host], Findings]) -> Callable[[Host], Findings]:
    skipped = Findings(warnings=("no supported init system detected, skipping checking for services",))
    return lambda host: find(host) if host.which("systemctl") else skipped


def _exists(host: Host, service: str) -> bool:
    # Not `status`, which reads the journal.
    return host.run("systemctl", "show", "--property=LoadState", "--value", service).stdout.strip() != "not-found"


def _error_if(wrong: bool, text: str) -> Findings:
    return Findings(errors=(text,)) if wrong else FINE


def _dashed(path: str) -> str:
    return path.replace("/", "-")


def direct(address: str) -> Check:
    """The connection to a host, such as the API server."""

    def find(host: Host) -> Findings:
        proxy = proxy_for(address, host.environment)
        if proxy is None:
            return FINE
        shown = f"[{address}]:1234" if ":" in address else address
        return Findings(
            warnings=(
                f'Connection to "https://{shown}" uses proxy "{redacted(proxy)}". If that is not intended, adjust your proxy settings',
            )
        )

    return Check("HTTPProxy", find)


def direct_subnet(cidr: str) -> Check:
    """The connections to a subnet of Pods or Services, by the example of its first address."""

    def find(host: Host) -> Findings:
        if not cidr:
            return FINE
        try:
            first = ip_network(cidr, strict=False)[1]
        except (ValueError, IndexError) as error:
            return Findings(errors=(f'error parsing CIDR "{cidr}": {error}',))
        proxy = proxy_for(str(first), host.environment)
        if proxy is None:
            return FINE
        return Findings(
            warnings=(
                f'connection to "{cidr}" uses proxy "{redacted(proxy)}". This may lead to malfunctional cluster setup. '
                "Make sure that Pod and Services IP ranges specified correctly as exceptions in proxy configuration",
            )
        )

    return Check("HTTPProxyCIDR", find)
