"""What kube-controller-manager and kube-scheduler do in every cluster, as far as nodes and rollouts depend on it.

Certificates of kubelets are approved and signed, cluster-info is signed for every token, Deployments, ReplicaSets, StatefulSets and
DaemonSets have their Pods, Pods get Nodes, budgets know what they allow, and what belonged to a Node that is gone goes too.  Changes of
the store put work into one queue, and one task does it; a look at everything is never needed.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from base64 import b64decode, b64encode
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.cluster.kinds import (
    CERTIFICATE_SIGNING_REQUEST,
    CONFIG_MAP,
    DAEMON_SET,
    DEPLOYMENT,
    NODE,
    POD,
    REPLICA_SET,
    SECRET,
    Kind,
)
from slipway.api.machinery.duration import Duration
from slipway.credentials import tokens, x509
from slipway.credentials.profile import CLIENT_AUTH, Profile
from slipway.embedded.access.authorization import Attributes
from slipway.embedded.errors import StatusError
from slipway.embedded.storage import selectors
from slipway.simulation.workload.local import LocalClient
from slipway.workload import clusterinfo

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.server import Core
    from slipway.embedded.storage.store import Change, Stored

STATEFUL_SET = Kind("apps", "v1", "StatefulSet", "statefulsets")
BUDGET = Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
_BUCKETS = {
    "secrets": "signature",
    "configmaps": "signature",
    "certificatesigningrequests.certificates.k8s.io": "certificate",
    "poddisruptionbudgets.policy": "budget",
    "deployments.apps": "deployment",
    "replicasets.apps": "replicaset",
    "daemonsets.apps": "daemonset",
    "statefulsets.apps": "statefulset",
    "nodes": "node",
    "pods": "pod",
}
_log = logging.getLogger(__name__)


class _Daemon(NamedTuple):
    """What a DaemonSet has to know of one of its Pods."""

    version: int
    node: str
    ready: bool

    @classmethod
    def of(cls, stored: Stored) -> _Daemon:
        pod = stored.manifest()
        return cls(stored.version, pod["spec"].get("nodeName") or "", _is_ready(pod))


class Controllers:
    def __init__(self, core: Core, authority: x509.Authority) -> None:
        self._core, self._authority = core, authority
        self._client = LocalClient(core)
        self._queue: dict[tuple[str, str, str], None] = {}
        self._daemons: dict[str, dict[str, _Daemon]] = {}
        """What was seen last of the Pods of each DaemonSet, both by UID."""
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._core.store.listen(self._observe, *_BUCKETS)
        self._task = asyncio.create_task(self._run(), name="simulated controllers")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _observe(self, bucket: str, change: Change) -> None:
        current = change.current
        if bucket == "secrets" and current.namespace != tokens.NAMESPACE:
            return
        if bucket == "configmaps" and current.name != clusterinfo.NAME:
            return
        self._add(_BUCKETS[bucket], current.namespace, current.name)

    def _add(self, what: str, namespace: str, name: str) -> None:
        self._queue.setdefault((what, namespace, name))
        self._wake.set()

    async def _run(self) -> None:
        while True:
            if not self._queue:
                self._wake.clear()
                await self._wake.wait()
            what, namespace, name = next(iter(self._queue))
            del self._queue[what, namespace, name]
            try:
                await getattr(self, f"_{what}")(namespace, name)
            except StatusError as error:
                _log.warning("%s %s/%s: %s", what, namespace, name, error)
            except Exception:
                _log.exception("%s %s/%s", what, namespace, name)
            await asyncio.sleep(0)

    # Trust.

    async def _signature(self, namespace: str, name: str) -> None:
        """cluster-info has a signature for every token that may sign, and no other."""
        found = self._client.find(CONFIG_MAP, clusterinfo.NAME, clusterinfo.NAMESPACE)
        if found is None:
            return
        text = found["data"].get("kubeconfig", "")
        signatures = {}
        for secret in self._client.list(SECRET, tokens.NAMESPACE):
            data = {key: b64decode(value).decode(errors="replace") for key, value in (secret.get("data") or {}).items()}
            if secret.get("type") == tokens.SECRET_TYPE and data.get("usage-bootstrap-signing") == "true" and not _is_over(data):
                token = f"{data.get('token-id')}.{data.get('token-secret')}"
                signatures[clusterinfo.SIGNATURE_PREFIX + data.get("token-id", "")] = clusterinfo.signature(text, token)
        known = {key: value for key, value in found["data"].items() if key.startswith(clusterinfo.SIGNATURE_PREFIX)}
        if known != signatures:
            changed: dict[str, str | None] = {**dict.fromkeys(known), **signatures}
            await self._client.patch(CONFIG_MAP, clusterinfo.NAME, clusterinfo.NAMESPACE, {"data": changed})

    async def _certificate(self, namespace: str, name: str) -> None:
        """Approve and sign a kubelet's request, where whoever asks may have it approved by itself."""
        from cryptography.x509 import load_pem_x509_csr
        from cryptography.x509.oid import NameOID

        found = self._client.find(CERTIFICATE_SIGNING_REQUEST, name)
        if found is None or (found.get("status") or {}).get("certificate") or found["spec"].get("signerName") != _CLIENT_SIGNER:
            return
        request = load_pem_x509_csr(b64decode(found["spec"]["request"]))
        names = [str(item.value) for item in request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
        groups = [str(item.value) for item in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
        if not request.is_signature_valid or groups != ["system:nodes"] or not names[0].startswith("system:node:"):
            return
        if not self._may_be_approved(found, names[0]):
            return
        approved = {"type": "Approved", "status": "True", "reason": "AutoApproved", "message": "Auto approving kubelet client certificate"}
        await self._client.patch(
            CERTIFICATE_SIGNING_REQUEST,
            name,
            "",
            {"status": {"conditions": [{**approved, "lastUpdateTime": _time()}]}},
            subresource="approval",
        )
        profile = Profile(common_name=names[0], organizations=("system:nodes",), usages=(CLIENT_AUTH,))
        signed = x509.signed(profile, request.public_key(), self._authority, x509.period(datetime.now(UTC), Duration.of(hours=24 * 365)))  # type: ignore[arg-type]
        certificate = b64encode(x509.pem(signed)).decode()
        await self._client.patch(CERTIFICATE_SIGNING_REQUEST, name, "", {"status": {"certificate": certificate}}, subresource="status")

    def _may_be_approved(self, found: Manifest, node: str) -> bool:
        from slipway.embedded.access.authentication import User

        spec = found["spec"]
        user = User(spec.get("username", ""), tuple(spec.get("groups") or ()))
        which = "selfnodeclient" if user.name == node else "nodeclient"
        group = CERTIFICATE_SIGNING_REQUEST.group
        asked = Attributes("create", "", group, "v1", "", CERTIFICATE_SIGNING_REQUEST.plural, which, "")
        try:
            self._core.authorizer.check(user, asked)
        except StatusError:
            return False
        return True

    # Workloads.

    async def _deployment(self, namespace: str, name: str) -> None:
        found = self._client.find(DEPLOYMENT, name, namespace)
        if found is None or found["metadata"].get("deletionTimestamp"):
            return
        template = found["spec"]["template"]
        mark = hashlib.sha256(repr(template).encode()).hexdigest()[:10]
        labels = {**(template["metadata"].get("labels") or {}), "pod-template-hash": mark}
        sets = self._client.list(REPLICA_SET, namespace, owner=found["metadata"]["uid"])
        wanted = f"{name}-{mark}"
        if all(each["metadata"]["name"] != wanted for each in sets):
            spec = {
                "replicas": found["spec"].get("replicas", 1),
                "selector": {"matchLabels": labels},
                "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
            }
            metadata = {"name": wanted, "namespace": namespace, "labels": labels, "ownerReferences": [_owner(found)]}
            await self._client.create(REPLICA_SET, {"metadata": metadata, "spec": spec})
        for each in sets:
            replicas = found["spec"].get("replicas", 1) if each["metadata"]["name"] == wanted else 0
            if each["spec"].get("replicas") != replicas:
                await self._client.patch(REPLICA_SET, each["metadata"]["name"], namespace, {"spec": {"replicas": replicas}})
        ready = sum((each.get("status") or {}).get("readyReplicas") or 0 for each in sets)
        status = {
            "observedGeneration": found["metadata"].get("generation"),
            "replicas": sum((each.get("status") or {}).get("replicas") or 0 for each in sets),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "updatedReplicas": sum((each.get("status") or {}).get("replicas") or 0 for each in sets if each["metadata"]["name"] == wanted),
        }
        await self._tell(DEPLOYMENT, found, status)

    async def _replicaset(self, namespace: str, name: str) -> None:
        found = self._client.find(REPLICA_SET, name, namespace)
        if found is None or found["metadata"].get("deletionTimestamp"):
            return
        pods = self._client.list(POD, namespace, owner=found["metadata"]["uid"])
        lasting = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
        wanted = found["spec"].get("replicas", 1)
        for _ in range(wanted - len(lasting)):
            await self._client.create(POD, _pod_of(found, {"generateName": f"{name}-"}))
        for pod in lasting[wanted:]:
            await self._client.delete(POD, pod["metadata"]["name"], namespace)
        ready = sum(_is_ready(pod) for pod in lasting)
        status = {
            "observedGeneration": found["metadata"].get("generation"),
            "replicas": len(lasting),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "fullyLabeledReplicas": len(lasting),
        }
        await self._tell(REPLICA_SET, found, status)

    async def _statefulset(self, namespace: str, name: str) -> None:
        """Pods of fixed names: one that goes comes again, once it is gone."""
        found = self._client.find(STATEFUL_SET, name, namespace)
        if found is None or found["metadata"].get("deletionTimestamp"):
            return
        wanted = [f"{name}-{number}" for number in range(found["spec"].get("replicas", 1))]
        pods = {pod["metadata"]["name"]: pod for pod in self._client.list(POD, namespace, owner=found["metadata"]["uid"])}
        for each in wanted:
            if each not in pods:
                await self._client.create(POD, _pod_of(found, {"name": each}))
        ready = sum(_is_ready(pod) for pod in pods.values())
        status = {"observedGeneration": found["metadata"].get("generation"), "replicas": len(pods), "readyReplicas": ready}
        await self._tell(STATEFUL_SET, found, {**status, "availableReplicas": ready})

    async def _daemonset(self, namespace: str, name: str) -> None:
        found = self._client.find(DAEMON_SET, name, namespace)
        if found is None or found["metadata"].get("deletionTimestamp"):
            return
        pods = {pod.node: pod for pod in self._daemons_of(found)}
        nodes = self._client.names(NODE)
        for node in nodes:
            if node not in pods:
                made = _pod_of(found, {"generateName": f"{name}-"})
                made["spec"]["nodeName"] = node
                await self._client.create(POD, made)
        ready = sum(pod.ready for pod in pods.values())
        generation = found["metadata"].get("generation")
        status = {"observedGeneration": generation, "numberReady": ready, "numberAvailable": ready, "desiredNumberScheduled": len(nodes)}
        await self._tell(
            DAEMON_SET, found, {**status, "currentNumberScheduled": len(pods), "updatedNumberScheduled": len(pods), "numberMisscheduled": 0}
        )

    def _daemons_of(self, daemon_set: Manifest) -> Iterable[_Daemon]:
        """A DaemonSet is looked at whenever one of its Pods changes: the others are not read again."""
        uid, before = daemon_set["metadata"]["uid"], self._daemons.get(daemon_set["metadata"]["uid"], {})
        known = self._daemons[uid] = {
            stored.uid: seen if (seen := before.get(stored.uid)) is not None and seen.version == stored.version else _Daemon.of(stored)
            for stored in self._client.stored(POD, daemon_set["metadata"]["namespace"], owner=uid)
        }
        return known.values()

    async def _pod(self, namespace: str, name: str) -> None:
        found = self._client.find(POD, name, namespace)
        for kind, what in ((REPLICA_SET, "replicaset"), (DAEMON_SET, "daemonset"), (STATEFUL_SET, "statefulset")):
            owners = {
                each["name"] for each in ((found or {}).get("metadata") or {}).get("ownerReferences") or () if each["kind"] == kind.kind
            }
            known = self._client.names(kind, namespace) if found is None else owners
            for owner in known:
                self._add(what, namespace, owner)
        for budget in self._client.names(BUDGET, namespace):
            self._add("budget", namespace, budget)
        if found is not None and not found["spec"].get("nodeName") and not found["metadata"].get("deletionTimestamp"):
            await self._schedule(found)

    async def _schedule(self, pod: Manifest) -> None:
        """Give a Pod the Node with the fewest Pods, of those that take it."""
        counts: dict[str, int] = {node["metadata"]["name"]: 0 for node in self._client.list(NODE) if _takes(node, pod)}
        for other in self._client.list(POD):
            if other["spec"].get("nodeName") in counts:
                counts[other["spec"]["nodeName"]] += 1
        if counts:
            chosen = min(counts, key=lambda name: (counts[name], name))
            metadata = pod["metadata"]
            # What a Binding does.
            await self._client.patch(POD, metadata["name"], metadata["namespace"], {"spec": {"nodeName": chosen}})

    async def _node(self, namespace: str, name: str) -> None:
        for daemon_set in self._client.list(DAEMON_SET):
            self._add("daemonset", daemon_set["metadata"]["namespace"], daemon_set["metadata"]["name"])
        if self._client.find(NODE, name) is None:
            for pod in self._client.list(POD, fields=f"spec.nodeName={name}"):
                await self._client.delete(POD, pod["metadata"]["name"], pod["metadata"]["namespace"], grace=0)
            return
        for pod in self._client.list(POD, fields="spec.nodeName="):
            self._add("pod", pod["metadata"]["namespace"], pod["metadata"]["name"])

    async def _budget(self, namespace: str, name: str) -> None:
        found = self._client.find(BUDGET, name, namespace)
        if found is None:
            return
        spec = found["spec"]
        matches = selectors.from_label_selector(spec.get("selector") or {})
        pods = [pod for pod in self._client.list(POD, namespace) if selectors.match_labels(matches, pod["metadata"].get("labels") or {})]
        lasting = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
        healthy = sum(map(_is_ready, lasting))
        expected = self._expected(namespace, pods)
        if "maxUnavailable" in spec:
            desired = expected - _scaled(spec["maxUnavailable"], expected)
        else:
            desired = _scaled(spec.get("minAvailable", 1), expected)
        status = {
            "observedGeneration": found["metadata"].get("generation"),
            "currentHealthy": healthy,
            "desiredHealthy": max(desired, 0),
            "expectedPods": expected,
            "disruptionsAllowed": max(healthy - desired, 0),
            "disruptedPods": None,
        }
        await self._tell(BUDGET, found, status)

    def _expected(self, namespace: str, pods: list[Manifest]) -> int:
        """How many Pods those who make them want."""
        owners = {each["uid"] for pod in pods for each in pod["metadata"].get("ownerReferences") or ()}
        known = [*self._client.list(REPLICA_SET, namespace), *self._client.list(STATEFUL_SET, namespace)]
        sets = [each for each in known if each["metadata"]["uid"] in owners]
        return sum(each["spec"].get("replicas", 1) for each in sets) if sets else len(pods)

    async def _tell(self, kind: Kind, found: Manifest, status: Manifest) -> None:
        known = found.get("status") or {}
        if any(known.get(key) != value for key, value in status.items()):
            metadata = found["metadata"]
            await self._client.patch(kind, metadata["name"], metadata.get("namespace", ""), {"status": status}, subresource="status")


def _is_over(data: dict[str, str]) -> bool:
    ends = data.get("expiration", "")
    return bool(ends) and datetime.fromisoformat(ends) <= datetime.now(UTC)


def _time() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _scaled(value: Any, of: int) -> int:
    if isinstance(value, str) and value.endswith("%"):
        return -(-int(value[:-1]) * of // 100)
    return int(value)


def _owner(found: Manifest) -> Manifest:
    metadata = found["metadata"]
    reference = {"apiVersion": found["apiVersion"], "kind": found["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return {**reference, "controller": True, "blockOwnerDeletion": True}


def _pod_of(owner: Manifest, metadata: Manifest) -> Manifest:
    template = owner["spec"]["template"]
    made = {**metadata, "namespace": owner["metadata"]["namespace"], "labels": dict(template["metadata"].get("labels") or {})}
    return {"metadata": {**made, "ownerReferences": [_owner(owner)]}, "spec": {**template["spec"]}}


def _is_ready(pod: Manifest) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _takes(node: Manifest, pod: Manifest) -> bool:
    """Whether a Node may have a Pod: it is ready, nobody has cordoned it off, and its taints are tolerated."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    if not ready or node["spec"].get("unschedulable") or node["metadata"].get("deletionTimestamp"):
        return False
    tolerations = pod["spec"].get("tolerations") or ()
    taints = [taint for taint in node["spec"].get("taints") or () if taint["effect"] in ("NoSchedule", "NoExecute")]
    return all(any(_tolerates(toleration, taint) for toleration in tolerations) for taint in taints)


def _tolerates(toleration: Manifest, taint: Manifest) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if not toleration.get("key"):
        return bool(toleration.get("operator") == "Exists")
    if toleration["key"] != taint["key"]:
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")
