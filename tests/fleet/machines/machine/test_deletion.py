"""The order of a deletion, whatever happens around it: no step comes before its time, none comes twice, and every run ends."""

from __future__ import annotations

from typing import Any

import pytest
from fleet.machines.machine.recorded import NOW
from hypothesis import given
from hypothesis import strategies as st

from slipway.api.cluster.core.machine import Machine
from slipway.api.cluster.meta import decode
from slipway.fleet.machines.machine import deletion
from slipway.fleet.machines.machine.deletion import Keep, Step
from slipway.fleet.machines.machine.values import External

PRE_DRAIN = "pre-drain.delete.hook.machine.cluster.x-k8s.io/a"
PRE_TERMINATE = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/a"
THERE = External({"metadata": {"name": "m"}})
GOING = External({"metadata": {"name": "m", "deletionTimestamp": "2026-01-01T00:00:00Z"}})
GONE = External(missing=True)
UNREAD = External()
ORDER = list(Step)


def machine(annotations: dict[str, str], status: dict[str, Any], spec: dict[str, Any] | None = None) -> Machine:
    base = {"bootstrap": {"configRef": {"kind": "K", "name": "m"}}, **(spec or {})}
    return decode({"metadata": {"name": "m", "annotations": annotations}, "spec": base, "status": status}, Machine)


@given(
    hooks=st.sets(st.sampled_from([PRE_DRAIN, PRE_TERMINATE])),
    keep=st.sampled_from([None, *Keep]),
    infrastructure=st.sampled_from([THERE, GOING, GONE]),
    config=st.sampled_from([THERE, GOING, GONE]),
)
def test_steps_come_in_order_and_every_run_ends(hooks: set[str], keep: Keep | None, infrastructure: External, config: External) -> None:
    annotations = dict.fromkeys(hooks, "")
    taken: list[Step] = []
    done: set[Step] = set()
    while not taken or taken[-1] is not Step.FINISHED:
        found = machine(annotations, {})
        step = deletion.next_step(found, keep=keep, infrastructure=infrastructure, config=config, done=done, now=NOW)
        taken.append(step)
        match step:
            case Step.PRE_DRAIN_HOOKS:
                del annotations[PRE_DRAIN]
            case Step.PRE_TERMINATE_HOOKS:
                del annotations[PRE_TERMINATE]
            case Step.INFRASTRUCTURE:
                infrastructure = GONE
            case Step.BOOTSTRAP:
                config = GONE
            case _:
                done.add(step)
        assert len(taken) <= len(ORDER)
    positions = [ORDER.index(step) for step in taken]
    assert positions == sorted(set(positions))
    assert (Step.NODE in taken) is (keep is None)
    if keep is not None:
        assert not {Step.PRE_DRAIN_HOOKS, Step.DRAIN, Step.VOLUMES} & set(taken)


def test_nothing_is_left_out_while_it_is_not_known_whether_the_host_is_there() -> None:
    found = machine({PRE_TERMINATE: ""}, {})
    assert deletion.next_step(found, keep=None, infrastructure=UNREAD, config=THERE, done=(), now=NOW) is Step.INFRASTRUCTURE


@pytest.mark.parametrize(
    ("limit", "started", "expected"),
    [
        pytest.param(None, "2026-11-16T00:00:00Z", False, id="no limit"),
        pytest.param(0, "2026-11-16T00:00:00Z", False, id="0 is no limit"),
        pytest.param(10, None, False, id="not tried before"),
        pytest.param(10, "2026-11-16T11:59:51Z", False, id="in time"),
        pytest.param(10, "2026-11-16T11:59:50Z", True, id="over"),
    ],
)
def test_a_node_is_given_up_by_the_time_of_its_first_try(limit: int | None, started: str | None, expected: bool) -> None:
    annotations = {} if started is None else {"slipway.io/node-deletion-started": started}
    found = machine(annotations, {}, {"deletion": {"nodeDeletionTimeoutSeconds": limit}})
    assert deletion.gives_up_node(found, NOW) is expected


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param([{"type": "HostPoweredOff", "status": "True"}], True, id="it says so"),
        pytest.param([{"type": "HostPoweredOff", "status": "Unknown"}], False, id="it does not know"),
        pytest.param([{"type": "Ready", "status": "False"}], False, id="another condition"),
        pytest.param(None, False, id="no conditions"),
        pytest.param("off", False, id="something else"),
    ],
)
def test_only_the_provider_says_that_a_host_is_off(conditions: Any, expected: bool) -> None:
    assert deletion.is_powered_off({"status": {"conditions": conditions}}) is expected
