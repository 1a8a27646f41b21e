"""Our managers of machines and control planes on a real API server: beside upstream's, in their place, killed, and two at a time."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from e2e.planes import real_server
from e2e.upstream import CLUSTER_API, Plane, Running, plane
from fleet.lives import FIRST, NAME, NAMESPACE, SECOND, STAGES, Life, agreed
from fleet.test_lives import GOLDEN, nothing_doubled, webhooks_are_asked
from support.ports import free_port
from support.waiting import eventually

from slipway.api.cluster.kinds import (
    CLUSTER,
    CLUSTER_RESOURCE_SET,
    CLUSTER_RESOURCE_SET_BINDING,
    CONFIG_MAP,
    KUBEADM_CONTROL_PLANE,
    LEASE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    SECRET,
)
from slipway.fleet import manifests
from slipway.kube.aio import PatchType
from slipway.lab.programs import gobuild
from slipway.runtime.leader import holder

pytestmark = [*real_server, pytest.mark.asyncio]
UPSTREAM = ("core", "control-plane", "bootstrap")


@pytest.fixture
def management(tmp_path: Path) -> Iterator[Plane]:
    with plane(tmp_path) as made:
        yield made


def install(management: Plane, port: int) -> None:
    command = [sys.executable, "-m", "slipway", "manager", "install", "--controllers=all", f"--webhook-url=https://127.0.0.1:{port}"]
    subprocess.run(command, env={**os.environ, **management.environment}, check=True, capture_output=True, timeout=120)


@asynccontextmanager
async def ours(management: Plane) -> AsyncIterator[Life]:
    """A life under a manager of ours with everything that an installation brings."""
    port = free_port()
    install(management, port)
    management.start_slipway("--controllers=all", f"--webhook-port={port}").await_health()
    async with management.life() as one:
        await webhooks_are_asked(one)
        yield one


async def test_each_rest_is_as_under_upstreams_managers(management: Plane) -> None:
    async with ours(management) as one:
        for stage, play in STAGES.items():
            await play(one)
            expected = [agreed(item) for item in json.loads((GOLDEN / f"{stage}.json").read_text())]
            found = [agreed(json.loads(line)) for line in await one.taken_down()]
            assert _lines(found) == _lines(expected), stage


def _lines(items: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(item, sort_keys=True) for item in items)


async def test_cluster_resource_sets_leave_what_upstreams_manager_leaves(management: Plane, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    with plane(tmp_path / "theirs") as other:
        other.install_crds()
        _upstream(other)
        async with other.life() as theirs:
            expected = await _resource_sets(theirs)
    async with ours(management) as one:
        assert await _resource_sets(one) == expected


async def _resource_sets(life: Life) -> list[dict[str, Any]]:
    """What there is when a set of each strategy was applied, when its sources changed, and when one of them was deleted."""
    client, at = life.client, {"namespace": NAMESPACE}
    await life.begin()
    await life.at_rest("the cluster is made", life.all_at(FIRST, 3, 2))
    await client.create(CONFIG_MAP, {"metadata": {"name": "once", **at}, "data": {"one.yaml": _addon("once", 1)}})
    made = {
        "metadata": {"name": "kept", **at},
        "type": "addons.cluster.x-k8s.io/resource-set",
        "stringData": {"one.yaml": _addon("kept", 1)},
    }
    await client.create(SECRET, made)
    for name, source, strategy in (("once", CONFIG_MAP, "ApplyOnce"), ("kept", SECRET, "Reconcile")):
        selector = {"matchLabels": {"addons": "wanted"}}
        spec = {"clusterSelector": selector, "resources": [{"kind": source.kind, "name": name}], "strategy": strategy}
        await client.create(CLUSTER_RESOURCE_SET, {"metadata": {"name": name, **at}, "spec": spec})
    await client.patch(CLUSTER, NAME, NAMESPACE, {"metadata": {"labels": {"addons": "wanted"}}}, type=PatchType.MERGE)
    seen = [await _addons(life, "both are applied", lambda addons: addons["applied"] == {"addon-once": "1", "addon-kept": "1"})]
    for kind, name, field in ((CONFIG_MAP, "once", "data"), (SECRET, "kept", "stringData")):
        await client.patch(kind, name, NAMESPACE, {field: {"one.yaml": _addon(name, 2)}}, type=PatchType.MERGE)
    seen.append(await _addons(life, "one is kept up to date", lambda addons: addons["applied"]["addon-kept"] == "2"))
    assert seen[-1]["applied"]["addon-once"] == "1"
    await client.delete(CLUSTER_RESOURCE_SET, "once", NAMESPACE)
    # What a set names belongs to it, and goes with the last one that names it.
    seen.append(await _addons(life, "one set is gone", lambda addons: (list(addons["sets"]), len(addons["sources"])) == (["kept"], 1)))
    return seen


def _addon(name: str, number: int) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: addon-{name}\n  namespace: default\ndata:\n  number: '{number}'\n"


async def _addons(life: Life, said: str, done: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Everything about ClusterResourceSets but times and uids, once it is as it should be and has not changed for some seconds."""

    async def look() -> dict[str, Any]:
        sets = await life.client.list(CLUSTER_RESOURCE_SET, NAMESPACE)
        applied = [await life.client.find(CONFIG_MAP, f"addon-{name}", "default") for name in ("once", "kept")]
        bindings = await life.client.list(CLUSTER_RESOURCE_SET_BINDING, NAMESPACE)
        sources = [await life.client.find(kind, name, NAMESPACE) for kind, name in ((CONFIG_MAP, "once"), (SECRET, "kept"))]
        return {
            "sets": {each["metadata"]["name"]: _told(each) for each in sets},
            "applied": {each["metadata"]["name"]: each["data"]["number"] for each in applied if each is not None},
            "bindings": [(_owners(each), _bound(each)) for each in bindings],
            "sources": [_owners(each) for each in sources if each is not None],
        }

    async def right() -> bool:
        return done(await look())

    await life.at_rest(said, right)
    return await look()


