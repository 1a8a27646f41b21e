"""Where the files of a node are, seen from the root of its file system."""

from __future__ import annotations

import posixpath

KUBERNETES_DIR = "/etc/kubernetes"
MANIFESTS_DIR = "/etc/kubernetes/manifests"
PKI_DIR = "/etc/kubernetes/pki"
KUBELET_DIR = "/var/lib/kubelet"
ETCD_DATA_DIR = "/var/lib/etcd"
TMP_DIR = "/etc/kubernetes/tmp"

ADMIN_CONF = "/etc/kubernetes/admin.conf"
SUPER_ADMIN_CONF = "/etc/kubernetes/super-admin.conf"
KUBELET_CONF = "/etc/kubernetes/kubelet.conf"
BOOTSTRAP_KUBELET_CONF = "/etc/kubernetes/bootstrap-kubelet.conf"
CONTROLLER_MANAGER_CONF = "/etc/kubernetes/controller-manager.conf"
SCHEDULER_CONF = "/etc/kubernetes/scheduler.conf"

KUBELET_CONFIG = "/var/lib/kubelet/config.yaml"
KUBELET_INSTANCE_CONFIG = "/var/lib/kubelet/instance-config.yaml"
KUBELET_FLAGS_ENV = "/var/lib/kubelet/kubeadm-flags.env"


def join(*parts: str) -> str:
    """One path of its parts, cleaned as Go's ``filepath.Join`` cleans it; empty parts count for nothing."""
    return clean("/".join(part for part in parts if part))


def clean(path: str) -> str:
    """The shortest form of a path, as Go's ``filepath.Clean`` gives it; POSIX would keep two slashes at its start."""
    shortest = posixpath.normpath(path)
    return shortest[1:] if shortest.startswith("//") else shortest
