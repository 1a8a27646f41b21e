"""The cases that Cluster API is asked about for MachineSets and MachineDeployments."""

from __future__ import annotations

from itertools import product
from typing import Any

Manifest = dict[str, Any]


def condition(kind: str, status: str, reason: str = "", message: str = "", *, severity: str | None = None) -> Manifest:
    found = {"type": kind, "status": status, "reason": reason or f"{kind}{status}", "message": message, "lastTransitionTime": "now-60s"}
    if severity is not None:
        found["severity"] = severity
    return found


def machine(name: str, *conditions: Manifest, node: bool = True, created: str = "now-3600s", **more: Any) -> Manifest:
    metadata = {"name": name, "namespace": "ns", "creationTimestamp": created, **more.pop("metadata", {})}
    status = {"conditions": list(conditions), **({"nodeRef": {"name": f"node-{name}"}} if node else {}), **more.pop("status", {})}
    return {"kind": "Machine", "metadata": metadata, "spec": {"version": "v1.35.0", **more.pop("spec", {})}, "status": status}


def template(version: str = "v1.35.0", **more: Any) -> Manifest:
    spec = {
        "clusterName": "c",
        "version": version,
        "bootstrap": {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfigTemplate", "name": "b"}},
        "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "HostTemplate", "name": "i"},
    }
    return {"metadata": more.pop("metadata", {"labels": {"role": "worker"}}), "spec": {**spec, **more}}


def machine_set(name: str = "ms", replicas: int | None = 1, **more: Any) -> Manifest:
    spec: Manifest = {
        "clusterName": "c",
        "selector": {"matchLabels": {"role": "worker"}},
        "template": more.pop("template", template()),
        **more.pop("spec", {}),
    }
    if replicas is not None:
        spec["replicas"] = replicas
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "creationTimestamp": "now-3600s", **more.pop("metadata", {})}
    return {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "metadata": metadata, "spec": spec, **more}


def deployment(replicas: int | None = 3, **more: Any) -> Manifest:
    strategy = more.pop("strategy", {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
    rollout = {"strategy": strategy, **({"after": more.pop("after")} if "after" in more else {})}
    spec: Manifest = {
        "clusterName": "c",
        "selector": {"matchLabels": {"role": "worker"}},
        "template": more.pop("template", template()),
        "rollout": rollout,
        **more.pop("spec", {}),
    }
    if replicas is not None:
        spec["replicas"] = replicas
    metadata = {"name": "md", "namespace": "ns", "uid": "uid-md", "generation": 2, **more.pop("metadata", {})}
    return {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment", "metadata": metadata, "spec": spec, **more}


def fenceposts() -> list[Manifest]:
    values: list[int | str] = [0, 1, 3, "0%", "1%", "25%", "33%", "50%", "100%"]
    rows = [
        {"maxSurge": surge, "maxUnavailable": unavailable, "replicas": replicas}
        for surge, unavailable, replicas in product(values, values, (1, 2, 3, 10))
    ]
    return [*rows[::9], {"maxSurge": "x", "maxUnavailable": 0, "replicas": 3}, {"maxSurge": 0, "maxUnavailable": "5", "replicas": 3}]


def limits() -> list[Manifest]:
    rolling = [
        deployment(replicas, strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}})
        for replicas, surge, unavailable in ((0, 1, 0), (0, 0, 1), (3, 0, 10), (3, "50%", "50%"), (1, "0%", "0%"), (10, "10%", "15%"))
    ]
    return [{"machineDeployment": each} for each in (*rolling, deployment(3, strategy={"type": "OnDelete"}))]


def find() -> list[Manifest]:
    same, other = template(), template("v1.34.0")
    metadata_only = template(metadata={"labels": {"a": "b"}, "annotations": {"x": "y"}})
    in_place = template(
        minReadySeconds=5,
        readinessGates=[{"conditionType": "G"}],
        deletion={"nodeDrainTimeoutSeconds": 9, "nodeDeletionTimeoutSeconds": 8, "nodeVolumeDetachTimeoutSeconds": 7},
        taints=[{"key": "k", "effect": "NoSchedule", "propagation": "Always"}],
    )
    secret = template(bootstrap={"dataSecretName": "s"})
    different = [
        other,
        template(failureDomain="fd"),
        template(bootstrap={"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfigTemplate", "name": "b2"}}),
        secret,
        template(infrastructureRef={"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OtherTemplate", "name": "i"}),
        template("v1.34.0", failureDomain="x", infrastructureRef={"apiGroup": "g", "kind": "HostTemplate", "name": "j"}),
    ]
    rows: list[Manifest] = [{"machineDeployment": deployment(), "machineSets": []}]
    rows += [
        {"machineDeployment": deployment(), "machineSets": [machine_set("a", template=one)]} for one in (same, metadata_only, in_place)
    ]
    rows += [{"machineDeployment": deployment(), "machineSets": [machine_set("a", template=one)]} for one in different]
    rows += [{"machineDeployment": deployment(template=secret), "machineSets": [machine_set("a", template=one)]} for one in (same, secret)]
    rows.append({"machineDeployment": deployment(), "machineSets": [machine_set("a", 1), machine_set("b", 3), machine_set("c", 3)]})
    rows.append(
        {
            "machineDeployment": deployment(),
            "machineSets": [
                machine_set("a", 3, metadata={"creationTimestamp": "now-100s"}),
                machine_set("b", 3, metadata={"creationTimestamp": "now-200s"}),
                machine_set("c", 5, template=other),
                machine_set("d", 2, template=other),
            ],
        }
    )
    for after, created in product(("now-500s", "now"), (("now-600s", "now-700s"), ("now-400s", "now-600s"), ("now-300s", "now-400s"))):
        sets = [
            machine_set(name, number + 1, metadata={"creationTimestamp": each})
            for number, (name, each) in enumerate(zip("ab", created, strict=True))
        ]
        for moment in ("now-10s", "now-550s"):
            rows.append({"machineDeployment": deployment(after=after), "machineSets": sets, "time": moment})
    rows.append(
        {
            "machineDeployment": deployment(after="now-500s"),
            "machineSets": [machine_set("a", template=other, metadata={"creationTimestamp": "now-600s"})],
            "time": "now",
        }
    )
    return rows


