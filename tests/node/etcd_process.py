"""Real etcd processes on loopback addresses, with certificates of our own pki module, run as a kubelet would run them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slipway.api import releases
from slipway.api.kubeadm.internal import APIEndpoint, ClusterConfiguration, Etcd, InitConfiguration, LocalEtcd
from slipway.api.machinery.version import Version
from slipway.host import waiting
from slipway.host.real import RealHost
from slipway.lab.programs import cache
from slipway.node.context import NodeContext
from slipway.node.etcd import pod as etcd
from slipway.node.pki import store
from slipway.workload.etcdclient import EtcdClient

if TYPE_CHECKING:
    from node.conftest import Lines

# etcd by the Kubernetes release that runs it.
VERSIONS = {"v1.33.13": "v3.5.24", "v1.34.10": "v3.6.5", "v1.35.4": "v3.6.6", "v1.36.3": "v3.6.8"}
_CERTIFICATES = ("etcd-ca", "etcd-server", "etcd-peer", "etcd-healthcheck-client")


def binary(version: str) -> str:
    """The etcd that the lab has in its cache; a unit test never builds one."""
    found = cache.find(cache.cache_root(), "etcd", version)
    if found is None:
        pytest.skip(f"etcd {version} is not in the lab's cache: `slipway lab image build` puts it there")
    return str(found)


class EtcdNode:
    """A control plane node, as far as etcd is concerned: its files, its address, and the process when it runs."""

    def __init__(self, root: Path, address: str, name: str, lines: Lines, version: str = "v1.35.4") -> None:
        self.program = binary(VERSIONS[version])
        self.root = root / name
        self.address = address
        self.process: subprocess.Popen[bytes] | None = None
        self.log = self.root / "etcd.log"
        data_dir, certificates_dir = "/var/lib/etcd", "/etc/kubernetes/pki"
        cluster = ClusterConfiguration(
            kubernetes_version=version,
            certificates_dir=certificates_dir,
            etcd=Etcd(local=LocalEtcd(data_dir=data_dir)),
            encryption_algorithm="ECDSA-P256",  # for keys that are made fast
        )
        config = InitConfiguration(cluster=cluster, local_api_endpoint=APIEndpoint(advertise_address=address))
        config.node_registration.name = name
        release = releases.release_for(Version.parse(version))
        self.ctx = NodeContext(config=config, release=release, host=RealHost(str(self.root), {}), progress=lines)

    def make_certificates(self, shared: EtcdNode | None = None) -> None:
        if shared is not None:
            for name in ("ca.crt", "ca.key"):
                path = f"/etc/kubernetes/pki/etcd/{name}"
                self.ctx.host.write(path, shared.ctx.host.read(path))
        for name in _CERTIFICATES:
            store.ensure_certificate(self.ctx, name)

    @property
    def peer_url(self) -> str:
        return etcd.peer_url(self.ctx.config.local_api_endpoint)

    @property
    def client_url(self) -> str:
        return etcd.client_url(self.ctx.config.local_api_endpoint)

    @property
    def data_dir(self) -> Path:
        return self.root / "var/lib/etcd"

    def start(self) -> None:
        """Run the command of the static Pod in its manifest, with the paths and the metrics port of this node."""
        from slipway.api.machinery.yaml import goyaml

        pod = goyaml.load(self.ctx.host.read("/etc/kubernetes/manifests/etcd.yaml").decode(), "etcd.yaml")[0].value
        command = pod["spec"]["containers"][0]["command"]
        arguments = [word.replace("=/", f"={self.root}/") for word in command[1:] if not word.startswith(("--listen-", "--snapshot-count"))]
        listen = [f"--listen-client-urls={self.client_url}", f"--listen-peer-urls={self.peer_url}"]
        # Elections of a busy machine must not end a test.
        quick = ["--heartbeat-interval=50", "--election-timeout=500", "--logger=zap"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([self.program, *arguments, *listen, *quick], stdout=log, stderr=log, start_new_session=True)

    def begin(self) -> EtcdNode:
        """The first member of a cluster, running and with a leader."""
        self.make_certificates()
        etcd.write_local(self.ctx)
        self.start()
        client = self.client()
        waiting.until(lambda: "" if not client.unhealthy() else "etcd", timeout=20)
        return self

    def client(self, *endpoints: str, patience: float = 20.0) -> EtcdClient:
        read = self.ctx.host.read
        folder = "/etc/kubernetes/pki/etcd"
        return EtcdClient(
            endpoints or (self.client_url,),
            ca=read(f"{folder}/ca.crt"),
            certificate=read(f"{folder}/healthcheck-client.crt"),
            key=read(f"{folder}/healthcheck-client.key"),
            patience=patience,
        )

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self.process is not None:
            os.killpg(self.process.pid, how)
            self.process.wait(timeout=10)
            self.process = None


def addresses(count: int) -> list[str]:
    """Loopback addresses that no other test has, so that every node can have etcd's own ports."""
    first = f"127.{random.randint(16, 250)}.{random.randint(0, 250)}"
    return [f"{first}.{number}" for number in range(1, count + 1)]
