"""What each kind of object waits for, link by link: the account that :mod:`slipway.fleet.overview.explanation` tells.

A link is an object with a sentence about it; where its conditions say why it waits, the cause is with it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster import names as core
from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    CLUSTER,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    MACHINE_SET,
)
from slipway.fleet.baremetal.hosts.host import QUARANTINE_ANNOTATION
from slipway.fleet.overview import groups, sentences
from slipway.fleet.overview.causes import Cause, cause
from slipway.fleet.overview.hosts import APPLIED, FAILED, PENDING, host_view, pool_view
from slipway.fleet.overview.problems import Ref
from slipway.fleet.overview.references import FIELDS, found
from slipway.fleet.overview.stages import condition, host_of, machine_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.overview.groups import Group, Member
    from slipway.fleet.overview.objects import Objects

_CLUSTER, _KCP, _MD, _MS, _MACHINE = CLUSTER.kind, KUBEADM_CONTROL_PLANE.kind, MACHINE_DEPLOYMENT.kind, MACHINE_SET.kind, MACHINE.kind
_BMC, _BMM, _POOL, _HOST = BAREMETAL_CLUSTER.kind, BAREMETAL_MACHINE.kind, MACHINE_INVENTORY_POOL.kind, MACHINE_INVENTORY.kind
# In the order in which a machine gets there.
_OF_BAREMETAL_MACHINE = (
    names.INVENTORY_ALLOCATED_CONDITION,
    names.BOOTSTRAP_READY_CONDITION,
    names.IMAGE_RESOLVED_CONDITION,
    names.PLAN_APPLIED_CONDITION,
    names.NODE_JOINED_CONDITION,
)
_OF_NODE = (
    core.NODE_HEALTHY_CONDITION,
    "NodeKubeadmLabelsAndTaintsSet",
    "APIServerPodHealthy",
    "ControllerManagerPodHealthy",
    "SchedulerPodHealthy",
    "EtcdPodHealthy",
    "EtcdMemberHealthy",
    core.OWNER_REMEDIATED_CONDITION,
    core.HEALTH_CHECK_SUCCEEDED_CONDITION,
    core.READY_CONDITION,
)
_OF_CONTROL_PLANE = (
    core.CERTIFICATES_AVAILABLE_CONDITION,
    core.ETCD_CLUSTER_HEALTHY_CONDITION,
    core.CONTROL_PLANE_COMPONENTS_HEALTHY_CONDITION,
)
_VIP_REASONS = frozenset(
    (
        names.VIP_INVALID_REASON,
        names.VIP_IS_HOST_ADDRESS_REASON,
        names.VRID_IN_USE_REASON,
        names.VIP_PEERS_UNKNOWN_REASON,
        names.WAITING_FOR_CLUSTER_INFRASTRUCTURE_REASON,
    )
)
_ADDRESS = (
    "Look whether the virtual address is held: kubectl -n kube-system get lease alive, ipvsadm -Ln, and the log of keepalived's static Pod."
)
_SURGE = "Set maxSurge to 0: a pool of hosts has none to make one more machine from. To replace more at a time, raise maxUnavailable."


class Link(NamedTuple):
    """``cause`` is None where the object is well, or merely waits for the next link."""

    ref: Ref
    sentence: str
    cause: Cause | None = None
    to_do: tuple[str, ...] = ()
    """Beyond what the cause has."""
    well: bool = False


class World:
    """The objects, found by kind and name."""

    def __init__(self, objects: Objects, now: datetime) -> None:
        self.objects, self.now = objects, now
        self._named = {
            (kind, str(each["metadata"].get("namespace") or ""), str(each["metadata"]["name"])): each
            for kind in FIELDS
            for each in found(objects, kind)
        }
        self._secrets = {_key(each): each for each in objects.plan_secrets}
        self._machines: dict[tuple[str, str], list[Manifest]] = defaultdict(list)
        for each in objects.machines:
            self._machines[_space(each), str((each.get("spec") or {}).get("clusterName") or "")].append(each)

    def get(self, ref: Ref) -> Manifest | None:
        return self._named.get((ref.kind, ref.namespace, ref.name))

    def account(self, ref: Ref) -> list[Link]:
        """From the object to where what it waits for ends; empty where there is no such object."""
        content = self.get(ref)
        return [] if content is None else list(_WALKS[ref.kind](self, ref, content))

    # From the Cluster down.

    def cluster(self, ref: Ref, content: Manifest) -> Iterator[Link]:
        spec = content.get("spec") or {}
        if spec.get("paused") is True or core.PAUSED_ANNOTATION in (content["metadata"].get("annotations") or {}):
            yield self._caused(ref, content, {"type": core.PAUSED_CONDITION, "status": "True"})
            return
        if content["metadata"].get("deletionTimestamp"):
            yield self._caused(ref, content, condition(content, core.DELETING_CONDITION) or {"type": core.DELETING_CONDITION})
            yield from self._leaving(ref)
            return
        base = self._refer(ref, spec.get("infrastructureRef"))
        if base is not None and base[0].kind == _BMC:
            links = self.account(base[0])
            if any(link.cause is not None and link.cause.condition == names.ENDPOINT_READY_CONDITION for link in links):
                yield Link(ref, f"The Cluster {ref.name} waits for its BaremetalCluster.")
                yield from links
                return
        elif condition(content, core.INFRASTRUCTURE_READY_CONDITION).get("status") == "False":
            yield self._caused(ref, content, condition(content, core.INFRASTRUCTURE_READY_CONDITION))
            return
        probe = condition(content, core.REMOTE_CONNECTION_PROBE_CONDITION)
        initialized = ((content.get("status") or {}).get("initialization") or {}).get("controlPlaneInitialized") is True
        if initialized and probe.get("status") == "False":
            yield self._caused(ref, content, probe)
        rolling = [group for group in self.groups(ref, content) if not group[1].settled]
        if rolling:
            what = "control plane" if rolling[0][1].is_control_plane else "workers"
            yield Link(ref, f"The Cluster {ref.name} waits for its {what} {rolling[0][1].name}.")
            yield from self.account(rolling[0][0])
        elif base is not None and base[0].kind == _BMC and (links := [each for each in self.account(base[0]) if each.cause is not None]):
            yield Link(ref, f"The machines of the Cluster {ref.name} are well.")
            yield from links
        elif not initialized or probe.get("status") != "False":
            yield Link(ref, self._all_well(ref, content), well=True)

    def groups(self, ref: Ref, cluster: Manifest) -> list[tuple[Ref, Group]]:
        """The control plane of a Cluster, where it is one that is known here, and its MachineDeployments."""
        plane = self._refer(ref, (cluster.get("spec") or {}).get("controlPlaneRef"))
        own = self._machines[ref.namespace, ref.name]
        rolled = [(plane[0], groups.control_plane(plane[1], own))] if plane is not None and plane[0].kind == _KCP else []
        workers = [
            each
            for each in self.objects.machine_deployments
            if _space(each) == ref.namespace and (each.get("spec") or {}).get("clusterName") == ref.name
        ]
        return [*rolled, *((_ref(_MD, each), groups.deployment(each, own)) for each in workers)]

    def infrastructure(self, ref: Ref, content: Manifest) -> Iterator[Link]:
        """A BaremetalCluster."""
        wrong = [
            condition(content, each)
            for each in (names.ENDPOINT_READY_CONDITION, names.VIP_READY_CONDITION, names.ROLLOUT_GUARDED_CONDITION)
        ]
        links = [self._caused(ref, content, each) for each in wrong if each.get("status") in ("False", "Unknown")]
        yield from links or [Link(ref, f"The BaremetalCluster {ref.name} is well.", well=True)]

    def group(self, ref: Ref, content: Manifest) -> Iterator[Link]:
        """A KubeadmControlPlane or a MachineDeployment."""
        metadata, status = content["metadata"], content.get("status") or {}
        group = self._group(ref, content)
        if group.paused:
            yield self._caused(ref, content, {"type": core.PAUSED_CONDITION, "status": "True"})
            return
        if metadata.get("deletionTimestamp"):
            yield self._caused(ref, content, condition(content, core.DELETING_CONDITION) or {"type": core.DELETING_CONDITION})
            yield from self._first_of([each for each in group.members if each.leaving], ref)
            return
        if not group.observed:
            seen = f"generation {status.get('observedGeneration', 0)} of {metadata.get('generation')} is the last that was acted on"
            yield Link(
                ref,
                f"Nobody has acted on what the spec of the {group.title} says by now: {seen}.",
                to_do=("Where that lasts, look whether the manager that reconciles it runs: slipway fleet preflight says so.",),
            )
            return
        if group.settled:
            yield Link(ref, f"The {group.title} is well: {sentences.count(group.replicas, 'machine')} at {group.version}.", well=True)
            return
        yield Link(ref, sentences.progress(group))
        culprits = [each for each in group.members if each.leaving or not each.well]
        if culprits:
            yield from self._first_of(culprits, ref)
            return
        if group.by_hand and any(not each.current or each.version != group.version for each in group.members):
            old = [each.name for each in group.members if not each.current or each.version != group.version]
            way = f"Delete its Machines of old templates one after the other: {sentences.listed(old)}."
            yield Link(ref, "With the strategy OnDelete a Machine is replaced when somebody deletes it.", self._by_hand(ref), (way,))
            return
        yield from self._own_words(ref, content, group)

    def _own_words(self, ref: Ref, content: Manifest, group: Group) -> Iterator[Link]:
        """What a group says itself, where none of its machines is in the way."""
        told = [condition(content, each) for each in (core.SCALING_UP_CONDITION, core.SCALING_DOWN_CONDITION)]
        wrong = [each for each in told if each.get("status") == "True" and sentences.is_blocked(str(each.get("message") or ""))]
        if group.is_control_plane:
            wrong += [each for name in _OF_CONTROL_PLANE if (each := condition(content, name)).get("status") in ("False", "Unknown")]
        else:
            rolling = condition(content, core.ROLLING_OUT_CONDITION)
            wrong += [rolling] if sentences.is_blocked(str(rolling.get("message") or "")) else []
            for each in self.objects.machine_sets:
                labels, up = each["metadata"].get("labels") or {}, condition(each, core.SCALING_UP_CONDITION)
                is_own = _space(each) == ref.namespace and labels.get(core.DEPLOYMENT_NAME_LABEL) == ref.name
                if is_own and up.get("status") == "True" and sentences.is_blocked(str(up.get("message") or "")):
                    yield self._caused(_ref(_MS, each), each, up)
        available = condition(content, core.AVAILABLE_CONDITION)
        wrong += [available] if not wrong and available.get("status") == "False" else []
        if wrong:
            yield from (self._caused(ref, content, each) for each in wrong)
        else:
            yield Link(ref, "None of its machines is in the way: the next one is taken in a moment.")

    def machine_set(self, ref: Ref, content: Manifest) -> Iterator[Link]:
        name = str((content["metadata"].get("labels") or {}).get(core.DEPLOYMENT_NAME_LABEL) or "")
        up = condition(content, core.SCALING_UP_CONDITION)
        spec, status = content.get("spec") or {}, content.get("status") or {}
        counted = f"{status.get('readyReplicas') or 0} of {spec.get('replicas') or 0} machines are ready"
        yield Link(ref, f"The MachineSet {ref.name}{f' of the MachineDeployment {name}' if name else ''}: {counted}.")
        if up.get("status") == "True" and sentences.is_blocked(str(up.get("message") or "")):
            yield self._caused(ref, content, up)
        own = [each for each in self.objects.machines if _space(each) == ref.namespace and _owner(each, _MS) == ref.name]
        unwell = [_ref(_MACHINE, each) for each in own if each["metadata"].get("deletionTimestamp") or not groups.member(each).well]
        if unwell:
            yield from self.account(unwell[0])

    # A machine and what is under it.

    def machine(self, ref: Ref, content: Manifest) -> Iterator[Link]:
        below = self._infrastructure(content)
        if core.PAUSED_ANNOTATION in (content["metadata"].get("annotations") or {}):
            yield self._caused(ref, content, {"type": core.PAUSED_CONDITION, "status": "True"})
            return
        if content["metadata"].get("deletionTimestamp"):
            deleting = condition(content, core.DELETING_CONDITION) or {"type": core.DELETING_CONDITION}
            if below is not None and deleting.get("reason") == core.WAITING_FOR_INFRASTRUCTURE_DELETION_REASON:
                yield Link(ref, f"The Machine {ref.name} is being deleted, and waits for its host.")
                yield from self.account(below)
            else:
                yield self._caused(ref, content, deleting)
            return
        bootstrap, infrastructure = (
            condition(content, each) for each in (core.BOOTSTRAP_CONFIG_READY_CONDITION, core.INFRASTRUCTURE_READY_CONDITION)
        )
        if bootstrap.get("status") in ("False", "Unknown"):
            yield self._caused(ref, content, bootstrap)
        elif not ((content.get("status") or {}).get("nodeRef") or {}).get("name") or infrastructure.get("status") != "True":
            yield from self._on_its_way(ref, content, below, infrastructure)
        else:
            wrong = next((each for name in _OF_NODE if (each := condition(content, name)).get("status") in ("False", "Unknown")), None)
            yield self._caused(ref, content, wrong) if wrong is not None else Link(ref, self._node(ref, content, below), well=True)

    def _on_its_way(self, ref: Ref, content: Manifest, below: Ref | None, infrastructure: Manifest) -> Iterator[Link]:
        if below is not None:
            yield Link(ref, f"The Machine {ref.name}, to be {(content.get('spec') or {}).get('version')}, waits for its host.")
            yield from self.account(below)
        elif infrastructure.get("status") in ("False", "Unknown"):
            yield self._caused(ref, content, infrastructure)
        else:
            yield self._caused(ref, content, condition(content, core.NODE_HEALTHY_CONDITION) or {"type": core.NODE_HEALTHY_CONDITION})

    def baremetal_machine(self, ref: Ref, content: Manifest) -> Iterator[Link]:
        host = self._host(ref, content)
        cleaned = condition(content, names.HOST_CLEANED_CONDITION)
        if content["metadata"].get("deletionTimestamp"):
            yield self._caused(ref, content, cleaned) if cleaned else Link(ref, f"The BaremetalMachine {ref.name} is being deleted.")
            yield from [] if host is None else self.account(host)
            return
        wrong = next(
            (each for name in _OF_BAREMETAL_MACHINE if (each := condition(content, name)).get("status") in ("False", "Unknown")), None
        )
        if wrong is None:
            phase = (content.get("status") or {}).get("phase") or names.PENDING_PHASE
            well = f"The BaremetalMachine {ref.name} is {phase}"
            yield Link(ref, f"{well} on the host {host.name}." if host is not None else f"{well}: its controller has not looked at it yet.")
            return
        yield from self._not_there_yet(ref, content, wrong, host)

    def _not_there_yet(self, ref: Ref, content: Manifest, wrong: Manifest, host: Ref | None) -> Iterator[Link]:
        why, reason = cause(ref.kind, content, wrong), str(wrong.get("reason") or "")
        link = self._caused(ref, content, wrong)
        base = self._cluster_infrastructure(ref, content)
        if reason == names.POOL_EXHAUSTED_REASON:
            yield from self._exhausted(link, why, content)
            return
        if reason == names.JOIN_DEADLINE_EXCEEDED_REASON and core.CONTROL_PLANE_LABEL in (content["metadata"].get("labels") or {}):
            link = link._replace(to_do=(_ADDRESS,))
        yield link
        if reason in _VIP_REASONS and base is not None:
            yield from (each for each in self.account(base) if each.cause is not None)
        elif wrong.get("type") in (names.PLAN_APPLIED_CONDITION, names.NODE_JOINED_CONDITION) and host is not None:
            yield from self.account(host)

    def _exhausted(self, link: Link, why: Cause, content: Manifest) -> Iterator[Link]:
        """A host that is being cleaned comes back by itself; a surge has none to come."""
        name = str(((content.get("spec") or {}).get("machineInventoryPoolRef") or {}).get("name") or "")
        pool = self.get(Ref(_POOL, link.ref.namespace, name))
        counted = None if pool is None else pool_view(pool, self.now)
        if counted is not None and counted.preparing:
            why = why._replace(patience=None, to_do="Wait: a host of the pool is being cleaned, and comes back.")
        elif self._surges(link.ref, content):
            why = why._replace(to_do=_SURGE)
        yield link._replace(cause=why)
        if pool is not None and counted is not None:
            yield Link(_ref(_POOL, pool), sentences.pool(counted))

    # Hosts and pools.

    def host(self, ref: Ref, content: Manifest) -> Iterator[Link]:
        view = host_view(content, self._secrets.get((ref.namespace, ref.name)), None)
        if (content["metadata"].get("annotations") or {}).get(QUARANTINE_ANNOTATION) and view.problem is not None:
            yield Link(ref, f"The host {ref.name}: {view.problem.message}.", None, (view.problem.to_do,))
            return
        plan = view.plan
        if plan is not None and (plan.state not in (APPLIED,) or view.state == names.REPROVISIONING):
            silent = plan.state == PENDING and view.last_heard is not None
            heard = f" Its agent was last heard of {sentences.age(view.last_heard, self.now)} ago." if silent and view.last_heard else ""
            yield Link(ref, sentences.plan(ref.name, plan, self.now) + heard, None, _host_advice(plan.state, view.state))
        elif view.problem is not None:
            yield Link(ref, f"The host {ref.name}: {sentences.ended(view.problem.message)}", None, (view.problem.to_do,))
        else:
            yield Link(ref, sentences.host(view), well=True)

    def whole_host(self, ref: Ref, content: Manifest) -> Iterator[Link]:
        """A host that somebody asks about: where it is of a machine that is not well, that is the answer."""
        owner = str((content["metadata"].get("annotations") or {}).get(names.OWNER_BAREMETAL_MACHINE_ANNOTATION) or "")
        above = Ref(_BMM, ref.namespace, owner)
        machine = self.get(above)
        if machine is None or (machine.get("status") or {}).get("phase") == names.RUNNING_PHASE:
            yield from self.host(ref, content)
            return
        yield Link(ref, f"The host {ref.name} is of the BaremetalMachine {owner}.")
        yield from self.account(above)

    def pool(self, ref: Ref, content: Manifest) -> Iterator[Link]:
        yield Link(ref, sentences.pool(pool_view(content, self.now)))
        wrong = condition(content, names.MEMBERS_VALID_CONDITION)
        wrong = wrong if wrong.get("status") == "False" else condition(content, core.READY_CONDITION)
        if wrong.get("status") == "False":
            yield self._caused(ref, content, wrong)
        waiting = [
            each
            for each in self.objects.baremetal_machines
            if _space(each) == ref.namespace
            and ((each.get("spec") or {}).get("machineInventoryPoolRef") or {}).get("name") == ref.name
            and condition(each, names.INVENTORY_ALLOCATED_CONDITION).get("reason") == names.POOL_EXHAUSTED_REASON
        ]
        if waiting:
            yield from [link for link in self.account(_ref(_BMM, waiting[0])) if link.ref != ref]

    # What is found beside it.

    def _caused(self, ref: Ref, content: Manifest, told: Manifest) -> Link:
        why = cause(ref.kind, content, told)
        return Link(ref, sentences.cause(why, str(told.get("status") or ""), self.now), why)

    def _by_hand(self, ref: Ref) -> Cause:
        return Cause(ref, "", "OnDelete", "", None, "With the strategy OnDelete a Machine is replaced when somebody deletes it.", "", 0.0)

    def _first_of(self, members: Sequence[Member], group: Ref) -> Iterator[Link]:
        """The account of the machine that is most in the way: one that does not get on by itself, else one that leaves."""
        accounts = [self.account(Ref(_MACHINE, group.namespace, each.name)) for each in sorted(members, key=lambda one: not one.leaving)]
        stuck = [links for links in accounts if any(link.cause is not None and link.cause.lasts(self.now) for link in links)]
        yield from (stuck or accounts or [[]])[0]

    def _leaving(self, cluster: Ref) -> Iterator[Link]:
        going = [each for each in self._machines[cluster.namespace, cluster.name] if each["metadata"].get("deletionTimestamp")]
        yield from self._first_of([groups.member(each) for each in going], cluster)

    def _group(self, ref: Ref, content: Manifest) -> Group:
        if ref.kind == _MD:
            return groups.deployment(content, self._machines[ref.namespace, str((content.get("spec") or {}).get("clusterName") or "")])
        cluster = (content["metadata"].get("labels") or {}).get(core.CLUSTER_NAME_LABEL) or _owner(content, _CLUSTER)
        return groups.control_plane(content, self._machines[ref.namespace, str(cluster)])

    def _refer(self, of: Ref, reference: Manifest | None) -> tuple[Ref, Manifest] | None:
        ref = Ref(str((reference or {}).get("kind") or ""), of.namespace, str((reference or {}).get("name") or ""))
        content = self.get(ref)
        return None if content is None else (ref, content)

    def _infrastructure(self, machine: Manifest) -> Ref | None:
        found_below = self._refer(_ref(_MACHINE, machine), (machine.get("spec") or {}).get("infrastructureRef"))
        return found_below[0] if found_below is not None and found_below[0].kind == _BMM else None

    def _cluster_infrastructure(self, ref: Ref, content: Manifest) -> Ref | None:
        name = str((content["metadata"].get("labels") or {}).get(core.CLUSTER_NAME_LABEL) or "")
        cluster = self.get(Ref(_CLUSTER, ref.namespace, name))
        base = self._refer(ref, ((cluster or {}).get("spec") or {}).get("infrastructureRef"))
        return base[0] if base is not None and base[0].kind == _BMC else None

    def _host(self, ref: Ref, content: Manifest) -> Ref | None:
        host = Ref(_HOST, ref.namespace, host_of(content))
        return host if self.get(host) is not None else None

    def _surges(self, ref: Ref, content: Manifest) -> bool:
        """Whether the machine is one more than there are to be."""
        machine = self.get(Ref(_MACHINE, ref.namespace, machine_of(content)))
        labels = {} if machine is None else machine["metadata"].get("labels") or {}
        owner = self.get(Ref(_MD, ref.namespace, str(labels.get(core.DEPLOYMENT_NAME_LABEL) or "")))
        return owner is not None and groups.surge(owner) > 0

    def _node(self, ref: Ref, content: Manifest, below: Ref | None) -> str:
        spec, status = content.get("spec") or {}, content.get("status") or {}
        infrastructure = None if below is None else self.get(below)
        host = host_of(infrastructure) if infrastructure is not None else ""
        well = f"The Machine {ref.name} is well: the Node {(status.get('nodeRef') or {}).get('name')} at {spec.get('version')}"
        current = condition(content, core.UP_TO_DATE_CONDITION)
        outdated = f" It is to be replaced ({sentences.one_line(str(current.get('message') or ''))}), and its turn has not come."
        return f"{well}{f' on the host {host}' if host else ''}.{outdated if current.get('status') == 'False' else ''}"

    def _all_well(self, ref: Ref, content: Manifest) -> str:
        parts = [
            f"{sentences.count(group.replicas, 'control plane machine' if group.is_control_plane else 'worker')} at {group.version}"
            for _, group in self.groups(ref, content)
        ]
        return f"The Cluster {ref.name} is well: {', '.join(parts)}." if parts else f"The Cluster {ref.name} has no machines yet."


_WALKS = {
    _CLUSTER: World.cluster,
    _KCP: World.group,
    _MD: World.group,
    _MS: World.machine_set,
    _MACHINE: World.machine,
    _BMC: World.infrastructure,
    _BMM: World.baremetal_machine,
    _HOST: World.host,
    _POOL: World.pool,
}


def _host_advice(plan: str, state: str) -> tuple[str, ...]:
    if plan == FAILED:
        return ("See the host's serial console for errors of elemental upgrade, and whether it reaches the platform's registry.",)
    if plan == PENDING and state != names.AVAILABLE:
        return ("Where that lasts, look at the host's power, network and agent.",)
    return ()


def _ref(kind: str, manifest: Manifest) -> Ref:
    return Ref(kind, *_key(manifest))


def _key(manifest: Manifest) -> tuple[str, str]:
    return _space(manifest), str(manifest["metadata"]["name"])


def _space(manifest: Manifest) -> str:
    return str(manifest["metadata"].get("namespace") or "")


def _owner(manifest: Manifest, kind: str) -> str:
    owners = manifest["metadata"].get("ownerReferences") or ()
    return next((str(each["name"]) for each in owners if each.get("kind") == kind), "")
