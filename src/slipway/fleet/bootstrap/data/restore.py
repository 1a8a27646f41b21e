"""What a first control plane boots with beside the rest where its etcd is to have the data of a snapshot: a script, run before kubeadm.

What the script does is for who wrote it.  It runs last of all that comes before kubeadm, which must then not mind that etcd has data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

PATH = "/etc/slipway/restore-etcd.sh"
_DATA = "/var/lib/etcd"


def file(script: bytes) -> Mapping[str, Any]:
    return {"path": PATH, "owner": "root:root", "permissions": "0700", "content": script.decode()}


def with_script(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """The spec of a KubeadmConfig with the script, and with kubeadm's check that there is no data left out."""
    local = ((spec.get("clusterConfiguration") or {}).get("etcd") or {}).get("local") or {}
    init = spec.get("initConfiguration") or {}
    registration = init.get("nodeRegistration") or {}
    # kubeadm names the check by the folder.
    check = "DirAvailable-" + (local.get("dataDir") or _DATA).replace("/", "-")
    ignored = [*(registration.get("ignorePreflightErrors") or ()), check]
    return {
        **spec,
        "preKubeadmCommands": [*(spec.get("preKubeadmCommands") or ()), PATH],
        "initConfiguration": {**init, "nodeRegistration": {**registration, "ignorePreflightErrors": ignored}},
    }
