"""Objects that are kept packed: they come back as they were, and those that are like one another take little."""

from __future__ import annotations

import sys
import uuid
from hashlib import sha256
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.waiting import eventually

from slipway.api.cluster.kinds import MACHINE
from slipway.runtime.cache import packing
from slipway.runtime.cache.packing import Packer, Resting
from slipway.runtime.cache.store import Store
from slipway.runtime.objects import Object


def machine(number: int, conditions: int = 12) -> bytes:
    """As long as a real one, with everything that differs between two of them."""
    told = [
        {
            "type": f"Condition{each}",
            "status": "True",
            "reason": f"Reason{each}",
            "message": sha256(b"%d" % each).hexdigest(),
            "lastTransitionTime": f"2026-11-18T07:{number % 60:02d}:{each:02d}Z",
            "observedGeneration": 1,
        }
        for each in range(conditions)
    ]
    owner = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineSet",
        "name": "workers",
        "uid": str(uuid.UUID(int=1)),
        "controller": True,
    }
    metadata = {
        "name": f"workers-{number:05d}",
        "namespace": "fleet",
        "uid": str(uuid.UUID(int=number * 2**90 + number)),
        "resourceVersion": str(100_000 + 37 * number),
        "creationTimestamp": f"2026-11-18T06:00:{number % 60:02d}Z",
        "labels": {"cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/deployment-name": "workers"},
        "ownerReferences": [owner],
    }
    spec = {"clusterName": "c", "version": "v1.35.4", "providerID": f"elemental://fleet/host-{number}"}
    return msgspec.json.encode({"metadata": metadata, "spec": spec, "status": {"conditions": told, "nodeRef": {"name": f"host-{number}"}}})


def packed(raw: bytes, packer: Packer) -> Object:
    made = Object(MACHINE, raw)
    made.pack(packer)
    return made


def size(made: Object) -> int:
    return len(made._content)


def raw_of(made: Object) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(made.raw)
    return found


@given(st.lists(st.binary(max_size=2000), max_size=5), st.binary(min_size=200, max_size=400))
def test_whatever_is_packed_comes_back(others: list[bytes], common: bytes) -> None:
    packer = Packer()
    for raw in (*others, *(common * times + other for times, other in enumerate(others)), common * 60):
        content, words = packer.pack(raw)
        assert (content if words is None else words.unpack(content)) == raw
        assert len(content) <= len(raw)


def test_objects_that_are_like_one_another_take_a_fifth_at_most() -> None:
    packer = Packer()
    made = [packed(machine(number), packer) for number in range(100)]
    assert [each.raw for each in made] == [machine(number) for number in range(100)]
    assert sum(map(size, made)) * 5 < sum(len(each.raw) for each in made)


def test_when_objects_have_grown_the_next_are_told_by_one_that_has() -> None:
    packer = Packer()
    young = [packed(machine(number, conditions=0), packer) for number in range(10)]
    grown = [packed(machine(number, conditions=30), packer) for number in range(200)]
    assert size(grown[-1]) * 2 < size(grown[0])
    assert all(raw_of(each)["status"]["conditions"] == [] for each in young), "those of before stay readable"


def test_what_is_small_or_very_large_is_kept_as_it_is() -> None:
    for text in ("", "x" * (1 << 20)):
        raw = msgspec.json.encode({"metadata": {"name": "a", "namespace": "b"}, "text": text})
        assert size(packed(raw, Packer())) == len(raw)


def test_of_a_packed_object_nothing_holds_what_the_server_sent() -> None:
    packer = Packer()
    packed(machine(1), packer)
    raw = machine(2)
    before = sys.getrefcount(raw)
    made = packed(raw, packer)
    assert made.metadata.labels["cluster.x-k8s.io/deployment-name"] == "workers"
    assert made.metadata.owner_references[0].kind == "MachineSet"
    assert sys.getrefcount(raw) == before


@pytest.mark.asyncio
async def test_what_changes_is_packed_when_it_has_come_to_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "_REST", 0.05)
    store = Store()
    resting = Resting(store)
    states = [Object(MACHINE, machine(number)) for number in (1, 1, 2)]
    for state in states:
        store.put(state)
        resting.changed(state)
    first, *last = states
    assert all(size(each) == len(each.raw) for each in states)
    await eventually(lambda: all(size(each) < len(each.raw) for each in last))
    assert size(first) == len(first.raw), "nobody finds it any more"
    await eventually(lambda: resting._timer is None)
