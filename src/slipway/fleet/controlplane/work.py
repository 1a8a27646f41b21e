"""One reconcile of one KubeadmControlPlane: what was read, what is found out on the way, and what is to be told of it at the end."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from slipway.api.cluster import names
from slipway.api.cluster.controlplane.kubeadmcontrolplane import KubeadmControlPlane
from slipway.api.cluster.core.machine import Machine
from slipway.api.cluster.kinds import KUBEADM_CONTROL_PLANE
from slipway.api.cluster.meta import decode
from slipway.fleet.contract import scope as contract
from slipway.fleet.contract.conditions import find, moment, of
from slipway.fleet.controlplane import desired
from slipway.fleet.controlplane.decisions import snapshot, upgrade
from slipway.fleet.controlplane.decisions.machines import (
    ETCD_CHECKS,
    KUBERNETES_CHECKS,
    LABELS_AND_TAINTS,
    Check,
    ControlPlane,
    Member,
    RemediationRules,
    remediation_from,
)
from slipway.fleet.controlplane.decisions.machines import Machine as PlannedMachine
from slipway.fleet.controlplane.decisions.preflight import Blocked
from slipway.fleet.controlplane.decisions.remediation import SINGLE_ANNOTATION, not_replaced_yet
from slipway.fleet.controlplane.drift import Drift
from slipway.fleet.controlplane.status.conditions import condition_of, says
from slipway.fleet.controlplane.workload.view import STARTUP_GRACE, MachineFacts, Observed, expects_taint
from slipway.fleet.snapshots.request import restore_from

if TYPE_CHECKING:
    from slipway.api.cluster.bootstrap.config import KubeadmConfig
    from slipway.api.cluster.core.cluster import Cluster
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.facts import ClusterFacts
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache

OWNED = (
    names.PAUSED_CONDITION,
    names.AVAILABLE_CONDITION,
    names.INITIALIZED_CONDITION,
    names.CERTIFICATES_AVAILABLE_CONDITION,
    names.ETCD_CLUSTER_HEALTHY_CONDITION,
    names.CONTROL_PLANE_COMPONENTS_HEALTHY_CONDITION,
    names.MACHINES_READY_CONDITION,
    names.MACHINES_UP_TO_DATE_CONDITION,
    names.ROLLING_OUT_CONDITION,
    names.SCALING_UP_CONDITION,
    names.SCALING_DOWN_CONDITION,
    names.REMEDIATING_CONDITION,
    names.DELETING_CONDITION,
    upgrade.CONDITION,
    snapshot.CONDITION,
)
OWNED_OLDER = (
    "Ready",
    "Available",
    "CertificatesAvailable",
    "ControlPlaneComponentsHealthy",
    "EtcdClusterHealthy",
    "MachinesCreated",
    "MachinesReady",
    "MachinesSpecUpToDate",
    "Resized",
)
CHECKS = (LABELS_AND_TAINTS, *KUBERNETES_CHECKS, *ETCD_CHECKS)
_WAITING_FOR_HOOK = "WaitingForPreTerminateHook"


class Owned:
    """A Machine of the control plane, with what it was made from."""

    def __init__(self, manifest: Manifest, config: KubeadmConfig | None, infrastructure: Manifest | None) -> None:
        self.config = config
        self.infrastructure = infrastructure
        self.drift = Drift()
        self.manifest = manifest

    @property
    def manifest(self) -> Manifest:
        return self._manifest

    @manifest.setter
    def manifest(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self.machine = decode(manifest, Machine)

    @property
    def name(self) -> str:
        name: str = self._manifest["metadata"]["name"]
        return name

    @property
    def annotations(self) -> dict[str, str]:
        return self._manifest["metadata"].get("annotations") or {}

    @property
    def deleting(self) -> bool:
        return bool(self._manifest["metadata"].get("deletionTimestamp"))

    @property
    def node(self) -> str:
        return self.machine.status.node_ref.name

    def facts(self) -> MachineFacts:
        """What the workload cluster is judged by."""
        spec = self._manifest["spec"]
        config = None if self.config is None else msgspec.to_builtins(self.config.spec)
        return MachineFacts(
            self.name,
            self.node,
            self.machine.spec.provider_id,
            self.machine.spec.infrastructure_ref.kind,
            self.deleting,
            expects_taint(spec.get("taints"), config),
        )

    def planned(self, nodes: dict[str, str]) -> PlannedMachine:
        """As the planner sees it; ``nodes`` are the names of Nodes by their provider's ID."""
        metadata, told = self._manifest["metadata"], self.annotations
        machine = self.machine
        unhealthy = says(machine, names.HEALTH_CHECK_SUCCEEDED_CONDITION, "False")
        deleting = condition_of(machine, names.DELETING_CONDITION)
        replaced = told.get(names.REMEDIATION_FOR_ANNOTATION)
        hook = names.KUBEADM_CONTROL_PLANE_PRE_TERMINATE_HOOK
        found = [condition for condition in machine.status.conditions if condition.type in CHECKS]
        return PlannedMachine(
            self.name,
            datetime.fromisoformat(metadata["creationTimestamp"]),
            version=machine.spec.version,
            up_to_date=self.drift.up_to_date,
            failure_domain=machine.spec.failure_domain,
            node=self.node,
            member=nodes.get(self._provider_id(), ""),
            checks={condition.type: Check(condition.status, condition.message) for condition in found},
            deleted=moment(metadata.get("deletionTimestamp")),
            has_hook=hook in told,
            other_hooks=any(name.startswith(names.PRE_TERMINATE_HOOK_PREFIX) and name != hook for name in told),
            waits_for_hook=deleting is not None and (deleting.status, deleting.reason) == ("True", _WAITING_FOR_HOOK),
            delete_asked=names.DELETE_MACHINE_ANNOTATION in told,
            remediate_asked=names.REMEDIATE_MACHINE_ANNOTATION in told,
            unhealthy=unhealthy,
            ours_to_remediate=unhealthy and says(machine, names.OWNER_REMEDIATED_CONDITION, "False"),
            health_checked=says(machine, names.HEALTH_CHECK_SUCCEEDED_CONDITION, "True"),
            replaces=None if replaced is None else remediation_from(replaced),
            updating_in_place=names.UPDATE_IN_PROGRESS_ANNOTATION in told or names.PENDING_HOOKS_ANNOTATION in told,
        )

    def _provider_id(self) -> str:
        if self.machine.spec.provider_id:
            return self.machine.spec.provider_id
        return str(((self.infrastructure or {}).get("spec") or {}).get("providerID") or "")


