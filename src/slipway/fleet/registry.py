"""The controllers that a manager can run, by the names that ``--controllers`` takes: what each needs, installs and serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.bootstrap.options import BootstrapOptions
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.fleet.inventory.options import InventoryOptions
    from slipway.runtime.controller import Reconciler
    from slipway.runtime.manager import Lease, Manager
    from slipway.runtime.rbac import Rule
    from slipway.runtime.webhook.admission import Defaulter, Validator

    Find = Callable[[str, str], Manifest | None]
    """The control plane of a namespace and a name."""
    Declared = tuple[Sequence[Rule], Sequence[str], Sequence[Validator | Defaulter]]

ALL = "all"
INVENTORY = "inventory"


class FleetOptions(NamedTuple):
    """What the controllers are told on the command line."""

    bootstrap: BootstrapOptions
    inventory: InventoryOptions | None = None


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
    declare: Callable[[Find], Declared]
    """The permissions, the API groups of the kinds, and the webhooks."""
    build: Callable[[Manager, FleetOptions, WorkloadClusters], Sequence[Reconciler]]
    providers: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The groups of providers with whose kinds they work, whichever these are, and what they do with them."""


def _declare_bootstrap(find: Find) -> Declared:
    from slipway.api.cluster import kinds
    from slipway.fleet.bootstrap import reconciler, webhooks

    return reconciler.RULES, (kinds.BOOTSTRAP_GROUP,), webhooks.webhooks()


def _build_bootstrap(manager: Manager, options: FleetOptions, workload: WorkloadClusters) -> Sequence[Reconciler]:
    from slipway.fleet.bootstrap import reconciler

    return reconciler.controllers(manager, options.bootstrap, workload)


def _declare_machines(find: Find) -> Declared:
    from slipway.api.cluster import kinds
    from slipway.fleet.addons import controllers as addons
    from slipway.fleet.addons import webhooks as addon_webhooks
    from slipway.fleet.machines import controllers, webhooks

    hooks = [*webhooks.webhooks(), *addon_webhooks.webhooks()]
    return (*controllers.RULES, *addons.RULES), (kinds.CORE_GROUP, kinds.ADDONS_GROUP), hooks


def _build_machines(manager: Manager, options: FleetOptions, workload: WorkloadClusters) -> Sequence[Reconciler]:
    from slipway.fleet.addons import controllers as addons
    from slipway.fleet.machines import controllers

    return [*controllers.controllers(manager, workload), *addons.controllers(manager, workload)]


def _declare_control_plane(find: Find) -> Declared:
    from slipway.api.cluster import kinds
    from slipway.fleet.controlplane import reconciler, webhooks

    return reconciler.RULES, (kinds.CONTROL_PLANE_GROUP,), webhooks.webhooks(find)


def _build_control_plane(manager: Manager, options: FleetOptions, workload: WorkloadClusters) -> Sequence[Reconciler]:
    from slipway.fleet.controlplane import reconciler

    return reconciler.controllers(manager, workload)


def _declare_inventory(find: Find) -> Declared:
    from slipway.api.cluster import kinds
    from slipway.fleet.inventory import controllers, webhooks

    return controllers.RULES, (kinds.ELEMENTAL_GROUP,), webhooks.webhooks()


def _build_inventory(manager: Manager, options: FleetOptions, workload: WorkloadClusters) -> Sequence[Reconciler]:
    from slipway.fleet.inventory import controllers
    from slipway.fleet.inventory.options import InventoryOptions

    return controllers.controllers(manager, options.inventory or InventoryOptions(), workload)


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
        ),
    )
}
NAMES = (*_CONTROLLERS, ALL)


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
    declared = [part.declare(_find_nothing) for part in parts]
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


def webhooks(names: Sequence[str], manager: Manager) -> list[Validator | Defaulter]:
    """The webhooks of the named controllers, which may look at what the manager knows."""
    from slipway.api.cluster.kinds import KUBEADM_CONTROL_PLANE

    def find(namespace: str, name: str) -> Manifest | None:
        known = manager.cache.informer(KUBEADM_CONTROL_PLANE).store.get(name, namespace)
        return None if known is None else known.content()

    return [hook for name in names for hook in _CONTROLLERS[name].declare(find)[2]]


def _find_nothing(namespace: str, name: str) -> Manifest | None:
    """For a declaration, which nobody asks."""
    return None


def controllers(names: Sequence[str], manager: Manager, options: FleetOptions) -> list[tuple[Reconciler, Lease]]:
    """The reconcilers, each with the lease under which it works.  They share the clients of workload clusters."""
    from slipway.api.cluster.kinds import CLUSTER
    from slipway.fleet.clustercache import WorkloadClusters
    from slipway.runtime.manager import Lease

    workload = WorkloadClusters(manager.client, on_request=manager.metrics.request("workload-clusters"))
    manager.at_start(lambda: workload.follow(manager.cache.informer(CLUSTER)))
    manager.at_end(workload.close)
    parts = [_CONTROLLERS[name] for name in names]
    return [(reconciler, Lease(*part.lease)) for part in parts for reconciler in part.build(manager, options, workload)]
