"""Drains a Node: looks at its Pods, evicts those that are to go now, and tells how far that came.

Evictions are the API server's: it asks the PodDisruptionBudgets.  The Pods of a host that its provider reports as powered off run no more:
they are deleted at once, whatever a budget says, and the Node is marked out of service.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.api.cluster.kinds import DAEMON_SET, NAMESPACE, NODE, PERSISTENT_VOLUME, POD, VOLUME_ATTACHMENT, path
from slipway.fleet.machines.machine import node as nodes
from slipway.fleet.machines.machine.deletion import is_unreachable
from slipway.fleet.machines.machine.drain import evictions, filters, volumes
from slipway.fleet.machines.machine.drain.filters import Behavior
from slipway.kube.aio import PatchType
from slipway.kube.errors import ApiError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.machines.machine.drain.evictions import Outcome, Plan
    from slipway.fleet.machines.machine.drain.rules import Rule
    from slipway.fleet.machines.machine.drain.volumes import Blocking
    from slipway.kube.aio import AsyncClient

_EVICTIONS = 10.0
"""For so many seconds Pods are evicted in one reconcile; the rest in the next."""
_TIMED_OUT = f"eviction timeout of {_EVICTIONS:g}s reached, eviction will be retried"
_TERMINATING = (
    "Cannot evict pod from terminating namespace: unable to create eviction (kube-controller-manager should set deletionTimestamp)"
)


class Host(NamedTuple):
    """The Node and what is known of what it runs on."""

    node: Manifest
    powered_off: bool = False

    @property
    def name(self) -> str:
        name: str = self.node["metadata"]["name"]
        return name


class Drainer:
    """One drain of one Node, with the client of its cluster and the rules that are for its Machine."""

    def __init__(self, client: AsyncClient, host: Host, rules: Sequence[Rule], now: datetime) -> None:
        self._client = client
        self._host = host
        self._rules = rules
        self._now = now
        self._unreachable = is_unreachable(host.node)

    async def drain(self) -> Outcome:
        await self._cordon()
        made = await self.plan()
        if self._host.powered_off:
            return await self._delete(made)
        outcome = evictions.begun(made)
        ends = asyncio.get_running_loop().time() + _EVICTIONS
        for pod in made.now:
            await self._evict(pod, outcome, ends)
        return outcome

    async def plan(self) -> Plan:
        """What is to be done with each Pod that is on the Node."""
        pods = await self._client.list(POD, fields=f"spec.nodeName={self._host.name}")
        asked = sorted(filters.daemon_sets_of(pods))
        there = [each for each in asked if await self._client.find(DAEMON_SET, each[1], each[0]) is not None]
        namespaces = None
        if pods and any(rule.needs_namespaces for rule in self._rules):
            listed = await self._client.list(NAMESPACE)
            namespaces = {each["metadata"]["name"]: each["metadata"].get("labels") or {} for each in listed}
        around = filters.Node(frozenset(there), namespaces, self._unreachable)
        return evictions.plan([(pod, filters.verdict(pod, self._rules, around, self._now)) for pod in pods])

    async def blocking_volumes(self) -> Blocking:
        """The volumes that the host must wait for; none where nobody can detach them, or Kubernetes takes them for lost."""
        none = volumes.Blocking([], [], [], [])
        if self._unreachable or self._host.powered_off:
            return none
        attached = volumes.attached(self._host.node, await self._client.list(VOLUME_ATTACHMENT))
        if not attached:
            return none
        stay = (await self.plan()).skipped
        return volumes.blocking(attached, await self._client.list(PERSISTENT_VOLUME), volumes.claims_of(stay))

    async def _cordon(self) -> None:
        if not (self._host.node.get("spec") or {}).get("unschedulable"):
            await self._client.patch(NODE, self._host.name, "", {"spec": {"unschedulable": True}}, type=PatchType.MERGE)

    async def _evict(self, pod: Manifest, outcome: Outcome, ends: float) -> None:
        """Nobody is at the other end to stop a Pod of an unreachable Node in good order: it is not waited for."""
        metadata = pod["metadata"]
        options = {"gracePeriodSeconds": 1} if self._unreachable else {}
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
            "deleteOptions": options,
        }
        try:
            async with asyncio.timeout_at(ends):
                await self._client.raw(
                    path(POD, metadata["namespace"], metadata["name"], "eviction"), method="POST", body=msgspec.json.encode(eviction)
                )
        except TimeoutError:
            outcome.fail(pod, _TIMED_OUT)
        except ApiError as error:
            note_refusal(outcome, pod, error)
        else:
            outcome.going.append(pod)

    async def _delete(self, made: Plan) -> Outcome:
        """Take the Pods of a host that is off for what they are: gone."""
        taint = nodes.out_of_service(self._host.node)
        if taint:
            await self._client.patch(NODE, self._host.name, "", taint, type=PatchType.MERGE)
        everything = [*made.now, *made.later, *made.going, *made.waited_for, *made.waited_for_later, *(pod for pod, _ in made.held)]
        outcome = evictions.Outcome(evictions.plan([(pod, filters.Verdict(Behavior.SKIP)) for pod in made.skipped]))
        for pod in everything:
            metadata = pod["metadata"]
            options = {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "gracePeriodSeconds": 0,
                "preconditions": {"uid": metadata["uid"]},
            }
            try:
                await self._client.raw(
                    path(POD, metadata["namespace"], metadata["name"]), method="DELETE", body=msgspec.json.encode(options)
                )
            except NotFoundError:
                continue
            except ApiError as error:
                outcome.fail(pod, error.message)
        return outcome


def note_refusal(outcome: Outcome, pod: Manifest, error: Exception) -> None:
    """What the API server said to an eviction."""
    if not isinstance(error, ApiError):
        raise error
    if isinstance(error, NotFoundError):
        # Somebody else was faster.
        return
    causes = None if error.causes is None else [cause.message for cause in error.causes]
    if error.code == 429:
        outcome.fail(pod, evictions.refusal(error.message, causes))
    elif error.code == 403 and any(cause.type == "NamespaceTerminating" for cause in error.causes or ()):
        outcome.fail(pod, _TERMINATING)
    else:
        outcome.fail(pod, error.message)
