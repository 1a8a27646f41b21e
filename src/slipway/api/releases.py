"""What differs from one kubeadm release to the next, as data.

This table is the only place that knows releases apart: the rest of the code asks a :class:`Release` a question by
name.  A value that changed within a minor is a list of (first patch, value) pairs; it was read off the kubeadm sources
of the patch in question.
"""

from __future__ import annotations

from typing import Any

import msgspec

from slipway import NEWEST_KUBERNETES
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version

ByPatch = tuple[tuple[int, Any], ...]


class FeatureGate(msgspec.Struct, frozen=True):
    """One of kubeadm's own feature gates."""

    default: bool
    stage: str
    locked: bool = False
    deprecation: str = ""


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """One kubeadm release: the version that is acted as, and everything in which it differs from its neighbours."""

    version: Version
    etcd_versions: dict[int, str]
    """The etcd image tag by Kubernetes minor; the own minor's is the default."""
    coredns_version: str
    pause_version: str
    feature_gates: dict[str, FeatureGate]
    etcd_graduated_flags_since: str | None
    """The first image tag with etcd 3.6's names for flags that were ``experimental-``; None: no tag; empty: every tag."""
    named_probe_ports: bool
    flexvolume_mount: bool
    pod_infra_container_image_flag: bool
    kubelet_flags_dropped_by_upgrade: tuple[str, ...]
    """Flags in kubeadm-flags.env that an earlier release wrote and that an upgrade to this one takes out."""
    node_annotation_cri_socket: bool
    """Whether the CRI socket is written to the Node as an annotation when NodeLocalCRISocket is off."""
    reupload_phases: str
    """The phases of init that the hint about the cluster's configuration names."""
    imagined_cri_socket: str
    """The CRI socket in the annotation of the Node that a dry run imagines; empty where it has none."""
    encryption_algorithms: tuple[str, ...]
    http_etcd_endpoints: bool
    kubelet_client_organization: str
    sha256_key_ids: bool
    """Whether a CA's subject key id is a SHA-256 (Go 1.25 and later) or a SHA-1."""
    kubelet_client_binding: bool
    """Whether the ClusterRoleBinding kubeadm:apiserver-kubelet-client is made."""
    etcd_health_by_quorum: bool
    """Whether an etcd cluster counts as healthy when most of its members are, or only when every member answers."""
    init_uses_local_endpoint: bool
    """Whether init talks to the API server of its own node, or to the controlPlaneEndpoint, which may be a load balancer."""
    sorted_extra_args: bool
    """Whether extraArgs are sorted in with the defaults, or follow them in the order of the configuration."""
    null_creation_timestamp: bool
    """Whether ``creationTimestamp: null`` and a kubeconfig's ``preferences: {}`` are printed."""
    system_validators: str
    """The version of k8s.io/system-validators that the release is built with."""
    kubelet_service_check: str
    """The name of the preflight check of the kubelet's service."""
    cgroup_driver_fallback_ends: str
    """The release that needs a runtime which tells its cgroup driver, where this one warns of it; empty: it does not."""
    health_check_seconds: int
    """How long the Job that an upgrade tries first may take."""
    exit_codes: tuple[int, int]
    """The exit codes for failed preflight checks and for an invalid configuration."""
    error_prefix: str
    """What an error on standard error begins with."""
    kyaml_output: bool
    """Whether ``-o kyaml`` is one of the output formats."""
    allow_deprecated_api_flag: bool
    upgrade_configuration_checked: bool
    """Whether ``config validate`` and ``config migrate`` look at an UpgradeConfiguration, or pass over it in silence."""
    env_file_key_ref: bool
    """Whether an environment variable may come from a file (``valueFrom.fileKeyRef``)."""

    @property
    def minor(self) -> int:
        return self.version.minor

    @property
    def etcd_version(self) -> str:
        return self.etcd_versions[self.minor]

    def gate(self, gates: dict[str, bool], name: str) -> bool:
        """Whether a feature is on, given what the user set; a gate that is gone has kept its last default."""
        spec = self.feature_gates.get(name)
        if spec is None:
            return _RETIRED_GATES[name]
        return gates.get(name, spec.default)


# Gates that a release no longer has, with the behaviour that stayed.
_RETIRED_GATES = {
    "WaitForAllControlPlaneComponents": True,
    "ControlPlaneKubeletLocalMode": True,
    "NodeLocalCRISocket": True,
    "PublicKeysECDSA": False,
    "RootlessControlPlane": False,
}

