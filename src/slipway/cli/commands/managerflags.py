"""The flags of ``manager run`` as checked settings; what is wrong gets a sentence before anything starts."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from slipway.api.machinery.errors import UsageError
from slipway.cli.argv.values import quote
from slipway.fleet.baremetal.options import BaremetalOptions
from slipway.fleet.bootstrap.options import BootstrapOptions
from slipway.fleet.inventory.options import InventoryOptions
from slipway.fleet.machines.options import MachinesOptions
from slipway.fleet.settings import Settings
from slipway.fleet.snapshots.options import KEEP_FLAG, SECRET_FLAG, STORE_FLAG, SnapshotOptions
from slipway.workload.alive import DEFAULT_IMAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.argv.parser import Invocation
    from slipway.dashboard.options import DashboardOptions

# A label of DNS, which a namespace is, the name of an object, and a label's value.
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_OBJECT = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def settings(call: Invocation) -> Settings:
    from slipway.fleet import registry

    return Settings(
        controllers=registry.chosen(call.texts("controllers")),
        namespace=_matching(call, "namespace", _NAMESPACE, "the name of a namespace"),
        watch_filter=_matching(call, "watch-filter", _LABEL_VALUE, "the value of a label"),
        concurrency=_between(call, "concurrency", 1, 1000),
        leader_elect=call.switch("leader-elect"),
        shards=_elected_shards(call),
        own_namespace=_matching(call, "leader-elect-namespace", _NAMESPACE, "the name of a namespace"),
        metrics_address=address(call, "metrics-bind-address"),
        health_address=address(call, "health-addr"),
        webhook_port=_between(call, "webhook-port", 0, 65535),
        webhook_cert_dir=call.text("webhook-cert-dir"),
        sync_period=_seconds(call, "sync-period", 1),
        bootstrap=_bootstrap(call),
        inventory=_inventory(call),
        baremetal=_baremetal(call),
        machines=_machines(call),
        snapshots=_snapshots(call),
        log_format=one_of(call, "log-format"),
        verbosity=call.verbosity,
    )


def shards(call: Invocation) -> int:
    return _between(call, "shards", 1, 64)


def _elected_shards(call: Invocation) -> int:
    number = shards(call)
    if number > 1 and not call.switch("leader-elect"):
        raise UsageError(f"--shards={number} needs --leader-elect: managers agree by Leases on who works on which clusters")
    return number


def _bootstrap(call: Invocation) -> BootstrapOptions:
    join_version: Any = one_of(call, "join-version")
    return BootstrapOptions(
        token_ttl=timedelta(seconds=call.duration("bootstrap-token-ttl").seconds),
        join_version=join_version,
        version_file=call.switch("kubeadm-version-file"),
    )


def _inventory(call: Invocation) -> InventoryOptions:
    return InventoryOptions(
        bind_address=address(call, "registration-bind-address"),
        url=https_url(call, "registration-url"),
        api_server=https_url(call, "registration-api-server"),
        cert_dir=call.text("registration-cert-dir"),
    )


def _machines(call: Invocation) -> MachinesOptions:
    return MachinesOptions(
        node_labels=_expressions(call, "additional-sync-machine-labels"),
        node_annotations=_expressions(call, "additional-sync-machine-annotations"),
    )


def _snapshots(call: Invocation) -> SnapshotOptions:
    from slipway.api.machinery.errors import OperatorError

    store, secret = call.text(STORE_FLAG), _matching(call, SECRET_FLAG, _OBJECT, "the name of a Secret")
    if store:
        from slipway.fleet.snapshots import places

        try:
            places.place(store, secret)
        except OperatorError as error:
            raise UsageError(f"--{STORE_FLAG} and --{SECRET_FLAG}: {error.message}") from None
    return SnapshotOptions(store=store, secret=secret, keep=_between(call, KEEP_FLAG, 1, 1000))


def _expressions(call: Invocation, name: str) -> tuple[re.Pattern[str], ...]:
    found = []
    for text in call.texts(name):
        try:
            found.append(re.compile(text))
        except re.error as error:
            raise UsageError(f"{quote(text)} for --{name} is not a regular expression: {error}") from None
    return tuple(found)


def _baremetal(call: Invocation) -> BaremetalOptions:
    return BaremetalOptions(
        catalog_namespace=_matching(call, "catalog-namespace", _NAMESPACE, "the name of a namespace"),
        registry_secret=registry_secret(call),
        join_deadline=timedelta(seconds=call.duration("join-deadline").seconds),
        host_deadline=timedelta(seconds=call.duration("host-deadline").seconds),
        alive_image=call.text("alive-image") or DEFAULT_IMAGE,
        staging_hosts=_between(call, "staging-hosts", 1, 10_000),
    )


def dashboard(call: Invocation) -> DashboardOptions | None:
    """The web page; None where nobody asked for it."""
    from slipway.dashboard.options import DEFAULT_ADDRESS, DashboardOptions

    where = address(call, "dashboard-bind-address")
    if where in ("", "0"):
        if not call.switch("dashboard"):
            return None
        where = DEFAULT_ADDRESS
    return DashboardOptions(bind_address=where, cert_dir=call.text("dashboard-cert-dir"))


def registry_secret(call: Invocation) -> str:
    name = _matching(call, "registry-secret", _OBJECT, "the name of a Secret")
    if not name:
        raise UsageError('"" for --registry-secret is not the name of a Secret')
    return name


def https_url(call: Invocation, name: str) -> str:
    """A URL that hosts are told; empty where it was not given."""
    from urllib.parse import urlsplit

    value = call.text(name)
    try:
        parts = urlsplit(value)
        wrong = value and (parts.scheme != "https" or not parts.hostname or parts.query or parts.fragment or parts.username)
        # Reading it checks it.
        _ = parts.port
    except ValueError:
        wrong = True
    if wrong:
        raise UsageError(f"{quote(value)} for --{name} is not a URL that hosts can call: write https://HOST[:PORT]")
    return value.rstrip("/")


def one_of(call: Invocation, name: str) -> str:
    allowed, value = call.flags[name].completes, call.text(name)
    if value not in allowed:
        raise UsageError(f"{quote(value)} is not a value of --{name}: use {' or '.join(allowed)}")
    return value


def address(call: Invocation, name: str) -> str:
    """``[HOST]:PORT``, or ``0`` for none, as controller-runtime's flags have it."""
    from slipway.runtime.healthz import parse_address

    value = call.text(name)
    parse_address(value, f"--{name}")
    return value


def _matching(call: Invocation, name: str, pattern: re.Pattern[str], what: str) -> str:
    value = call.text(name)
    if value and not pattern.fullmatch(value):
        raise UsageError(f"{quote(value)} for --{name} is not {what}")
    return value


def _between(call: Invocation, name: str, least: int, most: int) -> int:
    value = call.number(name)
    if not least <= value <= most:
        raise UsageError(f"{value} for --{name} is not a number from {least} to {most}")
    return value


def _seconds(call: Invocation, name: str, least: float) -> float:
    value = call.duration(name)
    if value.seconds < least:
        raise UsageError(f"{value} for --{name} is too short: it is to be at least {least:g}s")
    return float(value.seconds)
