"""From v1alpha3 to v1beta1, as kubeadm 1.13 does it: settings are grouped by component, discovery gets a structure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slipway.api.kubeadm import v1alpha3 as old_version
from slipway.api.kubeadm import v1beta1 as new_version
from slipway.api.kubeadm.history.reshape import reshape

if TYPE_CHECKING:
    from slipway.api.kubeadm.history.journal import Journal
    from slipway.api.machinery.objects import Object

# What these fields meant when they were left out, which the conversion of an image depends on.
_DEFAULT_IMAGE_REPOSITORY = "k8s.gcr.io"
# What kubeadm 1.11 and 1.12 wrote into every file that they migrated.
_DEFAULT_CLUSTER_NAME = "kubernetes"
_DEFAULT_AUDIT_LOG = ("/var/log/kubernetes/audit", 2)

_IMAGE = re.compile(r"(.+)/([^:]+):(.+)")
_NOT_IN_TAGS = re.compile(r"[^-a-zA-Z0-9_.]")


def convert(old: Object, journal: Journal) -> list[Object]:
    match old:
        case old_version.InitConfiguration():
            return [init(old, journal)]
        case old_version.ClusterConfiguration():
            return [cluster(old, journal)]
        case old_version.JoinConfiguration():
            return [join(old, journal)]
        case old_version.ClusterStatus():
            return [reshape(old, new_version.ClusterStatus)]
    raise TypeError(f"{type(old)} is not of v1alpha3")


def init(old: old_version.InitConfiguration, journal: Journal) -> new_version.InitConfiguration:
    new = reshape(old, new_version.InitConfiguration)
    new.local_api_endpoint = reshape(old.api_endpoint, new_version.APIEndpoint)
    if old.api_endpoint != old_version.APIEndpoint():
        journal.moved("InitConfiguration.apiEndpoint", "InitConfiguration.localAPIEndpoint")
    return new


def cluster(old: old_version.ClusterConfiguration, journal: Journal) -> new_version.ClusterConfiguration:
    new = reshape(old, new_version.ClusterConfiguration, leave_out=("etcd",))
    new.etcd = _etcd(old.etcd, journal)
    new.api_server = new_version.APIServer(
        extra_args=dict(old.api_server_extra_args),
        extra_volumes=_volumes(old.api_server_extra_volumes),
        cert_sans=list(old.api_server_cert_sans),
    )
    new.controller_manager = new_version.ControlPlaneComponent(
        extra_args=dict(old.controller_manager_extra_args), extra_volumes=_volumes(old.controller_manager_extra_volumes)
    )
    new.scheduler = new_version.ControlPlaneComponent(
        extra_args=dict(old.scheduler_extra_args), extra_volumes=_volumes(old.scheduler_extra_volumes)
    )
    for name, to in _GROUPED.items():
        if getattr(old, name):
            journal.moved(f"ClusterConfiguration.{_wire_name(name)}", f"ClusterConfiguration.{to}")
    new.use_hyper_kube_image = _uses_hyperkube(old, journal)
    _convert_dns(old, new, journal)
    _drop_audit_policy(old.audit_policy, journal)
    return new


def join(old: old_version.JoinConfiguration, journal: Journal) -> new_version.JoinConfiguration:
    kind = "JoinConfiguration"
    new = reshape(old, new_version.JoinConfiguration, leave_out=("control_plane",))
    new.discovery = _discovery(old, journal)
    if old.control_plane:
        endpoint = reshape(old.api_endpoint, new_version.APIEndpoint)
        new.control_plane = new_version.JoinControlPlane(local_api_endpoint=endpoint)
        journal.moved(f"{kind}.controlPlane, apiEndpoint", f"{kind}.controlPlane.localAPIEndpoint")
    elif old.api_endpoint != old_version.APIEndpoint():
        journal.dropped(f"{kind}.apiEndpoint", "only a node that joins as a control plane (controlPlane: true) has an API server")
    if old.cluster_name == _DEFAULT_CLUSTER_NAME:
        journal.dropped(f"{kind}.clusterName", "the name is taken from the cluster since v1beta1, and this one is the default")
    elif old.cluster_name:
        journal.refused(
            f"{kind}.clusterName",
            f'"{old.cluster_name}" cannot be kept: since v1beta1 the name is that of ClusterConfiguration.clusterName; remove it here',
        )
    if old.feature_gates:
        journal.refused(
            f"{kind}.featureGates",
            "cannot be kept: since v1beta1 the gates are those of ClusterConfiguration.featureGates; remove them here",
        )
    return new


_GROUPED = {
    "api_server_extra_args": "apiServer.extraArgs",
    "api_server_extra_volumes": "apiServer.extraVolumes",
    "api_server_cert_sans": "apiServer.certSANs",
    "controller_manager_extra_args": "controllerManager.extraArgs",
    "controller_manager_extra_volumes": "controllerManager.extraVolumes",
    "scheduler_extra_args": "scheduler.extraArgs",
    "scheduler_extra_volumes": "scheduler.extraVolumes",
}


def _wire_name(attribute: str) -> str:
    kind = old_version.ClusterConfiguration
    return kind.__struct_encode_fields__[kind.__struct_fields__.index(attribute)]


def _volumes(old: list[old_version.HostPathMount]) -> list[new_version.HostPathMount]:
    volumes = [reshape(volume, new_version.HostPathMount) for volume in old]
    for before, after in zip(old, volumes, strict=True):
        after.read_only = not before.writable
    return volumes


def _etcd(old: old_version.Etcd, journal: Journal) -> new_version.Etcd:
    if old.local is None:
        return reshape(old, new_version.Etcd)
    local = reshape(old.local, new_version.LocalEtcd)
    if old.local.image:
        local.image_repository, local.image_tag = _split_etcd_image(old.local.image, journal)
    external = None if old.external is None else reshape(old.external, new_version.ExternalEtcd)
    return new_version.Etcd(local=local, external=external)


def _split_etcd_image(image: str, journal: Journal) -> tuple[str, str]:
    path = "ClusterConfiguration.etcd.local.image"
    match = _IMAGE.search(image)
    if match is None:
        journal.refused(path, f'"{image}" cannot be split: write it with its repository and its tag, as in registry.example/etcd:3.5.24-0')
        return "", ""
    repository, name, tag = match.groups()
    if name != "etcd":
        journal.refused(path, f'"{image}" cannot be kept: since v1beta1 the last part of the name must be etcd, not {name}')
    journal.moved(path, "ClusterConfiguration.etcd.local.imageRepository and imageTag")
    return repository, tag


def _uses_hyperkube(old: old_version.ClusterConfiguration, journal: Journal) -> bool:
    path, image = "ClusterConfiguration.unifiedControlPlaneImage", old.unified_control_plane_image
    if not image:
        return False
    tag = _NOT_IN_TAGS.sub("_", old.kubernetes_version)
    expected = f"{old.image_repository or _DEFAULT_IMAGE_REPOSITORY}/hyperkube:{tag}"
    if image != expected:
        journal.refused(
            path, f'"{image}" cannot be kept: of one image for all components only {expected} could be named since v1beta1; remove it'
        )
    journal.moved(path, "ClusterConfiguration.useHyperKubeImage")
    return True


def _convert_dns(old: old_version.ClusterConfiguration, new: new_version.ClusterConfiguration, journal: Journal) -> None:
    enabled = new.feature_gates.pop("CoreDNS", None)
    if enabled is not None:
        # Left unset otherwise: CoreDNS was the default of kubeadm 1.13 already.
        new.dns.type = "CoreDNS" if enabled else "kube-dns"
        journal.moved("ClusterConfiguration.featureGates.CoreDNS", "ClusterConfiguration.dns.type")


def _drop_audit_policy(old: old_version.AuditPolicyConfiguration, journal: Journal) -> None:
    path = "ClusterConfiguration.auditPolicy"
    if old.path:
        journal.refused(
            f"{path}.path",
            "cannot be converted: since v1beta1 auditing is set up with apiServer.extraArgs (audit-policy-file, audit-log-path) "
            "and apiServer.extraVolumes; write those and remove auditPolicy",
        )
    directory, age = _DEFAULT_AUDIT_LOG
    if old.log_dir not in ("", directory) or old.log_max_age not in (None, age):
        journal.dropped(path, "without auditPolicy.path it had no effect; use apiServer.extraArgs (audit-log-path, audit-log-maxage)")


def _discovery(old: old_version.JoinConfiguration, journal: Journal) -> new_version.Discovery:
    kind = "JoinConfiguration"
    new = new_version.Discovery(timeout=old.discovery_timeout, tls_bootstrap_token=old.tls_bootstrap_token or old.token)
    of_token = {
        "discoveryToken": old.discovery_token,
        "discoveryTokenAPIServers": old.discovery_token_api_servers,
        "discoveryTokenCACertHashes": old.discovery_token_ca_cert_hashes,
        "discoveryTokenUnsafeSkipCAVerification": old.discovery_token_unsafe_skip_ca_verification,
    }
    if old.discovery_file:
        new.file = new_version.FileDiscovery(kube_config_path=old.discovery_file)
        journal.moved(f"{kind}.discoveryFile", f"{kind}.discovery.file.kubeConfigPath")
        for name in (name for name, value in of_token.items() if value):
            journal.dropped(f"{kind}.{name}", "discoveryFile is set and comes first")
    elif old.token or any(of_token.values()):
        new.bootstrap_token = new_version.BootstrapTokenDiscovery(
            token=old.discovery_token or old.token,
            api_server_endpoint=next(iter(old.discovery_token_api_servers), ""),
            ca_cert_hashes=list(old.discovery_token_ca_cert_hashes),
            unsafe_skip_ca_verification=old.discovery_token_unsafe_skip_ca_verification,
        )
        journal.moved(f"{kind}.token, discoveryToken*", f"{kind}.discovery.bootstrapToken")
        for server in old.discovery_token_api_servers[1:]:
            journal.dropped(f"{kind}.discoveryTokenAPIServers", f'"{server}" was never asked: kubeadm uses the first one only')
    if new.tls_bootstrap_token:
        journal.moved(f"{kind}.{'tlsBootstrapToken' if old.tls_bootstrap_token else 'token'}", f"{kind}.discovery.tlsBootstrapToken")
    if old.discovery_timeout is not None:
        journal.moved(f"{kind}.discoveryTimeout", f"{kind}.discovery.timeout")
    return new