def _told(found: dict[str, Any]) -> list[tuple[str, ...]]:
    status = found.get("status") or {}
    older = ((status.get("deprecated") or {}).get("v1beta1") or {}).get("conditions") or []
    return sorted((one["type"], one["status"], one.get("reason", "")) for one in [*(status.get("conditions") or ()), *older])


def _owners(found: dict[str, Any]) -> list[tuple[str, str]]:
    return sorted((owner["kind"], owner["name"]) for owner in found["metadata"].get("ownerReferences") or ())


def _bound(binding: dict[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    return sorted(
        (
            each["clusterResourceSetName"],
            [{key: value for key, value in one.items() if key != "lastAppliedTime"} for one in each.get("resources") or ()],
        )
        for each in (binding.get("spec") or {}).get("bindings") or ()
    )


async def test_a_cluster_of_upstreams_is_taken_over_in_the_middle_of_a_rollout_and_handed_back(management: Plane) -> None:
    """No machine is replaced but those that have to be, and upstream finds nothing to do afterwards."""
    management.install_crds()
    theirs = _upstream(management)
    async with management.life() as one:
        await one.begin()
        await one.at_rest("the cluster is made", one.all_at(FIRST, 3, 2))
        await one.patch(KUBEADM_CONTROL_PLANE, f"{NAME}-cp", {"version": SECOND})

        async def begun() -> bool:
            versions = [machine["spec"]["version"] for machine in await one.machines(control_plane_name=f"{NAME}-cp")]
            return versions.count(SECOND) == 1

        await eventually(begun, "the rollout has begun", 120)
        before = {machine["metadata"]["name"]: machine["spec"]["version"] for machine in await one.machines()}
        _stop(theirs)
        running = management.start_slipway("--controllers=all", "--webhook-port=0")
        await one.at_rest("the rollout is finished by us", one.all_at(SECOND, 3, 2, workers_at=FIRST), patience=300)
        after = {machine["metadata"]["name"]: machine["spec"]["version"] for machine in await one.machines()}
        due = {name for name, version in before.items() if version == FIRST and name.startswith(f"{NAME}-cp")}
        assert after.keys() == (before.keys() - due) | {name for name, version in after.items() if name not in before}
        assert len(after) == 5
        await one.patch(MACHINE_DEPLOYMENT, f"{NAME}-md", {"replicas": 3})
        await one.at_rest("it is scaled by us", one.all_at(SECOND, 3, 3, workers_at=FIRST))
        kept = {machine["metadata"]["name"] for machine in await one.machines()}
        assert running.stop() == 0
        theirs = _upstream(management)
        # Long enough for each of upstream's controllers to look at everything.
        await asyncio.sleep(30)
        await one.at_rest("upstream has looked at everything", one.all_at(SECOND, 3, 3, workers_at=FIRST))
        assert {machine["metadata"]["name"] for machine in await one.machines()} == kept
        await one.patch(MACHINE_DEPLOYMENT, f"{NAME}-md", {"template": {"spec": {"version": SECOND}}})
        await one.at_rest("upstream rolls what we have made", one.all_at(SECOND, 3, 3), patience=300)


def _upstream(management: Plane) -> list[Running]:
    started = [management.start_upstream(name) for name in UPSTREAM]
    for running in started:
        running.await_health()
    return started


def _stop(managers: list[Running]) -> None:
    for running in managers:
        running.stop()


async def test_a_manager_killed_two_hundred_times_during_a_rollout_ends_right(management: Plane) -> None:
    chance = random.Random(2)
    install_without_webhooks(management)
    async with management.life() as one:
        running = management.start_slipway("--controllers=all", "--webhook-port=0")
        await one.begin(workers=5)
        await one.at_rest("the cluster is made", one.all_at(FIRST, 3, 5))
        running.kill()
        await one.patch(KUBEADM_CONTROL_PLANE, f"{NAME}-cp", {"version": SECOND})
        await one.patch(MACHINE_DEPLOYMENT, f"{NAME}-md", {"template": {"spec": {"version": SECOND}}})
        for _ in range(200):
            running = management.start_slipway("--controllers=all", "--webhook-port=0")
            await asyncio.sleep(chance.uniform(0.8, 2.0))
            running.kill()
        management.start_slipway("--controllers=all", "--webhook-port=0")
        await one.at_rest("every machine is replaced", one.all_at(SECOND, 3, 5), patience=400)
        await nothing_doubled(one)


def install_without_webhooks(management: Plane) -> None:
    """The CRDs alone, as objects are in the version that is stored."""
    management.install_crds()


async def test_when_the_leader_is_killed_the_other_goes_on_within_the_lease(management: Plane) -> None:
    install_without_webhooks(management)
    async with management.life() as one:
        flags = ("--controllers=all", "--webhook-port=0", "--leader-elect", "--leader-elect-namespace=default")
        managers = {name: management.start_slipway(*flags, name=name) for name in ("one", "other")}
        await one.begin(workers=5)
        await one.at_rest("the cluster is made", one.all_at(FIRST, 3, 5))
        await one.patch(KUBEADM_CONTROL_PLANE, f"{NAME}-cp", {"version": SECOND})

        async def begun() -> bool:
            return any(machine["spec"]["version"] == SECOND for machine in await one.machines(control_plane_name=f"{NAME}-cp"))

        await eventually(begun, "the rollout has begun", 60)
        lease = await one.client.get(LEASE, "kubeadm-control-plane-manager-leader-election-capi", "default")
        leader = next(name for name, running in managers.items() if f'identity="{holder(lease)}"' in running.log.read_text())
        managers[leader].kill()
        killed, seen = time.monotonic(), len(await one.client.list(MACHINE, "default"))

        async def goes_on() -> bool:
            return len(await one.client.list(MACHINE, "default")) != seen

        await eventually(goes_on, "the other one goes on", 60)
        # The lease runs out after fifteen seconds; who waits looks every two to four.
        print(f"the other manager went on after {time.monotonic() - killed:.1f} s")
        await one.at_rest("the rollout ends", one.all_at(SECOND, 3, 5, workers_at=FIRST), patience=300)


async def test_clusterctl_moves_a_cluster_to_another_management_plane_and_back(management: Plane, tmp_path: Path) -> None:
    """Nothing is replaced on the way, and whoever has the cluster rolls it."""
    (tmp_path / "other").mkdir()
    with plane(tmp_path / "other") as other:
        managers = []
        for each in (management, other):
            port = free_port()
            install(each, port)
            managers.append(each.start_slipway("--controllers=all", f"--webhook-port={port}"))
            managers[-1].await_health()
        async with management.life() as here, other.life(workload=management) as there:
            for life in (here, there):
                await webhooks_are_asked(life)
            await here.begin()
            await here.at_rest("the cluster is made", here.all_at(FIRST, 3, 2))
            made = await _machines_and_owners(here)
            secrets = await _secrets(here)
            _move(management, other)
            assert await here.machines() == []
            await there.at_rest("the other manager has it", there.all_at(FIRST, 3, 2))
            assert await _machines_and_owners(there) == made
            assert await _secrets(there) == secrets
            await there.patch(KUBEADM_CONTROL_PLANE, f"{NAME}-cp", {"version": SECOND})
            await there.at_rest("the other manager rolls it", there.all_at(SECOND, 3, 2, workers_at=FIRST), patience=300)
            rolled = await _machines_and_owners(there)
            _move(other, management)
            assert await there.machines() == []
            await here.at_rest("the first manager has it again", here.all_at(SECOND, 3, 2, workers_at=FIRST))
            assert await _machines_and_owners(here) == rolled
            await nothing_doubled(here, 5)
        assert [running.process.poll() for running in managers] == [None, None]


def _move(source: Plane, target: Plane) -> None:
    """By upstream's own command, which needs the kinds to be labelled and the owners to be as it knows them."""
    command = [str(gobuild.build("clusterctl", CLUSTER_API)), "move", f"--kubeconfig={source.kubeconfig}"]
    command += [f"--to-kubeconfig={target.kubeconfig}", "--namespace=default"]
    environment = {**source.environment, "CLUSTERCTL_DISABLE_VERSIONCHECK": "true"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


async def _machines_and_owners(life: Life) -> list[tuple[str, str, str, str]]:
    """Each machine's name, version, Node and owner."""
    return sorted(
        (
            machine["metadata"]["name"],
            machine["spec"]["version"],
            machine["status"]["nodeRef"]["name"],
            machine["metadata"]["ownerReferences"][0]["name"],
        )
        for machine in await life.machines()
    )


async def _secrets(life: Life) -> dict[str, dict[str, str]]:
    found = await life.client.list(SECRET, "default", labels=f"cluster.x-k8s.io/cluster-name={NAME}")
    return {secret["metadata"]["name"]: secret["data"] for secret in found}


async def test_an_api_server_that_restarts_during_a_rollout_does_not_stop_it(management: Plane) -> None:
    install_without_webhooks(management)
    running = management.start_slipway("--controllers=all", "--webhook-port=0")
    async with management.life() as one:
        await one.begin()
        await one.at_rest("the cluster is made", one.all_at(FIRST, 3, 2))
        await one.patch(KUBEADM_CONTROL_PLANE, f"{NAME}-cp", {"version": SECOND})
        await one.patch(MACHINE_DEPLOYMENT, f"{NAME}-md", {"template": {"spec": {"version": SECOND}}})

        async def at(count: int) -> bool:
            return len([machine for machine in await one.machines() if machine["spec"]["version"] == SECOND]) >= count

        for count in (1, 3):
            await eventually(partial(at, count), f"{count} of the new machines are there", 120)
            await asyncio.to_thread(management.restart)
        await one.at_rest("every machine is replaced", one.all_at(SECOND, 3, 2), patience=400)
        await nothing_doubled(one, 5)
        assert running.process.poll() is None


async def test_rights_that_are_taken_away_during_a_rollout_are_told_and_given_back_let_it_go_on(management: Plane) -> None:
    port = free_port()
    install(management, port)
    limited = management.kubeconfig_of(manifests.NAME, manifests.NAMESPACE)
    running = management.start_slipway("--controllers=all", f"--webhook-port={port}", kubeconfig=limited)
    running.await_health()
    async with management.life() as one:
        await webhooks_are_asked(one)
        await one.begin()
        await one.at_rest("the cluster is made", one.all_at(FIRST, 3, 2))
        binding = management.get("clusterrolebinding", manifests.NAME)
        management.kubectl("delete", "clusterrolebinding", manifests.NAME)
        await one.patch(KUBEADM_CONTROL_PLANE, f"{NAME}-cp", {"version": SECOND})

        async def told() -> bool:
            return "forbidden" in running.log.read_text()

        await eventually(told, "the log tells what is forbidden", 60)
        assert {machine["spec"]["version"] for machine in await one.machines()} == {FIRST}
        for key in ("resourceVersion", "uid", "creationTimestamp"):
            binding["metadata"].pop(key, None)
        management.apply(binding)
        await one.at_rest("the control plane is replaced", one.all_at(SECOND, 3, 2, workers_at=FIRST), patience=300)
        assert running.process.poll() is None