def revision() -> list[Manifest]:
    key, history = "machinedeployment.clusters.x-k8s.io/revision", "machinedeployment.clusters.x-k8s.io/revision-history"

    def numbered(name: str, number: str | None, before: str | None = None) -> Manifest:
        annotations = {key: number, history: before}
        return machine_set(name, metadata={"annotations": {name: value for name, value in annotations.items() if value is not None}})

    olds: list[list[Manifest]] = [
        [],
        [numbered("a", "1")],
        [numbered("a", "3"), numbered("b", "7")],
        [numbered("a", "x"), numbered("b", "2")],
    ]
    news = [
        None,
        numbered("n", None),
        numbered("n", "1"),
        numbered("n", "9"),
        numbered("n", "2", "1"),
        numbered("n", "4", "1,2"),
        numbered("n", "x"),
    ]
    return [{"machineSet": new, "machineSets": old} for new, old in product(news, olds)]


def proportion() -> list[Manifest]:
    key = "machinedeployment.clusters.x-k8s.io/max-replicas"
    rows = []
    for replicas, size, most, to_add in (
        (10, 5, 7, 4),
        (10, 1, 4, 7),
        (2, 5, 11, -8),
        (0, 5, 6, -5),
        (10, 3, 0, 3),
        (4, 0, 5, 2),
        (20, 9, 11, 10),
    ):
        one = machine_set("a", size, metadata={"annotations": {key: str(most)} if most else {}})
        rows.append(
            {"machineDeployment": deployment(replicas, status={"replicas": 6}), "machineSet": one, "toAdd": to_add, "added": to_add // 3}
        )
    return rows


def delete_order() -> list[Manifest]:
    sick = condition("NodeHealthy", "False")
    machines = [
        machine("h-new", created="now-10s"),
        machine("c-mid", created="now-86400s"),
        machine("b-old", created="now-8640000s"),
        machine("g-sick", sick, created="now-100s"),
        machine("a-no-node", node=False, created="now-50s"),
        machine("f-unhealthy", condition("HealthCheckSucceeded", "False"), created="now-9000s"),
        machine("e-unknown", condition("NodeHealthy", "Unknown"), created="now-5000s"),
        machine("z-chosen", created="now-500s", metadata={"annotations": {"cluster.x-k8s.io/delete-machine": ""}}),
        machine("y-updating", metadata={"annotations": {"in-place-updates.internal.cluster.x-k8s.io/update-in-progress": ""}}),
        machine("x-hooked", metadata={"annotations": {"runtime.cluster.x-k8s.io/pending-hooks": "Other,UpdateMachine"}}),
        machine("w-deleting", sick, metadata={"deletionTimestamp": "now-5s"}),
        machine("d-future", created="now"),
    ]
    orders = ("", "Random", "Newest", "Oldest")
    rows = [
        {"machineSet": machine_set(spec={"deletion": {"order": order}} if order else {}), "machines": machines, "count": count}
        for order, count in product(orders, (0, 1, 4, 8, 12, 20))
    ]
    pairs = [(machines[0], machines[1]), (machines[1], machines[2]), (machines[3], machines[5])]
    rows += [
        {"machineSet": machine_set(spec={"deletion": {"order": order}}), "machines": list(pair), "count": 1}
        for order, pair in product(orders[1:], pairs)
    ]
    return [*rows, {"machineSet": machine_set(spec={"deletion": {"order": "Alphabetical"}}), "machines": machines, "count": 1}]


def remediation_order() -> list[Manifest]:
    asked = {"annotations": {"cluster.x-k8s.io/remediate-machine": ""}}
    machines = [
        machine("b", created="now-100s"),
        machine("a", created="now-100s"),
        machine("c", created="now-10s"),
        machine("d", created="now-1000s", metadata=asked),
        machine("e", created="now-5s", metadata=asked),
    ]
    return [{"machines": machines}, {"machines": machines[::-1]}, {"machines": machines[:3]}]


def crd(group: str, kind: str, plural: str) -> Manifest:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "labels": {"cluster.x-k8s.io/v1beta2": "v1beta2"}},
        "spec": {"group": group, "names": {"kind": kind, "plural": plural}, "scope": "Namespaced", "versions": []},
    }


