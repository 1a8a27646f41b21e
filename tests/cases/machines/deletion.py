"""Cases of what a deletion does, and what it leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cases.machines.base import (
    CLUSTER,
    CONFIG,
    CONTROL_PLANE,
    CONTROL_PLANE_REF,
    DELETED,
    INFRA,
    MACHINE,
    NODE,
    RUNNING,
    WELL,
    Manifest,
    Row,
    node_with,
    over,
)


def allowed_cases() -> Iterator[Row]:
    """Which steps of a deletion are left out."""
    member = over(MACHINE, {"metadata": {"name": "cp-0", "labels": {"cluster.x-k8s.io/control-plane": ""}}})
    gone = over(member, DELETED)
    deleted = over(MACHINE, RUNNING, DELETED)

    def row(name: str, machine: Manifest, **more: Any) -> Row:
        case = {"machine": over(deleted, machine), "cluster": CLUSTER, "machines": [member], "infra": INFRA, **more}
        return name, {key: value for key, value in case.items() if value is not None}

    yield row("a worker of a cluster that stays", {})
    yield row("no control-plane Machines", {}, machines=[])
    yield row("the last control-plane Machine is deleted too", {}, machines=[gone])
    yield row("a control-plane Machine beside one that goes", {}, machines=[gone, over(member, {"metadata": {"name": "cp-1"}})])
    yield row("it is itself the last", {"metadata": {"labels": {"cluster.x-k8s.io/control-plane": ""}}}, machines=[])
    foreign = over(member, {"metadata": {"labels": {"cluster.x-k8s.io/cluster-name": "d"}}})
    yield row("a control-plane Machine of another cluster", {}, machines=[foreign])
    yield row("the Cluster is deleted", {}, cluster=over(CLUSTER, {"metadata": {"deletionTimestamp": "{{-60}}", "finalizers": ["x"]}}))
    with_reference = over(CLUSTER, {"spec": {"controlPlaneRef": CONTROL_PLANE_REF}})
    yield row("a control plane", {}, cluster=with_reference, controlPlane=CONTROL_PLANE)
    yield row("a control plane that is missing", {}, cluster=with_reference)
    yield row("a control plane that is missing, and no Machines of it", {}, cluster=with_reference, machines=[])
    going = over(CONTROL_PLANE, {"metadata": {"deletionTimestamp": "{{-60}}", "finalizers": ["x"]}})
    yield row("a control plane that is deleted", {}, cluster=with_reference, controlPlane=going)
    external = over(CONTROL_PLANE, {"status": {"externalManagedControlPlane": True}})
    yield row("a control plane of somebody else", {}, cluster=with_reference, controlPlane=external, machines=[])
    yield row("no Node", {"status": {"nodeRef": None}})
    yield row("no Node known, but there is one", {"status": {"nodeRef": None}}, node=NODE)
    only_infra = {"status": {"nodeRef": None}, "spec": {"providerID": None}}
    yield row("no provider ID but the host's", only_infra, node=NODE, infra=over(INFRA, {"spec": {"providerID": "test://m"}}))
    yield row("no provider ID at all", only_infra, node=NODE)
    yield row("no drain wanted", {"metadata": {"annotations": {"machine.cluster.x-k8s.io/exclude-node-draining": ""}}})
    yield row(
        "no wait for volumes wanted", {"metadata": {"annotations": {"machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach": ""}}}
    )
    yield row("after the hooks", {"status": {"deletion": {"waitForPreTerminateHookStartTime": "{{-5}}"}}})
    yield row("the host is gone", {}, infra=None)
    yield row("the host goes", {}, infra=over(INFRA, {"metadata": {"deletionTimestamp": "{{-60}}", "finalizers": ["x"]}}))
    for limit in (None, 0, 30, 90):
        for field, start in (
            ("nodeDrainTimeoutSeconds", "nodeDrainStartTime"),
            ("nodeVolumeDetachTimeoutSeconds", "waitForNodeVolumeDetachStartTime"),
        ):
            yield row(
                f"{field} {limit}, begun 60 s ago", {"spec": {"deletion": {field: limit}}, "status": {"deletion": {start: "{{-60}}"}}}
            )
    yield row("a limit, and nothing begun", {"spec": {"deletion": {"nodeDrainTimeoutSeconds": 1, "nodeVolumeDetachTimeoutSeconds": 1}}})


def deletion_cases() -> Iterator[Row]:
    """Whole passes of a deletion."""
    member = over(MACHINE, {"metadata": {"name": "cp-0", "labels": {"cluster.x-k8s.io/control-plane": ""}}})
    deleted = over(MACHINE, RUNNING, DELETED)

    def row(name: str, machine: Manifest, **more: Any) -> Row:
        case = {
            "machine": over(deleted, machine),
            "cluster": CLUSTER,
            "machines": [member],
            "infra": INFRA,
            "config": CONFIG,
            "node": WELL,
            **more,
        }
        return name, {key: value for key, value in case.items() if value is not None}

    def pod(name: str, **changes: Any) -> Manifest:
        base = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "apps"},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
        }
        return over(base, changes)

    def hook(kind: str, *names: str) -> Manifest:
        return {"metadata": {"annotations": {f"{kind}.delete.hook.machine.cluster.x-k8s.io/{name}": "" for name in names}}}

    yield row("hooks before the drain", hook("pre-drain", "b", "a"))
    yield row("an empty Node", {})
    yield row("a Pod that is waited for", {}, pods=[pod("a", metadata={"labels": {"cluster.x-k8s.io/drain": "wait-completed"}})])
    yield row("a Pod that is skipped", {}, pods=[pod("a", metadata={"labels": {"cluster.x-k8s.io/drain": "skip"}})])
    yield row("volumes", {}, node=over(WELL, {"status": {"volumesAttached": [{"name": "kubernetes.io/csi/d^v", "devicePath": ""}]}}))
    yield row(
        "volumes of an unreachable Node",
        {},
        node=over(node_with("Unknown"), {"status": {"volumesAttached": [{"name": "v", "devicePath": ""}]}}),
    )
    yield row(
        "volumes that nobody waits for",
        {"metadata": {"annotations": {"machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach": ""}}},
        node=over(WELL, {"status": {"volumesAttached": [{"name": "v", "devicePath": ""}]}}),
    )
    yield row(
        "a drain whose time is over",
        {"spec": {"deletion": {"nodeDrainTimeoutSeconds": 5}}, "status": {"deletion": {"nodeDrainStartTime": "{{-6}}"}}},
        pods=[pod("a", metadata={"labels": {"cluster.x-k8s.io/drain": "wait-completed"}})],
    )
    yield row("hooks before the end", hook("pre-terminate", "x"))
    yield row(
        "hooks before the end without a Node", over(hook("pre-terminate", "x"), {"status": {"nodeRef": None}, "spec": {"providerID": None}})
    )
    going = over(INFRA, {"metadata": {"deletionTimestamp": "{{-60}}", "finalizers": ["x"]}})
    yield row("the host goes", {}, infra=going)
    yield row("the host is gone", {}, infra=None, infraNotFound=True)
    config_going = over(CONFIG, {"metadata": {"deletionTimestamp": "{{-60}}", "finalizers": ["x"]}})
    yield row("the config goes", {}, infra=None, infraNotFound=True, config=config_going)
    yield row("all is gone", {}, infra=None, infraNotFound=True, config=None, configNotFound=True)
    yield row("all is gone, the Node too", {}, infra=None, infraNotFound=True, config=None, configNotFound=True, node=None)
    no_config = {"spec": {"bootstrap": {"configRef": None, "dataSecretName": "s"}}}
    yield row("a data Secret of the user", no_config, infra=None, infraNotFound=True, config=None)
    deleting_cluster = over(CLUSTER, {"metadata": {"deletionTimestamp": "{{-60}}", "finalizers": ["x"]}})
    yield row("the Cluster is deleted: hooks before the drain do not count", hook("pre-drain", "a"), cluster=deleting_cluster)
    yield row(
        "the Cluster is deleted: the Node stays",
        {},
        cluster=deleting_cluster,
        infra=None,
        infraNotFound=True,
        config=None,
        configNotFound=True,
    )
    yield row("the Cluster is deleted: hooks before the end count", hook("pre-terminate", "a"), cluster=deleting_cluster)


def volume_cases() -> Iterator[Row]:
    """Which volumes are waited for."""
    machine = over(MACHINE, RUNNING, DELETED, {"status": {"deletion": {"waitForNodeVolumeDetachStartTime": "{{-60}}"}}})

    def volume(name: str, handle: str = "", claim: str = "", kind: str = "PersistentVolumeClaim") -> Manifest:
        spec: Manifest = {}
        if handle:
            spec["csi"] = {"driver": "d", "volumeHandle": handle}
        if claim:
            spec["claimRef"] = {"kind": kind, "namespace": "apps", "name": claim}
        return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}

    def attachment(name: str, volume: str | None, *, node: str = "n", attached: bool = True) -> Manifest:
        source = {"persistentVolumeName": volume} if volume else {}
        return {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttachment",
            "metadata": {"name": name},
            "spec": {"attacher": "d", "nodeName": node, "source": source},
            "status": {"attached": attached},
        }

    def row(name: str, on_node: list[str], **more: Any) -> Row:
        node = over(WELL, {"status": {"volumesAttached": [{"name": each, "devicePath": ""} for each in on_node]}})
        return name, {"machine": machine, "cluster": CLUSTER, "node": node, **more}

    def user(name: str, claim: str, **labels: str) -> Manifest:
        spec = {
            "nodeName": "n",
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}],
        }
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "apps", "labels": labels}, "spec": spec}

    skip = {"cluster.x-k8s.io/drain": "skip"}
    csi = "kubernetes.io/csi/d^h"
    yield row("none", [])
    yield row("a claim, by the Node", [csi], volumes=[volume("pv", "h", "data")])
    yield row("a claim, by an attachment", [], volumes=[volume("pv", "", "data")], attachments=[attachment("va", "pv")])
    yield row("a claim, by both", [csi], volumes=[volume("pv", "h", "data")], attachments=[attachment("va", "pv")])
    yield row("a claim of a Pod that is skipped", [csi], volumes=[volume("pv", "h", "data")], pods=[user("a", "data", **skip)])
    yield row("a claim of a Pod that is drained", [csi], volumes=[volume("pv", "h", "data")], pods=[user("a", "data")])
    yield row("a volume without a claim", [csi], volumes=[volume("pv", "h")])
    yield row("a volume claimed by something else", [csi], volumes=[volume("pv", "h", "x", "Other")])
    yield row("a volume that nobody knows", [csi, "other"], volumes=[volume("pv", "x", "data")])
    yield row("an attachment of a volume that nobody knows", [], attachments=[attachment("va", "gone")])
    yield row("an attachment without a volume", [], attachments=[attachment("va", None)])
    yield row("an attachment of another Node", [], volumes=[volume("pv", "", "data")], attachments=[attachment("va", "pv", node="o")])
    yield row(
        "an attachment that is none yet", [], volumes=[volume("pv", "", "data")], attachments=[attachment("va", "pv", attached=False)]
    )
    yield row(
        "many claims", [f"kubernetes.io/csi/d^h{n}" for n in range(7)], volumes=[volume(f"pv{n}", f"h{n}", f"data{n}") for n in range(7)]
    )
    yield row(
        "everything at once",
        [csi, "x"],
        volumes=[volume("pv", "h"), volume("pv2", "", "data")],
        attachments=[attachment("a", "pv2"), attachment("b", "gone")],
    )
