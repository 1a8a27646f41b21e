"""How a joining node finds its cluster: what users left open in spec.joinConfiguration.discovery is filled in, what they said stays.

Other fields of the spec are left alone, as the controller of a control plane takes a change of them for a new configuration.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import write as yamlwrite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.machinery.objects import Manifest

_EXEC_API_VERSION = "client.authentication.k8s.io/v1"


class EndpointUnknownError(OperatorError):
    """Nothing is wrong: the address of the API server comes later."""


def uses_file(discovery: Mapping[str, Any]) -> bool:
    return bool(discovery.get("file"))


def with_file(discovery: Mapping[str, Any], endpoint: str, ca: bytes) -> Manifest:
    """Discovery by a kubeconfig file: server and CA of a kubeconfig that is to be written, where they are open."""
    file = dict(discovery["file"])
    kubeconfig = dict(file.get("kubeConfig") or {})
    if not kubeconfig:
        return dict(discovery)
    cluster = dict(kubeconfig.get("cluster") or {})
    if not cluster.get("server"):
        cluster["server"] = f"https://{_known(endpoint)}"
    if not cluster.get("certificateAuthorityData"):
        cluster["certificateAuthorityData"] = b64encode(ca).decode()
    return {**discovery, "file": {**file, "kubeConfig": {**kubeconfig, "cluster": cluster}}}


def with_endpoint(discovery: Mapping[str, Any], endpoint: str, ca_hashes: list[str]) -> Manifest:
    """Discovery by a token: everything but the token."""
    token = dict(discovery.get("bootstrapToken") or {})
    if not token.get("caCertHashes"):
        token["caCertHashes"] = ca_hashes
    if not token.get("apiServerEndpoint"):
        token["apiServerEndpoint"] = _known(endpoint)
    return {**discovery, "bootstrapToken": token}


def with_token(discovery: Mapping[str, Any], token: str) -> Manifest:
    return {**discovery, "bootstrapToken": {**(discovery.get("bootstrapToken") or {}), "token": token}}


def kubeconfig_file(discovery: Mapping[str, Any]) -> dict[str, str] | None:
    """The kubeconfig of a discovery by file, as a file of the host; None where the host has one already."""
    file = discovery.get("file") or {}
    wanted = file.get("kubeConfig") or {}
    if not wanted:
        return None
    document = {
        "clusters": [{"name": "default", "cluster": _cluster(wanted.get("cluster") or {})}],
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
        "current-context": "default",
        "users": [{"name": "default", "user": _user(wanted.get("user") or {})}],
    }
    return {
        "path": file.get("kubeConfigPath") or "",
        "owner": "root:root",
        "permissions": "0640",
        "content": yamlwrite.dump(document),
    }


def _cluster(cluster: Mapping[str, Any]) -> Manifest:
    made = {
        "certificate-authority-data": cluster.get("certificateAuthorityData"),
        "insecure-skip-tls-verify": cluster.get("insecureSkipTLSVerify"),
        "proxy-url": cluster.get("proxyURL"),
        "tls-server-name": cluster.get("tlsServerName"),
    }
    return {**{name: value for name, value in made.items() if value}, "server": cluster.get("server") or ""}


def _user(user: Mapping[str, Any]) -> Manifest:
    made: Manifest = {}
    provider, plugin = user.get("authProvider") or {}, user.get("exec") or {}
    if provider:
        made["auth-provider"] = {"name": provider.get("name") or "", "config": provider.get("config")}
    if plugin:
        environment = [{"name": entry.get("name") or "", "value": entry.get("value") or ""} for entry in plugin.get("env") or ()]
        made["exec"] = {
            "apiVersion": plugin.get("apiVersion") or _EXEC_API_VERSION,
            "args": plugin.get("args"),
            "command": plugin.get("command") or "",
            "env": environment or None,
            "interactiveMode": "Never",
            "provideClusterInfo": bool(plugin.get("provideClusterInfo")),
        }
    return made


def _known(endpoint: str) -> str:
    if not endpoint:
        raise EndpointUnknownError("Waiting for Cluster spec.controlPlaneEndpoint to be set")
    return endpoint
