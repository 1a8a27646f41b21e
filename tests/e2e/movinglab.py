"""Lab hosts as infrastructure for clusters whose control planes are replaced.

The endpoint of the cluster is an address that one control-plane host has at a time, as keepalived or kube-vip would have it, and hosts
go when their LabMachines do.
"""

from __future__ import annotations

import json
import ssl
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from e2e.labcli import LabCommands
from e2e.upstream import INFRASTRUCTURE, LabProvider, Plane

Manifest = dict[str, Any]
FINALIZER = f"labmachine.{INFRASTRUCTURE}"
# Tells everybody on the link that the address has a new owner, as ARP caches keep the old one for a while.
_ANNOUNCE = """
import socket, sys
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
link.bind((sys.argv[1], 0x0806))
own, address = link.getsockname()[4], socket.inet_aton(sys.argv[2])
link.send(b"\\xff" * 6 + own + b"\\x08\\x06" + bytes.fromhex("0001080006040001") + own + address + bytes(6) + address)
"""


class MovingLabProvider(LabProvider):
    """Lab hosts as machines, with an endpoint that moves and hosts that are removed."""

    def __init__(self, management_plane: Plane, lab: LabCommands, endpoint: str) -> None:
        super().__init__(management_plane, lab)
        self.endpoint = endpoint
        self.holder = ""
        """The host that has the endpoint's address."""

    def step(self) -> None:
        self._publish_endpoint()
        for lab_machine in self._lab_machines():
            if not _leaves(lab_machine) and FINALIZER not in lab_machine["metadata"].get("finalizers", []):
                self._patch("labmachine", lab_machine, {"metadata": {"finalizers": [FINALIZER]}})
        super().step()
        self._keep_endpoint()
        self._remove_hosts()

    def _publish_endpoint(self) -> None:
        for cluster in self.plane.items("labclusters", self.namespace):
            if "controlPlaneEndpoint" not in cluster.get("spec", {}):
                self._patch("labcluster", cluster, {"spec": {"controlPlaneEndpoint": {"host": self.endpoint, "port": 6443}}})

    def _keep_endpoint(self) -> None:
        """The first control plane has the address until its Machine goes; then it is for one whose API server is there."""
        machines = [machine for machine in self.plane.items("machines", self.namespace) if self._is_control_plane(machine)]
        stay = [self._host(machine) for machine in machines if not _leaves(machine)]
        if self.holder in stay or not stay:
            return
        if self.holder:
            addresses = {host: row["address"] for host, row in self.lab.hosts().items()}
            stay = [host for host in stay if _serves(str(addresses[host]))]
        if stay:
            self._move_endpoint(stay[0])

    def _move_endpoint(self, host: str) -> None:
        if self.holder:
            self.lab.on(self.holder, f"ip address delete {self.endpoint}/32 dev host0")
        self.lab.on(host, f"ip address add {self.endpoint}/32 dev host0")
        self.lab.on(host, f"python3 - host0 {self.endpoint}", stdin=_ANNOUNCE)
        self.holder = host

    def _remove_hosts(self) -> None:
        for lab_machine in self._lab_machines():
            host = self.hosts.get(lab_machine["metadata"]["name"], "")
            if _leaves(lab_machine) and host != self.holder:
                if host in self.lab.hosts():
                    self.lab.run("host", "delete", host)
                self._patch("labmachine", lab_machine, {"metadata": {"finalizers": None}})

    def _is_control_plane(self, machine: Manifest) -> bool:
        return "cluster.x-k8s.io/control-plane" in machine["metadata"]["labels"] and bool(self._host(machine))

    def _host(self, machine: Manifest) -> str:
        return self.hosts.get(machine["spec"]["infrastructureRef"]["name"], "")

    def _lab_machines(self) -> list[Manifest]:
        return self.plane.items("labmachines", self.namespace)

    def _patch(self, what: str, manifest: Manifest, patch: Manifest) -> None:
        name = manifest["metadata"]["name"]
        self.plane.kubectl("-n", self.namespace, "patch", what, name, "--type=merge", "-p", json.dumps(patch))


def _leaves(manifest: Manifest) -> bool:
    return "deletionTimestamp" in manifest["metadata"]


def _serves(address: str) -> bool:
    """Whether the API server of a host is ready; only its answer counts, so nobody's certificate is checked."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with urlopen(f"https://{address}:6443/readyz", timeout=5, context=context) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False
