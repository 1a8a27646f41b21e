"""A manager from its settings: its controllers and webhooks put together, and signals heard."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from slipway import __version__
from slipway.fleet import manifests, registry
from slipway.fleet.inventory import options as hosts
from slipway.kube import incluster
from slipway.runtime import logs, memory
from slipway.runtime.healthz import parse_address
from slipway.runtime.manager import Manager, ManagerOptions
from slipway.runtime.webhook.server import Certified, Folder, WebhookServer
from slipway.runtime.webhook.store import CertificateStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.fleet.inventory.options import InventoryOptions
    from slipway.fleet.inventory.registration.server import RegistrationServer
    from slipway.fleet.metrics.following import FleetMetrics
    from slipway.fleet.partition import FleetPartition
    from slipway.fleet.settings import Settings
    from slipway.kube.connection import Connection
    from slipway.runtime.manager import Lease

log = logging.getLogger(__name__)

# Seconds between two looks at a folder that somebody else fills, as controller-runtime has it.
_LOOK_AT_FOLDER = 10.0


def run(connection: Connection, settings: Settings, extend: Callable[[Manager], object] | None = None) -> None:
    """Run until a signal; ``extend`` adds to the manager what is no part of a fleet's own."""
    logs.configure(settings.log_format, verbosity=settings.verbosity)
    memory.economise()
    asyncio.run(_run(connection, settings, extend))


async def _run(connection: Connection, settings: Settings, extend: Callable[[Manager], object] | None) -> None:
    stop = asyncio.Event()
    _hear_signals(stop)
    manager = build(connection, settings)
    if extend is not None:
        extend(manager)
    log.info("Starting", extra=logs.fields(version=__version__, controllers=list(settings.controllers), server=connection.shown))
    await manager.run(stop)


def build(connection: Connection, settings: Settings) -> Manager:
    """The manager with everything that the settings want of it."""
    home = home_of(settings)
    manager = Manager(
        connection,
        ManagerOptions(
            namespace=settings.namespace,
            watch_filter=settings.watch_filter,
            leader_elect=settings.leader_elect,
            leader_namespace=home,
            division=registry.division_name(settings.controllers),
            lease=settings.lease,
            metrics_address=settings.metrics_address,
            health_address=settings.health_address,
            sync_period=settings.sync_period,
            pace=settings.pace,
        ),
        partition(settings),
    )
    inventory = settings.inventory.at(home)
    options = registry.FleetOptions(settings.bootstrap, inventory, settings.baremetal, settings.machines, settings.snapshots.at(home))
    for reconciler, lease in registry.controllers(settings.controllers, manager, options):
        manager.add(reconciler, concurrency=settings.concurrency, lease=_placed(lease, settings))
    metrics = fleet_metrics(manager, settings)
    if settings.webhook_port:
        manager.add_webhooks(webhook_server(manager, settings, options, home))
    if registry.INVENTORY in settings.controllers and parse_address(inventory.bind_address, hosts.FLAG) is not None:
        called = metrics.called if metrics is not None else None
        manager.add_webhooks(registration_server(manager, connection, inventory, home, called))
    return manager


def partition(settings: Settings) -> FleetPartition | None:
    """How clusters are divided over managers, where they are."""
    if settings.shards == 1:
        return None
    from slipway.fleet.partition import FleetPartition

    pools = registry.BAREMETAL in settings.controllers
    return FleetPartition(settings.shards, hosts=pools or registry.INVENTORY in settings.controllers, pools=pools)


def home_of(settings: Settings) -> str:
    """The manager's own namespace, where its certificates are."""
    return settings.own_namespace or incluster.namespace() or manifests.NAMESPACE


def _placed(lease: Lease, settings: Settings) -> Lease:
    return lease._replace(namespace=settings.own_namespace or lease.namespace)


def fleet_metrics(manager: Manager, settings: Settings) -> FleetMetrics | None:
    """What Prometheus is told of hosts and rollouts: by the one of several managers that leads the controllers of hosts, or by each of
    those who share the work about its share."""
    from slipway.fleet.metrics.following import ALL, FleetMetrics, Share

    leases = dict(registry.leases())
    chosen = [name for name in (registry.BAREMETAL, registry.INVENTORY) if name in settings.controllers]
    if not chosen:
        return None
    elector = manager.electors.get(_placed(leases[chosen[0]], settings))
    share = ALL
    if manager.share is not None:
        share = Share(manager.share.holding.shard, manager.share.holding.works)
    elif elector is not None:
        share = Share(lambda found: 0, lambda shard: elector.leads())
    metrics = FleetMetrics(manager.cache, manager.metrics.registry, share=share)
    manager.at_start(metrics.follow)
    return metrics


def webhook_server(manager: Manager, settings: Settings, options: registry.FleetOptions, home: str) -> WebhookServer:
    """The webhooks of the controllers, with certificates of the manager's own unless a folder has them."""
    from slipway.api.cluster.conversion import convert
    from slipway.fleet.contract.references import lookup_in

    declared = registry.declarations(settings.controllers)
    if settings.webhook_cert_dir:
        server = WebhookServer(Folder(Path(settings.webhook_cert_dir)), port=settings.webhook_port, look=_LOOK_AT_FOLDER)
    else:
        targets = manifests.targets(declared.crds, declared.webhooks, home)
        service = f"{manifests.WEBHOOK_SERVICE}.{home}.svc"
        store = CertificateStore(manager.client, home, manifests.WEBHOOK_SECRET, targets, names=[service])
        server = WebhookServer(Certified(store), port=settings.webhook_port)
    server.add(*registry.webhooks(settings.controllers, manager, options))
    # Only kinds of those controllers refer to others.
    server.add_conversion(partial(convert, lookup=lookup_in(manager)) if declared.works_with_providers else convert)
    return server


def registration_server(
    manager: Manager, connection: Connection, options: InventoryOptions, home: str, heard: Callable[[str], None] | None = None
) -> RegistrationServer:
    """Where hosts register, with a certificate of the manager's own, or a given one, whose authority hosts are given."""
    from slipway.fleet.inventory.registration.certificate import Given, Own
    from slipway.fleet.inventory.registration.configuration import ApiServer
    from slipway.fleet.inventory.registration.server import RegistrationServer

    own = ApiServer(connection.server, connection.ca)
    service = f"{hosts.SERVICE}.{home}.svc"
    called = urlsplit(options.url).hostname or service
    if options.cert_dir:
        given = Given(Path(options.cert_dir), called)
        return RegistrationServer(manager.client, manager.cache, given, options, own=own, called=heard, look=_LOOK_AT_FOLDER)
    store = CertificateStore(
        manager.client,
        home,
        hosts.SECRET,
        (),
        names=sorted({service, f"{service}.cluster.local", called}),
        authority_validity=hosts.AUTHORITY_VALIDITY,
    )
    return RegistrationServer(manager.client, manager.cache, Own(store), options, own=own, called=heard)


def _hear_signals(stop: asyncio.Event) -> None:
    """The first signal ends the work in order; the second one ends the program."""

    def heard(number: signal.Signals) -> None:
        if stop.is_set():
            log.warning("Ending at once, as the signal came a second time", extra=logs.fields(signal=number.name))
            os._exit(128 + number)
        log.info("Ending the work; a second signal ends it at once", extra=logs.fields(signal=number.name))
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, heard, number)
