"""What the page is told on the command line."""

from __future__ import annotations

import msgspec

from slipway.fleet.manifests import DASHBOARD_PORT

FLAG = "--dashboard-bind-address"
DEFAULT_ADDRESS = f":{DASHBOARD_PORT}"
"""Where the page is where nobody says more than that it is wanted."""


class DashboardOptions(msgspec.Struct, frozen=True, kw_only=True):
    """``bind_address`` is where it listens, 0 for nowhere."""

    bind_address: str = "0"
    cert_dir: str = ""
    """A folder with tls.crt and tls.key; without it the manager's own certificate is shown."""
