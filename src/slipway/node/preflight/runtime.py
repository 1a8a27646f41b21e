"""Checks of what runs containers: the runtime behind the CRI, and the kernel under it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.machinery.version import Version
from slipway.host.cri.client import ContainerRuntimeError
from slipway.node.preflight import system
from slipway.node.preflight.check import FINE, Check, Findings

if TYPE_CHECKING:
    from slipway.api.releases import Release
    from slipway.host.interface import Host
    from slipway.node.preflight.machine import InstalledKubelet


def runs(socket: str) -> Check:
    """The runtime answers and says that it is ready; its network may come later, with the cluster."""

    def find(host: Host) -> Findings:
        try:
            with host.container_runtime(socket) as runtime:
                return Findings(errors=tuple(runtime.status_problems()))
        except ContainerRuntimeError as error:
            return Findings(errors=(error.message,))

    return Check("CRI", find, waits=True)


def tells_cgroup_driver(socket: str, release: Release) -> Check:
    """A kubelet that is not told its cgroup driver by the runtime takes it from its configuration, for now."""

    def find(host: Host) -> Findings:
        try:
            with host.container_runtime(socket) as runtime:
                told = runtime.cgroup_driver()
        except ContainerRuntimeError as error:
            return Findings(errors=(error.message,))
        if told:
            return FINE
        return Findings(
            warnings=(
                "You must update your container runtime to a version that supports the CRI method RuntimeConfig. "
                f"Falling back to using cgroupDriver from kubelet config will be removed in {release.cgroup_driver_fallback_ends}. "
                "For more information, see https://git.k8s.io/enhancements/keps/sig-node/4033-group-driver-detection-over-cri",
            )
        )

    return Check("ContainerRuntimeVersion", find, waits=True)


def system_verification(kubelet: InstalledKubelet, release: Release, *, upgrade: bool = False) -> Check:
    """The kernel, the operating system and the cgroups; an upgrade looks at what the next minor of the kubelet needs."""

    def find(host: Host) -> Findings:
        demands = system.DEMANDS[release.system_validators]
        installed: Version | None = None
        if demands.cgroup_v1_fails_since is not None:
            try:
                installed = kubelet.version(host)
            except ValueError as error:
                return Findings(errors=(f"couldn't get kubelet version: {error}",))
            if upgrade:
                installed = _next_minor(installed)
        verdict = system.verify(system.facts(host), demands, installed)
        heading = "[preflight] The system verification failed. Printing the output from the verification:\n"
        return Findings(verdict.errors, verdict.warnings, heading + verdict.report if verdict.errors else "")

    return Check("SystemVerification", find, waits=True)


def _next_minor(version: Version) -> Version:
    return Version(version.major, version.minor + 1, version.patch, version.prerelease)
