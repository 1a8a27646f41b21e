"""The static Pod, the same on every host, and the files that bring it there with a host's user-data.

What differs between hosts is in ``/etc/keepalived``, which the Pod has by hostPath: a change of peers never starts the Pod anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from slipway import __version__
from slipway.api.machinery.yaml import goyaml
from slipway.workload.alive import keepalived
from slipway.workload.alive.values import NAMESPACE, encode

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.workload.alive.values import Values

DEFAULT_IMAGE = f"slipway.io/alive:v{__version__}"

PROGRAM = "/usr/sbin/keepalived"
CONFIGURATION_FOLDER = "/etc/keepalived"
CONFIGURATION = f"{CONFIGURATION_FOLDER}/keepalived.conf"
VALUES = f"{CONFIGURATION_FOLDER}/alive.json"
MANIFEST = "/etc/kubernetes/manifests/alive.yaml"
KUBERNETES_FOLDER = "/etc/kubernetes"

TERMINATION_SECONDS = 30


class HostFile(NamedTuple):
    """A file of a host, as write_files of cloud-init has it."""

    path: str
    content: str
    mode: str


def files(known: Values, image: str = DEFAULT_IMAGE) -> list[HostFile]:
    """What a control-plane host must have before its kubelet starts; the manifest comes last."""
    return [
        HostFile(VALUES, encode(known).decode(), "0600"),
        HostFile(CONFIGURATION, keepalived.rendered(known), "0600"),
        HostFile(MANIFEST, goyaml.dump(manifest(image)), "0600"),
    ]


def manifest(image: str = DEFAULT_IMAGE) -> Manifest:
    """keepalived and its side car.  They share their processes, so that the side car can send signals, and a folder of state."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "alive", "namespace": NAMESPACE, "labels": {"app": "alive", "tier": "control-plane"}},
        "spec": {
            "hostNetwork": True,
            "shareProcessNamespace": True,
            "priorityClassName": "system-node-critical",
            "terminationGracePeriodSeconds": TERMINATION_SECONDS,
            "containers": [
                {
                    "name": "keepalived",
                    "image": image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": [
                        PROGRAM,
                        "--dont-fork",
                        "--log-console",
                        "--vrrp",
                        f"--use-file={CONFIGURATION}",
                        f"--pid={keepalived.PROCESS_ID_FILE}",
                        f"--vrrp_pid={keepalived.VRRP_ID_FILE}",
                    ],
                    "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
                    # SETGID, as keepalived sets the groups of its scripts.
                    "securityContext": _capabilities("NET_ADMIN", "NET_RAW", "NET_BROADCAST", "SETGID", "SYS_NICE"),
                    "volumeMounts": [
                        _mount("configuration", CONFIGURATION_FOLDER, read_only=True),
                        _mount("state", keepalived.STATE_FOLDER),
                    ],
                },
                {
                    "name": "side-car",
                    "image": image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["/opt/slipway/bin/slipway", "alive"],
                    "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
                    "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
                    # For an address that a keepalived left behind which was killed, or hangs.
                    "securityContext": _capabilities("NET_ADMIN"),
                    "volumeMounts": [
                        _mount("configuration", CONFIGURATION_FOLDER),
                        _mount("kubernetes", KUBERNETES_FOLDER, read_only=True),
                        _mount("state", keepalived.STATE_FOLDER),
                    ],
                },
            ],
            "volumes": [
                {"name": "configuration", "hostPath": {"path": CONFIGURATION_FOLDER, "type": "DirectoryOrCreate"}},
                {"name": "kubernetes", "hostPath": {"path": KUBERNETES_FOLDER, "type": "Directory"}},
                {"name": "state", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
            ],
        },
    }


def _capabilities(*kept: str) -> dict[str, Any]:
    """Root without all that it does not need."""
    return {"allowPrivilegeEscalation": False, "capabilities": {"add": list(kept), "drop": ["ALL"]}}


def _mount(name: str, path: str, *, read_only: bool = False) -> dict[str, Any]:
    return {"name": name, "mountPath": path, **({"readOnly": True} if read_only else {})}
