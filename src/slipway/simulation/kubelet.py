"""The kubelet of a simulated host: its credentials, its Node, its Lease and its Pods, for as long as its service runs.

Its version is that of the booted image.  It reads what a real one reads: config.yaml, kubeadm-flags.env, bootstrap-kubelet.conf and
kubelet.conf, and the manifests of static Pods.  Containers outlive it; a boot ends them.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from base64 import b64decode, b64encode
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from slipway.api.cluster.kinds import CERTIFICATE_SIGNING_REQUEST, LEASE, NODE, POD
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.credentials import keys, x509
from slipway.credentials.profile import Profile
from slipway.kube import kubeconfig
from slipway.kube.aio import AsyncClient, PatchType
from slipway.kube.connection import from_kubeconfig
from slipway.kube.errors import AlreadyExistsError, ApiError, ConflictError, NotFoundError
from slipway.node import paths
from slipway.node.kubelet.files import flags_of_environment_file
from slipway.simulation.host.faults import PowerLost
from slipway.simulation.host.view import SimulatedHost
from slipway.workload import arguments

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.machinery.objects import Manifest
    from slipway.kube.connection import Connection
    from slipway.simulation.host.machine import Machine
    from slipway.simulation.workload.cluster import WorkloadCluster

SERVICE, RUNTIME = "kubelet.service", "containerd.service"
_HEARTBEAT = 10.0
_LEASE_SECONDS = 40
_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
_RETRY = 0.1
# However fast the time of a host goes, one that boots is back before its Node is given up for lost.
_LEAST_GRACE = 3.0
_log = logging.getLogger(__name__)


class Kubelet:
    """One boot's kubelet; ``cluster_of`` finds the cluster that a CA is of, for the Pods that it is told to run."""

    def __init__(self, machine: Machine, cluster_of: Callable[[bytes], WorkloadCluster | None]) -> None:
        self._machine = machine
        self._host = SimulatedHost(machine)
        self._cluster_of = cluster_of
        self._wake = asyncio.Event()
        self._client: AsyncClient | None = None
        self._cluster: WorkloadCluster | None = None
        self._node = ""
        self._beat_at = 0.0
        self.beats = 0

    def wake(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        """Until the power goes."""
        pause: float | None = None
        try:
            while True:
                try:
                    async with asyncio.timeout(pause):
                        await self._wake.wait()
                except TimeoutError:
                    pass
                self._wake.clear()
                pause = await self._sync()
        except PowerLost:
            return
        finally:
            await self._end()

    async def _end(self) -> None:
        """It runs no more, for whatever reason; a next one begins from nothing."""
        cluster, client, node = self._cluster, self._client, self._node
        self._cluster, self._client, self._node, self._beat_at = None, None, "", 0.0
        if cluster is not None:
            cluster.leave(node, max(_LEASE_SECONDS * self._machine.pace, _LEAST_GRACE))
        if client is not None:
            await client.close()

    async def _sync(self) -> float | None:
        """One look at everything; seconds until the next one, if nothing happens before."""
        machine = self._host.machine
        if SERVICE not in machine.active or RUNTIME not in machine.active or not self._host.exists(paths.KUBELET_CONFIG):
            await self._end()
            return None
        self._run_static_pods()
        if machine.faults.cut_off:
            return _RETRY
        try:
            if self._client is None and not await self._connect():
                return _RETRY
            await self._register()
            await self._heartbeat()
            await self._pods()
        except (ApiError, OperatorError, OSError) as error:
            _log.debug("kubelet of %s: %s", machine.hardware.name, error)
            return _RETRY
        if not self._beat_at:
            return _RETRY
        return machine.heartbeat or max(_HEARTBEAT * max(machine.pace, 0.05), 0.05)

    # Static Pods.

    def _manifests(self) -> dict[str, Manifest]:
        found = {}
        for name in self._host.list_dir(paths.MANIFESTS_DIR):
            if name.endswith((".yaml", ".yml", ".json")) and not name.startswith("."):
                manifest = _manifest(self._host.read(f"{paths.MANIFESTS_DIR}/{name}"), name)
                if manifest is not None:
                    found[manifest["metadata"]["name"]] = manifest
        return found

    def _run_static_pods(self) -> None:
        machine = self._host.machine
        wanted = {f"static/{pod}": manifest for pod, manifest in self._manifests().items()}
        for container in list(machine.containers.values()):
            if container.pod.startswith("static/") and container.pod not in wanted:
                machine.signal(container.pid)
                machine.signal(container.pid, kill=True)
        running = {(container.pod, container.name) for container in machine.containers.values()}
        for pod, manifest in wanted.items():
            for container in manifest["spec"]["containers"]:
                if (pod, container["name"]) not in running and not (machine.faults.etcd_fails and container["name"] == "etcd"):
                    machine.run_container(pod, container["name"], by=SERVICE)

    # Credentials.

    async def _connect(self) -> bool:
        host = self._host
        if not host.exists(paths.KUBELET_CONF):
            if not host.exists(paths.BOOTSTRAP_KUBELET_CONF):
                return False
            await self._bootstrap()
        connection = self._connection(paths.KUBELET_CONF)
        self._node = self._flag("hostname-override") or host.hostname().lower()
        self._cluster = self._cluster_of(connection.ca)
        if self._cluster is None:
            return False
        self._cluster.kubelets[self._node] = self
        self._client = AsyncClient(connection, user_agent="kubelet", timeout=5.0)
        return True

    def _connection(self, path: str) -> Connection:
        document = kubeconfig.load(self._host.read(path), path)
        return from_kubeconfig(document, self._host.read, source=path)

    async def _bootstrap(self) -> None:
        """The TLS bootstrap: a request for a certificate, with the credentials that joining nodes share."""
        name = self._flag("hostname-override") or self._host.hostname().lower()
        key = keys.generate("ECDSA-P256")
        profile = Profile(common_name=f"system:node:{name}", organizations=("system:nodes",))
        request = b64encode(x509.pem(x509.request(profile, key))).decode()
        shared = self._connection(paths.BOOTSTRAP_KUBELET_CONF)
        spec = {"request": request, "signerName": _SIGNER, "usages": ["digital signature", "client auth"]}
        async with AsyncClient(shared, user_agent="kubelet", timeout=5.0) as client:
            made = await client.create(CERTIFICATE_SIGNING_REQUEST, {"metadata": {"generateName": "node-csr-"}, "spec": spec})
            for _ in range(200):
                found = await client.get(CERTIFICATE_SIGNING_REQUEST, made["metadata"]["name"])
                certificate = b64decode((found.get("status") or {}).get("certificate") or "")
                if certificate:
                    break
                await asyncio.sleep(0.02)
            else:
                raise OperatorError("nobody signs the certificate of the kubelet")
        credentials = {
            "client-certificate-data": kubeconfig.encoded(certificate),
            "client-key-data": kubeconfig.encoded(keys.private_pem(key)),
        }
        document = kubeconfig.document(
            server=shared.server, cluster="default-cluster", user="default-auth", ca=shared.ca, credentials=credentials
        )
        self._host.write(paths.KUBELET_CONF, goyaml.dump(document).encode())

    # The Node.

    def _flag(self, name: str) -> str:
        if not self._host.exists(paths.KUBELET_FLAGS_ENV):
            return ""
        flags, _ = arguments.from_command(flags_of_environment_file(self._host.read(paths.KUBELET_FLAGS_ENV).decode()))
        return arguments.value_of(flags, name) or ""

    async def _register(self) -> None:
        assert self._client is not None
        if self._beat_at:
            return
        machine = self._host.machine
        labels = {
            "kubernetes.io/hostname": self._node,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "linux",
            "beta.kubernetes.io/arch": "amd64",
            **_pairs(self._flag("node-labels")),
        }
        taints = [_taint(text) for text in self._flag("register-with-taints").split(",") if text]
        spec = {"providerID": self._flag("provider-id"), **({"taints": taints} if taints else {})}
        manifest = {"metadata": {"name": self._node, "labels": labels}, "spec": {key: value for key, value in spec.items() if value}}
        try:
            await self._client.create(NODE, manifest)
        except AlreadyExistsError:
            # One that registered before: the Node is its own still, and what it is now is told below.
            known = await self._client.get(NODE, self._node)
            if spec["providerID"] and not known["spec"].get("providerID"):
                await self._client.patch(NODE, self._node, "", {"spec": {"providerID": spec["providerID"]}}, type=PatchType.MERGE)
        await self._client.patch(NODE, self._node, "", {"status": self._status(machine)}, type=PatchType.STRATEGIC, subresource="status")

    def _status(self, machine: Machine) -> Manifest:
        now = _time()
        conditions = [
            {"type": kind, "status": "False", "reason": f"KubeletHas{enough}", "message": f"kubelet has {enough}"}
            for kind, enough in (
                ("MemoryPressure", "SufficientMemory"),
                ("DiskPressure", "NoDiskPressure"),
                ("PIDPressure", "SufficientPID"),
            )
        ]
        conditions.append({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"})
        capacity = {"cpu": "8", "memory": "16Gi", "pods": "110", "ephemeral-storage": "100Gi"}
        return {
            "conditions": [{**each, "lastHeartbeatTime": now, "lastTransitionTime": now} for each in conditions],
            "addresses": [
                {"type": "InternalIP", "address": machine.hardware.address.partition("/")[0]},
                {"type": "Hostname", "address": self._node},
            ],
            "capacity": capacity,
            "allocatable": capacity,
            "nodeInfo": {
                "kubeletVersion": machine.installed.kubernetes,
                "kubeProxyVersion": "",
                "osImage": f"Simulated OS with Kubernetes {machine.installed.kubernetes}",
                "containerRuntimeVersion": "containerd://2.1.0",
                "kernelVersion": "6.12.0-simulated",
                "operatingSystem": "linux",
                "architecture": "amd64",
                "machineID": machine.hardware.uuid.replace("-", ""),
                "systemUUID": machine.hardware.uuid,
                "bootID": self._host.read("/proc/sys/kernel/random/boot_id").decode().strip(),
            },
        }

    async def _heartbeat(self) -> None:
        assert self._client is not None
        loop = asyncio.get_running_loop()
        every = self._machine.heartbeat or max(_HEARTBEAT * self._machine.pace, 1.0)
        if self._beat_at and loop.time() - self._beat_at < every:
            return
        spec = {"holderIdentity": self._node, "leaseDurationSeconds": _LEASE_SECONDS, "renewTime": _micro_time()}
        try:
            await self._client.patch(LEASE, self._node, "kube-node-lease", {"spec": spec}, type=PatchType.MERGE)
        except NotFoundError:
            try:
                await self._client.create(LEASE, {"metadata": {"name": self._node, "namespace": "kube-node-lease"}, "spec": spec})
            except (AlreadyExistsError, ConflictError):
                return
        self._beat_at = loop.time()
        self.beats += 1

    # Pods.

    async def _pods(self) -> None:
        """Mirror Pods of static ones, and what the API says is to run or to end here."""
        assert self._client is not None
        machine = self._host.machine
        if self._cluster is None:
            return
        mine = {key: stored.manifest() for key, stored in list(self._cluster.placed(self._node).items())}
        for name, manifest in self._manifests().items():
            await self._mirror(name, manifest, mine)
        for key, pod in mine.items():
            if "kubernetes.io/config.mirror" in (pod["metadata"].get("annotations") or {}):
                continue
            await self._run_pod(machine, key, pod)

    async def _mirror(self, name: str, manifest: Manifest, mine: dict[str, Manifest]) -> None:
        assert self._client is not None
        metadata = manifest["metadata"]
        namespace = metadata.get("namespace", "default")
        full = f"{name}-{self._node}"
        mark = hashlib.sha256(repr(manifest).encode()).hexdigest()[:32]
        known = mine.get(f"{namespace}/{full}")
        if known is not None and known["metadata"].get("deletionTimestamp"):
            await self._end_pod(full, namespace)
            known = None
        if known is None or (known["metadata"].get("annotations") or {}).get("kubernetes.io/config.hash") != mark:
            if known is not None:
                await self._end_pod(full, namespace)
            annotations = {
                **(metadata.get("annotations") or {}),
                "kubernetes.io/config.mirror": mark,
                "kubernetes.io/config.hash": mark,
                "kubernetes.io/config.source": "file",
            }
            made = {
                "metadata": {"name": full, "namespace": namespace, "labels": metadata.get("labels") or {}, "annotations": annotations},
                "spec": {**manifest["spec"], "nodeName": self._node, "tolerations": [{"operator": "Exists", "effect": "NoExecute"}]},
            }
            try:
                known = await self._client.create(POD, made)
            except AlreadyExistsError:
                return
        if (known.get("status") or {}).get("phase") != "Running":
            await self._told_running(full, namespace, known)

    async def _run_pod(self, machine: Machine, key: str, pod: Manifest) -> None:
        metadata = pod["metadata"]
        running = [container for container in machine.containers.values() if container.pod == key]
        if metadata.get("deletionTimestamp"):
            for container in running:
                machine.end_container(container.id)
            await self._end_pod(metadata["name"], metadata["namespace"])
            return
        if not running:
            for container in pod["spec"]["containers"]:
                machine.run_container(key, container["name"], metadata["uid"], by=SERVICE)
        if (pod.get("status") or {}).get("phase") != "Running":
            await self._told_running(metadata["name"], metadata["namespace"], pod)

    async def _told_running(self, name: str, namespace: str, pod: Manifest) -> None:
        assert self._client is not None
        now = _time()
        conditions = [
            {"type": kind, "status": "True", "lastTransitionTime": now}
            for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        ]
        statuses = [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": container["image"],
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": now}},
            }
            for container in pod["spec"]["containers"]
        ]
        status = {"phase": "Running", "conditions": conditions, "containerStatuses": statuses, "startTime": now}
        try:
            await self._client.patch(POD, name, namespace, {"status": status}, type=PatchType.STRATEGIC, subresource="status")
        except NotFoundError:
            return

    async def _end_pod(self, name: str, namespace: str) -> None:
        assert self._cluster is not None
        await self._cluster.client.delete(POD, name, namespace, grace=0)


# A static Pod is looked at whenever anything changes, and hardly ever changes itself.
@lru_cache(maxsize=1024)
def _manifest(content: bytes, name: str) -> Manifest | None:
    documents = goyaml.load(content.decode(), name)
    found = documents[0].value if documents else None
    return found if isinstance(found, dict) else None


def _pairs(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (pair.partition("=") for pair in text.split(",") if pair)}


def _taint(text: str) -> Manifest:
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def _time() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _micro_time() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
