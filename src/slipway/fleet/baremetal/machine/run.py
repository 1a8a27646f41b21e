"""One reconcile of one BaremetalMachine: what was read for it, what it tells, and what it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.infrastructure.machine import BaremetalMachine
from slipway.api.cluster.kinds import BAREMETAL_MACHINE, MACHINE_INVENTORY, SECRET
from slipway.api.cluster.names import PAUSED_CONDITION, READY_CONDITION
from slipway.api.elemental.cycles import Cycle
from slipway.fleet.baremetal.hosts.claim import Claimant
from slipway.fleet.baremetal.hosts.host import HostOwner
from slipway.fleet.baremetal.machine.decision import Observed
from slipway.fleet.baremetal.vip import vip
from slipway.fleet.contract import scope as contract
from slipway.fleet.contract.facts import paused_by, read
from slipway.fleet.contract.status import Status
from slipway.runtime import finalizers

if TYPE_CHECKING:
    from datetime import datetime

    from slipway.api.cluster.infrastructure.cluster import BaremetalCluster
    from slipway.api.cluster.infrastructure.machine import BaremetalMachineSpec, BaremetalMachineStatus
    from slipway.api.cluster.infrastructure.pool import MachineInventoryPool, PoolMember
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.baremetal.hosts.host import Host
    from slipway.fleet.baremetal.plans.planfacts import PlanFacts
    from slipway.fleet.contract.conditions import ConditionStatus
    from slipway.fleet.contract.facts import ClusterFacts, Owner
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache
    from slipway.runtime.objects import Object

SUMMED_UP = (
    names.INVENTORY_ALLOCATED_CONDITION,
    names.BOOTSTRAP_READY_CONDITION,
    names.IMAGE_RESOLVED_CONDITION,
    names.PLAN_APPLIED_CONDITION,
    names.NODE_JOINED_CONDITION,
)
OWNED = (*SUMMED_UP, names.HOST_CLEANED_CONDITION, READY_CONDITION, PAUSED_CONDITION)

RETRY_ANNOTATION = "slipway.io/retry-clean"
"""On a BaremetalMachine whose clean plan failed: send it once more."""
FORCE_ANNOTATION = "slipway.io/force-release"
"""On a BaremetalMachine that is deleted: let it go without waiting for its host, which stays out of use until it has been cleaned."""


class Run(contract.Scope):
    """``host`` is the one that is ours; ``plan`` and ``secret`` are of it."""

    def __init__(
        self,
        client: AsyncClient,
        cache: Cache,
        found: Object,
        manifest: Manifest,
        owner: Owner | None,
        cluster: ClusterFacts,
        now: datetime,
    ) -> None:
        super().__init__(client, cache, BAREMETAL_MACHINE, manifest, cluster, now, owned_conditions=OWNED)
        self.owner = owner
        self.status = Status(manifest, now)
        decoded = read(found, BaremetalMachine)
        self._spec: BaremetalMachineSpec = decoded.spec
        self.before: BaremetalMachineStatus = decoded.status
        self.phase = decoded.status.phase or names.PENDING_PHASE
        self.wait = 0.0
        self.host: Host | None = None
        self.secret: Manifest | None = None
        self.plan: PlanFacts | None = None
        self.registry = ""
        self.infrastructure: BaremetalCluster | None = None
        self.pool: MachineInventoryPool | None = None

    @property
    def uid(self) -> str:
        uid: str = self.manifest["metadata"]["uid"]
        return uid

    @property
    def pool_name(self) -> str:
        return self._spec.machine_inventory_pool_ref.name

    @property
    def intent(self) -> str:
        """The host that is meant, whether it is claimed or not."""
        return str((self.status.fields.get("machineInventoryRef") or {}).get("name") or "")

    @property
    def claimant(self) -> Claimant:
        machine = self.owner.name if self.owner is not None else ""
        group = self.owner.group if self.owner is not None else ""
        return Claimant(
            self.namespace,
            self.pool_name,
            HostOwner(self.cluster.name, machine, self.name),
            group=f"{self.cluster.name}/{group}" if group else "",
            failure_domain=self.owner.failure_domain if self.owner is not None else "",
            same=self._spec.allocation_policy == names.PREFER_SAME,
        )

    @property
    def scrub(self) -> bool:
        """Whether a clean clears what the node leaves on the disks."""
        return self._spec.clean_policy == names.SCRUB

    def life(self, **moments: datetime | None) -> Cycle:
        """What the record of the host is to have of this machine."""
        return Cycle(
            machine=self.claimant.owner.machine, cluster=self.cluster.name, version=self.owner.version if self.owner else "", **moments
        )

    @property
    def claimed(self) -> Host:
        assert self.host is not None, "no step that needs a host comes without one"
        return self.host

    @property
    def provisioned(self) -> bool:
        return bool((self.status.fields.get("initialization") or {}).get("provisioned"))

    @property
    def boots_before(self) -> str | None:
        """The boots that Nodes of this host had before its plan was written; None where that is not known."""
        known: str | None = self.status.fields.get("bootsBefore")
        return known

    @property
    def member(self) -> PoolMember | None:
        members = self.pool.members if self.pool is not None else []
        return next((member for member in members if self.host is not None and member.name == self.host.name), None)

    @property
    def vip(self) -> str:
        """The virtual address of the control plane, where its hosts hold it themselves."""
        balancer = vip.internal(self.infrastructure) if self.infrastructure is not None else None
        return balancer.host if balancer is not None else ""

    @property
    def annotations(self) -> dict[str, str]:
        annotations: dict[str, str] = self.manifest["metadata"].get("annotations") or {}
        return annotations

    def observed(self, *, has_cluster: bool) -> Observed:
        return Observed(
            name=self.name,
            deleting=finalizers.is_deleted(self.manifest),
            finalizer=finalizers.has(self.manifest, names.BAREMETAL_MACHINE_FINALIZER),
            paused=bool(paused_by(self.cluster, self.manifest)),
            has_owner=self.owner is not None,
            has_cluster=has_cluster,
            infrastructure=self.cluster.infrastructure_provisioned,
            claimed=self.host is not None,
            provisioned=self.provisioned,
            written=bool(self.status.fields.get("lastAppliedPlanChecksum") or self.spec.get("providerID")),
            plan=self.plan,
            bootstrap=self.owner is not None and bool(self.owner.data_secret_name),
            retry=RETRY_ANNOTATION in self.annotations,
            force=FORCE_ANNOTATION in self.annotations,
        )

    def mean(self, host: str) -> None:
        """Note which host is meant; an empty name takes it back."""
        self.status.fields["machineInventoryRef"] = (
            {"apiVersion": MACHINE_INVENTORY.api_version, "kind": MACHINE_INVENTORY.kind, "namespace": self.namespace, "name": host}
            if host
            else None
        )
        self.status.fields["planSecretRef"] = (
            {"apiVersion": SECRET.api_version, "kind": SECRET.kind, "namespace": self.namespace, "name": host} if host else None
        )

    def settle_on_host(self) -> None:
        """Set the provider ID, which never changes: from now on the machine is this host, or none."""
        self.manifest["spec"] = {**self.spec, "providerID": names.provider_id(self.claimed.name)}

    def tell(self, condition: str, status: ConditionStatus, reason: str, message: str = "") -> None:
        self.status.set(condition, status, reason, message)

    def look_again(self, seconds: float) -> None:
        """Be reconciled in so many seconds at the latest."""
        self.wait = min(self.wait, seconds) if self.wait else seconds
