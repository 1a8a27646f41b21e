"""What happens to managers, agents and hosts in the middle of a rollout, and that nothing is lost by it."""

from __future__ import annotations

import pytest
from simulation.kills import rollout_with_kills

pytestmark = pytest.mark.asyncio


async def test_a_rollout_whose_manager_is_killed_again_and_again_ends_as_if_nothing_had_been() -> None:
    await rollout_with_kills(6, most_writes=100, seed=1, patience=120)
