"""An upgrade against an API server: what is patched in which order, and that it can be killed, stopped and begun again at any moment."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fleet.fuse import Fuse, Killed
from fleet.upgrades.managers import NAME, NEW, NEWEST, OLD, PLANE, SPACE, WORKERS, Managed
from fleet.world import preserving_crd
from support.waiting import eventually

from slipway.api.cluster.kinds import (
    CLUSTER,
    CUSTOM_RESOURCE_DEFINITION,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_POOL,
    NODE,
    VALIDATING_WEBHOOK_CONFIGURATION,
    Kind,
)
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.upgrades import events
from slipway.fleet.upgrades.events import Event
from slipway.fleet.upgrades.run import Options, StoppedError, Upgrade
from slipway.fleet.upgrades.vigil import Patience
from slipway.kube.aio import AsyncClient, PatchType

pytestmark = pytest.mark.asyncio
# Nothing that passes is a reason to stop, however slow the machine is.
QUICK = Patience(interval=0.01, seen=0.05, observed=60, prerequisites=60, answer=60, stall=60)
# So many requests an upgrade makes at the most before it is killed: a look at everything, and a patch with its prerequisites.
_MOST_REQUESTS = 60


class Told(list[Event]):
    def of(self, kind: str) -> list[Event]:
        return [each for each in self if each.event == kind]


def upgrade(told: Callable[[Event], None], to: str = NEW, **options: Any) -> Upgrade:
    return Upgrade(Options(SPACE, NAME, to, **{"patience": QUICK, **options}), told)


async def test_the_control_plane_goes_up_minor_by_minor_and_the_workers_follow_at_once() -> None:
    async with Managed() as managed:
        told = Told()
        run = upgrade(told.append, NEWEST)
        assert await run.prepare(managed.client)
        await run.run(managed.client)
        assert managed.replaced == [f"{PLANE} {NEW}"] * 3 + [f"{PLANE} {NEWEST}"] * 3 + [f"{WORKERS} {NEWEST}"] * 2
        assert managed.wrong == []
        assert [(each.name, each.version) for each in told.of(events.PATCH)] == [(PLANE, NEW), (PLANE, NEWEST), (WORKERS, NEWEST)]
        assert told[0].commands == tuple(each.command for each in told.of(events.PATCH)), "it did not do what it said"
        assert (told[0].event, told[0].total) == (events.PLANNED, 8)
        assert told[-1].event == events.DONE
        rows = {row.check: row for row in told.of(events.PREFLIGHT)[0].checks}
        assert rows["maxSurge is 0 everywhere"].message == "not bare metal"
        done = [each.done or 0 for each in told.of(events.PROGRESS)]
        assert done == sorted(done), "the bar went back"


async def test_whoever_is_killed_at_any_request_and_begins_again_ends_right() -> None:
    chance, kills = random.Random(7), 0
    async with Managed() as managed:
        while True:
            fuse = Fuse(chance.randint(1, _MOST_REQUESTS), Killed)
            async with AsyncClient(managed.server.connection(), on_request=fuse) as client:
                try:
                    await upgrade(lambda _: None, NEWEST).run(client)
                    break
                except Killed:
                    kills += 1
        assert kills > 3
        assert managed.wrong == []
        assert managed.replaced == [f"{PLANE} {NEW}"] * 3 + [f"{PLANE} {NEWEST}"] * 3 + [f"{WORKERS} {NEWEST}"] * 2


async def test_two_at_the_same_time_do_no_harm() -> None:
    async with Managed() as managed, AsyncClient(managed.server.connection()) as other:
        first, second = Told(), Told()
        await asyncio.gather(upgrade(first.append).run(managed.client), upgrade(second.append).run(other))
        assert len([*first.of(events.PATCH), *second.of(events.PATCH)]) == 2
        assert managed.wrong == []


async def test_a_part_of_a_cluster_can_be_upgraded() -> None:
    async with Managed() as managed:
        await upgrade(lambda _: None, workers=False).run(managed.client)
        assert (await managed.version(KUBEADM_CONTROL_PLANE, PLANE), await managed.version(MACHINE_DEPLOYMENT, WORKERS)) == (NEW, OLD)
        await upgrade(lambda _: None, control_plane=False).run(managed.client)
        assert await managed.version(MACHINE_DEPLOYMENT, WORKERS) == NEW


async def test_before_anything_is_written_it_says_what_would_be_and_what_cannot() -> None:
    async with Managed() as managed:
        before = await managed.client.get(KUBEADM_CONTROL_PLANE, PLANE, SPACE)
        told = Told()
        await upgrade(told.append, NEWEST, dry_run=True).prepare(managed.client)
        assert [each.partition(" -p ")[2] for each in told[0].commands] == [
            '\'{"spec": {"version": "v1.35.4"}}\'',
            '\'{"spec": {"version": "v1.36.3"}}\'',
            '\'{"spec": {"template": {"spec": {"version": "v1.36.3"}}}}\'',
        ]
        for to, options, said in (
            ("v1.33.1", {}, "cannot go back"),
            (NEW, {"control_plane": False}, "ahead of their control plane"),
            (NEW, {"cluster": "other"}, 'there is no Cluster "other"'),
        ):
            given: dict[str, Any] = {"namespace": SPACE, "cluster": NAME, "to": to, "patience": QUICK, **options}
            with pytest.raises(OperatorError, match=said):
                await Upgrade(Options(**given), lambda _: None).prepare(managed.client)
        told.clear()
        assert not await upgrade(told.append, OLD).prepare(managed.client)
        await upgrade(told.append, OLD).run(managed.client)
        assert [each.text for each in told] == [f"{NAME} is at {OLD}: {PLANE} (3 machines), {WORKERS} (2 machines)"]
        topology = {"spec": {"topology": {"classRef": {"name": "c"}, "version": OLD}}}
        await managed.client.patch(CLUSTER, NAME, SPACE, topology, type=PatchType.MERGE)
        with pytest.raises(OperatorError, match=r"patch spec\.topology\.version"):
            await upgrade(lambda _: None).prepare(managed.client)
        assert await managed.client.get(KUBEADM_CONTROL_PLANE, PLANE, SPACE) == before


async def test_a_dry_run_of_what_is_there_already_says_so() -> None:
    async with Managed() as managed:
        told = Told()
        assert not await upgrade(told.append, OLD, dry_run=True).prepare(managed.client)
        assert [(each.event, each.text, each.ok) for each in told] == [
            (events.PLANNED, f"{NAME} is at {OLD}: {PLANE} (3 machines), {WORKERS} (2 machines)", None),
            (events.DONE, "Nothing was changed: this was a dry run", True),
        ]


async def test_a_refusal_is_the_last_event_too() -> None:
    async with Managed() as managed:
        told = Told()
        with pytest.raises(OperatorError) as refused:
            await upgrade(told.append, "v1.33.1").prepare(managed.client)
        assert [(each.event, each.text, each.ok) for each in told] == [(events.REFUSED, refused.value.message, False)]


async def test_what_an_upgrade_does_not_reach_is_told() -> None:
    async with Managed() as managed:
        await managed.client.create(CUSTOM_RESOURCE_DEFINITION, preserving_crd(MACHINE_POOL))
        for name, owner in (("mine", NAME), ("of-others", "other")):
            await managed.client.create(MACHINE_POOL, {"metadata": {"name": name, "namespace": SPACE}, "spec": {"clusterName": owner}})
        told = Told()
        await upgrade(told.append, dry_run=True).prepare(managed.client)
        assert [each.text for each in told.of(events.NOTE)] == [
            "the MachinePool mine is not upgraded from here: patch its version when this is done"
        ]


@pytest.mark.parametrize("kind", [CLUSTER, KUBEADM_CONTROL_PLANE])
async def test_a_management_cluster_of_older_types_is_told_apart_from_one_without_the_object(kind: Kind) -> None:
    async with Managed() as managed:
        await managed.pause()
        old = await managed.client.get(CUSTOM_RESOURCE_DEFINITION, f"{kind.plural}.{kind.group}")
        old["spec"]["versions"][0]["served"] = False
        old["spec"]["versions"].append({**old["spec"]["versions"][0], "name": "v1beta1", "served": True, "storage": False})
        await managed.client.update(CUSTOM_RESOURCE_DEFINITION, old)
        with pytest.raises(OperatorError, match=rf"does not serve {kind.plural} of {kind.api_version}: Cluster API 1\.11 and newer do"):
            await upgrade(lambda _: None).prepare(managed.client)


async def test_a_machine_that_does_not_come_stops_it_with_what_to_do() -> None:
    async with Managed() as managed:
        managed.stuck = "InfrastructureReady"
        told = Told()
        with pytest.raises(StoppedError, match=r"does not go on by itself \(ObjectDeleted\)"):
            await upgrade(told.append).run(managed.client)
        assert [(each.event, each.ok) for each in told[-2:]] == [(events.PROBLEM, None), (events.STOPPED, False)]
        assert told[-2].to_do == ("Delete the Machine; its replacement gets another one.",)
        assert [each.name for each in told.of(events.PATCH)] == [PLANE], "workers were patched all the same"


async def test_a_patch_that_nobody_acts_on_stops_it() -> None:
    async with Managed() as managed:
        await managed.pause()
        told = Told()
        with pytest.raises(StoppedError, match="NotObserved"):
            await upgrade(told.append, patience=QUICK._replace(observed=0.1)).run(managed.client)
        assert "slipway fleet preflight" in told.of(events.PROBLEM)[0].to_do[0]


async def test_a_paused_cluster_stops_it() -> None:
    async with Managed() as managed:
        await managed.client.patch(CLUSTER, NAME, SPACE, {"spec": {"paused": True}}, type=PatchType.MERGE)
        await managed.client.patch(KUBEADM_CONTROL_PLANE, PLANE, SPACE, {"spec": {"version": NEW}}, type=PatchType.MERGE)
        told = Told()
        with pytest.raises(StoppedError, match="Paused"):
            await upgrade(told.append).run(managed.client)
        assert "spec.paused" in told.of(events.PROBLEM)[0].to_do[0]


@pytest.mark.parametrize(
    ("kind", "name", "change", "said"),
    [
        (CLUSTER, NAME, {"spec": {"paused": True}}, f"the Cluster {NAME} is paused"),
        (KUBEADM_CONTROL_PLANE, PLANE, {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}, f"{PLANE} is paused"),
        (MACHINE_DEPLOYMENT, WORKERS, {"spec": {"paused": True}}, f"{WORKERS} is paused"),
        (CLUSTER, NAME, {"metadata": {"finalizers": ["example.com/last"]}}, f"the Cluster {NAME} is being deleted"),
    ],
)
async def test_what_is_paused_or_being_deleted_is_not_patched(kind: Kind, name: str, change: dict[str, Any], said: str) -> None:
    async with Managed() as managed:
        await managed.client.patch(kind, name, SPACE, change, type=PatchType.MERGE)
        if "finalizers" in change.get("metadata", {}):
            await managed.client.delete(kind, name, SPACE)
        with pytest.raises(OperatorError, match=said):
            await upgrade(lambda _: None).prepare(managed.client)
        told = Told()
        with pytest.raises(OperatorError, match=said):
            # Somebody may have paused it after it was looked at.
            await upgrade(told.append).run(managed.client)
        assert name not in [each.name for each in told.of(events.PATCH)]


async def test_prerequisites_that_are_not_met_stop_it_unless_they_are_to_be_ignored() -> None:
    async with Managed() as managed:
        endless = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
        await managed.client.patch(NODE, f"{PLANE}-0", "", endless, type=PatchType.MERGE, subresource="status")
        with pytest.raises(StoppedError, match=f'1 of 16 prerequisites of {NEW} is not met.*"all Nodes are Ready": not Ready: {PLANE}-0'):
            await upgrade(lambda _: None).run(managed.client)
        assert managed.replaced == []
        await upgrade(lambda _: None, ignore_preflight=True).run(managed.client)


async def test_a_patch_that_is_never_taken_stops_it_in_the_end() -> None:
    rule = {"apiGroups": [KUBEADM_CONTROL_PLANE.group], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["*"]}
    webhook = {
        "name": "validation.example.com",
        # The discard port: nobody is there.
        "clientConfig": {"url": "https://127.0.0.1:9/"},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    async with Managed() as managed:
        await managed.client.create(VALIDATING_WEBHOOK_CONFIGURATION, {"metadata": {"name": "away"}, "webhooks": [webhook]})
        told = Told()
        with pytest.raises(StoppedError, match=rf"{PLANE} cannot be patched: .*failed calling webhook .* Nothing is on its way"):
            await upgrade(told.append, patience=QUICK._replace(answer=0.1)).run(managed.client)
        assert [each.event for each in told] == [events.NOTE, events.REFUSED], "it was told more than once, or not at all"


async def test_whoever_leaves_is_told_what_goes_on_without_them() -> None:
    async with Managed() as managed:
        managed.stuck = "Other"
        told = Told()
        task = asyncio.create_task(upgrade(told.append).run(managed.client))
        await eventually(lambda: told.of(events.PROGRESS), "something is on its way")
        task.cancel()
        await asyncio.wait({task})
        assert (told[-1].event, told[-1].ok) == (events.INTERRUPTED, False)
        left = r"KubeadmControlPlane cp goes on to v1\.35\.4 by itself .*; what is not begun: MachineDeployment w .* Run the same command"
        assert re.search(left, told[-1].text)
        with pytest.raises(StoppedError, match=r"it is not done after 0\.2 s"):
            await upgrade(lambda _: None, timeout=0.2).run(managed.client)


async def test_a_management_cluster_that_is_away_for_a_while_is_waited_for(tmp_path: Path) -> None:
    async with Managed(tmp_path / "objects.db") as managed:
        told = Told()
        run = asyncio.create_task(upgrade(told.append).run(managed.client))
        await eventually(lambda: told.of(events.PATCH), "something is patched")
        await managed.pause()
        await managed.server.stop()
        await eventually(lambda: any("does not answer" in each.text for each in told), "it is noticed")
        await managed.server.start()
        await eventually(lambda: any("answers again" in each.text for each in told), "it goes on")
        assert not run.done()
        run.cancel()
        await asyncio.wait({run})
