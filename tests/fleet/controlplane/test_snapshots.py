"""A snapshot of etcd before a control plane is rolled, and the control plane that is made anew from one."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from fleet.controlplane.estate import PLACE, Estate, estate
from fleet.controlplane.planes import NOW, ago
from fleet.snapshots.databases import REVISION
from support.waiting import eventually

from slipway.api.cluster.kinds import CORE_EVENT, KUBEADM_CONFIG, KUBEADM_CONTROL_PLANE, NODE
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.controlplane import planner, snapshots
from slipway.fleet.controlplane.decisions import snapshot
from slipway.fleet.controlplane.decisions.machines import ControlPlane, Machine
from slipway.fleet.controlplane.decisions.snapshot import Note, Wish
from slipway.fleet.controlplane.planner import CreateFirst, EndRestore, GiveUp, StartAnew, Step, Wait
from slipway.fleet.snapshots.options import SnapshotOptions
from slipway.fleet.snapshots.places import Place
from slipway.fleet.snapshots.request import Restore, restore_from

NOTE = Note("20260301T120000Z-r7", 7, 544, "ab", "/backup", 3)


@pytest_asyncio.fixture
async def world() -> AsyncIterator[Estate]:
    async with estate() as made:
        yield made


async def annotate(world: Estate, **annotations: str | None) -> None:
    told = {f"slipway.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
    await world.patch(KUBEADM_CONTROL_PLANE, "cp", {"metadata": {"annotations": told}})


async def note(world: Estate) -> dict[str, Any] | None:
    text = (await world.plane())["metadata"].get("annotations", {}).get("slipway.io/rollout-snapshot")
    return None if text is None else dict(json.loads(text))


async def taken(world: Estate) -> None:
    """Reconcile until a snapshot is noted; taking one goes on beside the reconciles."""

    async def is_noted() -> bool:
        await world.reconcile()
        found = await note(world)
        return found is not None and not found.get("ended")

    await eventually(is_noted, "a snapshot is noted")


@pytest.mark.asyncio
async def test_a_rollout_begins_when_its_snapshot_is_kept_and_says_which_one_it_relies_on(world: Estate, tmp_path: Path) -> None:
    world.snapshots = SnapshotOptions(store=str(tmp_path), keep=2)
    world.restarted()
    await world.make(replicas=1, version="v1.34.10")
    await world.play()
    await annotate(world, snapshot_before_rollout="default")
    await world.change(version="v1.35.4")
    before = await world.names()
    await world.reconcile()
    assert await world.names() == before
    assert (await world.condition(snapshot.CONDITION))["reason"] == "Taking"
    await taken(world)
    found = await note(world)
    assert found is not None
    assert (found["revision"], found["store"], found["generation"]) == (REVISION, str(tmp_path), 2)
    assert sorted(os.listdir(tmp_path / PLACE / "c")) == [f"{found['name']}.db", f"{found['name']}.json"]
    # What it was taken of, not what it is upgraded to.
    record = json.loads((tmp_path / PLACE / "c" / f"{found['name']}.json").read_bytes())
    assert record["kubernetesVersion"] == "v1.34.10"
    assert len(await world.names()) == 2
    condition = await world.condition(snapshot.CONDITION)
    assert (condition["status"], condition["reason"]) == ("True", "Taken")
    assert found["name"] in condition["message"]
    await world.play()
    assert {machine["spec"]["version"] for machine in await world.machines()} == {"v1.35.4"}
    assert ((await note(world)) or {}).get("ended") is True
    assert len(os.listdir(tmp_path / PLACE / "c")) == 2
    await world.events.close()
    events = {event["reason"] for event in await world.client.list(CORE_EVENT, PLACE)}
    assert "SnapshotTaken" in events


@pytest.mark.asyncio
async def test_a_rollout_whose_snapshot_fails_waits_and_says_why_and_what_to_do(world: Estate, tmp_path: Path) -> None:
    world.snapshots = SnapshotOptions(store=str(tmp_path))
    world.restarted()
    await world.make(replicas=1, version="v1.34.10")
    await world.play()
    await annotate(world, snapshot_before_rollout="default")
    world.etcd.broken = OperatorError("etcd-a: it does not answer in time")
    before = await world.names()
    await world.change(version="v1.35.4")

    async def has_failed() -> bool:
        await world.reconcile()
        return bool((await world.condition(snapshot.CONDITION))["reason"] == "Failed")

    await eventually(has_failed, "the snapshot has failed")
    await world.reconcile()
    condition = await world.condition(snapshot.CONDITION)
    assert "the rollout waits: etcd-a: it does not answer in time; mend that, or take the annotation" in condition["message"]
    assert await world.names() == before
    assert os.listdir(tmp_path / PLACE / "c") == []
    # A person who gives up the snapshot has the rollout.
    await annotate(world, snapshot_before_rollout=None)
    await world.reconcile()
    assert len(await world.names()) == 2


@pytest.mark.asyncio
async def test_a_rollout_does_not_rely_on_a_snapshot_that_was_taken_long_before_it_could_go_on(
    world: Estate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.snapshots = SnapshotOptions(store=str(tmp_path))
    world.restarted()
    await world.make(replicas=1, version="v1.34.10")
    await world.play()
    await annotate(world, snapshot_before_rollout="default")
    await world.change(version="v1.35.4")
    before = await world.names()
    await world.reconcile()

    async def is_kept() -> bool:
        return any(file.endswith(".json") for file in os.listdir(tmp_path / PLACE / "c"))

    await eventually(is_kept, "a snapshot is kept")
    monkeypatch.setattr(snapshots, "FRESH", 0.0)
    await world.reconcile()
    assert await note(world) is None
    assert await world.names() == before
    assert (await world.condition(snapshot.CONDITION))["reason"] == "Taking"
    monkeypatch.undo()
    await taken(world)


@pytest.mark.asyncio
async def test_a_rollout_does_not_rely_on_a_snapshot_that_is_elsewhere_than_it_is_wanted_by_now(world: Estate, tmp_path: Path) -> None:
    world.snapshots = SnapshotOptions(store=str(tmp_path))
    world.restarted()
    await world.make(replicas=1, version="v1.34.10")
    await world.play()
    await annotate(world, snapshot_before_rollout="default")
    await world.change(version="v1.35.4")
    await world.reconcile()
    await annotate(world, snapshot_before_rollout="s3://backups", snapshot_secret="keys")

    async def has_failed() -> bool:
        await world.reconcile()
        return bool((await world.condition(snapshot.CONDITION))["reason"] == "Failed")

    await eventually(has_failed, "the snapshot has failed")
    assert "there is no Secret n/keys" in (await world.condition(snapshot.CONDITION))["message"]


@pytest.mark.asyncio
async def test_annotations_that_cannot_be_followed_are_told_before_a_rollout(world: Estate) -> None:
    await world.make(replicas=1)
    await world.play()
    await annotate(world, snapshot_before_rollout="default")
    await world.reconcile()
    condition = await world.condition(snapshot.CONDITION)
    assert (condition["status"], condition["reason"]) == ("False", "Invalid")
    assert "the manager has no store: start it with --snapshot-store" in condition["message"]


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ({"snapshot-before-rollout": "/etc"}, 'is "/etc": write default, or s3://BUCKET'),
        ({"snapshot-before-rollout": "s3://backups"}, "needs a Secret with the keys endpoint"),
        ({"snapshot-before-rollout": "default", "snapshot-keep": "none"}, 'snapshot-keep: "none" is not a number of snapshots'),
    ],
)
def test_annotations_that_say_nothing_get_a_sentence(annotations: dict[str, str], said: str) -> None:
    with pytest.raises(OperatorError, match=re.escape(said)):
        snapshot.wish_from({f"slipway.io/{name}": value for name, value in annotations.items()})


@pytest.mark.parametrize(
    ("annotations", "wish"),
    [
        ({}, None),
        ({"slipway.io/snapshot-keep": "3"}, None),
        ({"slipway.io/snapshot-before-rollout": "default"}, Wish(None, None)),
        (
            {
                "slipway.io/snapshot-before-rollout": "s3://b-1/p",
                "slipway.io/snapshot-secret": "keys",
                "slipway.io/snapshot-keep": "9",
            },
            Wish(Place(bucket="b-1", prefix="p", secret="keys"), 9),
        ),
    ],
)
def test_what_annotations_want(annotations: dict[str, str], wish: Wish | None) -> None:
    assert snapshot.wish_from(annotations) == wish


@pytest.mark.parametrize(
    ("noted", "generation", "relied"),
    [
        pytest.param(None, 3, False, id="none was taken"),
        pytest.param(NOTE, 3, True, id="taken for this change"),
        pytest.param(NOTE, 4, False, id="taken for an earlier change"),
        pytest.param(snapshot.ended(NOTE), 3, False, id="taken for a rollout that is over"),
    ],
)
def test_a_rollout_relies_on_a_snapshot_of_its_own(noted: Note | None, generation: int, relied: bool) -> None:
    assert snapshot.is_relied_on(noted, generation) is relied


def test_a_note_is_read_as_it_was_written_and_one_that_cannot_be_read_is_none() -> None:
    assert snapshot.note_from({snapshot.NOTE_ANNOTATION: NOTE.text()}) == NOTE
    assert snapshot.note_from({snapshot.NOTE_ANNOTATION: "{}"}) is None
    assert snapshot.ended(snapshot.ended(NOTE)) is None


# The way back.


def machine(name: str, age: float, **facts: Any) -> Machine:
    return Machine(name, ago(age), **facts)


ASKED = Restore("20260301T110000Z-r7", "c-restore", NOW - timedelta(seconds=100))


@pytest.mark.parametrize(
    ("machines", "initialized", "step"),
    [
        pytest.param([machine("a", 900), machine("b", 900, deleted=NOW)], True, GiveUp(("a", "b")), id="lost ones go, all at once"),
        pytest.param([machine("a", 900, deleted=NOW, has_hook=False)], True, Wait, id="and are waited for"),
        pytest.param([], True, StartAnew(), id="then it forgets that it was made"),
        pytest.param([], False, CreateFirst(""), id="and makes its first machine"),
        pytest.param([machine("n", 50)], False, Wait, id="which is waited for"),
        pytest.param([machine("n", 50, node="n-1")], True, EndRestore("n-1"), id="and ends with its Node"),
    ],
)
def test_the_way_back_step_by_step(machines: list[Machine], initialized: bool, step: Step | type[Step]) -> None:
    plane = ControlPlane(3, tuple(machines), NOW, initialized=initialized, cluster_initialized=initialized, restore=ASKED)
    found = planner.next_step(plane).step
    assert found == step or (isinstance(step, type) and isinstance(found, step))
    assert planner.needs_no_sight(plane, found) is not isinstance(found, EndRestore)


def test_a_request_is_read_as_it_was_written() -> None:
    assert restore_from({"slipway.io/restore": ASKED.text()}) == ASKED
    with pytest.raises(OperatorError, match=r"the annotation slipway\.io/restore cannot be read"):
        restore_from({"slipway.io/restore": "now"})


@pytest.mark.asyncio
async def test_a_control_plane_that_lost_every_machine_is_made_anew_with_the_snapshot(world: Estate) -> None:
    await world.make(replicas=3)
    await world.play()
    lost = await world.names()
    world.etcd.dead.update(lost)
    # Every machine is older than that, by the clock of objects, which knows no fractions of a second.
    asked = Restore("20260301T110000Z-r7", "c-restore-1", datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1))
    await annotate(world, restore=asked.text())
    await world.reconcile()
    assert all(machine["metadata"].get("deletionTimestamp") for machine in await world.machines())
    for name in lost:
        # The API server is gone: what it knew of its Nodes is what the snapshot knows.
        kept = await world.workload.get(NODE, name)
        await world.take_down(name)
        await world.workload.create(NODE, {"metadata": {key: kept["metadata"][key] for key in ("name", "labels")}, "spec": kept["spec"]})
    world.etcd.members, world.etcd.leader = {}, 0
    await world.forget_workload()
    await eventually(lambda: datetime.now(UTC) > asked.asked, "the second is over")
    await world.rest()
    (first,) = await world.names()
    assert first not in lost
    config = await world.client.get(KUBEADM_CONFIG, first, PLACE)
    assert config["metadata"]["annotations"]["slipway.io/restore-secret"] == "c-restore-1"
    assert "joinConfiguration" not in config["spec"]
    await world.play()
    assert len(await world.names()) == 3
    assert "slipway.io/restore" not in ((await world.plane())["metadata"].get("annotations") or {})
    assert sorted(node["metadata"]["name"] for node in await world.workload.list(NODE)) == sorted(await world.names())
    joined = await world.client.get(KUBEADM_CONFIG, next(name for name in await world.names() if name != first), PLACE)
    assert "slipway.io/restore-secret" not in (joined["metadata"].get("annotations") or {})