def preflights() -> list[Manifest]:
    group, bootstrap = "controlplane.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io"
    crds = [
        crd(group, "KubeadmControlPlane", "kubeadmcontrolplanes"),
        crd(bootstrap, "KubeadmConfigTemplate", "kubeadmconfigtemplates"),
        crd(bootstrap, "OtherConfigTemplate", "otherconfigtemplates"),
    ]
    skip = "machineset.cluster.x-k8s.io/skip-preflight-checks"

    def row(
        version: str | None,
        *statuses: str,
        worker: str = "v1.35.0",
        skipped: str = "",
        of_template: str = "",
        reference: bool = True,
        kind: str = "KubeadmConfigTemplate",
        single: bool = False,
        topology: str = "",
        step: str = "",
    ) -> Manifest:
        status: Manifest = {"versions": [{"version": each, "replicas": 1} for each in statuses]} if statuses else {}
        if single:
            status = {"version": statuses[0]}
        plane: Manifest = {
            "apiVersion": f"{group}/v1beta2",
            "kind": "KubeadmControlPlane",
            "metadata": {"name": "cp", "namespace": "ns"},
            "spec": {"version": version} if version is not None else {},
            "status": status,
        }
        configuration: Manifest = {"apiVersion": f"{bootstrap}/v1beta2", "kind": kind, "metadata": {"name": "b", "namespace": "ns"}}
        if of_template:
            configuration["metadata"]["annotations"] = {skip: of_template}
        cluster: Manifest = {"metadata": {"name": "c", "namespace": "ns"}, "spec": {}}
        if step:
            cluster["metadata"]["annotations"] = {"topology.internal.cluster.x-k8s.io/upgrade-step": step}
        if reference:
            cluster["spec"]["controlPlaneRef"] = {"apiGroup": group, "kind": "KubeadmControlPlane", "name": "cp"}
        if topology:
            cluster["spec"]["topology"] = {"classRef": {"name": "cc"}, "version": topology}
        made = (
            template(worker)
            if kind == "KubeadmConfigTemplate"
            else template(worker, bootstrap={"configRef": {"apiGroup": bootstrap, "kind": kind, "name": "b"}})
        )
        one = machine_set(template=made, metadata={"annotations": {skip: skipped}} if skipped else {})
        return {"machineSet": one, "cluster": cluster, "objects": [plane, configuration], "crds": crds, "checks": ["All"]}

    rows = [
        row("v1.35.0", "v1.35.0"),
        row("v1.35.0", "v1.35.0", reference=False),
        row(None, "v1.35.0"),
        row("v1.35.0"),
        row("v1.35.0", "v1.34.2", "v1.35.0"),
        row("v1.35.0", "v1.34.2", single=True),
        row("v1.35.0", "v1.35.0", single=True),
        row("v1.35.0", "v1.35.1"),
        row("v1.35.0+a.1", "v1.35.0+a.0"),
        row("v1.35.0+a.1", "v1.35.0+b.1"),
        row("v1.35.0+a.1", "v1.35.0+a.1"),
        row("v1.35.0+a.1", "v1.35.0+a.2"),
        row("1.35", "v1.35.0"),
        row("v1.x", "v1.35.0"),
        row("v1.35.0", "v1.35.0", worker="banana"),
        row("v1.35.0", "v1.35.0", worker=""),
        row("v1.34.0", "v1.34.0", worker="v1.35.0"),
        row("v1.34.3", "v1.34.3", worker="v1.34.7"),
        row("v1.35.0", "v1.35.0", worker="v1.32.9", kind="OtherConfigTemplate"),
        row("v1.35.0", "v1.35.0", worker="v1.31.0", kind="OtherConfigTemplate"),
        row("v1.35.0", "v1.35.0", worker="v1.36.0", kind="OtherConfigTemplate"),
        row("v1.35.0", "v1.35.0", worker="v1.34.0"),
        row("v1.35.0", "v1.35.0", worker="v1.34.0", kind="OtherConfigTemplate"),
        row("v1.35.0", "v1.34.0", worker="v1.36.0"),
    ]
    for skipped in (
        "All",
        "ControlPlaneIsStable",
        "KubernetesVersionSkew",
        "KubeadmVersionSkew",
        "ControlPlaneVersionSkew",
        "ControlPlaneIsStable, KubeadmVersionSkew",
        "Nothing",
    ):
        rows.append(row("v1.35.0", "v1.34.0", worker="v1.36.0", skipped=skipped))
        rows.append(row("v1.35.0", "v1.34.0", worker="v1.36.0", of_template=skipped))
    rows.append(row("v1.35.0", "v1.34.0", worker="v1.36.0", skipped="KubeadmVersionSkew", of_template="All"))
    rows += [row("v1.35.0", "v1.35.0", topology=version) for version in ("v1.35.0", "v1.36.0")]
    rows.append(row("v1.35.0", "v1.35.0", topology="v1.36.0", step="v1.35.0"))
    rows.append(row("v1.34.0", "v1.34.0", worker="v1.34.0", topology="v1.36.0", step="v1.35.0"))
    rows.append(row("v1.35.0", "v1.35.0", topology="v1.35.0", worker="v1.35.1", kind="OtherConfigTemplate"))
    return rows


