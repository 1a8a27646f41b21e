"""What the inventory's controllers and the registration of hosts are told on the command line."""

from __future__ import annotations

import msgspec

from slipway.api.machinery.duration import Duration

SERVICE = "slipway-registration"
SECRET = "slipway-registration-certificate"
PORT = 8443
FLAG = "--registration-bind-address"
AUTHORITY_VALIDITY = Duration.of(hours=24 * 365 * 10)
"""Hosts keep the authority on their disks, and a host that stood in a store for years registers anew by it."""


class InventoryOptions(msgspec.Struct, frozen=True, kw_only=True):
    """``url`` is where hosts find the registration, ``api_server`` where they find the API server of the management cluster."""

    bind_address: str = "0"
    """Where the registration listens; 0 for nowhere."""
    url: str = ""
    api_server: str = ""
    """Without it, hosts are told what the manager itself uses."""
    cert_dir: str = ""
    """The folder of a given certificate for the registration; without it the manager has its own."""
    home: str = ""
    """The manager's own namespace, where the certificate of the registration is."""

    def at(self, home: str) -> InventoryOptions:
        """With everything filled in: hosts call the Service of the manager in its namespace, unless there is another way for them."""
        return msgspec.structs.replace(self, url=self.url.rstrip("/") or f"https://{SERVICE}.{home}.svc", home=home)
