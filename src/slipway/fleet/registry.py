"""The controllers that a manager can run, by the names that ``--controllers`` takes: what each needs, installs and serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.baremetal.options import BaremetalOptions
    from slipway.fleet.bootstrap.options import BootstrapOptions
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.fleet.inventory.options import InventoryOptions
    from slipway.fleet.machines.options import MachinesOptions
    from slipway.fleet.snapshots.options import SnapshotOptions
    from slipway.runtime.controller import Reconciler
    from slipway.runtime.manager import Lease, Manager
    from slipway.runtime.rbac import Rule
    from slipway.runtime.webhook.admission import Defaulter, Validator

    Declared = tuple[Sequence[Rule], Sequence[str], Sequence[Validator | Defaulter]]

ALL = "all"
INVENTORY = "inventory"
BAREMETAL = "baremetal"


class FleetOptions(NamedTuple):
    """What the controllers are told on the command line."""

    bootstrap: BootstrapOptions
    inventory: InventoryOptions
    baremetal: BaremetalOptions
    machines: MachinesOptions
    snapshots: SnapshotOptions


class View(NamedTuple):
    """What the webhooks of a manager can look at; nothing where they are only declared."""

    manager: Manager | None = None
    options: FleetOptions | None = None

    def control_plane(self, namespace: str, name: str) -> Manifest | None:
        from slipway.api.cluster.kinds import KUBEADM_CONTROL_PLANE

        known = None if self.manager is None else self.manager.cache.informer(KUBEADM_CONTROL_PLANE).store.get(name, namespace)
        return None if known is None else known.content()


class Declarations(NamedTuple):
    """What the chosen controllers need of a cluster, and offer to it."""

    names: tuple[str, ...]
    providers: tuple[str, ...]
    leases: tuple[Lease, ...]
    rules: Sequence[Rule]
    crds: Sequence[Manifest]
    webhooks: Sequence[Validator | Defaulter]
    works_with_providers: bool


class _Controllers(NamedTuple):
    """Controllers that are chosen, led and installed together."""

    name: str
    provider: str
    # Where upstream's manager of the same controllers has its own: two that are started side by side never both work.
    lease: tuple[str, str]
    declare: Callable[[View], Declared]
    """The permissions, the API groups of the kinds, and the webhooks."""
    build: Callable[[Manager, FleetOptions, WorkloadClusters], Sequence[Reconciler]]
    providers: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The groups of providers with whose kinds they work, whichever these are, and what they do with them."""
    visits: bool = True
    """Whether they have work to do in workload clusters."""


def _declare_bootstrap(view: View) -> Declared:
    from slipway.api.cluster import kinds
    from slipway.fleet.bootstrap import reconciler, webhooks

    return reconciler.RULES, (kinds.BOOTSTRAP_GROUP,), webhooks.webhooks()


def _build_bootstrap(manager: Manager, options: FleetOptions, workload: WorkloadClusters) -> Sequence[Reconciler]:
    from slipway.fleet.bootstrap import reconciler

    return reconciler.controllers(manager, options.bootstrap, workload)


def _declare_machines(view: View) -> Declared:
    from slipway.api.cluster import kinds
    from slipway.fleet.addons import controllers as addons
    from slipway.fleet.addons import webhooks as addon_webhooks
    from slipway.fleet.machines import controllers, webhooks

    hooks = [*webhooks.webhooks(), *addon_webhooks.webhooks()]
    return (*controllers.RULES, *addons.RULES), (kinds.CORE_GROUP, kinds.ADDONS_GROUP), hooks


def _build_machines(manager: Manager, options: FleetOptions, workload: WorkloadClusters) -> Sequence[Reconciler]:
    from slipway.fleet.addons import controllers as addons
    from slipway.fleet.machines import controllers

    return [*controllers.controllers(manager, options.machines, workload), *addons.controllers(manager, workload)]


def _declare_control_plane(view: View) -> Declared:
    from slipway.api.cluster import kinds
    from slipway.fleet.controlplane import reconciler, webhooks

    return reconciler.RULES, (kinds.CONTROL_PLANE_GROUP,), webhooks.webhooks(view.control_plane)


def _build_control_plane(manager: Manager, options: FleetOptions, workload: WorkloadClusters) -> Sequence[Reconciler]:
    from slipway.fleet.controlplane import reconciler

    return reconciler.controllers(manager, workload, options.snapshots)


def _declare_inventory(view: View) -> Declared:
    from slipway.api.cluster import kinds
    from slipway.fleet.inventory import controllers, webhooks

    return controllers.RULES, (kinds.ELEMENTAL_GROUP,), webhooks.webhooks()


def _build_inventory(manager: Manager, options: FleetOptions, workload: WorkloadClusters) -> Sequence[Reconciler]:
    from slipway.fleet.inventory import controllers

    return controllers.controllers(manager, options.inventory, workload)


def _declare_baremetal(view: View) -> Declared:
    from slipway.api.cluster import kinds
    from slipway.fleet.baremetal import controllers, webhooks
    from slipway.fleet.baremetal.rollouts import known as looks

    rules = (*controllers.RULES, *looks.RULES)
    if view.manager is None or view.options is None:
        return rules, (kinds.INFRASTRUCTURE_GROUP,), webhooks.webhooks(looks.NothingKnown())
    known = looks.Followed(view.manager.cache, view.manager.client)
    view.manager.at_start(known.begin)
    view.manager.at_end(known.close)
    return rules, (kinds.INFRASTRUCTURE_GROUP,), webhooks.webhooks(known, view.options.baremetal.catalog_namespace)


def _build_baremetal(manager: Manager, options: FleetOptions, workload: WorkloadClusters) -> Sequence[Reconciler]:
    from slipway.fleet.baremetal import controllers

    return controllers.controllers(manager, options.baremetal, workload)


