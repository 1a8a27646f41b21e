"""How to reach an API server and who to be there: the part of a kubeconfig that one request needs."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.kube.proxies import redacted

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
    namespace: str = ""
    """The one that the kubeconfig's context names, for who is not told another."""

    @property
    def shown(self) -> str:
        """The server as messages name it: what somebody put before an @ in its address is nobody else's business."""
        return redacted(self.server)


def from_kubeconfig(document: Mapping[str, Any], read: Callable[[str], bytes], *, source: str, context: str = "") -> Connection:
    """The connection of a kubeconfig's current context, or of another one; ``read`` gives the files that it refers to.

    ``source`` is the path of the file: errors name it, and relative paths in it start from its folder.
    """
    chosen = context or _Section(document, "", source).text("current-context")
    if not chosen:
        raise OperatorError(f"the kubeconfig file {source} has no current-context, so there is no cluster to talk to")
    names = _named(document, "contexts", "context", chosen, source)
    cluster_name, user_name = names.text("cluster"), names.text("user")
    cluster = _named(document, "clusters", "cluster", cluster_name, source)
    user = _named(document, "users", "user", user_name, source) if user_name else _Section({}, "", source)
    server = cluster.text("server")
    if not server:
        raise OperatorError(f'the kubeconfig file {source} has no server for the cluster "{cluster_name}"')
    insecure = cluster.flag("insecure-skip-tls-verify")
    if insecure and any(cluster.fields.get(field) for field in ("certificate-authority", "certificate-authority-data")):
        # As client-go: "specifying a root certificates file with the insecure flag is not allowed".
        raise OperatorError(
            f"{cluster.name('insecure-skip-tls-verify')} is true, and there is a certificate-authority as well: "
            "remove insecure-skip-tls-verify so that the server is verified with it"
        )
    for method in ("exec", "auth-provider", "username"):
        if user.fields.get(method):
            raise OperatorError(
                f'the user "{user_name}" of the kubeconfig file {source} is authenticated by "{method}", '
                "and only client certificates and tokens are supported"
            )
    token, token_file = user.text("token"), ""
    if not token and (reference := user.text("tokenFile")):
        token = _read(reference, "tokenFile", read, source).decode(errors="replace").strip()
        token_file = _path(reference, source)
    return Connection(
        server=server.rstrip("/"),
        ca=cluster.content("certificate-authority", read),
        client_certificate=user.content("client-certificate", read),
        client_key=user.content("client-key", read),
        token=token,
        token_file=token_file,
        tls_server_name=cluster.text("tls-server-name"),
        insecure=insecure,
        proxy_url=cluster.text("proxy-url"),
        namespace=names.text("namespace"),
    )


class _Section:
    """One entry of a kubeconfig.  A field of another type than Kubernetes gives it is refused, as client-go does, not guessed at."""

    def __init__(self, fields: Mapping[str, Any], of: str, source: str) -> None:
        self.fields, self._of, self._source = fields, of, source

    def name(self, field: str) -> str:
        return f"{field}{self._of} in the kubeconfig file {self._source}"

    def text(self, field: str) -> str:
        value = self.fields.get(field)
        if value is None or isinstance(value, str):
            return value or ""
        # Never the value: it may be a token.
        raise OperatorError(f"{self.name(field)} must be text, and is {_kind(value)}{_QUOTES if _is_scalar(value) else ''}")

    def flag(self, field: str) -> bool:
        value = self.fields.get(field)
        if value is None or isinstance(value, bool):
            return bool(value)
        quoted = ", without quotes" if isinstance(value, str) else ""
        raise OperatorError(f"{self.name(field)} must be true or false{quoted}, and is {_kind(value)}")

    def content(self, field: str, read: Callable[[str], bytes]) -> bytes:
        """Data that is in the kubeconfig, which has precedence, or in a file that it names."""
        data = self.text(f"{field}-data")
        if data:
            try:
                # Go's base64 passes over the ends of lines.
                return b64decode(data.replace("\r", "").replace("\n", ""), validate=True)
            except (Base64Error, ValueError) as error:
                raise OperatorError(f"{self.name(f'{field}-data')} is not base64: {error}") from None
        reference = self.text(field)
        return _read(reference, field, read, self._source) if reference else b""


def _named(document: Mapping[str, Any], section: str, field: str, name: str, source: str) -> _Section:
    entries = document.get(section)
    if not isinstance(entries, list | tuple | None):
        raise OperatorError(f"{section} in the kubeconfig file {source} must be a list, and is {_kind(entries)}")
    for entry in entries or ():
        if isinstance(entry, dict) and entry.get("name", "") == name:
            found = entry.get(field)
            if not isinstance(found, dict | None):
                raise OperatorError(f'the {field} "{name}" of the kubeconfig file {source} must be a mapping, and is {_kind(found)}')
            return _Section(found or {}, f' of the {field} "{name}"', source)
    raise OperatorError(f'the kubeconfig file {source} has no "{name}" among its {section}')


_QUOTES = ": put it in quotes"


def _is_scalar(value: object) -> bool:
    return isinstance(value, bool | int | float)


def _kind(value: object) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    return "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else f"a {type(value).__name__}"


def _read(reference: str, field: str, read: Callable[[str], bytes], source: str) -> bytes:
    path = _path(reference, source)
    try:
        return read(path)
    except OSError as error:
        raise OperatorError(f"cannot read {path}, which {field} of the kubeconfig file {source} names: {error.strerror or error}") from None


def _path(reference: str, source: str) -> str:
    return reference if reference.startswith("/") else f"{source.rpartition('/')[0]}/{reference}" if "/" in source else reference
