"""Values that past releases of ``kubeadm config migrate`` wrote into files as their defaults, and that no longer work.

A chain of old kubeadms carries them along for ever, because to each of them they look like a user's wish.  Only exact
old defaults are touched; each repair says what it did and how to have it otherwise.  They apply to v1beta4, so that a
file that went through such a chain is repaired whatever version it has reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.kubeadm import v1beta4
from slipway.api.kubeadm.defaults import CRI_SOCKET, IMAGE_REPOSITORY
from slipway.api.machinery.version import Version

if TYPE_CHECKING:
    from slipway.api.kubeadm.history.journal import Journal
    from slipway.api.machinery.objects import Object

# The defaults of kubeadm up to 1.9, and of 1.10 to 1.24.  Nothing newer than Kubernetes 1.27 was ever pushed there.
_OLD_REPOSITORIES = ("gcr.io/google_containers", "gcr.io/google-containers", "k8s.gcr.io")
# The defaults of kubeadm 1.10 to 1.23, with and without the scheme that kubeadm 1.24 put before them, and those of today.
_WINDOWS_CRI_SOCKET = "npipe:////./pipe/containerd-containerd"
_DOCKERSHIM = {
    "/var/run/dockershim.sock": CRI_SOCKET,
    "unix:///var/run/dockershim.sock": CRI_SOCKET,
    "tcp://localhost:2375": _WINDOWS_CRI_SOCKET,
    "npipe:////./pipe/docker_engine": _WINDOWS_CRI_SOCKET,
    "npipe:////./pipe/dockershim": _WINDOWS_CRI_SOCKET,
}
_MASTER, _CONTROL_PLANE = "node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"

# Gates of kubeadm up to 1.32 that none of 1.33 to 1.36 has.
_RETIRED_GATES = frozenset(
    {
        "Auditing",
        "CoreDNS",
        "DynamicKubeletConfig",
        "EtcdLearnerMode",
        "HighAvailability",
        "IPv6DualStack",
        "SelfHosting",
        "StoreCertsInSecrets",
        "UnversionedKubeletConfigMap",
        "UpgradeAddonsBeforeControlPlane",
    }
)
_OLDEST_MINOR = 33


def repair(config: Object, journal: Journal) -> None:
    """Change ``config``, an object of v1beta4, where an old default stands in the way."""
    match config:
        case v1beta4.ClusterConfiguration():
            _repair_repositories(config, journal)
            _repair_feature_gates(config, journal)
            _mention_version(config, journal)
        case v1beta4.InitConfiguration():
            _repair_socket(config.node_registration, "InitConfiguration.nodeRegistration", journal)
            _repair_taints(config.node_registration, "InitConfiguration.nodeRegistration", journal)
        case v1beta4.JoinConfiguration():
            _repair_socket(config.node_registration, "JoinConfiguration.nodeRegistration", journal)
            # On a worker the master taint was never a default: somebody wanted it.
            if config.control_plane is not None:
                _repair_taints(config.node_registration, "JoinConfiguration.nodeRegistration", journal)
        case v1beta4.ResetConfiguration():
            _repair_socket(config, "ResetConfiguration", journal)


def _repair_repositories(config: v1beta4.ClusterConfiguration, journal: Journal) -> None:
    places: list[tuple[v1beta4.ClusterConfiguration | v1beta4.DNS | v1beta4.LocalEtcd, str]] = [
        (config, "ClusterConfiguration"),
        (config.dns, "ClusterConfiguration.dns"),
    ]
    if config.etcd.local is not None:
        places.append((config.etcd.local, "ClusterConfiguration.etcd.local"))
    for place, path in places:
        before = place.image_repository
        for old in _OLD_REPOSITORIES:
            if before == old or before.startswith(f"{old}/"):
                place.image_repository = IMAGE_REPOSITORY + before.removeprefix(old)
        if place.image_repository != before:
            journal.repaired(
                f"{path}.imageRepository",
                f'"{before}" is closed and has no images of supported releases; {place.image_repository} took its place. '
                "If you run a mirror of your own under the old name, set it back",
            )


def _repair_feature_gates(config: v1beta4.ClusterConfiguration, journal: Journal) -> None:
    for name in sorted(_RETIRED_GATES & config.feature_gates.keys()):
        del config.feature_gates[name]
        journal.dropped(
            f"ClusterConfiguration.featureGates.{name}",
            "kubeadm 1.33 to 1.36 do not have this gate and would refuse the file",
        )


def _mention_version(config: v1beta4.ClusterConfiguration, journal: Journal) -> None:
    try:
        version = Version.parse(config.kubernetes_version)
    except ValueError:
        return
    if (version.major, version.minor) < (1, _OLDEST_MINOR):
        journal.kept(
            "ClusterConfiguration.kubernetesVersion",
            f"{config.kubernetes_version} is older than 1.{_OLDEST_MINOR}; set the version that you want before you use this file",
        )


def _repair_socket(options: v1beta4.NodeRegistrationOptions | v1beta4.ResetConfiguration, path: str, journal: Journal) -> None:
    old, new = options.cri_socket, _DOCKERSHIM.get(options.cri_socket)
    if new is None:
        if old.startswith("/"):
            # As kubeadm 1.24 and later do it, with a warning, each time that they read it.
            options.cri_socket = f"unix://{old}"
            journal.repaired(f"{path}.criSocket", f'"{old}" is written as a URL, {options.cri_socket}, since Kubernetes 1.24')
        return
    options.cri_socket = new
    journal.repaired(
        f"{path}.criSocket",
        f'"{old}" was the kubelet\'s own way to Docker, which Kubernetes 1.24 removed; {new} took its place. '
        "If the node runs another runtime, or Docker with cri-dockerd, name its socket",
    )


def _repair_taints(options: v1beta4.NodeRegistrationOptions, path: str, journal: Journal) -> None:
    taints = options.taints or []
    old = v1beta4.Taint(key=_MASTER, effect="NoSchedule")
    if old not in taints:
        return
    new = v1beta4.Taint(key=_CONTROL_PLANE, effect="NoSchedule")
    options.taints = [new if taint == old else taint for taint in taints if taint != old or new not in taints]
    journal.repaired(
        f"{path}.taints",
        f"{_MASTER}:NoSchedule was the default up to Kubernetes 1.24, and nothing sets or tolerates it any more; "
        f"{_CONTROL_PLANE}:NoSchedule took its place",
    )
