"""The connection of a program that runs in a Pod: the service account that the kubelet puts there, as client-go finds it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.kube.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"


def available(environment: Mapping[str, str] | None = None, folder: str = FOLDER) -> bool:
    """Whether this process runs in a Pod that has a service account."""
    environment = os.environ if environment is None else environment
    return bool(environment.get("KUBERNETES_SERVICE_HOST")) and os.path.exists(f"{folder}/token")


def connection(environment: Mapping[str, str] | None = None, folder: str = FOLDER) -> Connection:
    """To the API server of the cluster, as the Pod's service account.  The token is read again as the kubelet renews it."""
    environment = os.environ if environment is None else environment
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise OperatorError(
            "this is not a Pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; name the cluster with --kubeconfig"
        )
    return Connection(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        ca=_read(folder, "ca.crt").encode(),
        token=_read(folder, "token").strip(),
        token_file=f"{folder}/token",
    )


def namespace(folder: str = FOLDER) -> str:
    """The namespace of the Pod; empty outside of one."""
    try:
        return _read(folder, "namespace").strip()
    except OperatorError:
        return ""


def _read(folder: str, name: str) -> str:
    try:
        with open(f"{folder}/{name}", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError as error:
        raise OperatorError(f"cannot read {folder}/{name} of the Pod's service account: {error.strerror or error}") from None
