"""From v1beta2 to v1beta3, as kubeadm 1.22 does it: what there is no choice of any more is dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.kubeadm import v1beta2 as old_version
from slipway.api.kubeadm import v1beta3 as new_version
from slipway.api.kubeadm.history.reshape import reshape

if TYPE_CHECKING:
    from slipway.api.kubeadm.history.journal import Journal
    from slipway.api.machinery.objects import Object


def convert(old: Object, journal: Journal) -> list[Object]:
    match old:
        case old_version.InitConfiguration():
            return [reshape(old, new_version.InitConfiguration)]
        case old_version.ClusterConfiguration():
            return [cluster(old, journal)]
        case old_version.JoinConfiguration():
            return [reshape(old, new_version.JoinConfiguration)]
        case old_version.ClusterStatus():
            journal.dropped("ClusterStatus", "kubeadm keeps no status of its own since 1.22; it reads the control plane's Pods instead")
            return []
    raise TypeError(f"{type(old)} is not of v1beta2")


def cluster(old: old_version.ClusterConfiguration, journal: Journal) -> new_version.ClusterConfiguration:
    new = reshape(old, new_version.ClusterConfiguration)
    if old.dns.type not in ("", "CoreDNS"):
        journal.dropped("ClusterConfiguration.dns.type", f"kubeadm installs CoreDNS only, and {old.dns.type} no longer")
        if old.dns.image_tag:
            new.dns.image_tag = ""
            journal.dropped("ClusterConfiguration.dns.imageTag", f'"{old.dns.image_tag}" is a tag of {old.dns.type}, not of CoreDNS')
    elif old.dns.type:
        journal.dropped("ClusterConfiguration.dns.type", "CoreDNS is the only one left")
    if old.use_hyper_kube_image:
        journal.dropped("ClusterConfiguration.useHyperKubeImage", "there is no hyperkube image since 1.19; each component has its own")
    return new