WELL = (condition("Ready", "True"), condition("Available", "True"), condition("UpToDate", "True"))
OUTDATED = condition("UpToDate", "False", "NotUpToDate", "* Version v1.34.0, v1.35.0 required\n* HostTemplate is not up-to-date")
SICK = (
    condition("HealthCheckSucceeded", "False"),
    condition("OwnerRemediated", "False", "WaitingForRemediation", "Waiting for remediation"),
)
BLOCKED = "Drain not completed yet:\n* Pod ns/p: cannot evict pod as it would violate the pod's disruption budget. x"


def slow(name: str, message: str = BLOCKED, drained: str = "now-400s", deleted: str = "now-1000s") -> Manifest:
    return machine(
        name,
        condition("Deleting", "True", "DrainingNode", message),
        metadata={"deletionTimestamp": deleted},
        status={"deletion": {"nodeDrainStartTime": drained}},
    )


def machines_lists() -> list[list[Manifest]]:
    return [
        [],
        [machine("a", *WELL)],
        [machine("a", *WELL), machine("b", condition("Ready", "False", "NotReady", "* NodeHealthy: kubelet stopped"), node=False)],
        [machine(name, condition("Ready", "False", "NotReady", "broken")) for name in "abcdef"],
        [machine("a"), machine("b", created="now-2s")],
        [machine("a", created="now-2s")],
        [
            machine("a", *WELL[:2], OUTDATED),
            machine("b", OUTDATED),
            machine("c", condition("UpToDate", "Unknown", "Updating", "on its way")),
        ],
        [machine("a", *SICK), machine("b", condition("HealthCheckSucceeded", "False")), machine("c", *WELL)],
        [machine(name, condition("HealthCheckSucceeded", "False")) for name in "abcde"],
        [slow("a"), machine("b", *WELL)],
        [
            slow("a"),
            slow("b", "failed to evict Pod x"),
            slow("c", "waiting for completion"),
            slow("d", "deletionTimestamp set, but still not removed from the Node"),
        ],
        [slow("a", drained="now-100s"), slow("b", deleted="now-100s")],
        [
            machine("a", *WELL, status={"nodeInfo": {"kubeletVersion": "v1.34.1"}}),
            machine("b", *WELL),
            machine("c", spec={"version": "v1.36.0-rc.1"}),
            machine("d", spec={"version": "v1.34.1"}),
        ],
        [
            machine("a", *WELL, metadata={"annotations": {"in-place-updates.internal.cluster.x-k8s.io/update-in-progress": ""}}),
            machine("b", *WELL, metadata={"annotations": {"in-place-updates.internal.cluster.x-k8s.io/pending-acknowledge-move": ""}}),
        ],
    ]


