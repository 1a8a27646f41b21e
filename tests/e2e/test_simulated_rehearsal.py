"""Rehearsals held against what really happens, on simulated hosts: the order of a rollout, and everything that would stop one."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from simulation.clusters import NAME, PLANE, WORKERS, Bare
from simulation.estate import FIRST, SECOND, SPACE, Estate

from slipway.api.cluster.kinds import CONFIG_MAP, KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT, MACHINE_INVENTORY, MACHINE_INVENTORY_POOL, POD
from slipway.kube.aio import PatchType
from slipway.simulation.rehearsal.observer import Observer
from slipway.simulation.rehearsal.rehearsal import Wanted, rehearse
from slipway.simulation.rehearsal.report import Report
from slipway.simulation.workload.controllers import BUDGET

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.skipif(os.environ.get("SLIPWAY_E2E") != "1", reason="takes minutes: run it with `make e2e`"),
]
PATIENCE = 900.0


@asynccontextmanager
async def cluster(*versions: str) -> AsyncIterator[tuple[Estate, Bare]]:
    """Three control planes and two workers with no spare host, at the first version."""
    async with Estate() as estate:
        bare = Bare(estate, await estate.hosts(5), planes=3, workers=2)
        await bare.make(*versions)
        await bare.at(FIRST, FIRST, PATIENCE)
        yield estate, bare


async def rehearsed(estate: Estate) -> Report:
    before = estate.server.core.store.version
    report = await rehearse(estate.server.connection(), Wanted(SPACE, NAME, SECOND), lambda line: None)
    # The manager of the estate goes on working; nothing of the cluster itself may be another.
    assert before <= estate.server.core.store.version
    return report


def stops(report: Report) -> dict[str, str]:
    return {each.kind: each.message for each in report.findings if each.weight == "stops"}


def order(legs: list[Any]) -> list[tuple[str, str, str]]:
    return [(each.way, each.group, each.host) for each in legs]


async def test_a_rollout_goes_in_the_very_order_that_its_rehearsal_told() -> None:
    async with cluster() as (estate, bare):
        report = await rehearsed(estate)
        assert report.ok, report.findings
        assert {group.name: group.lowest for group in report.groups} == {PLANE: 2, WORKERS: 1}
        observer = Observer(estate.server.core, lambda line: None)
        await bare.patch(KUBEADM_CONTROL_PLANE, PLANE, {"spec": {"version": SECOND}})
        await bare.at(SECOND, FIRST, PATIENCE)
        await bare.roll_workers(SECOND)
        await bare.at(SECOND, SECOND, PATIENCE)
        assert order(list(report.moves)) == order(sorted(observer.legs(), key=lambda leg: leg.began))


async def test_a_version_without_an_image_is_told() -> None:
    async with cluster(FIRST) as (estate, _):
        report = await rehearsed(estate)
        assert not report.ok
        assert SECOND in stops(report)["catalog-miss"]


async def test_a_pool_without_a_host_for_the_surge_is_told() -> None:
    async with cluster() as (estate, bare):
        surge = {"spec": {"rollout": {"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}}}
        await bare.patch(MACHINE_DEPLOYMENT, WORKERS, surge)
        report = await rehearsed(estate)
        assert not report.ok
        # Nobody may even write it: the webhook that the rehearsal asks says so.
        assert "set maxSurge to 0" in stops(report)["refused"]


async def test_a_host_without_space_is_told() -> None:
    async with cluster() as (estate, bare):
        full = bare.workers[0]
        facts = {"status": {"hostFacts": {"freeBytes": {"/": 1 << 20}}}}
        await estate.stop()
        await estate.client.patch(MACHINE_INVENTORY, full, SPACE, facts, type=PatchType.MERGE, subresource="status")
        report = await rehearsed(estate)
        assert not report.ok
        assert "no-space" in stops(report)


async def test_a_budget_that_lets_nothing_go_is_told_and_what_comes_after_it_is_rehearsed_all_the_same() -> None:
    async with cluster() as (estate, bare):
        workload = bare.workload.client
        labels = {"app": "web"}
        spec = {"containers": [{"name": "web", "image": "web:1"}], "nodeName": bare.workers[0]}
        await workload.create(POD, {"metadata": {"name": "web-1", "namespace": "default", "labels": labels}, "spec": spec})
        budget = {"minAvailable": 1, "selector": {"matchLabels": labels}}
        await workload.create(BUDGET, {"metadata": {"name": "web", "namespace": "default"}, "spec": budget})
        report = await rehearsed(estate)
        assert set(stops(report)) == {"eviction-blocked"}
        assert len(report.moves) == 10
        assert all(move.end is not None for move in report.moves)


async def test_what_is_on_its_way_is_told_and_nothing_is_rehearsed() -> None:
    async with cluster() as (estate, bare):
        await bare.patch(CONFIG_MAP, "elemental-image-catalog", {"data": {FIRST: None}})
        await bare.patch(
            MACHINE_INVENTORY_POOL, f"{WORKERS}-pool", {"spec": {"machineInventories": [{"name": name} for name in bare.workers]}}
        )
        await bare.scale_workers(3)
        await estate.until(lambda: _machines(bare, 6), "a sixth machine is made", PATIENCE)
        report = await rehearsed(estate)
        assert not report.ok
        assert report.moves == ()


async def _machines(bare: Bare, number: int) -> bool:
    return len(await bare.machines()) == number
