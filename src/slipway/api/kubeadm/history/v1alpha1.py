"""From v1alpha1 to v1alpha2, as kubeadm 1.11 does it: the node, the token and etcd get structures of their own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from slipway.api.kubeadm import v1alpha1 as old_version
from slipway.api.kubeadm import v1alpha2 as new_version
from slipway.api.kubeadm.history.reshape import reshape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.kubeadm.history.journal import Journal
    from slipway.api.machinery.objects import Object

_DEFAULT_AUTHORIZATION_MODES = ["Node", "RBAC"]
_TOKEN = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")


def recognise(value: dict[str, Any]) -> str | None:
    """The kind of a document without apiVersion and kind, if its fields are those of exactly one kind of v1alpha1."""
    master, node = (set(kind.__struct_encode_fields__) for kind in old_version.KINDS.values())
    keys = value.keys() - {"apiVersion", "kind"}
    if keys <= master and not keys <= node:
        return "MasterConfiguration"
    if keys <= node and not keys <= master:
        return "NodeConfiguration"
    return None


def convert(old: Object, journal: Journal) -> list[Object]:
    match old:
        case old_version.MasterConfiguration():
            return [master(old, journal)]
        case old_version.NodeConfiguration():
            return [node(old, journal)]
    raise TypeError(f"{type(old)} is not of v1alpha1")


def master(old: old_version.MasterConfiguration, journal: Journal) -> new_version.MasterConfiguration:
    kind = "MasterConfiguration"
    # etcd is the only part that has the same name and another shape.
    new = reshape(old, new_version.MasterConfiguration, leave_out=("etcd",))
    new.etcd = etcd(old.etcd, journal)
    new.bootstrap_tokens = _bootstrap_tokens(old, journal)
    _move_node_registration(old, new.node_registration, kind, journal)
    if old.no_taint_master:
        new.node_registration.taints = []
        journal.moved(f"{kind}.noTaintMaster", f"{kind}.nodeRegistration.taints", "an empty list means no taint")
    # Left unset otherwise: kubeadm 1.11 writes the master taint here, which every version takes as its default.
    _convert_cloud_provider(old, new, journal)
    _convert_authorization_modes(old, new, journal)
    if old.privileged_pods:
        journal.dropped(f"{kind}.privilegedPods", "kubeadm makes no privileged control plane Pods since 1.11")
    if old.image_pull_policy:
        journal.dropped(
            f"{kind}.imagePullPolicy",
            "it applied to the control plane Pods, which kubeadm no longer lets be set; "
            "InitConfiguration.nodeRegistration.imagePullPolicy is about the images that kubeadm pulls before it starts them",
        )
    return new


def node(old: old_version.NodeConfiguration, journal: Journal) -> new_version.NodeConfiguration:
    new = reshape(old, new_version.NodeConfiguration)
    _move_node_registration(old, new.node_registration, "NodeConfiguration", journal)
    return new


def etcd(old: old_version.Etcd, journal: Journal) -> new_version.Etcd:
    """External where there are endpoints, else local; settings of the other one never had an effect."""
    path = "MasterConfiguration.etcd"
    if old.self_hosted is not None:
        journal.dropped(f"{path}.selfHosted", "self-hosted etcd was removed in kubeadm 1.11")
    of_external = {"caFile": old.ca_file, "certFile": old.cert_file, "keyFile": old.key_file}
    of_local: dict[str, object] = {
        "image": old.image,
        "dataDir": old.data_dir,
        "extraArgs": old.extra_args,
        "serverCertSANs": old.server_cert_sans,
        "peerCertSANs": old.peer_cert_sans,
    }
    if old.endpoints:
        _drop(of_local, path, "etcd.endpoints names an external etcd, and this is about a local one", journal)
        external = new_version.ExternalEtcd(
            endpoints=list(old.endpoints), ca_file=old.ca_file, cert_file=old.cert_file, key_file=old.key_file
        )
        journal.moved(path, f"{path}.external")
        return new_version.Etcd(external=external)
    _drop(of_external, path, "it is about an external etcd, and etcd.endpoints names none", journal)
    if not any(of_local.values()):
        return new_version.Etcd()
    local = new_version.LocalEtcd(
        image=old.image,
        data_dir=old.data_dir,
        extra_args=dict(old.extra_args),
        server_cert_sans=list(old.server_cert_sans),
        peer_cert_sans=list(old.peer_cert_sans),
    )
    journal.moved(path, f"{path}.local")
    return new_version.Etcd(local=local)


def _drop(fields: Mapping[str, object], path: str, why: str, journal: Journal) -> None:
    for name, value in fields.items():
        if value:
            journal.dropped(f"{path}.{name}", why)


def _bootstrap_tokens(old: old_version.MasterConfiguration, journal: Journal) -> list[new_version.BootstrapToken]:
    if not (old.token or old.token_ttl is not None or old.token_usages or old.token_groups):
        return []
    if old.token and _TOKEN.fullmatch(old.token) is None:
        journal.refused("MasterConfiguration.token", f'"{old.token}" is not of the form abcdef.0123456789abcdef')
    journal.moved("MasterConfiguration.token, tokenTTL, tokenUsages, tokenGroups", "MasterConfiguration.bootstrapTokens[0]")
    token = new_version.BootstrapToken(
        token=old.token or None, ttl=old.token_ttl, usages=list(old.token_usages), groups=list(old.token_groups)
    )
    return [token]


def _move_node_registration(
    old: old_version.MasterConfiguration | old_version.NodeConfiguration,
    new: new_version.NodeRegistrationOptions,
    kind: str,
    journal: Journal,
) -> None:
    if old.node_name:
        new.name = old.node_name
        journal.moved(f"{kind}.nodeName", f"{kind}.nodeRegistration.name")
    if old.cri_socket:
        new.cri_socket = old.cri_socket
        journal.moved(f"{kind}.criSocket", f"{kind}.nodeRegistration.criSocket")


def _convert_cloud_provider(old: old_version.MasterConfiguration, new: new_version.MasterConfiguration, journal: Journal) -> None:
    if not old.cloud_provider:
        return
    for arguments in (new.api_server_extra_args, new.controller_manager_extra_args, new.node_registration.kubelet_extra_args):
        arguments["cloud-provider"] = old.cloud_provider
    journal.moved(
        "MasterConfiguration.cloudProvider",
        'the argument "cloud-provider" of apiServerExtraArgs, controllerManagerExtraArgs and nodeRegistration.kubeletExtraArgs',
        "cloud providers left Kubernetes in 1.31, so the kubelet and the controller manager take only external, and kube-apiserver "
        "has no such flag any more: remove it there and run the provider's own controller",
    )


def _convert_authorization_modes(old: old_version.MasterConfiguration, new: new_version.MasterConfiguration, journal: Journal) -> None:
    if not old.authorization_modes or old.authorization_modes == _DEFAULT_AUTHORIZATION_MODES:
        return
    new.api_server_extra_args["authorization-mode"] = ",".join(old.authorization_modes)
    journal.moved("MasterConfiguration.authorizationModes", 'the argument "authorization-mode" of apiServerExtraArgs')
