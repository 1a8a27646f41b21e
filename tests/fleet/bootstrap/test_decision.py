"""The order of a reconcile: every branch of the bootstrap contract.

The rows of Cluster API's kubeadmconfig_controller_test.go are among them.
"""

from __future__ import annotations

from typing import Any

import pytest

from slipway.fleet.bootstrap.decision import Step, decide, rendered_anew
from slipway.fleet.contract.facts import ClusterFacts, Owner

pytestmark = pytest.mark.upstream_table

READY = ClusterFacts("default", "c", infrastructure_provisioned=True, control_plane_initialized=True)
NOT_INITIALIZED = READY._replace(control_plane_initialized=False)
WORKER = Owner("Machine", "default", "m", "c", "v1.34.0")
CONTROL_PLANE = WORKER._replace(control_plane=True)
POOL = WORKER._replace(kind="MachinePool")

NEW: dict[str, Any] = {"metadata": {"name": "m"}}
CREATED: dict[str, Any] = {**NEW, "status": {"initialization": {"dataSecretCreated": True}, "dataSecretName": "m"}}
WITH_TOKEN: dict[str, Any] = {
    **CREATED,
    "spec": {"joinConfiguration": {"discovery": {"bootstrapToken": {"token": "abcdef.0123456789abcdef"}}}},
}
WITH_FILE: dict[str, Any] = {**CREATED, "spec": {"joinConfiguration": {"discovery": {"file": {"kubeConfigPath": "/k"}}}}}
DELETED: dict[str, Any] = {"metadata": {"name": "m", "deletionTimestamp": "2026-01-01T00:00:00Z"}}


@pytest.mark.parametrize(
    ("config", "owner", "cluster", "expected"),
    [
        pytest.param(NEW, None, None, Step.WAIT_FOR_OWNER, id="no owner"),
        pytest.param(NEW, WORKER, None, Step.WAIT_FOR_CLUSTER, id="no Cluster"),
        pytest.param(DELETED, WORKER, READY, Step.IGNORE, id="deleted"),
        pytest.param(
            NEW, WORKER, READY._replace(infrastructure_provisioned=False), Step.WAIT_FOR_INFRASTRUCTURE, id="no infrastructure, worker"
        ),
        pytest.param(
            WITH_TOKEN,
            WORKER,
            READY._replace(infrastructure_provisioned=False),
            Step.WAIT_FOR_INFRASTRUCTURE,
            id="infrastructure comes first even where data is there",
        ),
        pytest.param(NEW, WORKER._replace(data_secret_name="m"), READY, Step.RESTORE_STATUS, id="moved: no status"),
        pytest.param(
            {**NEW, "status": {"initialization": {"dataSecretCreated": True}}},
            WORKER._replace(data_secret_name="m"),
            READY,
            Step.RESTORE_STATUS,
            id="moved: no name in the status",
        ),
        pytest.param(NEW, POOL._replace(data_secret_name="m"), READY, Step.RESTORE_STATUS, id="moved: a pool"),
        pytest.param(CREATED, CONTROL_PLANE, READY, Step.KEEP, id="made for init"),
        pytest.param(WITH_FILE, WORKER, READY, Step.KEEP, id="made with a kubeconfig file, which has no token to refresh"),
        pytest.param(WITH_TOKEN, WORKER, READY, Step.REFRESH_TOKEN, id="made, not joined"),
        pytest.param(WITH_TOKEN, CONTROL_PLANE, READY, Step.REFRESH_TOKEN, id="made, control plane, not joined"),
        pytest.param(WITH_TOKEN, WORKER._replace(provisioned=True), READY, Step.REFRESH_TOKEN, id="made, provisioned, not joined"),
        pytest.param(WITH_TOKEN, WORKER._replace(joined=True), READY, Step.KEEP, id="joined"),
        pytest.param(WITH_TOKEN, POOL, READY, Step.REFRESH_TOKEN, id="pool, nodes are missing"),
        pytest.param(WITH_TOKEN, POOL._replace(joined=True), READY, Step.ROTATE_TOKEN, id="pool, all joined"),
        pytest.param(NEW, WORKER, NOT_INITIALIZED, Step.WAIT_FOR_CONTROL_PLANE, id="worker too early"),
        pytest.param(NEW, POOL, NOT_INITIALIZED, Step.WAIT_FOR_CONTROL_PLANE, id="pool too early"),
        pytest.param(NEW, CONTROL_PLANE, NOT_INITIALIZED, Step.INIT, id="first control plane"),
        pytest.param(NEW, CONTROL_PLANE, READY, Step.JOIN_CONTROL_PLANE, id="another control plane"),
        pytest.param(NEW, WORKER, READY, Step.JOIN_WORKER, id="worker"),
        pytest.param(NEW, POOL, READY, Step.JOIN_WORKER, id="pool"),
    ],
)
def test_a_reconcile_takes_the_first_step_that_applies(
    config: dict[str, Any], owner: Owner | None, cluster: ClusterFacts | None, expected: Step
) -> None:
    assert decide(config, owner, cluster) is expected


@pytest.mark.parametrize("config", [NEW, WITH_TOKEN, DELETED])
def test_paused_comes_before_everything_that_is_written(config: dict[str, Any]) -> None:
    annotated = {**config, "metadata": {**config["metadata"], "annotations": {"cluster.x-k8s.io/paused": ""}}}
    assert decide(annotated, WORKER, READY) is Step.PAUSED
    assert decide(config, WORKER, READY._replace(paused=True)) is Step.PAUSED


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        pytest.param(WORKER, Step.JOIN_WORKER, id="nobody has read it: made again"),
        pytest.param(POOL._replace(joined=True), Step.JOIN_WORKER, id="the next node of a pool will want it"),
        pytest.param(WORKER._replace(provisioned=True), Step.REFRESH_TOKEN, id="a host has it"),
        pytest.param(WORKER._replace(joined=True), Step.KEEP, id="the node has joined"),
    ],
)
def test_a_data_secret_that_was_deleted_is_made_again_where_somebody_may_read_it(owner: Owner, expected: Step) -> None:
    assert decide(WITH_TOKEN, owner, READY, data_lost=True) is expected


def test_the_lost_data_of_the_first_control_plane_is_made_again() -> None:
    assert decide(CREATED, CONTROL_PLANE, NOT_INITIALIZED, data_lost=True) is Step.INIT


@pytest.mark.parametrize(
    ("rendered_for", "current", "owner", "expected"),
    [
        pytest.param("v1.34.0", "v1.35.0", WORKER, True, id="changed"),
        pytest.param("v1.35.0", "v1.35.0", WORKER, False, id="the same"),
        pytest.param("", "v1.35.0", WORKER, False, id="not ours: unknown what it was rendered for"),
        pytest.param("v1.34.0", "", WORKER, False, id="the control plane has no version"),
        pytest.param("v1.34.0", "v1.35.0", WORKER._replace(provisioned=True), False, id="a host has taken it"),
        pytest.param("v1.34.0", "v1.35.0", WORKER._replace(joined=True), False, id="joined"),
        pytest.param("v1.34.0", "v1.35.0", CONTROL_PLANE, False, id="a control plane machine has its own version"),
        pytest.param("v1.34.0", "v1.35.0", POOL._replace(joined=True, provisioned=True), True, id="a pool may grow at any time"),
    ],
)
def test_data_is_rendered_anew_while_somebody_may_read_it(rendered_for: str, current: str, owner: Owner, expected: bool) -> None:
    assert rendered_anew(rendered_for, current, owner) is expected
