"""What is made of workload clusters, against what Cluster API's control-plane provider makes of the same; recorded.

On purpose different, and not in the rows: what Cluster API's types have no field for stays in the ClusterConfiguration, and an etcd whose
members are electing a leader is said not to be known, while upstream leaves the conditions as they were.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.controlplane import planner
from slipway.fleet.controlplane.decisions import choice
from slipway.fleet.controlplane.decisions.machines import Check, ControlPlane, Machine, Member
from slipway.fleet.controlplane.decisions.quorum import etcd_survives, one_api_survives
from slipway.fleet.controlplane.workload import addons, conditions, kubeadmconfig
from slipway.fleet.controlplane.workload.view import STARTUP_GRACE, EtcdMember, MachineFacts, Observed, expects_taint
from slipway.runtime.objects import timestamp

pytestmark = pytest.mark.recorded

GOLDEN = Path(__file__).parents[3] / "golden/clusterapi/workload"
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
ALARMS = {1: "NOSPACE", 2: "CORRUPT"}

Case = dict[str, Any]


def rows(subject: str, kind: str = "") -> list[Any]:
    listed = json.loads((GOLDEN / f"{subject}.json").read_text())
    return [pytest.param(row, id=row["name"].replace(" ", "-")) for row in listed if not kind or row["kind"] == kind]


def facts(case: Case) -> list[MachineFacts]:
    return [
        MachineFacts(
            name=machine["metadata"]["name"],
            node_name=machine["status"].get("nodeRef", {}).get("name", ""),
            provider_id=machine["spec"].get("providerID", ""),
            infrastructure_kind=machine["spec"]["infrastructureRef"]["kind"],
            deleting="deletionTimestamp" in machine["metadata"],
            wants_taint=expects_taint(
                machine["spec"].get("taints"), case.get("configs", {}).get(machine["metadata"]["name"], {}).get("spec")
            ),
        )
        for machine in case["machines"]
    ]


def is_true(machine: Case, kind: str) -> bool:
    return any(item["type"] == kind and item["status"] == "True" for item in machine["status"]["conditions"])


def nodes(case: Case) -> dict[str, Case]:
    made = {}
    for node in case.get("nodes", ()):
        name = node["metadata"]["name"]
        created = timestamp(NOW - timedelta(seconds=case.get("ages", {}).get(name, 0)))
        made[name] = {**node, "metadata": {**node["metadata"], "creationTimestamp": created}}
    return made


def members(case: Case) -> tuple[EtcdMember, ...]:
    etcd = case["etcd"]
    return tuple(
        EtcdMember(
            id=item["id"],
            name=item["name"],
            learner=item["learner"],
            alarms=tuple(ALARMS[alarm["type"]] for alarm in etcd["alarms"] if alarm["id"] == item["id"] and alarm["type"]),
            is_leader=item["id"] == etcd["leader"],
        )
        for item in etcd.get("members", ())
    )


def observed(case: Case) -> Observed:
    if case.get("nodeListError"):
        return Observed({}, {}, nodes_error=case["nodeListError"])
    etcd, found = case["etcd"], nodes(case)
    places = {f"{component}-{name}": (component, name) for component in conditions.POD_CONDITIONS for name in found}
    seen = Observed(
        found,
        {places[pod["metadata"]["name"]]: pod for pod in case["pods"] if pod["metadata"]["name"] in places},
        pods_unread=frozenset(places[name] for name in case.get("podErrors", ())),
    )
    seen = seen._replace(pods={place: pod for place, pod in seen.pods.items() if place not in seen.pods_unread})
    # Members are asked only at Nodes whose Machines stay.
    if not any(machine.node_name in found and not machine.deleting for machine in facts(case)):
        return seen
    for field, sentence in (
        ("connectError", "Failed to connect to etcd"),
        ("membersError", "Failed to get etcd members"),
        ("alarmsError", "Failed to get etcd alarms"),
    ):
        if etcd.get(field):
            return seen._replace(members_error=f"{sentence}: {etcd[field]}")
    return seen._replace(members=members(case)) if etcd else seen


def is_managed(case: Case) -> bool:
    return "controlPlane" not in case or "external" not in case["controlPlane"]["spec"]["kubeadmConfigSpec"]["clusterConfiguration"].get(
        "etcd", {}
    )


def told(items: Any) -> Case:
    now = [item.condition for item in items if item.condition is not None]
    older = [item.deprecated for item in items if item.deprecated is not None]
    shown = {
        "conditions": [{"type": c.type, "status": c.status, "reason": c.reason, "message": c.message} for c in now],
        "older": [{"type": c.type, "status": c.status, "reason": c.reason, "severity": c.severity, "message": c.message} for c in older],
    }
    return {
        form: sorted(({key: value for key, value in item.items() if value} for item in listed), key=lambda item: item["type"])
        for form, listed in shown.items()
    }


@pytest.mark.parametrize("case", rows("conditions"))
def test_conditions_are_those_of_upstream(case: Case) -> None:
    judged = conditions.judge(observed(case), facts(case), etcd_managed=is_managed(case), now=NOW)
    found = {
        "machines": {name: told(items) for name, items in judged.machines.items()},
        "controlPlane": told(judged.control_plane),
        "match": judged.members_match,
    }
    # Nothing of upstream asks whether an external etcd matches anything.
    expected = {**case["answer"], "match": case["answer"]["match"] or not is_managed(case)}
    assert found == expected


@pytest.mark.parametrize("case", rows("trouble"))
def test_a_cluster_that_cannot_be_seen_is_said_to_be_so_as_upstream_does(case: Case) -> None:
    def ago(seconds: int | None) -> datetime | None:
        return None if seconds is None else NOW - timedelta(seconds=seconds)

    connection = conditions.Connection(ago(case["probed"]), case["failures"], case["connected"])
    why = conditions.trouble(ago(case["initialized"]), connection, NOW)
    present = [item["type"] for item in case["controlPlane"]["status"]["conditions"]]
    found: Case = {"machines": {machine.name: [] for machine in facts(case)}, "controlPlane": []}
    if why is not None:
        judged = conditions.blind(why, facts(case), present, etcd_managed=is_managed(case))
        found = {"machines": {name: told(items) for name, items in judged.machines.items()}, "controlPlane": told(judged.control_plane)}
        found = {
            "machines": {name: _undated(items["conditions"]) for name, items in found["machines"].items()},
            "controlPlane": _undated(found["controlPlane"]["conditions"]),
        }
    assert found == case["answer"]


def _undated(listed: list[Case]) -> list[Case]:
    sentence = "Last successful probe at "
    return [{**item, "message": sentence + "then"} if item.get("message", "").startswith(sentence) else item for item in listed]


def plane(case: Case) -> ControlPlane:
    """As the planner sees it."""
    found = nodes(case)
    young = {name for name, node in found.items() if NOW - datetime.fromisoformat(node["metadata"]["creationTimestamp"]) < STARTUP_GRACE}
    machines = [
        Machine(
            name=machine["metadata"]["name"],
            created=datetime.fromisoformat(machine["metadata"]["creationTimestamp"]),
            node=machine["status"].get("nodeRef", {}).get("name", ""),
            checks={item["type"]: Check(item["status"]) for item in machine["status"]["conditions"]},
            deleted=NOW if "deletionTimestamp" in machine["metadata"] else None,
            up_to_date=is_true(machine, "UpToDate"),
            health_checked=is_true(machine, "HealthCheckSucceeded"),
        )
        for machine in case["machines"]
    ]
    return ControlPlane(
        replicas=3,
        machines=tuple(machines),
        now=NOW,
        manages_etcd=is_managed(case),
        members=tuple(Member(member.id, member.name, member.learner, bool(member.alarms), member.is_leader) for member in members(case)),
        # What is asked is what becomes of the members, not whether they are looked at.
        members_healthy=False,
        young_nodes=frozenset(young),
    )


@pytest.mark.parametrize("case", rows("quorum"))
def test_quorum_is_judged_as_upstream_does(case: Case) -> None:
    assert etcd_survives(plane(case), without=case["remove"], with_new=case.get("add", False)) is case["answer"]


@pytest.mark.parametrize("case", rows("members"))
def test_unknown_members_go_as_with_upstream(case: Case) -> None:
    step = planner._stray_member(plane(case))
    expected = case["answer"]
    assert (step.member.id if isinstance(step, planner.RemoveMember) else None) == expected.get("removed")
    assert isinstance(step, planner.Wait) is expected["refused"]


@pytest.mark.parametrize("case", rows("candidates"))
def test_leadership_goes_where_upstream_would_have_it(case: Case) -> None:
    leaving = plane({**case, "etcd": {}})
    leader = Member(1, leaving.machine(case["leaving"]).node, leader=True)
    found = choice.new_leaders(leaving._replace(members=(leader,)), leaving.machine(case["leaving"]))
    assert found == [f"node-{name}" for name in case["answer"]]


@pytest.mark.parametrize("case", rows("components"))
def test_a_machine_whose_components_all_work_must_stay(case: Case) -> None:
    assert one_api_survives(plane({**case, "etcd": {}}), without=case["remove"]) is case["answer"]


def spec_of(case: Case) -> tuple[Case, str]:
    spec = case["controlPlane"]["spec"]
    return spec["kubeadmConfigSpec"]["clusterConfiguration"], spec["version"]


def config_map(text: str) -> Case:
    return {"metadata": {"name": "kubeadm-config", "namespace": "kube-system"}, "data": {"ClusterConfiguration": text}}


def meaning(text: str) -> Any:
    return _without_empty(yaml.safe_load(text))


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: part for key, part in ((key, _without_empty(part)) for key, part in value.items()) if part not in (None, "", [], {})}
    return [_without_empty(part) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize("case", rows("kubeadm-config"))
def test_the_cluster_configuration_follows_as_with_upstream(case: Case) -> None:
    found = config_map(case["clusterConfig"])
    if "error" in case["answer"]:
        with pytest.raises(OperatorError):
            kubeadmconfig.updated(found, *spec_of(case))
        return
    changed = kubeadmconfig.updated(found, *spec_of(case))
    text = (changed or found)["data"]["ClusterConfiguration"]
    assert meaning(text) == meaning(case["answer"]["clusterConfig"])
    assert (changed is None) is (case["answer"]["clusterConfig"] == case["clusterConfig"])
    assert kubeadmconfig.updated(changed or found, *spec_of(case)) is None


def template(name: str, image: str, volumes: list[Case] | None = None) -> Case:
    return {"spec": {"template": {"spec": {"containers": [{"name": name, "image": image}], "volumes": volumes or []}}}}


@pytest.mark.parametrize("case", rows("addons", "kube-proxy"))
def test_kube_proxy_gets_the_image_that_upstream_gives_it(case: Case) -> None:
    spec, version = spec_of(case)
    found = template("kube-proxy", case["image"])
    if "error" in case["answer"]:
        with pytest.raises(OperatorError):
            addons.kube_proxy_image(found, version, spec.get("imageRepository", ""))
        return
    assert (addons.kube_proxy_image(found, version, spec.get("imageRepository", "")) or case["image"]) == case["answer"]["image"]


@pytest.mark.parametrize("case", rows("addons", "coredns"))
def test_coredns_becomes_what_upstream_makes_of_it(case: Case) -> None:
    spec, version = spec_of(case)
    corefile = {"metadata": {"name": "coredns"}, "data": {"Corefile": case["corefile"]}}
    volume = {"name": "config-volume", "configMap": {"name": "coredns", "items": [{"key": "Corefile", "path": "Corefile"}]}}
    deployment = template("coredns", case["image"], [volume])
    if "error" in case["answer"]:
        with pytest.raises(OperatorError):
            addons.core_dns(corefile, deployment, spec, version)
        return
    wanted = addons.core_dns(corefile, deployment, spec, version)
    assert (wanted.image if wanted else case["image"]) == case["answer"]["image"]
    data = {"Corefile": wanted.corefile, "Corefile-backup": wanted.original} if wanted else corefile["data"]
    assert data == case["answer"]["data"]
    assert addons.volumes(deployment, "Corefile")[0]["configMap"]["items"][0]["key"] == case["answer"]["key"]
    dns = kubeadmconfig.with_dns_image(config_map(case["clusterConfig"]), spec.get("dns") or {}, version) if wanted else None
    text = dns["data"]["ClusterConfiguration"] if dns else case["clusterConfig"]
    assert meaning(text) == meaning(case["answer"]["clusterConfig"])
