"""Faults in the middle of a rollout, at length: on simulated hosts with the production agent, and managers in processes of their own."""

from __future__ import annotations

import os

import pytest
from simulation.kills import rollout_with_kills

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.skipif(os.environ.get("SLIPWAY_E2E") != "1", reason="takes minutes: run it with `make e2e`"),
]


async def test_a_rollout_whose_manager_is_killed_a_hundred_times_ends_as_if_nothing_had_been() -> None:
    bare = await rollout_with_kills(100, most_writes=16, seed=100, patience=900)
    print(f"{bare.estate.world.segment.takeovers.total()} takeovers of the address, {bare.watchman.looks} writes looked at")