def machineset_status() -> list[Manifest]:
    rows: list[Manifest] = []
    deleting = {"deletionTimestamp": "now-20s"}
    for machines in machines_lists():
        rows += [{"machineSet": machine_set(replicas=replicas), "machines": machines} for replicas in (0, 2)]
        rows.append({"machineSet": machine_set(replicas=2, metadata=deleting), "machines": machines})
    one = machines_lists()[1]
    rows += [
        {"machineSet": machine_set(replicas=replicas), "machines": one, "bootstrapMissing": True, "infrastructureMissing": infrastructure}
        for replicas, infrastructure in product((1, 3), (True, False))
    ]
    rows.append(
        {"machineSet": machine_set(replicas=3), "machines": one, "preflightMessages": ["first", "second"], "infrastructureMissing": True}
    )
    rows.append({"machineSet": machine_set(replicas=3), "machines": one, "preflightMessages": ["first"]})
    rows.append({"machineSet": machine_set(replicas=None), "machines": one})
    rows.append({"machineSet": machine_set(replicas=3), "machines": [], "machinesUnknown": True})
    expressions = [
        {"key": "z", "operator": "Exists"},
        {"key": "b", "operator": "In", "values": ["y", "x"]},
        {"key": "c", "operator": "NotIn", "values": ["q"]},
        {"key": "d", "operator": "DoesNotExist"},
    ]
    rows.append(
        {
            "machineSet": machine_set(spec={"selector": {"matchLabels": {"m": "1", "a": "2"}, "matchExpressions": expressions}}),
            "machines": [],
        }
    )
    return rows


def machineset_deprecated() -> list[Manifest]:
    def ready(name: str, status: str | None, severity: str = "", reason: str = "") -> Manifest:
        older = {"type": "Ready", "status": status, "severity": severity, "reason": reason, "lastTransitionTime": "now-5s"}
        listed = {"deprecated": {"v1beta1": {"conditions": [{key: value for key, value in older.items() if value}]}}} if status else {}
        return machine(name, node=False, status=listed, metadata={"labels": {"role": "worker"} if name != "c" else {}})

    lists = [
        [],
        [ready("a", "True")],
        [ready("a", None), ready("b", None)],
        [ready("a", "True"), ready("b", "False", "Info", "Waiting"), ready("c", "False", "Warning", "Slow")],
        [ready("a", "False", "Error", "Broken"), ready("b", "False", "Error", "Dead @ Host/h"), ready("c", "True")],
        [ready("b", "Unknown", "", "Lost"), ready("a", "Unknown", "", "Lost")],
        [ready("b", "Unknown", "", "Lost"), ready("a", "True")],
    ]
    rows = [{"machineSet": machine_set(replicas=replicas), "machines": each} for replicas, each in product((0, 1, 3), lists)]
    return [*rows, {"machineSet": machine_set(replicas=3, metadata={"deletionTimestamp": "now-20s"}), "machines": lists[3]}]


