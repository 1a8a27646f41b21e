"""The run, top to bottom: hosts register, a cluster is made of them, every node is replaced for another version, and all is verified."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from slipway.api.cluster.infrastructure.names import CATALOG_NAME
from slipway.api.cluster.kinds import (
    BAREMETAL_MACHINE,
    CONFIG_MAP,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    MACHINE_REGISTRATION,
    NODE,
    SECRET,
)
from slipway.api.machinery.errors import OperatorError
from slipway.demo import events, manifests, verification
from slipway.demo.events import Check, Event
from slipway.demo.options import CLUSTER, NAMESPACE, PLANE, WORKERS
from slipway.demo.scene import WATCHED, Scene, StalledError
from slipway.fleet import registry
from slipway.fleet.baremetal.options import DEFAULT_JOIN_DEADLINE, BaremetalOptions
from slipway.fleet.baremetal.rollouts import preflight
from slipway.fleet.baremetal.rollouts.survey import survey
from slipway.fleet.clustercache import connection_from, secret_name
from slipway.fleet.inventory.options import SECRET as REGISTRATION_SECRET
from slipway.fleet.manifests import NAMESPACE as HOME
from slipway.fleet.overview import stages
from slipway.fleet.overview.explanation import explain
from slipway.fleet.overview.objects import KINDS, gather
from slipway.fleet.overview.problems import Ref
from slipway.fleet.overview.stages import condition
from slipway.kube.aio import AsyncClient, PatchType
from slipway.kube.errors import ApiError
from slipway.simulation.plane import ManagementPlane, free_port
from slipway.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.demo.faults import Fault
    from slipway.demo.options import Options
    from slipway.demo.record import Record
    from slipway.runtime.manager import Manager
    from slipway.simulation.boot import Life

# Nothing in a run is without an event for so long on a busy machine, and for so long in the time of the hosts.
_PATIENCE, _HOST_PATIENCE = 60.0, 1800.0
_AT_REST = 10.0
# How often, and after how many seconds, an explanation is asked for that is to name what lasts.
_LOOKS, _LOOK = 20, 0.5
# A manager that looks again more often than this has no time for anything else.
_LEAST_PACE = 0.02
_CONTROL_PLANE_LABEL = "cluster.x-k8s.io/control-plane"


class Story:
    """``folder`` is for files of the time of the run."""

    def __init__(
        self,
        options: Options,
        record: Record,
        folder: Path,
        fault: Fault | None = None,
        dashboard: Callable[[Manager, int], None] | None = None,
    ) -> None:
        self.options, self.record, self._folder = options, record, folder
        self._fault = fault
        pace = max(options.pace, _LEAST_PACE)
        # Fast hosts on a slow machine still have their own time; only who waits for the deadline wants it soon.
        least = timedelta(seconds=10 if fault is not None and fault.misses_deadline else 120)
        self.plane = ManagementPlane(
            NAMESPACE,
            BaremetalOptions(join_deadline=max(DEFAULT_JOIN_DEADLINE * pace, least), max_failures=1),
            pace=pace,
            database=folder / "objects.db" if fault is not None and fault.restarts else None,
            dashboard=dashboard,
        )
        self.world = World(registry=manifests.REGISTRY, pace=options.pace, seed=1)
        self.hosts: list[Life] = []
        self.vip = f"127.{random.randint(64, 126)}.{random.randint(0, 255)}.{random.randint(1, 254)}"
        self._stack = AsyncExitStack()
        self._pooled: set[str] = set()
        self._unread: OSError | None = None
        self._over = False

    @property
    def kubeconfig(self) -> Path:
        return self._folder / "kubeconfig"

    @property
    def client(self) -> AsyncClient:
        return self.plane.client

    async def __aenter__(self) -> Story:
        self._stack.push_async_callback(self.plane.stop)
        async with self._step("management", "an API server and a manager with all controllers start"):
            await self.plane.start()
        self.kubeconfig.write_text(self.plane.server.kubeconfig(namespace=NAMESPACE))
        self.kubeconfig.chmod(0o600)
        watching = await self._stack.enter_async_context(AsyncClient(self.plane.server.connection()))
        self.scene = Scene(watching, self._observe)
        self.scene.check = self._check
        self._stack.push_async_callback(self.scene.close)
        self.scene.start()
        await self._stack.enter_async_context(self.world)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def run(self) -> bool:
        """Whether all went well."""
        try:
            await self._register()
            await self._make()
            before = {str(machine["metadata"]["name"]) for machine in self.scene.all(MACHINE)}
            if self.options.upgrade:
                await self._upgrade()
            return await self._verify(frozenset(before) if self.options.upgrade else frozenset())
        except StalledError:
            await self._tell_why(f"Nothing has happened for {self._patience:.0f} s")
        except OperatorError as error:
            await self._tell_why(error.message)
        return await self._verify(frozenset())

    # The steps.

    async def _register(self) -> None:
        number = self.options.hosts
        async with self._step("register", f"{number} hosts register with the manager"):
            await self._create(MACHINE_REGISTRATION, manifests.registration())
            known = [self.options.start, *self.options.steps]
            images = [self.world.registry.push(manifests.REPOSITORY, manifests.tag(version), version) for version in known]
            await self.until(lambda: bool(self._registration_url()))
            authority = await self._registration_authority()
            for index in range(1, number + 1):
                host = self.world.add_host(f"host-{index}", images[0])
                self.world.give_registration(host, self._registration_url(), authority)
                self.hosts.append(host)
                await host.power_on()
            await self.until(lambda: sum(_is_ready(each) for each in self.scene.all(MACHINE_INVENTORY)) == number)

    async def _make(self) -> None:
        options = self.options
        async with self._step("make", f"a cluster of {options.control_planes} + {options.workers} at {options.start} is made of them"):
            listed = [options.start, *(options.steps if options.upgrade or options.keep else [])]
            missing = self._fault.left_out(options) if self._fault is not None else ()
            await self._create(CONFIG_MAP, manifests.catalog(version for version in listed if version not in missing))
            port = free_port(self.vip, 6443)
            for kind, manifest in manifests.cluster(options, [host.machine.hardware.name for host in self.hosts], self.vip, port):
                await self._create(kind, manifest)
            await self.until(lambda: self.is_at(options.start, options.start))

    async def _upgrade(self) -> None:
        options, at = self.options, self.options.start
        await self._preflight()
        if self._fault is not None:
            self.record.tell(Event(events.FAULT, name=options.fault, text=f"{options.fault}: {self._fault.text}"))
            await self._fault.prepare(self)
        trouble = asyncio.create_task(self._fault.occur(self)) if self._fault is not None else None
        try:
            for version in options.steps:
                async with self._step("control plane", f"the control plane goes to {version}, one node at a time"):
                    await self.upgrade_control_plane(version)
                    await self.until(lambda version=version: self.is_at(version, at), trouble)  # type: ignore[misc]
            if options.workers:
                async with self._step("workers", f"the workers go to {options.to}, one node at a time"):
                    await self.upgrade_workers(options.to)
                    await self.until(lambda: self.is_at(options.to, options.to), trouble)
            if trouble is not None:
                await trouble
        finally:
            if trouble is not None:
                trouble.cancel()
                await asyncio.gather(trouble, return_exceptions=True)

    async def _preflight(self) -> None:
        """What `slipway fleet preflight` says."""
        found = preflight.rows(await survey(self.client, NAMESPACE, CLUSTER, registry.leases(), ""), self.options.steps[0])
        number = Counter(row.status for row in found)
        told = ", ".join(f"{count} {status}" for status, count in sorted(number.items()))
        self.note(f"slipway fleet preflight {CLUSTER} -n {NAMESPACE} --to {self.options.steps[0]}: {told}")
        for row in found:
            if row.status == preflight.FAILED:
                self.note(f"preflight: {row.check}: {row.message}")

    async def upgrade_control_plane(self, version: str) -> None:
        """The guide's one edit: the version, and the tags of components that are pinned."""
        await self.patch(KUBEADM_CONTROL_PLANE, PLANE, manifests.control_plane_edit(version))

    async def upgrade_workers(self, version: str) -> None:
        await self.patch(MACHINE_DEPLOYMENT, WORKERS, manifests.workers_patch(version))

    async def _verify(self, before: frozenset[str]) -> bool:
        options = self.options
        expected = verification.Expected(options.final, options.control_planes, options.workers, before)
        # What is not at rest is told below, as a check that does not hold; so is a manager that has ended.
        with suppress(StalledError, OperatorError):
            await self.scene.until(
                lambda: all(verification.at_rest(pool) for pool in self.scene.all(MACHINE_INVENTORY_POOL)),
                lambda: self.record.quiet,
                _AT_REST,
            )
        try:
            found = verification.checks(await self._found(), expected)
        except OperatorError as error:
            found = [Check("the management cluster answers", ok=False, seen=error.message)]
        ok = all(check.ok for check in found)
        self.record.tell(Event(events.VERIFIED, ok=ok, checks=tuple(found)))
        # What is seen while everything is taken down is nobody's trouble, and the verdict is the last that is told.
        self._over = not options.keep
        return ok

    def worker_hosts(self) -> list[Life]:
        first = self.options.control_planes + self.options.surge
        return self.hosts[first : self.options.needed]

    def plane_hosts(self) -> list[Life]:
        return self.hosts[: self.options.control_planes + self.options.surge]

    def spare_hosts(self) -> list[Life]:
        return self.hosts[self.options.needed :]

    # What is seen.

    def is_at(self, planes: str, workers: str) -> bool:
        """Whether every Machine is there, in its version, and well, and none is going."""
        found = Counter(
            (
                "" if machine["metadata"].get("deletionTimestamp") or not _is_ready(machine) else str(machine["spec"].get("version")),
                _CONTROL_PLANE_LABEL in (machine["metadata"].get("labels") or {}),
            )
            for machine in self.scene.all(MACHINE)
        )
        wanted = Counter({(planes, True): self.options.control_planes})
        wanted.update({(workers, False): self.options.workers} if self.options.workers else {})
        return found == wanted and all(stages.stage(each) == stages.MEMBER for each in self.scene.all(BAREMETAL_MACHINE))

    async def until(self, holds: Callable[[], bool], trouble: asyncio.Task[None] | None = None) -> None:
        """Wait; what goes wrong in a task beside it is raised here."""

        def check() -> bool:
            if trouble is not None and trouble.done() and not trouble.cancelled():
                trouble.result()
            return holds()

        await self.scene.until(check, lambda: self.record.quiet, self._patience)

    def _observe(self, kind: Kind, before: Manifest | None, after: Manifest | None) -> None:
        if kind == MACHINE_INVENTORY_POOL and after is not None:
            self._pooled |= {str(member.get("name")) for member in after["spec"].get("machineInventories") or ()}
        if self._over:
            return
        try:
            for event in events.changes(kind, before, after, self._version_of):
                self.record.tell(event)
        except OSError as error:
            # Nobody reads what is shown any more: who waits is to know, and not the watch that called.
            self._unread = error

    def _check(self) -> None:
        if self._unread is not None:
            raise self._unread
        self.plane.check()

    def _version_of(self, machine: str) -> str:
        found = self.scene.get(MACHINE, machine)
        return str((found or {}).get("spec", {}).get("version") or "")

    async def _found(self) -> verification.Found:
        secrets = {str(each["metadata"]["name"]): each for each in await self.client.list(SECRET, NAMESPACE)}
        cluster = next(iter(self.world.clusters.values()), None)
        return verification.Found(
            baremetal_machines=await self.client.list(BAREMETAL_MACHINE, NAMESPACE),
            machines=await self.client.list(MACHINE, NAMESPACE),
            nodes=await self._nodes(secrets.get(secret_name(CLUSTER))),
            pools=await self.client.list(MACHINE_INVENTORY_POOL, NAMESPACE),
            secrets=secrets,
            etcd_members=len(cluster.etcd.members) if cluster is not None else 0,
            etcd_quorum=cluster is not None and cluster.etcd.has_quorum(),
            doubled=len(self.world.segment.doubled),
            touched=self._touched(),
        )

    async def _nodes(self, kubeconfig: Manifest | None) -> list[Manifest]:
        """As `kubectl get nodes` has them, with the kubeconfig of the workload cluster."""
        if kubeconfig is None:
            return []
        try:
            async with AsyncClient(connection_from(kubeconfig), timeout=5.0) as workload:
                return await workload.list(NODE)
        except ApiError as error:
            self.record.tell(Event(events.PROBLEM, text=f"the workload cluster does not answer: {error.message}"))
            return []

    def _touched(self) -> list[str]:
        machines = [host.machine for host in self.hosts]
        return [machine.hardware.name for machine in machines if machine.hardware.name not in self._pooled and machine.boots != 1]

    @property
    def _patience(self) -> float:
        return _PATIENCE + _HOST_PATIENCE * self.options.pace

    # What is done and told.

    async def patch(self, kind: Kind, name: str, body: object, type_: PatchType = PatchType.MERGE) -> None:
        """As kubectl does it, and it is told as the command that an operator would type."""
        import json

        command = f"kubectl -n {NAMESPACE} patch {kind.kind.lower()} {name} --type={type_.name.lower()} -p '{json.dumps(body)}'"
        self.record.tell(Event(events.PATCH, kind=kind.kind, name=name, command=command))
        await self.client.patch(kind, name, NAMESPACE, body, type=type_)

    async def delete(self, kind: Kind, name: str) -> None:
        self.record.tell(
            Event(events.PATCH, kind=kind.kind, name=name, command=f"kubectl -n {NAMESPACE} delete {kind.kind.lower()} {name}")
        )
        await self.client.delete(kind, name, NAMESPACE)

    async def patch_catalog(self, version: str) -> None:
        await self.patch(CONFIG_MAP, CATALOG_NAME, manifests.catalog_patch(version), PatchType.JSON)

    def note(self, text: str) -> None:
        self.record.tell(Event(events.NOTE, text=text))

    @asynccontextmanager
    async def _step(self, name: str, text: str) -> AsyncIterator[None]:
        began = self.record.now
        self.record.tell(Event(events.STEP, name=name, text=text))
        yield
        self.record.tell(Event(events.DONE, name=name, seconds=round(self.record.now - began, 3)))

    async def _create(self, kind: Kind, manifest: Manifest) -> None:
        """A webhook may not answer yet when the manager has just started."""
        for left in reversed(range(50)):
            try:
                await self.client.create(kind, manifest)
                return
            except ApiError as error:
                if not left or "webhook" not in error.message:
                    raise
                await asyncio.sleep(0.1)

    def _registration_url(self) -> str:
        found = self.scene.get(MACHINE_REGISTRATION, manifests.REGISTRATION) or {}
        return str((found.get("status") or {}).get("registrationURL") or "")

    async def _registration_authority(self) -> str:
        from base64 import b64decode

        for _ in range(200):
            found = await self.client.find(SECRET, REGISTRATION_SECRET, HOME)
            if found is not None:
                data: dict[str, Any] = found["data"]
                return b64decode(data.get("ca.crt") or data["tls.crt"]).decode()
            await asyncio.sleep(0.05)
        raise OperatorError("the manager has not made the certificate of its registration")

    async def explain(self, *, lasting: bool = False) -> None:
        """What `slipway fleet explain` says of the cluster: the whole chain, from its control plane or workers to a host's plan.

        ``lasting``: something is known to last, and is waited for: of a Machine that has just been made there is more to say at first.
        """
        for _ in range(_LOOKS if lasting else 1):
            objects = await gather(self.client, NAMESPACE)
            if not objects.clusters:
                return
            told = explain(objects, Ref(KINDS["clusters"].kind, NAMESPACE, CLUSTER), datetime.now(UTC))
            if told.lasting or not lasting:
                break
            await asyncio.sleep(_LOOK)
        self.record.tell(
            Event(
                events.EXPLAINED,
                kind=told.object.kind,
                name=CLUSTER,
                command=f"slipway fleet explain cluster/{CLUSTER} -n {NAMESPACE}",
                text=" ".join(told.sentences),
                to_do=" ".join(told.to_do),
            )
        )

    async def _tell_why(self, problem: str) -> None:
        """It does not go on: everything that is not well, with what to do."""
        found = events.waits((kind, manifest) for kind in WATCHED for manifest in self.scene.all(kind))
        why = "; ".join(f"{each.kind} {each.name}: {each.condition}/{each.reason}: {each.text} → {each.to_do}" for each in found)
        self.record.tell(Event(events.PROBLEM, text=". ".join(filter(None, (problem.rstrip("."), why)))))
        # Where the API server does not answer, the problem says so.
        with suppress(OperatorError):
            await self.explain()


def _is_ready(manifest: Manifest) -> bool:
    return bool(condition(manifest, "Ready").get("status") == "True")
