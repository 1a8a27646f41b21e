"""Every invariant of the soak: a state that it lets pass, and one that it does not."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from slipway.api.cluster.kinds import (
    BAREMETAL_MACHINE,
    CLUSTER,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    SECRET,
    Kind,
)
from slipway.api.elemental import plan as plans
from slipway.simulation.soak.judging import invariants
from slipway.simulation.soak.judging.invariants import INVARIANTS, Step
from slipway.simulation.soak.judging.snapshot import ClusterTruth, EtcdTruth, Snapshot, Truth

Manifest = dict[str, Any]
LABEL = "cluster.x-k8s.io/cluster-name"
GOING = "2026-01-01T00:00:00Z"


def thing(name: str, *, going: bool = False, labels: dict[str, str] | None = None, **more: Any) -> Manifest:
    metadata = {"name": name, "labels": {LABEL: "one", **(labels or {})}, **({"deletionTimestamp": GOING} if going else {})}
    return {"metadata": metadata, **more}


def host(name: str, owner: str = "", cluster: str = "one") -> Manifest:
    owned = {"baremetal.alauda.io/owner-baremetalmachine": owner, "baremetal.alauda.io/owner-cluster": cluster} if owner else {}
    return {"metadata": {"name": name, "annotations": owned}}


def bare(name: str, claims: str = "", *, going: bool = False, forced: bool = False) -> Manifest:
    status = {"conditions": [{"type": "InventoryAllocated", "status": "True"}], "machineInventoryRef": {"name": claims}} if claims else {}
    found = thing(name, going=going, status=status)
    return {**found, "metadata": {**found["metadata"], "annotations": {"slipway.io/force-release": "it is dead"} if forced else {}}}


def worker(name: str, *, available: bool = True, going: bool = False) -> Manifest:
    status = {"conditions": [{"type": "Available", "status": "True" if available else "False"}]}
    return thing(name, going=going, labels={"cluster.x-k8s.io/deployment-name": "workers"}, status=status)


def plane(name: str, *, node: bool = True, going: bool = False) -> Manifest:
    return thing(name, going=going, labels={"cluster.x-k8s.io/control-plane": ""}, status={"nodeRef": {"name": name}} if node else {})


def workers(replicas: int, **budget: int) -> Manifest:
    return thing("workers", spec={"replicas": replicas, "rollout": {"strategy": {"rollingUpdate": budget}}})


def plan_secret(
    name: str, text: bytes, owner: str, *, applied: bool, type_: str = "reprovision", minute: int = 0, begun: bool = False
) -> Manifest:
    data = {"plan": text, **({"applied-checksum": plans.checksum(text).encode()} if applied else {})}
    data |= {plans.PLAN_STATE: plans.IN_PROGRESS.encode()} if begun else {}
    annotations = {"slipway.io/plan-owner": owner, "baremetal.alauda.io/plan.type": type_}
    annotations["slipway.io/plan-written-at"] = f"2026-01-01T00:{minute:02}:00Z"
    encoded = {key: b64encode(value).decode() for key, value in data.items()}
    return {"metadata": {"name": name, "annotations": annotations}, "type": "elemental.cattle.io/plan", "data": encoded}


def step(
    kind: Kind, before: Manifest | None, after: Manifest | None, *others: tuple[Kind, Manifest], by_hand: tuple[str, ...] = ()
) -> Step:
    """A write, and what there is beside it; the Cluster is there."""
    snapshot = Snapshot()
    for each, manifest in (*others, (CLUSTER, thing("one"))):
        snapshot.put(each, manifest["metadata"]["name"], manifest)
    concerned = after if after is not None else before
    assert concerned is not None
    snapshot.put(kind, concerned["metadata"]["name"], after)
    return Step(snapshot, kind, before, after, by_hand, by_hand)


def cleaned(before: Manifest, machine: Manifest, minute: int = 0) -> Step:
    """A machine writes the clean plan to its host."""
    after = plan_secret("host-1", b'{"a":2}', "a", applied=False, type_="clean", minute=minute)
    return step(SECRET, before, after, (MACHINE_INVENTORY, host("host-1", "a")), (BAREMETAL_MACHINE, machine))


A, B = (BAREMETAL_MACHINE, bare("a", "host-1")), (BAREMETAL_MACHINE, bare("b", "host-1"))
TWO = (MACHINE_DEPLOYMENT, workers(2, maxUnavailable=1, maxSurge=0))
OLD, NEW = plan_secret("host-1", b'{"a":1}', "a", applied=True), plan_secret("host-1", b'{"a":2}', "a", applied=False)
BUSY = plan_secret("host-1", b'{"a":1}', "b", applied=False)
DUE, BEGUN = (plan_secret("host-1", b'{"a":1}', "a", applied=False, begun=begun) for begun in (False, True))
# As whoever keeps the inventory makes it.
ANEW = {
    "metadata": {"name": "host-1"},
    "type": "elemental.cattle.io/plan",
    "data": {"plan": b64encode(plans.EMPTY).decode()},
}
GIVEN_UP = {"metadata": {"name": "host-1", "annotations": {"slipway.io/quarantined-by": "a"}}}

CASES: dict[str, tuple[str, Step, bool]] = {
    "two machines have a host each": (
        "claimed-once",
        step(MACHINE_INVENTORY, host("host-2"), host("host-2", "b"), A, (BAREMETAL_MACHINE, bare("b", "host-2"))),
        True,
    ),
    "two machines say that they have one host": ("claimed-once", step(BAREMETAL_MACHINE, bare("b"), bare("b", "host-1"), A), False),
    "one of the two is going and has given it back": (
        "claimed-once",
        step(BAREMETAL_MACHINE, bare("b"), bare("b", "host-1"), (BAREMETAL_MACHINE, bare("a", "host-1", going=True))),
        True,
    ),
    "one machine has two hosts": (
        "claimed-once",
        step(MACHINE_INVENTORY, host("host-2"), host("host-2", "a"), (MACHINE_INVENTORY, host("host-1", "a"))),
        False,
    ),
    "a host is released": ("never-taken-away", step(MACHINE_INVENTORY, host("host-1", "a"), host("host-1")), True),
    "a host goes from one machine to another": (
        "never-taken-away",
        step(MACHINE_INVENTORY, host("host-1", "a"), host("host-1", "b")),
        False,
    ),
    "host and machine agree": ("claims-agree", step(MACHINE_INVENTORY, host("host-1"), host("host-1", "a"), A), True),
    "a machine says that it has a host of nobody": (
        "claims-agree",
        step(BAREMETAL_MACHINE, bare("a"), bare("a", "host-1"), (MACHINE_INVENTORY, host("host-1"))),
        False,
    ),
    "a host is of a machine that is gone": (
        "claims-agree",
        step(BAREMETAL_MACHINE, bare("a", "host-1"), None, (MACHINE_INVENTORY, host("host-1", "a"))),
        False,
    ),
    "a host is of another cluster than its machine": (
        "claims-agree",
        step(MACHINE_INVENTORY, host("host-1"), host("host-1", "a", "two"), A),
        False,
    ),
    "counters are the total": (
        "counters-add-up",
        step(MACHINE_INVENTORY_POOL, None, thing("pool", status={"total": 3, "available": 1, "allocated": 2})),
        True,
    ),
    "counters are not the total": (
        "counters-add-up",
        step(MACHINE_INVENTORY_POOL, None, thing("pool", status={"total": 3, "available": 1, "allocated": 1})),
        False,
    ),
    "the owner writes a plan to a host that is at nothing": (
        "plans-are-the-owners",
        step(SECRET, OLD, NEW, (MACHINE_INVENTORY, host("host-1", "a"))),
        True,
    ),
    "a plan is written over one in flight": (
        "plans-are-the-owners",
        step(SECRET, BUSY, NEW, (MACHINE_INVENTORY, host("host-1", "a"))),
        False,
    ),
    "a plan is of a machine that does not have the host": (
        "plans-are-the-owners",
        step(SECRET, OLD, NEW, (MACHINE_INVENTORY, host("host-1", "b"))),
        False,
    ),
    "a host that was given up gets its clean plan over what it was at": (
        "plans-are-the-owners",
        step(SECRET, BUSY, plan_secret("host-1", b'{"a":2}', "a", applied=False, type_="clean"), (MACHINE_INVENTORY, GIVEN_UP)),
        True,
    ),
    "a host that the operator gives up gets its clean plan over what it was at, before it is in quarantine": (
        "plans-are-the-owners",
        cleaned(BEGUN, bare("a", "host-1", going=True, forced=True)),
        True,
    ),
    "a host that nobody gives up gets its clean plan over what it is at": (
        "plans-are-the-owners",
        cleaned(BEGUN, bare("a", "host-1", going=True), minute=9),
        False,
    ),
    "a host that has not begun with a plan for minutes gets its clean plan": (
        "plans-are-the-owners",
        cleaned(DUE, bare("a", "host-1", going=True), minute=2),
        True,
    ),
    "a host whose Secret was made anew gets its clean plan before it has looked": (
        "plans-are-the-owners",
        cleaned(ANEW, bare("a", "host-1", going=True)),
        True,
    ),
    "a machine that stays writes another plan over that of a Secret that was made anew": (
        "plans-are-the-owners",
        cleaned(ANEW, bare("a", "host-1")),
        False,
    ),
    "a host that has not begun with a plan gets its clean plan too early": (
        "plans-are-the-owners",
        cleaned(DUE, bare("a", "host-1", going=True), minute=1),
        False,
    ),
    "a machine that stays writes another plan over one that was not begun": (
        "plans-are-the-owners",
        cleaned(DUE, bare("a", "host-1"), minute=9),
        False,
    ),
    "somebody edits a plan by hand": (
        "plans-are-the-owners",
        step(SECRET, BUSY, NEW, (MACHINE_INVENTORY, host("host-1", "b")), by_hand=("host-1",)),
        True,
    ),
    "one of two available workers is deleted, and one may be missing": (
        "floor",
        step(MACHINE, worker("w1"), worker("w1", going=True), (MACHINE, worker("w2")), TWO),
        True,
    ),
    "an available worker is deleted while another one is missing already": (
        "floor",
        step(MACHINE, worker("w1"), worker("w1", going=True), (MACHINE, worker("w2", available=False)), TWO),
        False,
    ),
    "a worker that is not available is deleted": (
        "floor",
        step(MACHINE, worker("w1", available=False), worker("w1", available=False, going=True), TWO),
        True,
    ),
    "the operator deletes a worker": (
        "floor",
        step(MACHINE, worker("w1"), worker("w1", going=True), TWO, by_hand=("w1",)),
        True,
    ),
    "a second of two workers is made": ("ceiling", step(MACHINE, None, worker("w2"), (MACHINE, worker("w1")), TWO), True),
    "a third of two workers is made": (
        "ceiling",
        step(MACHINE, None, worker("w3"), (MACHINE, worker("w1")), (MACHINE, worker("w2")), TWO),
        False,
    ),
    "a third of two workers is made while one is going": (
        "ceiling",
        step(MACHINE, None, worker("w3"), (MACHINE, worker("w1", going=True)), (MACHINE, worker("w2")), TWO),
        True,
    ),
    "a control plane is deleted while the others stand": (
        "one-control-plane",
        step(MACHINE, plane("p1"), plane("p1", going=True), (MACHINE, plane("p2"))),
        True,
    ),
    "a control plane is deleted while another one is going": (
        "one-control-plane",
        step(MACHINE, plane("p1"), plane("p1", going=True), (MACHINE, plane("p2", going=True))),
        False,
    ),
    "a control plane is made while another one is no Node yet": (
        "one-control-plane",
        step(MACHINE, None, plane("p1", node=False), (MACHINE, plane("p2", node=False))),
        False,
    ),
    "all control planes go with their cluster": (
        "one-control-plane",
        Step(
            Snapshot({CLUSTER: {"one": thing("one", going=True)}, MACHINE: {"p2": plane("p2", going=True)}}),
            MACHINE,
            plane("p1"),
            plane("p1", going=True),
        ),
        True,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_invariant_lets_a_write_pass_or_names_what_is_wrong(case: str) -> None:
    name, written, holds = CASES[case]
    (invariant,) = (each for each in INVARIANTS if each.name == name)
    assert written.kind in invariant.kinds
    found = list(invariant.check(written))
    assert (found == []) is holds
    assert all(each.text and each.objects for each in found)


def test_every_invariant_of_writes_has_a_case_that_holds_and_one_that_does_not() -> None:
    assert {(name, holds) for name, _, holds in CASES.values()} == {(each.name, holds) for each in INVARIANTS for holds in (True, False)}


@pytest.mark.parametrize(
    ("etcd", "holds"),
    [
        (EtcdTruth(voters=3, running=2), True),
        (EtcdTruth(voters=3, running=1), False),
        (EtcdTruth(voters=2, running=1), False),
        (EtcdTruth(voters=2, running=1, unplugged=1), True),
        (EtcdTruth(voters=0, running=0), True),
    ],
)
def test_a_quorum_may_be_lost_only_to_hosts_whose_power_was_cut(etcd: EtcdTruth, holds: bool) -> None:
    assert (not list(invariants.quorum_is_kept(Truth(clusters={"one": ClusterTruth(etcd)})))) is holds


@pytest.mark.parametrize(("doubled", "holds"), [(0, True), (2, False)])
def test_a_virtual_address_is_never_on_two_hosts(doubled: int, holds: bool) -> None:
    assert (not list(invariants.address_is_held_once(Truth(doubled=doubled)))) is holds
