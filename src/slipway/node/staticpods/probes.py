"""Liveness, readiness and startup probes of the control plane Pods, and the addresses that they ask."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.machinery.duration import Duration
from slipway.workload import arguments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.kubeadm.internal import Arg, LocalEtcd, Timeouts
    from slipway.api.releases import Release

PORT_NAME = "probe-port"
ETCD_METRICS_PORT = 2381
HEALTH_CHECK_TIMEOUT = Duration.of(minutes=4)
_PERIOD = Duration.of(seconds=10)
# Scheme, bracketed address, other host, port; urllib would fold the host's case and refuse what Go reads.
_URL = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?//(?:[^/?#]*@)?(?:\[([^\]/?#]*)\]|([^:/?#\[\]]*))(?::([0-9]*))?(?:[/?#]|$)")


class Endpoint(NamedTuple):
    """Where a component answers probes; an empty host is the Pod's own address."""

    host: str
    port: int
    scheme: str = "HTTPS"


class Paths(NamedTuple):
    """What is asked for; a component without readiness has an empty path there."""

    live: str
    ready: str
    startup: str


def fields(endpoint: Endpoint, paths: Paths, timeouts: Timeouts, release: Release) -> dict[str, Any]:
    """The probes of a container, and in releases that name their port, the port."""
    timeout = timeouts.control_plane_component_health_check
    attempts = -(-(HEALTH_CHECK_TIMEOUT if timeout is None else timeout) // _PERIOD)
    port: str | int = PORT_NAME if release.named_probe_ports else endpoint.port
    # A startup probe and a liveness probe skip their first period; readiness is of interest at once.
    made: dict[str, Any] = {
        "livenessProbe": _probe(endpoint, paths.live, port, delay=10, failures=8, period=10),
        "startupProbe": _probe(endpoint, paths.startup, port, delay=10, failures=attempts, period=10),
    }
    if paths.ready:
        made["readinessProbe"] = _probe(endpoint, paths.ready, port, delay=0, failures=3, period=1)
    if release.named_probe_ports:
        made["ports"] = [{"name": PORT_NAME, "containerPort": endpoint.port, "protocol": "TCP"}]
    return made


def bind_address(args: Sequence[Arg]) -> str:
    """Where a component listens by its ``bind-address``; all addresses cannot be asked, so that is the Pod's."""
    return reachable(value) if (value := arguments.value_of(args, "bind-address")) is not None else "127.0.0.1"


def reachable(address: str) -> str:
    return "" if address in ("0.0.0.0", "::") else address


def etcd_endpoint(local: LocalEtcd, loopback: str) -> Endpoint:
    """Where etcd serves its health: the first of the ``listen-metrics-urls``, else the loopback address."""
    urls = arguments.value_of(local.extra_args, "listen-metrics-urls")
    default = Endpoint(loopback, ETCD_METRICS_PORT, "HTTP")
    if urls is None:
        return default
    url = _URL.match(urls.split(",")[0])
    if url is None:
        return default
    scheme, address, name, port = (part or "" for part in url.groups())
    usable = port != "" and 1 <= int(port) <= 65535
    return Endpoint(
        address or name or loopback, int(port) if usable else ETCD_METRICS_PORT, "HTTPS" if scheme.lower() == "https" else "HTTP"
    )


def _probe(endpoint: Endpoint, path: str, port: str | int, *, delay: int, failures: int, period: int) -> dict[str, Any]:
    get = {"host": endpoint.host, "path": path, "port": port, "scheme": endpoint.scheme}
    probe = {"initialDelaySeconds": delay, "timeoutSeconds": 15, "failureThreshold": failures, "periodSeconds": period}
    return {
        "httpGet": {name: value for name, value in get.items() if value},
        # Go leaves zeros out.
        **{name: value for name, value in probe.items() if value},
    }
