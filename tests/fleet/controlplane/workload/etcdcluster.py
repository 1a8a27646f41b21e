"""Three real etcd members that know each other from the start, as the members of three control-plane Nodes."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from node.conftest import Lines
from node.etcd_process import EtcdNode, addresses

from slipway.fleet.certificates import KeyPair
from slipway.host import waiting
from slipway.workload.etcdclient import EtcdClient

NAMES = ("a", "b", "c")


class EtcdCluster(dict[str, EtcdNode]):
    @property
    def authority(self) -> KeyPair:
        read = self["a"].ctx.host.read
        return KeyPair(read("/etc/kubernetes/pki/etcd/ca.crt"), read("/etc/kubernetes/pki/etcd/ca.key"))

    def client(self) -> EtcdClient:
        return self["a"].client(*(node.client_url for node in self.values()))

    def leader(self) -> str:
        client = self.client()
        status = client.status(client.endpoints[0])
        return next(member.name for member in client.members() if member.id == status.leader)

    @contextmanager
    def paused(self, name: str) -> Iterator[None]:
        """One that neither answers nor lets go of its connections."""
        process = self[name].process
        assert process is not None
        os.kill(process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(process.pid, signal.SIGCONT)


@contextmanager
def etcd_cluster(root: Path) -> Iterator[EtcdCluster]:
    lines = Lines()
    made = EtcdCluster({name: EtcdNode(root, address, name, lines) for name, address in zip(NAMES, addresses(3), strict=True)})
    first = made["a"]
    first.make_certificates()
    initial = ",".join(f"{name}={node.peer_url}" for name, node in made.items())
    try:
        for name, node in made.items():
            if node is not first:
                node.make_certificates(first)
            pki = node.root / "etc/kubernetes/pki/etcd"
            words = {
                "name": name,
                "data-dir": str(node.data_dir),
                "initial-cluster": initial,
                "initial-advertise-peer-urls": node.peer_url,
                "listen-peer-urls": node.peer_url,
                "advertise-client-urls": node.client_url,
                "listen-client-urls": node.client_url,
                "client-cert-auth": "true",
                "peer-client-cert-auth": "true",
                "cert-file": f"{pki}/server.crt",
                "key-file": f"{pki}/server.key",
                "trusted-ca-file": f"{pki}/ca.crt",
                "peer-cert-file": f"{pki}/peer.crt",
                "peer-key-file": f"{pki}/peer.key",
                "peer-trusted-ca-file": f"{pki}/ca.crt",
                "heartbeat-interval": "50",
                "election-timeout": "500",
                # Else five seconds have to pass before members may come and go.
                "strict-reconfig-check": "false",
            }
            with node.log.open("ab") as log:
                command = [node.program, *(f"--{key}={value}" for key, value in words.items())]
                node.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        client = made.client()
        waiting.until(lambda: "" if not client.unhealthy() else "etcd", timeout=30)
        yield made
    finally:
        for node in made.values():
            node.stop()
