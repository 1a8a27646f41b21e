"""The page added to a manager: where its certificate comes from, and that it follows the manager's caches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from slipway.dashboard.server import DashboardServer
from slipway.fleet.manifests import DASHBOARD_SECRET, DASHBOARD_SERVICE
from slipway.runtime.webhook.serving import LOOK, Certified, Folder
from slipway.runtime.webhook.store import CertificateStore

if TYPE_CHECKING:
    from slipway.dashboard.options import DashboardOptions
    from slipway.runtime.manager import Manager
    from slipway.runtime.webhook.serving import CertificateSource

# By `kubectl port-forward` the page is on the operator's own machine.
_LOCAL = ("127.0.0.1", "::1", "localhost")
# Seconds between two looks at a folder that somebody else fills.
_LOOK_AT_FOLDER = 10.0


def attach(manager: Manager, options: DashboardOptions, home: str) -> DashboardServer:
    """Let a manager serve the page; ``home`` is the manager's own namespace, where its certificate is kept."""
    source, look = _source(manager, options, home)
    server = DashboardServer(manager.client, manager.view(), source, bind_address=options.bind_address, look=look)
    manager.at_start(server.start)
    manager.add_server(server)
    return server


def _source(manager: Manager, options: DashboardOptions, home: str) -> tuple[CertificateSource, float]:
    if options.cert_dir:
        return Folder(Path(options.cert_dir), "dashboard's"), _LOOK_AT_FOLDER
    service = f"{DASHBOARD_SERVICE}.{home}.svc"
    names = [DASHBOARD_SERVICE, f"{DASHBOARD_SERVICE}.{home}", service, f"{service}.cluster.local", *_LOCAL]
    return Certified(CertificateStore(manager.client, home, DASHBOARD_SECRET, (), names=names)), LOOK