_ECDSA_GATE = FeatureGate(
    False,
    "DEPRECATED",
    deprecation="The PublicKeysECDSA feature gate is deprecated and goes away with v1beta3: "
    "set ClusterConfiguration.encryptionAlgorithm of v1beta4 instead.",
)
_ROOTLESS_GATE = FeatureGate(
    False, "ALPHA", deprecation="RootlessControlPlane is deprecated in favour of the kubelet's UserNamespacesSupport."
)

_RSA_AND_P256 = ("RSA-2048", "RSA-3072", "RSA-4096", "ECDSA-P256")

_MINORS: dict[int, dict[str, Any]] = {
    33: dict(
        etcd_versions=(
            (0, {30: "3.5.21-0", 31: "3.5.21-0", 32: "3.5.21-0", 33: "3.5.21-0"}),
            (6, {30: "3.5.24-0", 31: "3.5.24-0", 32: "3.5.24-0", 33: "3.5.24-0"}),
        ),
        coredns_version="v1.12.0",
        pause_version="3.10",
        feature_gates={
            "PublicKeysECDSA": _ECDSA_GATE,
            "RootlessControlPlane": _ROOTLESS_GATE,
            "WaitForAllControlPlaneComponents": FeatureGate(True, "BETA"),
            "ControlPlaneKubeletLocalMode": FeatureGate(True, "BETA"),
            "NodeLocalCRISocket": FeatureGate(False, "ALPHA"),
        },
        etcd_graduated_flags_since=None,
        named_probe_ports=False,
        flexvolume_mount=True,
        pod_infra_container_image_flag=True,
        kubelet_flags_dropped_by_upgrade=(),
        node_annotation_cri_socket=True,
        reupload_phases="upload-config",
        imagined_cri_socket="dry-run-cri-socket",
        encryption_algorithms=_RSA_AND_P256,
        http_etcd_endpoints=False,
        kubelet_client_organization=((0, "kubeadm:cluster-admins"), (12, "")),
        sha256_key_ids=False,
        kubelet_client_binding=((0, False), (12, True)),
        etcd_health_by_quorum=((0, False), (12, True)),
        init_uses_local_endpoint=((0, False), (12, True)),
        sorted_extra_args=((0, True), (8, False)),
        null_creation_timestamp=True,
        system_validators="1.9.2",
        kubelet_service_check="Service-Kubelet",
        cgroup_driver_fallback_ends="",
        health_check_seconds=15,
        exit_codes=(2, 3),
        error_prefix="",
        kyaml_output=False,
        allow_deprecated_api_flag=False,
        upgrade_configuration_checked=False,
        env_file_key_ref=False,
    ),
    34: dict(
        etcd_versions=(
            (0, {31: "3.5.21-0", 32: "3.5.21-0", 33: "3.5.21-0", 34: "3.6.4-0"}),
            (2, {31: "3.5.24-0", 32: "3.5.24-0", 33: "3.5.24-0", 34: "3.6.5-0"}),
        ),
        coredns_version="v1.12.1",
        pause_version="3.10.1",
        feature_gates={
            "PublicKeysECDSA": _ECDSA_GATE,
            "RootlessControlPlane": _ROOTLESS_GATE,
            "WaitForAllControlPlaneComponents": FeatureGate(True, "", locked=True),
            "ControlPlaneKubeletLocalMode": FeatureGate(True, "BETA"),
            "NodeLocalCRISocket": FeatureGate(True, "BETA"),
        },
        etcd_graduated_flags_since="3.6.0",
        named_probe_ports=True,
        flexvolume_mount=True,
        pod_infra_container_image_flag=True,
        kubelet_flags_dropped_by_upgrade=(),
        node_annotation_cri_socket=True,
        reupload_phases="upload-config kubeadm",
        imagined_cri_socket="dry-run-cri-socket",
        encryption_algorithms=(*_RSA_AND_P256, "ECDSA-P384"),
        http_etcd_endpoints=False,
        kubelet_client_organization=((0, "kubeadm:cluster-admins"), (8, "")),
        sha256_key_ids=False,
        kubelet_client_binding=((0, False), (8, True)),
        etcd_health_by_quorum=((0, False), (8, True)),
        init_uses_local_endpoint=((0, False), (8, True)),
        sorted_extra_args=((0, True), (4, False)),
        null_creation_timestamp=False,
        system_validators="1.10.2",
        kubelet_service_check="Service-Kubelet",
        cgroup_driver_fallback_ends="",
        health_check_seconds=15,
        exit_codes=(1, 1),
        error_prefix="error: ",
        kyaml_output=False,
        allow_deprecated_api_flag=False,
        upgrade_configuration_checked=False,
        env_file_key_ref=True,
    ),
    35: dict(
        etcd_versions={33: "3.5.24-0", 34: "3.6.6-0", 35: "3.6.6-0"},
        coredns_version="v1.13.1",
        pause_version="3.10.1",
        feature_gates={
            "PublicKeysECDSA": _ECDSA_GATE,
            "RootlessControlPlane": _ROOTLESS_GATE,
            "ControlPlaneKubeletLocalMode": FeatureGate(True, "", locked=True),
            "NodeLocalCRISocket": FeatureGate(True, "BETA"),
        },
        etcd_graduated_flags_since="3.6.0",
        named_probe_ports=True,
        flexvolume_mount=True,
        pod_infra_container_image_flag=False,
        kubelet_flags_dropped_by_upgrade=("pod-infra-container-image",),
        node_annotation_cri_socket=True,
        reupload_phases="upload-config kubeadm",
        imagined_cri_socket="",
        encryption_algorithms=(*_RSA_AND_P256, "ECDSA-P384"),
        http_etcd_endpoints=True,
        kubelet_client_organization=((0, "kubeadm:cluster-admins"), (5, "")),
        sha256_key_ids=True,
        kubelet_client_binding=((0, False), (5, True)),
        etcd_health_by_quorum=((0, False), (5, True)),
        init_uses_local_endpoint=((0, False), (5, True)),
        sorted_extra_args=((0, True), (1, False)),
        null_creation_timestamp=False,
        system_validators="1.12.1",
        kubelet_service_check="Service-kubelet",
        cgroup_driver_fallback_ends="1.36",
        health_check_seconds=15,
        exit_codes=(1, 1),
        error_prefix="error: ",
        kyaml_output=True,
        allow_deprecated_api_flag=False,
        upgrade_configuration_checked=False,
        env_file_key_ref=True,
    ),
    36: dict(
        etcd_versions={34: "3.6.8-0", 35: "3.6.8-0", 36: "3.6.8-0"},
        coredns_version="v1.14.2",
        pause_version="3.10.2",
        feature_gates={
            "PublicKeysECDSA": _ECDSA_GATE,
            "RootlessControlPlane": _ROOTLESS_GATE,
            "NodeLocalCRISocket": FeatureGate(True, "", locked=True),
        },
        etcd_graduated_flags_since="",
        named_probe_ports=True,
        flexvolume_mount=False,
        pod_infra_container_image_flag=False,
        kubelet_flags_dropped_by_upgrade=(),
        node_annotation_cri_socket=False,
        reupload_phases="upload-config kubeadm",
        imagined_cri_socket="",
        encryption_algorithms=(*_RSA_AND_P256, "ECDSA-P384"),
        http_etcd_endpoints=True,
        kubelet_client_organization=((0, "kubeadm:cluster-admins"), (1, "")),
        sha256_key_ids=True,
        kubelet_client_binding=((0, False), (1, True)),
        etcd_health_by_quorum=((0, False), (1, True)),
        init_uses_local_endpoint=((0, False), (1, True)),
        sorted_extra_args=False,
        null_creation_timestamp=False,
        system_validators="1.12.1",
        kubelet_service_check="Service-kubelet",
        cgroup_driver_fallback_ends="1.37",
        health_check_seconds=60,
        exit_codes=(1, 1),
        error_prefix="error: ",
        kyaml_output=True,
        allow_deprecated_api_flag=True,
        upgrade_configuration_checked=True,
        env_file_key_ref=True,
    ),
}

SUPPORTED_MINORS = tuple(_MINORS)
NEWEST = Version.parse(NEWEST_KUBERNETES)
"""The release that is acted as where nothing names one."""
KNOWN_PATCHES = {33: 13, 34: 10, 35: 4, 36: 3}
"""The last patch of each minor that this program was compared with: what a label such as stable-1.35 means offline."""


def release_for(version: Version) -> Release:
    """The kubeadm release that belongs to a Kubernetes version."""
    row = _MINORS.get(version.minor) if version.major == 1 else None
    if row is None:
        supported = ", ".join(f"1.{minor}" for minor in SUPPORTED_MINORS)
        raise OperatorError(f"Kubernetes v{version} is not supported: this program knows {supported}")
    values = {name: _at_patch(value, version.patch) if _by_patch(value) else value for name, value in row.items()}
    return Release(version=version, **values)


def _by_patch(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], tuple)


def _at_patch(choices: ByPatch, patch: int) -> Any:
    return next(value for first, value in reversed(choices) if patch >= first)
