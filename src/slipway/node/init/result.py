"""What an ``init`` made, for programs that call it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping


class InitResult(msgspec.Struct, frozen=True, kw_only=True):
    """The new control plane.  Of a run of one phase, or with phases skipped, what was not made is empty."""

    node_name: str
    kubernetes_version: str
    endpoint: str
    """The URL under which clients reach the control plane."""
    ca_pins: tuple[str, ...] = ()
    """``sha256:…`` of the public keys of the cluster's certificate authorities, for ``--discovery-token-ca-cert-hash``."""
    tokens: tuple[str, ...] = ()
    certificate_key: str = ""
    """Decrypts the uploaded certificates; empty where none were uploaded."""
    worker_join_command: str = ""
    control_plane_join_command: str = ""
    admin_kubeconfig: str = ""
    certificates_dir: str = ""
    manifests_dir: str = ""
    seconds: Mapping[str, float] = msgspec.field(default_factory=dict)
    """How long each phase took that ran, by its path."""
