"""A rehearsal as a whole, of a recorded management cluster that may only be read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from fleet.world import lean_crd
from simulation.estate import KINDS
from simulation.rehearsal import recorded
from simulation.rehearsal.recorded import FIRST, NAME, SECOND, SPACE, Manifest, Recording

from slipway.api import rbac
from slipway.api.cluster.kinds import (
    CLUSTER,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    MACHINE_DEPLOYMENT,
    NAMESPACE,
    POD,
    REPLICA_SET,
    Kind,
)
from slipway.api.machinery.errors import OperatorError
from slipway.embedded.server import EmbeddedServer
from slipway.kube.aio import AsyncClient
from slipway.kube.connection import Connection
from slipway.simulation.rehearsal.original import LISTED, WORKLOADS
from slipway.simulation.rehearsal.rehearsal import Wanted, rehearse
from slipway.simulation.rehearsal.report import Report
from slipway.simulation.rehearsal.stand import put
from slipway.simulation.workload.controllers import BUDGET

pytestmark = pytest.mark.asyncio
READER = "reader"
WORKER = "host-3"
# Nothing that goes on takes so long here, and what does not is told at once.
PATIENCE = 4.0


class Real:
    """The management cluster and the workload cluster, both with an account that can get and list, and nothing else."""

    def __init__(self, management: EmbeddedServer, workload: EmbeddedServer) -> None:
        self._servers = management, workload

    def way_of(self, user: str = READER) -> Connection:
        return self._servers[0].connection(user, ())

    def wanted(self, to: str = SECOND) -> Wanted:
        return Wanted(SPACE, NAME, to, workload=self._servers[1].connection(READER, ()), patience=PATIENCE)

    def versions(self) -> list[dict[str, int]]:
        """The resourceVersion of everything that there is, and the last one that was given."""
        found = []
        for server in self._servers:
            store = server.core.store
            known = {f"{each}/{one.key}": one.version for each in store.resources() for one in store.bucket(each).within("")}
            found.append({**known, "": store.version})
        return found


@asynccontextmanager
async def real(recording: Recording) -> AsyncIterator[Real]:
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(EmbeddedServer()) for _ in range(2)]
        for server, kinds in zip(servers, ((CLUSTER, *LISTED, CONFIG_MAP), WORKLOADS), strict=True):
            await _prepare(server, kinds, with_crds=kinds is not WORKLOADS)
        put(servers[0].core, recording.all())
        put(servers[1].core, recording.all_of_workload())
        yield Real(*servers)


async def _prepare(server: EmbeddedServer, kinds: tuple[Kind, ...], *, with_crds: bool) -> None:
    async with AsyncClient(server.connection()) as client:
        if with_crds:
            await client.create(NAMESPACE, {"metadata": {"name": SPACE}})
            for kind in KINDS:
                await client.create(CUSTOM_RESOURCE_DEFINITION, lean_crd(kind))
        rules = [{"apiGroups": [kind.group], "resources": [kind.plural], "verbs": ["get", "list"]} for kind in kinds]
        await client.create(CLUSTER_ROLE, rbac.role(READER, rules))
        await client.create(CLUSTER_ROLE_BINDING, rbac.binding(READER, READER, [{"kind": "User", "name": READER}]))


def with_budget(recording: Recording) -> None:
    """A Deployment's one Pod on the worker, and a budget that wants it to be there always."""
    labels = {"app": "web"}
    spec = {"containers": [{"name": "web", "image": "web:1"}]}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-web", "controller": True}
    ready = [{"type": "Ready", "status": "True"}]
    made: list[tuple[Kind, str, Manifest]] = [
        (
            REPLICA_SET,
            "web",
            {"spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}},
        ),
        (POD, "web-1", {"spec": {**spec, "nodeName": WORKER}, "status": {"phase": "Running", "conditions": ready}}),
        (BUDGET, "web", {"spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}}),
    ]
    for kind, name, content in made:
        metadata = {"name": name, "namespace": "shop", "uid": f"u-{name}" if kind != BUDGET else "u-budget", "labels": labels}
        owned = {"ownerReferences": [owner]} if kind == POD else {}
        recording.workload.setdefault(kind.plural, []).append({"metadata": {**metadata, **owned}, **content})


def order(report: Report) -> list[tuple[str, str, str]]:
    return [(move.way, move.host, move.version) for move in report.moves]


async def test_a_role_that_can_only_read_rehearses_all_of_it_and_is_told_what_would_stop_it() -> None:
    recording = recorded.load()
    with_budget(recording)
    told: list[str] = []
    async with real(recording) as found:
        before = found.versions()
        report = await rehearse(found.way_of(), found.wanted(), told.append)
        assert found.versions() == before, "something was written"
    # A control plane of one is replaced by another one before it goes: on the host that is free.
    assert order(report) == [
        ("comes", "host-2", SECOND),
        ("leaves", "host-1", FIRST),
        ("leaves", WORKER, FIRST),
        ("comes", WORKER, SECOND),
    ]
    assert {group.name: group.lowest for group in report.groups} == {"demo-control-plane": 1, "demo-workers": 0}
    (stop,) = [each for each in report.findings if each.weight == "stops"]
    assert (stop.kind, stop.object) == ("eviction-blocked", "PodDisruptionBudget shop/web")
    assert WORKER in stop.message
    assert not report.ok
    assert all(move.end is not None for move in report.moves)
    assert any("everything is at" in line for line in told)


async def test_what_is_paused_would_not_be_upgraded() -> None:
    recording = recorded.load()
    (workers,) = recording.management[MACHINE_DEPLOYMENT.plural]
    workers["spec"]["paused"] = True
    async with real(recording) as found:
        report = await rehearse(found.way_of(), found.wanted(), lambda line: None)
    assert not report.ok
    assert not report.moves
    (stop,) = [each for each in report.findings if each.weight == "stops"]
    assert "the MachineDeployment demo-workers is paused, and nobody would act on a patch" in stop.message


async def test_a_right_that_is_missing_is_named() -> None:
    async with real(recorded.load()) as found:
        with pytest.raises(OperatorError, match=f"a rehearsal needs the right to get clusters in {SPACE}"):
            await rehearse(found.way_of("nobody"), found.wanted(), lambda line: None)
