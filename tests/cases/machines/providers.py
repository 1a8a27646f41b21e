"""Cases of what a Machine takes from the objects of its providers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cases.machines.base import CLUSTER, CONFIG, CONTROL_PLANE_REF, CORE, DELETED, INFRA, MACHINE, RUNNING, Manifest, Row, over


def external_cases() -> Iterator[Row]:
    """What the objects of providers give to a Machine, and who they belong to."""

    def row(name: str, machine: Manifest, infra: Manifest | None, config: Manifest | None, **more: Any) -> Row:
        made = {"infra": over(INFRA, infra) if infra is not None else None, "config": over(CONFIG, config) if config is not None else None}
        case = {"machine": over(MACHINE, machine), "cluster": CLUSTER, **made, **more}
        return name, {key: value for key, value in case.items() if value is not None}

    created = {"status": {"initialization": {"dataSecretCreated": True}, "dataSecretName": "s"}}
    host = {"spec": {"providerID": "test://m"}, "status": {"initialization": {"provisioned": True}}}
    yield row("nothing there", {}, None, None)
    yield row("nothing there while deleting", DELETED, None, None)
    yield row("not ready", {}, {}, {})
    yield row("not ready while deleting", DELETED, {}, {})
    yield row("data", {}, {}, created)
    yield row("data without a name", {}, {}, {"status": {"initialization": {"dataSecretCreated": True}}})
    yield row("data under an empty name", {}, {}, {"status": {"initialization": {"dataSecretCreated": True}, "dataSecretName": ""}})
    yield row("a name without data", {}, {}, {"status": {"dataSecretName": "s"}})
    yield row("data of the Machine's own", {"spec": {"bootstrap": {"dataSecretName": "mine"}}}, {}, {})
    yield row("a host", {}, host, created)
    yield row("a host without a provider ID", {}, {"status": {"initialization": {"provisioned": True}}}, created)
    yield row("a provider ID without a host", {}, {"spec": {"providerID": "test://m"}}, created)
    yield row(
        "a host that is provisioned no more",
        RUNNING,
        {"spec": {"providerID": "test://m"}, "status": {"initialization": {"provisioned": False}}},
        created,
    )
    addresses = [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "h"}]
    yield row("a host with all it can say", {}, over(host, {"status": {"addresses": addresses, "failureDomain": "a"}}), created)
    yield row("a failure domain where it was in v1beta1", {}, over(host, {"spec": {"failureDomain": "a"}}), created)
    older = {"status": {"ready": True, "dataSecretName": "s"}}
    old_host = {"spec": {"providerID": "test://m"}, "status": {"ready": True}}
    yield row("v1beta1: ready", {}, old_host, older, contract="v1beta1")
    yield row("v1beta1: not ready", {}, {"status": {"ready": False}}, {"status": {"ready": False}}, contract="v1beta1")
    yield row("v1beta1: new fields do not count", {}, host, created, contract="v1beta1")
    yield row("v1beta2: old fields do not count", {}, old_host, older)
    yield row(
        "a field of another type",
        {},
        {"status": {"initialization": {"provisioned": "yes"}}},
        {"status": {"initialization": {"dataSecretCreated": "yes"}}},
    )
    yield row("a provider ID that is none", {}, over(host, {"spec": {"providerID": 5}}), created)
    yield row("the host was lost", RUNNING, None, created)
    yield row("the host was lost while deleting", over(RUNNING, DELETED), None, created)
    failed = {"status": {"failureReason": "CreateError", "failureMessage": "no more hosts"}}
    yield row("a failure of the host", {}, over(host, failed), created)
    yield row("a failure of the config", {}, {}, failed)
    going = {"metadata": {"deletionTimestamp": "{{-60}}", "finalizers": ["x"]}}
    yield row("providers' objects go", RUNNING, over(host, going), over(created, going))
    for status, severity in (("True", ""), ("False", "Error"), ("False", "Info"), ("Unknown", "")):
        ready = {"type": "Ready", "status": status, "severity": severity, "reason": "R", "message": "text", "lastTransitionTime": "{{-9}}"}
        below = {"status": {"deprecated": {"v1beta1": {"conditions": [ready]}}}}
        yield row(f"Ready {status} {severity} of v1beta1", {}, over(host, below), over(created, below))
        yield row(
            f"Ready {status} {severity} in status.conditions", {}, {"status": {"conditions": [ready]}}, {"status": {"conditions": [ready]}}
        )
    mine = {"apiVersion": CORE, "kind": "Machine", "name": "m", "uid": "m-uid", "controller": True, "blockOwnerDeletion": True}
    of_set = {"apiVersion": CORE, "kind": "MachineSet", "name": "ms", "uid": "u"}
    of_plane = {"apiVersion": "controlplane.cluster.x-k8s.io/v1", "kind": "TestControlPlane", "name": "cp", "uid": "u"}
    labelled = {"labels": {"cluster.x-k8s.io/cluster-name": "c", "own": "x"}}
    with_reference = over(CLUSTER, {"spec": {"controlPlaneRef": CONTROL_PLANE_REF}})
    member = {"metadata": {"labels": {"cluster.x-k8s.io/control-plane": ""}}}
    for name, references, more in (
        ("nobody's", [], {}),
        ("the Machine's", [mine], {}),
        ("a MachineSet's", [of_set], {}),
        ("a MachineSet's and the Machine's", [of_set, mine], {}),
        ("the Machine's of another version", [{**mine, "apiVersion": "cluster.x-k8s.io/v1beta1"}], {}),
        ("an earlier Machine's", [{**mine, "uid": "old"}], {}),
        ("the Machine's, not as controller", [{**mine, "controller": None}], {}),
        ("somebody else's", [{**of_set, "kind": "Other", "controller": True}], {}),
        ("a control plane's, of a worker", [of_plane], {"cluster": with_reference}),
    ):
        owned = {"metadata": {**labelled, "ownerReferences": references}}
        yield row(f"it is {name}", {}, owned, owned, **more)
    owned = {"metadata": {**labelled, "ownerReferences": [of_plane]}}
    yield row("it is a control plane's, of its Machine", member, owned, owned, cluster=with_reference)
    yield row(
        "it has the label of another cluster",
        {},
        {"metadata": {"labels": {"cluster.x-k8s.io/cluster-name": "d"}, "ownerReferences": [mine]}},
        {},
    )
    expiry = {"annotations": {"machine.cluster.x-k8s.io/certificates-expiry": "2030-01-02T03:04:05Z"}}
    yield row("certificates of a worker", {"metadata": expiry}, {}, {})
    yield row("certificates by the Machine", over(member, {"metadata": expiry}), {}, {})
    yield row("certificates by the config", member, {}, {"metadata": expiry})
    other = {"annotations": {"machine.cluster.x-k8s.io/certificates-expiry": "2031-01-02T03:04:05Z"}}
    yield row("certificates by both", over(member, {"metadata": expiry}), {}, {"metadata": other})
    yield row("certificates by nobody any more", over(member, {"status": {"certificatesExpiryDate": "2030-01-02T03:04:05Z"}}), {}, {})
    yield row(
        "certificates at no time",
        over(member, {"metadata": {"annotations": {"machine.cluster.x-k8s.io/certificates-expiry": "soon"}}}),
        {},
        {},
    )