def remediation() -> list[Manifest]:
    revision = "machinedeployment.clusters.x-k8s.io/revision"
    # What the checks find is asked about elsewhere.
    skip = {"machineset.cluster.x-k8s.io/skip-preflight-checks": "All"}
    waiting = condition("OwnerRemediated", "False", "WaitingForRemediation", "Waiting for remediation")
    going = condition("OwnerRemediated", "False", "MachineDeleting", "Machine is deleting")
    sick = condition("HealthCheckSucceeded", "False", "UnhealthyNode")

    def ill(name: str, created: str = "now-500s", **more: Any) -> Manifest:
        return machine(name, sick, waiting, created=created, **more)

    well_again = machine("w", condition("HealthCheckSucceeded", "True"), waiting)
    not_ours = machine("n", sick)
    in_flight = machine("f", sick, going, metadata={"deletionTimestamp": "now-5s"})
    asked = ill("z", "now-900s", metadata={"annotations": {"cluster.x-k8s.io/remediate-machine": ""}})
    lists = [
        [machine("a")],
        [well_again, not_ours],
        [ill("a"), ill("b", "now-10s")],
        [ill("a"), in_flight],
        [ill("a"), ill("b", "now-10s"), asked, well_again],
    ]
    child = {"labels": {"cluster.x-k8s.io/deployment-name": "md"}, "annotations": {revision: "2", **skip}}
    rows: list[Manifest] = [{"machineSet": machine_set(metadata={"annotations": skip}), "machines": each} for each in lists]
    for number, limit, each in product(("2", "3"), (None, 1, "50%", 5), lists):
        spec = {"remediation": {"maxInFlight": limit}} if limit is not None else {}
        owner = deployment(3, metadata={"annotations": {revision: number}}, spec=spec)
        rows.append({"machineSet": machine_set(metadata=child), "machineDeployment": owner, "machines": each})
    return [{"cluster": {"metadata": {"name": "c", "namespace": "ns"}, "spec": {}}, **row} for row in rows]


def desired_machine() -> list[Manifest]:
    full = template(
        metadata={"labels": {"role": "worker", "a": "b"}, "annotations": {"x": "y"}},
        failureDomain="fd",
        minReadySeconds=7,
        readinessGates=[{"conditionType": "G"}],
        deletion={"nodeDrainTimeoutSeconds": 60, "nodeDeletionTimeoutSeconds": 10},
        taints=[{"key": "k", "effect": "NoSchedule", "propagation": "Always"}],
    )
    current = machine(
        "ms-1",
        spec={
            "clusterName": "c",
            "version": "v1.34.0",
            "failureDomain": "old",
            "bootstrap": {
                "configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "ms-1"},
                "dataSecretName": "s",
            },
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Host", "name": "ms-1"},
        },
        metadata={"uid": "u", "finalizers": ["other"]},
    )
    kept = {**current, "metadata": {**current["metadata"], "finalizers": ["machine.cluster.x-k8s.io", "foregroundDeletion"]}}
    child = {"labels": {"cluster.x-k8s.io/deployment-name": "md"}}
    sets = [
        machine_set(),
        machine_set(template=full, metadata=child),
        machine_set("n" * 70, template=full),
        machine_set(template=template(bootstrap={"dataSecretName": "s"})),
    ]
    return [{"machineSet": one, "machine": each} for one, each in product(sets, (None, current, kept))]


def requeue() -> list[Manifest]:
    rows = []
    for wait, replicas, ready, available in ((0, 3, 3, 3), (0, 3, 2, 2), (30, 3, 3, 1), (30, 3, 3, 3), (30, 3, 1, 0), (0, 0, 0, 0)):
        one = machine_set(replicas=replicas, template=template(minReadySeconds=wait) if wait else template())
        rows.append({"machineSet": {**one, "status": {"replicas": replicas, "readyReplicas": ready, "availableReplicas": available}}})
    return rows