# Cluster API's providers keep their kinds in groups that have names by what they provide, and one cannot know which kinds.
_INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io"
_KEEP = ("get", "list", "watch", "patch", "delete")
_MAKE = ("create", *_KEEP)
_CONTROLLERS = {
    controllers.name: controllers
    for controllers in (
        _Controllers(
            "bootstrap",
            "bootstrap-kubeadm",
            ("capi-kubeadm-bootstrap-system", "kubeadm-bootstrap-manager-leader-election-capi"),
            _declare_bootstrap,
            _build_bootstrap,
        ),
        _Controllers(
            "machines",
            "cluster-api",
            ("capi-system", "controller-leader-election-capi"),
            _declare_machines,
            _build_machines,
            ((_INFRASTRUCTURE, _MAKE), ("bootstrap.cluster.x-k8s.io", _MAKE), ("controlplane.cluster.x-k8s.io", _KEEP)),
        ),
        _Controllers(
            "controlplane",
            "control-plane-kubeadm",
            ("capi-kubeadm-control-plane-system", "kubeadm-control-plane-manager-leader-election-capi"),
            _declare_control_plane,
            _build_control_plane,
            ((_INFRASTRUCTURE, _MAKE),),
        ),
        _Controllers(
            INVENTORY,
            "slipway-inventory",
            ("slipway-system", "slipway-inventory"),
            _declare_inventory,
            _build_inventory,
            visits=False,
        ),
        _Controllers(
            BAREMETAL,
            "infrastructure-baremetal",
            ("slipway-system", "slipway-baremetal"),
            _declare_baremetal,
            _build_baremetal,
        ),
    )
}
NAMES = (*_CONTROLLERS, ALL)
_DIVISION = "slipway-manager"


def chosen(given: Sequence[str]) -> tuple[str, ...]:
    """The names that were given, without repetition, ``all`` spelled out."""
    unknown = [name for name in given if name not in NAMES]
    if unknown or not given:
        wrong = f'"{unknown[0]}" is not a controller' if unknown else "no controller is named"
        raise UsageError(f"{wrong}: --controllers takes {', '.join(NAMES)}, comma-separated")
    return tuple(_CONTROLLERS) if ALL in given else tuple(dict.fromkeys(given))


def declarations(names: Sequence[str]) -> Declarations:
    """All of what the named controllers declare."""
    from slipway.api.cluster import crds
    from slipway.api.cluster.kinds import CUSTOM_RESOURCE_DEFINITION
    from slipway.runtime.manager import Lease
    from slipway.runtime.rbac import READ, Rule, rule

    parts = [_CONTROLLERS[name] for name in names]
    declared = [part.declare(View()) for part in parts]
    groups = {group for _, owned, _ in declared for group in owned}
    rules = [each for owned, _, _ in declared for each in owned]
    rules += [Rule((group,), ("*",), verbs) for part in parts for group, verbs in part.providers]
    works_with_providers = any(part.providers for part in parts)
    if works_with_providers:
        # The label of a CRD says which version of a kind v1beta1 refers to.
        rules.append(rule(CUSTOM_RESOURCE_DEFINITION, *READ))
    return Declarations(
        tuple(names),
        tuple(part.provider for part in parts),
        tuple(Lease(*part.lease) for part in parts),
        rules,
        [crd for crd in crds.crds() if crd["spec"]["group"] in groups],
        [hook for _, _, hooks in declared for hook in hooks],
        works_with_providers,
    )


def leases() -> list[tuple[str, Lease]]:
    """Of each of the controllers, by their names, the lease under which it works."""
    from slipway.runtime.manager import Lease

    return [(name, Lease(*part.lease)) for name, part in _CONTROLLERS.items()]


def division_name(names: Sequence[str]) -> str:
    """What the Leases of those are named after who share the work of the named controllers."""
    return "-".join([_DIVISION, *(name for name in _CONTROLLERS if name in names)] if set(names) != set(_CONTROLLERS) else [_DIVISION])


def division_leases(names: Sequence[str], namespace: str, shards: int) -> list[Lease]:
    """Those that they need besides, where there is more than one shard."""
    from slipway.runtime.manager import Lease
    from slipway.runtime.sharding.coordinator import Division

    division = Division(namespace, division_name(names), shards)
    return [Lease(namespace, name) for name in division.leases] if shards > 1 else []


def webhooks(names: Sequence[str], manager: Manager, options: FleetOptions) -> list[Validator | Defaulter]:
    """The webhooks of the named controllers, which may look at what the manager knows."""
    view = View(manager, options)
    return [hook for name in names for hook in _CONTROLLERS[name].declare(view)[2]]


def controllers(names: Sequence[str], manager: Manager, options: FleetOptions) -> list[tuple[Reconciler, Lease]]:
    """The reconcilers, each with the lease under which it works.  They share the clients of workload clusters."""
    from slipway.api.cluster.kinds import CLUSTER
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.runtime.manager import Lease
    from slipway.runtime.sharding.assignment import shard_of

    seen = manager.metrics.request("workload-clusters")
    workload = WorkloadClusters(manager.client, on_request=seen, pace=manager.options.pace)
    parts = [_CONTROLLERS[name] for name in names]
    if any(part.visits for part in parts):
        manager.at_start(lambda: workload.follow(manager.cache.informer(CLUSTER)))
    manager.at_end(workload.close)
    if manager.share is not None:
        holding = manager.share.holding
        manager.share.after_loss(
            lambda: workload.keep_only(lambda namespace, name: shard_of(namespace, name, holding.partition.shards) in holding.held)
        )
    return [(reconciler, Lease(*part.lease)) for part in parts for reconciler in part.build(manager, options, workload)]
