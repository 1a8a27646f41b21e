"""What is refused of the bare-metal provider's objects, and of those that roll machines of ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from fleet.baremetal.rollouts.rolling import IMAGE, plane, workers

from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    BAREMETAL_MACHINE_TEMPLATE,
    CONFIG_MAP,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    Kind,
)
from slipway.fleet.baremetal.rollouts.known import NothingKnown
from slipway.fleet.baremetal.webhooks import webhooks
from slipway.runtime.webhook.admission import AdmissionRequest, Verdict

Content = dict[str, Any]


class Listed:
    """Objects that somebody has read."""

    def __init__(self, objects: dict[Kind, list[Content]]) -> None:
        self._objects = objects

    def list(self, kind: Kind, namespace: str) -> Sequence[Content]:
        return [each for each in self._objects.get(kind, []) if not namespace or each["metadata"]["namespace"] == namespace]

    def get(self, kind: Kind, namespace: str, name: str) -> Content | None:
        return next((each for each in self.list(kind, namespace) if each["metadata"]["name"] == name), None)


def named(name: str, spec: Content, **more: Any) -> Content:
    return {"metadata": {"name": name, "namespace": "n"}, "spec": spec, **more}


def host(name: str, *addresses: str) -> Content:
    return named(name, {"observedNetwork": {"interfaces": [{"name": "eth0", "addresses": list(addresses)}]}})


def asked(kind: Kind, new: Content, old: Content | None = None, known: Any = None) -> Verdict:
    (hook,) = [each for each in webhooks(known or Listed({})) if each.kind == kind]
    name = new["metadata"]["name"]
    return hook.validate(AdmissionRequest("UPDATE" if old is not None else "CREATE", new, old, "n", name, "someone", False))


def refusals(kind: Kind, new: Content, old: Content | None = None, known: Any = None) -> list[str]:
    return [problem.text for problem in asked(kind, new, old, known).problems]


def cluster(host: str = "192.0.2.100", vrid: int | None = 51, name: str = "c", **spec: Any) -> Content:
    balancer = {"host": host, "port": 6443, "type": "Internal"} | ({"vrid": vrid} if vrid is not None else {})
    return named(name, {"controlPlaneLoadBalancer": balancer, **spec})


HOSTS = {MACHINE_INVENTORY: [host("h1", "192.0.2.11/24", "fe80::1/64"), host("h2", "192.0.2.12/24"), host("odd", "nonsense")]}
ENDPOINT = {"host": "192.0.2.100", "port": 6443}


def test_a_cluster_with_an_address_of_its_own_is_taken() -> None:
    assert refusals(BAREMETAL_CLUSTER, cluster(), known=Listed(HOSTS)) == []


def test_the_endpoint_may_be_filled_in_and_not_changed() -> None:
    filled = cluster(controlPlaneEndpoint=ENDPOINT)
    assert refusals(BAREMETAL_CLUSTER, filled, cluster()) == []
    (text,) = refusals(BAREMETAL_CLUSTER, cluster(controlPlaneEndpoint={**ENDPOINT, "port": 7443}), filled)
    assert text == "spec.controlPlaneEndpoint: Forbidden: field is immutable once it is set: it is 192.0.2.100:6443"
    assert refusals(BAREMETAL_CLUSTER, cluster(), filled)
    without_port = cluster(controlPlaneEndpoint={"host": ENDPOINT["host"]})
    assert refusals(BAREMETAL_CLUSTER, filled, without_port) == [], "the provider fills it in"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (named("c", {}), "spec.controlPlaneLoadBalancer: Required value"),
        (cluster(vrid=None), "spec.controlPlaneLoadBalancer.vrid: Required value: choose a number from 1 to 255"),
        (cluster(vrid=0), "spec.controlPlaneLoadBalancer.vrid: Required value"),
        (cluster(vrid=256), "must be from 1 to 255"),
        (cluster(host="api.example.com"), "must be an IPv4 address"),
        (cluster(host="2001:db8::1"), "must be an IPv4 address"),
        (cluster(host="192.0.2.99", controlPlaneEndpoint=ENDPOINT), "must be that of the control plane's endpoint, 192.0.2.100"),
        (cluster(host="192.0.2.12"), "is the host h2's own address"),
    ],
)
def test_a_virtual_address_that_cannot_work_is_refused(content: Content, sentence: str) -> None:
    (text,) = refusals(BAREMETAL_CLUSTER, content, known=Listed(HOSTS))
    assert sentence in text


@pytest.mark.parametrize(
    "content",
    [
        named("c", {"controlPlaneLoadBalancer": {"host": "api.example.com", "port": 6443, "type": "External"}}),
        named("c", {"controlPlaneEndpoint": ENDPOINT}),
    ],
)
def test_a_load_balancer_of_somebody_elses_needs_no_router(content: Content) -> None:
    assert refusals(BAREMETAL_CLUSTER, content) == []


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (cluster("192.0.2.101", name="other"), "is in use by the BaremetalCluster n/other in the same network segment"),
        (cluster("192.0.2.100", vrid=52, name="other"), "is the address of the BaremetalCluster n/other"),
    ],
)
def test_a_router_or_an_address_in_use_is_refused(other: Content, sentence: str) -> None:
    (text,) = refusals(BAREMETAL_CLUSTER, cluster(), known=Listed({**HOSTS, BAREMETAL_CLUSTER: [other]}))
    assert sentence in text


@pytest.mark.parametrize("change", [{"vrid": 52}, {"type": "External"}])
def test_hosts_that_share_an_address_keep_their_router(change: Content) -> None:
    shared = cluster()
    shared["status"] = {"conditions": [{"type": "VIPReady", "status": "True", "reason": "x", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    changed = cluster()
    changed["spec"]["controlPlaneLoadBalancer"] |= change
    (text,) = refusals(BAREMETAL_CLUSTER, changed, shared)
    assert "type and vrid stay as they are while hosts share the address" in text
    assert refusals(BAREMETAL_CLUSTER, changed, cluster()) == [], "nobody has it yet"


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        (BAREMETAL_CLUSTER, {"controlPlaneLoadBalancer": {"host": "no address"}}),
        (BAREMETAL_MACHINE, {"machineInventoryPoolRef": {"name": "p"}, "providerID": "aws:///i-1"}),
        (MACHINE_INVENTORY_POOL, {"clusterName": "c", "machineInventories": [{"name": "a"}, {"name": "a"}]}),
    ],
)
def test_what_was_stored_when_nobody_looked_can_be_labelled_and_can_go(kind: Kind, spec: Content) -> None:
    stored = named("x", spec)
    assert refusals(kind, stored)
    labelled = {**stored, "metadata": {**stored["metadata"], "labels": {"a": "b"}}}
    assert refusals(kind, labelled, stored) == []
    assert refusals(kind, {**stored, "metadata": {**stored["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}, stored) == []


def test_a_router_in_another_segment_does_not_count() -> None:
    other = cluster("198.51.100.1", name="other")
    assert asked(BAREMETAL_CLUSTER, cluster(), known=Listed({**HOSTS, BAREMETAL_CLUSTER: [other]})) == Verdict([], [])


def test_where_segments_are_not_known_an_equal_router_is_told() -> None:
    verdict = asked(BAREMETAL_CLUSTER, cluster(), known=Listed({BAREMETAL_CLUSTER: [cluster("198.51.100.1", name="other")]}))
    assert not verdict.problems
    assert "they must not be in one network segment" in verdict.warnings[0]


def test_a_cluster_with_a_conflict_can_still_be_changed_otherwise() -> None:
    known = Listed({**HOSTS, BAREMETAL_CLUSTER: [cluster("192.0.2.100", name="other")]})
    assert refusals(BAREMETAL_CLUSTER, cluster(networkType="calico"), cluster(), known) == []


def test_what_is_not_known_yet_is_told_and_refuses_nothing() -> None:
    verdict = asked(BAREMETAL_CLUSTER, cluster(host="192.0.2.12"), known=NothingKnown())
    assert not verdict.problems
    assert verdict.warnings


MACHINE = {"machineInventoryPoolRef": {"name": "pool"}}


@pytest.mark.parametrize(
    ("new", "old", "sentence"),
    [
        (
            {"machineInventoryPoolRef": {"name": "other"}},
            MACHINE,
            "spec.machineInventoryPoolRef: Forbidden: field is immutable: delete the Machine",
        ),
        ({**MACHINE, "providerID": "baremetal:///b"}, {**MACHINE, "providerID": "baremetal:///a"}, "it is baremetal:///a"),
        ({**MACHINE, "providerID": "aws:///i-1"}, None, "must be baremetal:/// and the name of an inventory"),
        ({**MACHINE, "providerID": "baremetal:///"}, None, "must be baremetal:///"),
        ({**MACHINE, "providerID": "baremetal:///A b"}, None, "must be baremetal:///"),
    ],
)
def test_a_machine_stays_with_its_pool_and_host(new: Content, old: Content | None, sentence: str) -> None:
    (text,) = refusals(BAREMETAL_MACHINE, named("m", new), None if old is None else named("m", old))
    assert sentence in text


def test_a_machine_gets_its_host() -> None:
    assert refusals(BAREMETAL_MACHINE, named("m", {**MACHINE, "providerID": "baremetal:///host-1"}), named("m", MACHINE)) == []


def test_a_template_stays_as_it_is() -> None:
    old = named("t", {"template": {"spec": MACHINE}})
    (text,) = refusals(BAREMETAL_MACHINE_TEMPLATE, named("t", {"template": {"spec": {"machineInventoryPoolRef": {"name": "b"}}}}), old)
    assert text.startswith("spec.template.spec: Forbidden: field is immutable: make another template")
    labelled = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    assert refusals(BAREMETAL_MACHINE_TEMPLATE, labelled, old) == []


def pool(*members: str | tuple[str, str], name: str = "p", cluster: str = "c", **more: Any) -> Content:
    entries = [{"name": each} if isinstance(each, str) else {"name": each[0], "hostname": each[1]} for each in members]
    return named(name, {"clusterName": cluster, "machineInventories": entries}, **more)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (pool("a", "b", "a"), 'spec.machineInventories[2].name: Duplicate value: "a"'),
        (pool(("a", "x"), ("b", "x")), 'spec.machineInventories[1].hostname: Duplicate value: "x"'),
        (pool("a", ("b", "a")), 'spec.machineInventories[1].hostname: Duplicate value: "a"'),
        (pool(("a", "Not A Host")), "spec.machineInventories[0].hostname: Invalid value"),
        (pool(("a", "x" * 64)), "must be no more than 63 characters"),
        (pool("taken"), "is in the pool other: a host is in one pool at most"),
    ],
)
def test_a_pool_with_hosts_that_it_cannot_have_is_refused(content: Content, sentence: str) -> None:
    found = refusals(MACHINE_INVENTORY_POOL, content, known=Listed({MACHINE_INVENTORY_POOL: [pool("taken", name="other")]}))
    assert [text for text in found if sentence in text]


def test_a_hostname_is_once_in_a_cluster_whatever_the_pool() -> None:
    known = Listed({MACHINE_INVENTORY_POOL: [pool(("a", "node-1"), name="planes"), pool(("b", "node-2"), name="others", cluster="d")]})
    (text,) = refusals(MACHINE_INVENTORY_POOL, pool(("c", "node-1"), ("d", "node-2")), known=known)
    assert text.startswith('spec.machineInventories[0].hostname: Invalid value: "node-1": is the name of a host in the pool planes')
    before = pool(("c", "node-1"))
    assert refusals(MACHINE_INVENTORY_POOL, pool(("c", "node-1"), "e"), before, known) == [], "it was so before"


def test_a_pool_that_is_being_deleted_has_no_hosts() -> None:
    leaving = pool("taken", name="other")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert refusals(MACHINE_INVENTORY_POOL, pool("taken"), known=Listed({MACHINE_INVENTORY_POOL: [leaving]})) == []


def test_a_pool_that_shares_a_host_already_can_be_mended() -> None:
    known = Listed({MACHINE_INVENTORY_POOL: [pool("taken", name="other"), pool("taken", "b")]})
    assert refusals(MACHINE_INVENTORY_POOL, pool("taken"), pool("taken", "b"), known) == []


def test_a_pool_with_hosts_in_use_stays_with_its_cluster() -> None:
    used = pool("a", "b", status={"total": 2, "available": 1, "allocated": 1})
    (text,) = refusals(MACHINE_INVENTORY_POOL, pool("a", "b", cluster="d"), used)
    assert "cannot be changed while 1 hosts of the pool are in use by the cluster c" in text
    assert refusals(MACHINE_INVENTORY_POOL, pool("a", "b", cluster="d"), pool("a", "b", status={"total": 2, "available": 2})) == []


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"imageStaging": "Ahead", "nextVersion": "v1.35.4"}, ""),
        ({"imageStaging": "Ahead", "nextVersion": "1.35.4-2"}, ""),
        ({"imageStaging": "Ahead", "nextVersion": "newest"}, 'spec.nextVersion: Invalid value: "newest": must be a Kubernetes version'),
        ({"imageStaging": "OnDemand", "nextVersion": "v1.35.4"}, "spec.nextVersion: Forbidden: nothing is staged ahead in this pool"),
        ({"nextVersion": "v1.35.4"}, "set spec.imageStaging to Ahead, or take the version out"),
    ],
)
def test_a_version_that_is_staged_ahead_is_one_and_in_a_pool_that_stages(spec: Content, sentence: str) -> None:
    found = pool("a")
    found["spec"] |= spec
    told = refusals(MACHINE_INVENTORY_POOL, found)
    assert [text for text in told if sentence and sentence in text] == told
    assert bool(told) == bool(sentence)


def catalog(**data: str) -> Content:
    return {"metadata": {"name": "elemental-image-catalog", "namespace": "n"}, "data": data}


@pytest.mark.parametrize(
    ("new", "old", "refused", "told"),
    [
        ({"v1.34.5": IMAGE}, {}, 0, 0),
        ({"1.34.5": IMAGE}, {}, 1, 0),
        ({"v1.34.5": "no image"}, {"v1.34.5": IMAGE}, 1, 0),
        ({"1.34.5": IMAGE, "v1.35.4": IMAGE}, {"1.34.5": IMAGE}, 0, 1),
        ({}, {"1.34.5": IMAGE}, 0, 0),
    ],
)
def test_an_entry_that_is_added_to_the_catalog_is_a_good_one(new: Content, old: Content, refused: int, told: int) -> None:
    verdict = asked(CONFIG_MAP, catalog(**new), catalog(**old))
    assert (len(verdict.problems), len(verdict.warnings)) == (refused, told)


def test_other_config_maps_are_none_of_our_business() -> None:
    assert asked(CONFIG_MAP, {"metadata": {"name": "other", "namespace": "n"}, "data": {"a": "b"}}) == Verdict()


TEMPLATES = [named("t", {"template": {"spec": {"machineInventoryPoolRef": {"name": "cp"}}}})]
TEMPLATES += [named("w", {"template": {"spec": {"machineInventoryPoolRef": {"name": "w"}}}})]
AROUND = Listed(
    {
        CONFIG_MAP: [catalog(**{"v1.34.5": IMAGE, "v1.35.4": IMAGE})],
        MACHINE_INVENTORY_POOL: [pool("a", "b", "c", name="cp"), pool("d", "e", name="w")],
        BAREMETAL_MACHINE_TEMPLATE: TEMPLATES,
        KUBEADM_CONTROL_PLANE: [plane()],
        MACHINE_DEPLOYMENT: [workers()],
    }
)


@pytest.mark.parametrize(
    ("kind", "new", "old", "sentences"),
    [
        (KUBEADM_CONTROL_PLANE, plane("v1.35.4"), plane(), []),
        (KUBEADM_CONTROL_PLANE, plane("v1.34.9"), plane(), ["spec.version: Forbidden: the ConfigMap n/elemental-image-catalog has no key"]),
        (KUBEADM_CONTROL_PLANE, plane(surge=1), None, ["spec.rollout.strategy.rollingUpdate.maxSurge: Forbidden"]),
        (MACHINE_DEPLOYMENT, workers(surge=1), None, ["raise maxUnavailable"]),
        (MACHINE_DEPLOYMENT, workers("v1.35.4"), workers(), ["ahead of its control plane, which is v1.34.5"]),
        (MACHINE_DEPLOYMENT, workers(kind="MetalMachineTemplate", surge=1), None, []),
    ],
)
def test_a_rollout_that_cannot_end_is_refused(kind: Kind, new: Content, old: Content | None, sentences: list[str]) -> None:
    found = refusals(kind, new, old, AROUND)
    assert [sentence in text for sentence, text in zip(sentences, found, strict=True)] == [True] * len(sentences)


def test_what_only_has_to_wait_is_a_warning() -> None:
    verdict = asked(MACHINE_DEPLOYMENT, workers(replicas=4), workers(), AROUND)
    assert not verdict.problems
    assert "the pool w has 2 hosts, and 4 machines are wanted from it" in verdict.warnings[0]


def test_an_object_that_is_being_deleted_is_let_go() -> None:
    leaving = workers(surge=1, deletionTimestamp="2026-01-01T00:00:00Z")
    assert asked(MACHINE_DEPLOYMENT, leaving, workers(), AROUND) == Verdict()


def test_a_rollout_is_not_refused_for_what_is_not_known_yet() -> None:
    verdict = asked(KUBEADM_CONTROL_PLANE, plane("v1.34.9"), plane(), NothingKnown())
    assert not verdict.problems
    assert "the image catalog was not looked at: it is not known yet" in verdict.warnings


def test_others_objects_are_stored_unseen_while_nobody_answers() -> None:
    ours = {BAREMETAL_CLUSTER, BAREMETAL_MACHINE, BAREMETAL_MACHINE_TEMPLATE, MACHINE_INVENTORY_POOL}
    for hook in webhooks(NothingKnown()):
        assert hook.fails_open == bool(hook.condition) == bool(hook.purpose) == (hook.kind not in ours)
