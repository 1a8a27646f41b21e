"""Bootstrap tokens: their ids and their lives.  Making them on an API server is in test_reconciler.py and test_killed.py."""

from __future__ import annotations

from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta

import pytest
from fleet.world import World

from slipway.api.cluster.kinds import SECRET
from slipway.api.machinery.errors import OperatorError
from slipway.credentials import tokens
from slipway.fleet.bootstrap import tokens as workloadtokens
from slipway.fleet.bootstrap.tokens import Care, Holder

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TTL = timedelta(minutes=60)
HOLDER = Holder("8b0d1b43-2c3a-4f0e-9d1a-0c8f5b8f3a11", "ns", "w")


@pytest.mark.parametrize(
    ("left", "rotate", "expected"),
    [
        # Refreshed when less than 5/6 of its life are left.
        (timedelta(minutes=51), False, Care.NOTHING),
        (timedelta(minutes=50), False, Care.EXTEND),
        (timedelta(minutes=-10), False, Care.EXTEND),
        (None, False, Care.EXTEND),
        # Rotated when less than half of it is left.
        (timedelta(minutes=30), True, Care.NOTHING),
        (timedelta(minutes=29), True, Care.REPLACE),
        (timedelta(minutes=-10), True, Care.REPLACE),
        (None, True, Care.NOTHING),
    ],
)
def test_a_token_is_cared_for_before_it_ends(left: timedelta | None, rotate: bool, expected: Care) -> None:
    assert workloadtokens.care_for(None if left is None else NOW + left, NOW, TTL, rotate=rotate) is expected


def test_a_token_is_looked_at_three_times_in_its_life() -> None:
    assert workloadtokens.check_interval(TTL) == timedelta(minutes=20)


def test_the_id_of_a_token_follows_from_the_kubeadmconfig() -> None:
    first = workloadtokens.token_id(HOLDER)
    assert tokens.is_token_id(first)
    assert first == workloadtokens.token_id(HOLDER._replace(name="moved"))
    others = {
        workloadtokens.token_id(HOLDER, attempt=1),
        workloadtokens.token_id(HOLDER, first),
        workloadtokens.token_id(Holder("x", "ns", "w")),
    }
    assert len(others | {first}) == 4


def test_ids_are_spread_over_all_that_there_are() -> None:
    found = [workloadtokens.token_id(Holder(str(number), "", "")) for number in range(3000)]
    # With 36^6 ids, 3000 have 0.002 pairs on average.
    assert len(set(found)) >= 2999
    assert {letter for text in found for letter in text} == set("abcdefghijklmnopqrstuvwxyz0123456789")


def test_a_token_that_a_user_chose_is_not_ours() -> None:
    assert not workloadtokens.is_own(HOLDER, "abcdef.0123456789abcdef")
    assert workloadtokens.is_own(HOLDER, f"{workloadtokens.token_id(HOLDER)}.0123456789abcdef")


@pytest.mark.asyncio
async def test_a_token_that_was_made_before_is_found_again(world: World) -> None:
    first = await workloadtokens.obtain(world.client, HOLDER._replace(namespace=world.namespace), TTL, NOW)
    again = await workloadtokens.obtain(world.client, HOLDER._replace(namespace=world.namespace), TTL, NOW + timedelta(minutes=1))
    assert again == first
    later = await workloadtokens.obtain(world.client, HOLDER._replace(namespace=world.namespace), TTL, NOW + timedelta(minutes=30))
    assert (later.text, later.expires) == (first.text, NOW + timedelta(minutes=90))
    assert len(await world.tokens()) == 1


@pytest.mark.asyncio
async def test_an_id_that_somebody_else_has_is_passed_over(world: World) -> None:
    holder = HOLDER._replace(namespace=world.namespace)
    taken = workloadtokens.token_id(holder)
    await world.client.create(
        SECRET, workloadtokens.manifest(Holder("other", world.namespace, "o"), f"{taken}.0123456789abcdef", NOW + TTL)
    )
    token = await workloadtokens.obtain(world.client, holder, TTL, NOW)
    assert token.token_id == workloadtokens.token_id(holder, attempt=1)
    assert workloadtokens.is_own(holder, token.text)


@pytest.mark.asyncio
async def test_a_token_is_extended_in_place(world: World) -> None:
    holder = HOLDER._replace(namespace=world.namespace)
    token = await workloadtokens.obtain(world.client, holder, TTL, NOW)
    extended = await workloadtokens.extend(world.client, token.text, TTL, NOW + TTL / 3)
    assert extended == (token.text, NOW + TTL / 3 + TTL)
    assert await workloadtokens.find(world.client, token.text) == extended
    await workloadtokens.forget(world.client, holder, token.token_id)
    assert await workloadtokens.extend(world.client, token.text, TTL, NOW) is None
    assert await workloadtokens.restore(world.client, holder, token.text, TTL, NOW) == (token.text, NOW + TTL)
    assert await workloadtokens.find(world.client, token.text) == (token.text, NOW + TTL)


@pytest.mark.asyncio
async def test_a_token_of_somebody_else_is_not_forgotten(world: World) -> None:
    other = Holder("other", world.namespace, "o")
    token = await workloadtokens.obtain(world.client, other, TTL, NOW)
    await workloadtokens.forget(world.client, HOLDER, token.token_id)
    assert await workloadtokens.find(world.client, token.text) is not None


@pytest.mark.asyncio
async def test_an_end_that_cannot_be_read_is_an_error(world: World) -> None:
    holder = HOLDER._replace(namespace=world.namespace)
    made = workloadtokens.manifest(holder, f"{workloadtokens.token_id(holder)}.0123456789abcdef", NOW)
    made["data"]["expiration"] = b64encode(b"tomorrow").decode()
    assert b64decode(made["data"]["token-secret"]) == b"0123456789abcdef"
    await world.client.create(SECRET, made)
    with pytest.raises(OperatorError, match="can't parse expiration time of bootstrap token"):
        await workloadtokens.obtain(world.client, holder, TTL, NOW)