def desired_machineset() -> list[Manifest]:
    unique = {"labels": {"machine-template-hash": "123-abcde", "stale": "x"}, "finalizers": ["cluster.x-k8s.io/machineset"]}
    full = template(
        "v1.36.0",
        metadata={"labels": {"role": "worker", "a": "b"}, "annotations": {"x": "y"}},
        minReadySeconds=7,
        readinessGates=[{"conditionType": "G"}],
        deletion={"nodeDrainTimeoutSeconds": 60, "nodeVolumeDetachTimeoutSeconds": 5, "nodeDeletionTimeoutSeconds": 10},
        taints=[{"key": "k", "effect": "NoSchedule", "propagation": "Always"}],
    )
    annotations = {
        "kept": "1",
        "kubectl.kubernetes.io/last-applied-configuration": "x",
        "machinedeployment.clusters.x-k8s.io/revision": "9",
        "cluster.x-k8s.io/conversion-data": "x",
    }
    expressions = {"selector": {"matchLabels": {"role": "worker"}, "matchExpressions": [{"key": "a", "operator": "Exists"}]}}
    mds = [
        deployment(),
        deployment(
            5,
            template=full,
            metadata={"annotations": annotations},
            spec={"deletion": {"order": "Oldest"}, "machineNaming": {"template": "x-{{ .random }}"}},
        ),
        deployment(3, strategy={"type": "OnDelete"}, spec=expressions),
    ]
    old = machine_set("old", metadata={"annotations": {"machinedeployment.clusters.x-k8s.io/revision": "4"}})
    current = machine_set(
        "md-abcde", 2, template=template("v1.34.0", minReadySeconds=99, deletion={"nodeDrainTimeoutSeconds": 1}), metadata=unique
    )
    unlabelled = machine_set("md-x", 2)
    return [{"machineDeployment": md, "machineSet": one, "machineSets": [old]} for md, one in product(mds, (None, current, unlabelled))]


def deployment_status() -> list[Manifest]:
    rows: list[Manifest] = []
    versions = [{"version": "v1.35.0", "replicas": 2}, {"version": "v1.34.0", "replicas": 1}]
    yesterday = {
        "v1beta1": {
            "conditions": [
                {"type": "Ready", "status": "False", "severity": "Warning", "reason": "R", "message": "m", "lastTransitionTime": "now-5s"}
            ],
            "fullyLabeledReplicas": 0,
            "readyReplicas": 1,
            "availableReplicas": 1,
        }
    }

    def counted(name: str, replicas: int, *numbers: int, **more: Any) -> Manifest:
        keys = ("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas")
        return machine_set(name, replicas, status={**dict(zip(keys, numbers, strict=False)), **more})

    sets = [
        [],
        [counted("a", 3)],
        [counted("a", 3, 3, 3, 3, 3, versions=versions)],
        [counted("a", 2, 2, 1, 1, 0, versions=versions), counted("b", 1, 2, 2, 2, 2, versions=versions[:1], deprecated=yesterday)],
        [counted("a", 3, 1, 0, 0, 0)],
    ]
    unavailable = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "50%"}}
    mds = [deployment(), deployment(3, strategy=unavailable), deployment(3, strategy={"type": "OnDelete"}), deployment(0)]
    for md, each in product(mds, sets):
        rows.append({"machineDeployment": md, "machineSets": each, "machineSet": each[-1] if each else None, "machines": []})
    for machines in machines_lists():
        rows.append({"machineDeployment": deployment(2), "machineSets": sets[3], "machineSet": sets[3][1], "machines": machines})
        rows.append(
            {
                "machineDeployment": deployment(2, metadata={"deletionTimestamp": "now-20s", "finalizers": ["x"]}),
                "machineSets": sets[3],
                "machines": machines,
            }
        )
    rows += [
        {
            "machineDeployment": deployment(replicas),
            "machineSets": sets[4],
            "machineSet": sets[4][0],
            "machines": [],
            "bootstrapMissing": bootstrap,
            "infrastructureMissing": True,
        }
        for replicas, bootstrap in product((1, 3), (True, False))
    ]
    rows.append({"machineDeployment": deployment(None), "machineSets": sets[4], "machines": []})
    rows.append({"machineDeployment": deployment(3), "machineSets": [], "machines": [], "machineSetsUnknown": True})
    rows.append(
        {
            "machineDeployment": deployment(0, metadata={"deletionTimestamp": "now-20s", "finalizers": ["x"]}),
            "machineSets": [],
            "machines": [],
        }
    )
    return rows


CASES: dict[str, list[Manifest]] = {
    "fenceposts": fenceposts(),
    "limits": limits(),
    "find": find(),
    "revision": revision(),
    "proportion": proportion(),
    "delete-order": delete_order(),
    "remediation-order": remediation_order(),
    "preflights": preflights(),
    "machineset-status": machineset_status(),
    "machineset-deprecated": machineset_deprecated(),
    "remediation": remediation(),
    "desired-machine": desired_machine(),
    "requeue": requeue(),
    "desired-machineset": desired_machineset(),
    "deployment-status": deployment_status(),
}
