"""How to reach an API server and who to be there: the part of a kubeconfig that one request needs."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """Certificates and keys are PEM; without ``ca`` the roots of the machine are trusted."""

    server: str
    ca: bytes = b""
    client_certificate: bytes = b""
    client_key: bytes = b""
    token: str = ""
    token_file: str = ""
    """Where the token came from: a program that runs for long reads it again, as tokens of service accounts are renewed there."""
    tls_server_name: str = ""
    insecure: bool = False
    """Believe any certificate.  Only the discovery by token does so: what it is told is signed with the token."""
    proxy_url: str = ""
    """Instead of the proxy of the environment."""


def from_kubeconfig(document: Mapping[str, Any], read: Callable[[str], bytes], *, source: str, context: str = "") -> Connection:
    """The connection of a kubeconfig's current context, or of another one; ``read`` gives the files that it refers to.

    ``source`` is the path of the file: errors name it, and relative paths in it start from its folder.
    """
    chosen = context or str(document.get("current-context") or "")
    if not chosen:
        raise OperatorError(f"the kubeconfig file {source} has no current-context, so there is no cluster to talk to")
    names = _named(document, "contexts", "context", chosen, source)
    cluster = _named(document, "clusters", "cluster", str(names.get("cluster") or ""), source)
    user = _named(document, "users", "user", str(names["user"]), source) if names.get("user") else {}
    server = str(cluster.get("server") or "")
    if not server:
        raise OperatorError(f'the kubeconfig file {source} has no server for the cluster "{names.get("cluster")}"')
    for method in ("exec", "auth-provider", "username"):
        if user.get(method):
            raise OperatorError(
                f'the user "{names["user"]}" of the kubeconfig file {source} is authenticated by "{method}", '
                "and only client certificates and tokens are supported"
            )

    def content(section: Mapping[str, Any], field: str) -> bytes:
        return _content(section, field, read, source)

    token = str(user.get("token") or "")
    token_file = ""
    if not token and user.get("tokenFile"):
        token = _read(str(user["tokenFile"]), "tokenFile", read, source).decode(errors="replace").strip()
        token_file = _path(str(user["tokenFile"]), source)
    return Connection(
        server=server.rstrip("/"),
        ca=content(cluster, "certificate-authority"),
        client_certificate=content(user, "client-certificate"),
        client_key=content(user, "client-key"),
        token=token,
        token_file=token_file,
        tls_server_name=str(cluster.get("tls-server-name") or ""),
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
        proxy_url=str(cluster.get("proxy-url") or ""),
    )


def _named(document: Mapping[str, Any], section: str, field: str, name: str, source: str) -> Mapping[str, Any]:
    for entry in document.get(section) or ():
        if isinstance(entry, dict) and entry.get("name", "") == name:
            found = entry.get(field)
            return found if isinstance(found, dict) else {}
    raise OperatorError(f'the kubeconfig file {source} has no "{name}" among its {section}')


def _content(section: Mapping[str, Any], field: str, read: Callable[[str], bytes], source: str) -> bytes:
    """Data that is in the kubeconfig, which has precedence, or in a file that it names."""
    data = section.get(f"{field}-data")
    if data:
        try:
            return b64decode(str(data), validate=True)
        except (Base64Error, ValueError) as error:
            raise OperatorError(f"{field}-data in the kubeconfig file {source} is not base64: {error}") from None
    reference = section.get(field)
    return _read(str(reference), field, read, source) if reference else b""


def _read(reference: str, field: str, read: Callable[[str], bytes], source: str) -> bytes:
    path = _path(reference, source)
    try:
        return read(path)
    except OSError as error:
        raise OperatorError(f"cannot read {path}, which {field} of the kubeconfig file {source} names: {error.strerror or error}") from None


def _path(reference: str, source: str) -> str:
    return reference if reference.startswith("/") else f"{source.rpartition('/')[0]}/{reference}" if "/" in source else reference
