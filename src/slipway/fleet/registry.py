"""The controllers that a manager can run, by the names that ``--controllers`` takes: what each needs, installs and serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.bootstrap.options import BootstrapOptions
    from slipway.runtime.controller import Reconciler
    from slipway.runtime.manager import Lease, Manager
    from slipway.runtime.rbac import Rule
    from slipway.runtime.webhook.admission import Defaulter, Validator

ALL = "all"


class FleetOptions(NamedTuple):
    """What the controllers are told on the command line."""

    bootstrap: BootstrapOptions


class Declarations(NamedTuple):
    """What the chosen controllers need of a cluster, and offer to it."""

    names: tuple[str, ...]
    providers: tuple[str, ...]
    leases: tuple[Lease, ...]
    rules: Sequence[Rule]
    crds: Sequence[Manifest]
    webhooks: Sequence[Validator | Defaulter]


class _Bootstrap:
    name = "bootstrap"
    provider = "bootstrap-kubeadm"
    # Where upstream's manager of the same controllers has its own: two that are started side by side never both work.
    lease = ("capi-kubeadm-bootstrap-system", "kubeadm-bootstrap-manager-leader-election-capi")

    def declarations(self) -> Declarations:
        from slipway.api.cluster import crds, kinds
        from slipway.fleet.bootstrap import reconciler, webhooks
        from slipway.runtime.manager import Lease

        own = [crd for crd in crds.crds() if crd["spec"]["group"] == kinds.BOOTSTRAP_GROUP]
        return Declarations((self.name,), (self.provider,), (Lease(*self.lease),), reconciler.RULES, own, webhooks.webhooks())

    def controllers(self, manager: Manager, options: FleetOptions) -> list[Reconciler]:
        from slipway.fleet.bootstrap import reconciler

        return reconciler.controllers(manager, options.bootstrap)


_CONTROLLERS = {controllers.name: controllers for controllers in (_Bootstrap(),)}
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
    parts = [_CONTROLLERS[name].declarations() for name in names]
    return Declarations(
        tuple(names),
        tuple(provider for part in parts for provider in part.providers),
        tuple(lease for part in parts for lease in part.leases),
        [rule for part in parts for rule in part.rules],
        [crd for part in parts for crd in part.crds],
        [hook for part in parts for hook in part.webhooks],
    )


def controllers(names: Sequence[str], manager: Manager, options: FleetOptions) -> list[tuple[Reconciler, Lease]]:
    """The reconcilers, each with the lease under which it works."""
    from slipway.runtime.manager import Lease

    chosen = [_CONTROLLERS[name] for name in names]
    return [(reconciler, Lease(*each.lease)) for each in chosen for reconciler in each.controllers(manager, options)]
