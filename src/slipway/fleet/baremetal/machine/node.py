"""The Node of a host that was made one: whether it has come, is what was asked for, and came in time."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import MACHINE_INVENTORY, NODE
from slipway.api.cluster.names import NODE_MACHINE_ANNOTATION
from slipway.api.elemental import cycles
from slipway.api.machinery.duration import Duration
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.baremetal.hosts import claim, record
from slipway.fleet.baremetal.machine.decision import Joined, NodeFacts, joined, made_by_plan
from slipway.fleet.baremetal.plans.networkconfig import own_addresses
from slipway.fleet.baremetal.plans.plan import same_version
from slipway.fleet.baremetal.reasons import NODE_GONE, WORKLOAD_UNREACHABLE
from slipway.fleet.contract import conditions
from slipway.fleet.contract.conditions import FALSE, TRUE, UNKNOWN
from slipway.fleet.liveclusters import PROVIDER_ID
from slipway.runtime.objects import timestamp

if TYPE_CHECKING:
    from slipway.fleet.baremetal.machine.run import Run
    from slipway.fleet.baremetal.options import BaremetalOptions
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object

DEADLINE_ANNOTATION = "slipway.io/join-deadline"
"""On a BaremetalMachine: how long its host may take to join, such as 45m."""
_LOOK = 10.0


class _Info(msgspec.Struct, rename="camel"):
    kubelet_version: str = ""
    boot_id: str = msgspec.field(default="", name="bootID")


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _NodeStatus(msgspec.Struct, rename="camel"):
    node_info: _Info = msgspec.field(default_factory=_Info)
    conditions: list[_Condition] = []


class _Node(msgspec.Struct):
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)


def node_facts(found: Object) -> NodeFacts:
    status = found.decode(_Node).status
    ready = any(condition.type == "Ready" and condition.status == "True" for condition in status.conditions)
    machine = found.metadata.annotations.get(NODE_MACHINE_ANNOTATION, "")
    return NodeFacts(found.name, status.node_info.kubelet_version, status.node_info.boot_id, ready, machine)


class Nodes:
    def __init__(self, client: AsyncClient, cache: Cache, options: BaremetalOptions, workload: WorkloadClusters) -> None:
        self._client = client
        self._cache = cache
        self._options = options
        self._workload = workload

    async def find(self, run: Run) -> list[NodeFacts]:
        """The Nodes with the provider ID of the host, those that were left behind too; OperatorError where the cluster cannot be asked."""
        nodes = await self._workload.nodes(run.namespace, run.cluster.name)
        return list(map(node_facts, await nodes.list(NODE, index=(PROVIDER_ID, names.provider_id(run.claimed.name)))))

    async def look(self, run: Run) -> None:
        """After the plan is applied: for the Node, until it is there and from then on."""
        assert run.owner is not None
        condition = names.NODE_JOINED_CONDITION
        run.phase = names.RUNNING_PHASE if run.provisioned else names.REPROVISIONING_PHASE
        try:
            found = await self.find(run)
        except OperatorError as error:
            run.tell(condition, UNKNOWN, WORKLOAD_UNREACHABLE, error.message)
            if not run.provisioned:
                # Of one that runs, whoever watches the cluster tells when it answers again.
                run.look_again(_LOOK)
                self._deadline(run, error.message)
            return
        # Of one that runs the Secret is not asked any more, and it may have lost the plan.
        node = made_by_plan(found, (run.plan.boot_before if run.plan is not None else "") or run.boots_before or "")
        match joined(node, fits=node is not None and same_version(run.owner.version, node.version)):
            case Joined.YES:
                assert node is not None
                await self._joined(run, node)
            case Joined.OTHER_VERSION:
                assert node is not None
                run.tell(
                    condition,
                    FALSE,
                    names.NODE_VERSION_DIFFERS_REASON,
                    f"the Node {node.name} runs {node.version}, and the Machine is to be {run.owner.version}: the image "
                    f"{run.before.image or 'of the catalog'} is of another version; mend the catalog, then delete the Machine",
                )
                run.look_again(_LOOK)
                if not run.provisioned:
                    run.phase = names.FAILED_PHASE
            case Joined.NO if run.provisioned:
                run.tell(
                    condition, FALSE, NODE_GONE, f"there is no Node with the provider ID {names.provider_id(run.claimed.name)} any more"
                )
            case Joined.NO:
                run.tell(
                    condition, FALSE, names.WAITING_FOR_NODE_REASON, "the host has applied its plan: waiting for its boot and its Node"
                )
                run.look_again(_LOOK)
                self._deadline(run, "")

    async def _joined(self, run: Run, node: NodeFacts) -> None:
        await self._note(run, node)
        run.phase = names.RUNNING_PHASE
        run.tell(names.NODE_JOINED_CONDITION, TRUE, names.NODE_JOINED_REASON, f"Node {node.name}, {node.version}")
        fields = run.status.fields
        fields["ready"] = True
        fields["initialization"] = {**(fields.get("initialization") or {}), "provisioned": True}

    async def _note(self, run: Run, node: NodeFacts) -> None:
        """Mark the host as one that is a Node; what its record gets goes with that, and is a write of its own where it is Ready later."""
        host, running = run.claimed, run.now if node.ready else None
        if host.state != names.ALLOCATED:
            fields = run.status.fields
            life = run.life(
                planned=conditions.moment(fields.get("planWrittenTime")),
                applied=conditions.moment(fields.get("planAppliedTime")),
                joined=run.now,
                running=running,
            )
            await claim.set_state(self._client, self._cache, host.name, run.claimant, names.ALLOCATED, life)
        elif running is not None:
            inventory = await self._cache.get(MACHINE_INVENTORY, host.name, run.namespace)
            if inventory is not None and record.is_unfinished(cycles.read(inventory.metadata.annotations), run.claimant.owner.machine):
                await claim.note(self._client, self._cache, host.name, run.claimant, run.life(running=running))

    def _deadline(self, run: Run, why: str) -> None:
        applied = conditions.moment(run.status.fields.get("planAppliedTime"))
        limit = self._limit(run)
        if applied is None or run.now - applied < limit:
            return
        run.phase = names.FAILED_PHASE
        output = f" The host printed: {run.plan.printed}" if run.plan is not None and run.plan.printed else ""
        run.tell(
            names.NODE_JOINED_CONDITION,
            FALSE,
            names.JOIN_DEADLINE_EXCEEDED_REASON,
            f"the host applied its plan at {timestamp(applied)} and is no Node after {int(limit.total_seconds())} s"
            f"{f' ({why})' if why else ''}. Look at the host's console for its boot, at /var/log/cloud-init-output.log for kubeadm, and "
            f"whether the host reaches {run.cluster.endpoint or 'the API server'}; to try another host, delete the Machine.{output}",
        )

    def _limit(self, run: Run) -> timedelta:
        text = run.annotations.get(DEADLINE_ANNOTATION, "")
        try:
            found = timedelta(microseconds=Duration.parse(text) / 1000) if text else timedelta(0)
        except ValueError:
            found = timedelta(0)
        return found if found > timedelta(0) else self._options.join_deadline


def addresses(run: Run) -> list[dict[str, str]]:
    """Of the status, as far as they are known: what the host had when it registered, but for a virtual one."""
    interfaces = run.claimed.network.interfaces if run.claimed.network is not None else []
    found = [each.partition("/")[0] for interface in interfaces for each in own_addresses(interface, without=[run.vip])]
    hostname = str(run.status.fields.get("hostname") or "")
    listed = [{"type": "InternalIP", "address": address} for address in dict.fromkeys(found)]
    return [*listed, {"type": "Hostname", "address": hostname}] if hostname else listed