class Work(contract.Scope):
    """Beside what every scope has, the control plane as a type, its Machines, and what the steps have found out."""

    def __init__(self, client: AsyncClient, cache: Cache, manifest: Manifest, facts: ClusterFacts, cluster: Cluster, now: datetime) -> None:
        super().__init__(
            client, cache, KUBEADM_CONTROL_PLANE, manifest, facts, now, owned_conditions=OWNED, owned_deprecated_conditions=OWNED_OLDER
        )
        self.plane = decode(manifest, KubeadmControlPlane)
        self.cluster_object = cluster
        self.machines: dict[str, Owned] = {}
        self.observed: Observed | None = None
        self.members_match = False
        self.template_missing = False
        self.blocked = Blocked()
        self.made: set[str] = set()
        """The Machines that were made, which need not be in the cache yet."""
        self.deleting = ("", "")
        """The reason and the message of the condition Deleting."""

    @property
    def annotations(self) -> dict[str, str]:
        """Those of the control plane; to be changed by :meth:`annotate`."""
        return self.manifest["metadata"].get("annotations") or {}

    def annotate(self, name: str, value: str | None) -> None:
        """Set an annotation of the control plane, or take it away; it is written with everything else at the end."""
        kept = {known: text for known, text in self.annotations.items() if known != name}
        self.manifest["metadata"]["annotations"] = kept if value is None else {**kept, name: value}
        self.plane.metadata = self.manifest["metadata"]

    @property
    def is_deleted(self) -> bool:
        return bool(self.manifest["metadata"].get("deletionTimestamp"))

    @property
    def initialized(self) -> bool:
        return ((self.manifest.get("status") or {}).get("initialization") or {}).get("controlPlaneInitialized") is True

    @property
    def initialized_at(self) -> datetime | None:
        """Since when it is known to be initialized."""
        condition = find(of(self.manifest), names.INITIALIZED_CONDITION)
        if not self.initialized or condition is None or condition.status != "True":
            return None
        return moment(condition.last_transition_time)

    @property
    def manages_etcd(self) -> bool:
        return desired.manages_etcd(self.plane)

    @property
    def members(self) -> tuple[Member, ...] | None:
        """The members of etcd as the planner knows them; None where they are not known, or somebody else's."""
        if self.observed is None or self.observed.members is None:
            return None
        return tuple(
            Member(member.id, member.name, member.learner, bool(member.alarms), member.is_leader) for member in self.observed.members
        )

    def planned(self) -> ControlPlane:
        """What the planner decides from."""
        spec = self.plane.spec
        seen = self.observed.nodes if self.observed is not None else {}
        nodes = {provider: name for name, node in seen.items() if (provider := (node.get("spec") or {}).get("providerID"))}
        machines = tuple(owned.planned(nodes) for owned in self.machines.values())
        annotation = self.annotations.get(names.REMEDIATION_IN_PROGRESS_ANNOTATION)
        etcd = find(of(self.manifest), names.ETCD_CLUSTER_HEALTHY_CONDITION)
        certificates = find(of(self.manifest), names.CERTIFICATES_AVAILABLE_CONDITION)
        rules = spec.remediation
        defaults = RemediationRules()
        return ControlPlane(
            replicas=spec.replicas or 0,
            machines=machines,
            now=self.now,
            max_surge=_max_surge(spec.rollout.strategy.rolling_update.max_surge),
            version=spec.version,
            failure_domains=tuple(domain.name for domain in self.cluster_object.status.failure_domains if domain.control_plane),
            manages_etcd=self.manages_etcd,
            members=self.members or (),
            members_healthy=etcd is not None and etcd.status == "True",
            nodes_known=self.observed is not None and not self.observed.nodes_error,
            young_nodes=frozenset(name for name, node in seen.items() if self.now - _created(node) < STARTUP_GRACE),
            initialized=self.initialized,
            cluster_initialized=self.cluster.control_plane_initialized,
            certificates=certificates is not None and certificates.status == "True",
            in_progress=not_replaced_yet(None if annotation is None else remediation_from(annotation), machines),
            remediation=RemediationRules(
                rules.max_retry,
                rules.retry_period_seconds or 0,
                defaults.min_healthy_period if rules.min_healthy_period_seconds is None else rules.min_healthy_period_seconds,
            ),
            remediate_single=self.annotations.get(SINGLE_ANNOTATION) == "true",
            restore=restore_from(self.annotations),
        )


def _max_surge(value: int | str | None) -> int:
    """0 or 1, in whatever form; 1 where nothing is said, as the webhook has it."""
    if value is None:
        return 1
    return int(value) if str(value).isdecimal() else 0


def _created(node: Manifest) -> datetime:
    return datetime.fromisoformat(node["metadata"]["creationTimestamp"])
