"""Discovery by a kubeconfig: a file of this machine, or one at an https address.  Its authority is trusted because of where it is from.

Reading cluster-info proves that the server has a certificate of that authority; what it says is compared, not believed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.api.machinery.errors import OperatorError
from slipway.host import waiting
from slipway.kube import kubeconfig
from slipway.kube.proxies import redacted
from slipway.node.discovery import trust as discovery
from slipway.workload import clusterinfo

if TYPE_CHECKING:
    from urllib.request import Request

    from slipway.api.machinery.objects import Manifest
    from slipway.host.interface import Host
    from slipway.host.progress import Progress
    from slipway.kube.connection import Connection
    from slipway.kube.kubeconfig import Document

_INTERVAL = 0.25
_ANSWER = 10.0
_DOWNLOAD = 30.0
_LARGEST = 4 << 20


def discover(path: str, host: Host, progress: Progress, timeout: float) -> Document:
    """The kubeconfig, with everything that it refers to embedded, for a server that proved to be the right one."""
    document = embedded(load(path, host), host, path)
    server, ca = discovery.only_cluster(document)
    found = _cluster_info(_connection(document, host, path), host, progress, timeout)
    data = (found or {}).get("data") or {}
    text = data.get("kubeconfig") if isinstance(data, dict) else None
    if not text:
        # Strangers may not read it, or it is not set up: the administrator's file is what there is to go by.
        return document
    known_server, known_ca = discovery.only_cluster(kubeconfig.load(str(text).encode(), "the cluster-info ConfigMap"))
    if server != known_server:
        progress.warn(
            f'[discovery] the API Server endpoint "{redacted(server)}" in use is different from the endpoint "{redacted(known_server)}" '
            "which defined in the cluster-info ConfigMap"
        )
    if not ca and known_ca:
        discovery.cluster_of(document)["certificate-authority-data"] = kubeconfig.encoded(known_ca)
    return document


def load(path: str, host: Host) -> Document:
    """The kubeconfig at a path or an https address."""
    if path.startswith("https://"):
        document = kubeconfig.load(_download(path), path)
    else:
        try:
            document = kubeconfig.load(host.read(path), path)
        except OSError as error:
            raise OperatorError(f"failed to load the discovery file {path}: {error.strerror or error}") from error
    if not document.get("clusters"):
        raise OperatorError(f"the kubeconfig file {path} must have at least one Cluster defined")
    return document


def embedded(document: Document, host: Host, source: str) -> Document:
    """The same with the content of the files that it names, so that it works from another place as well."""
    copy: Document = {**document, "clusters": [{**entry} for entry in document["clusters"]]}
    for entry in copy["clusters"]:
        entry["cluster"] = _with_content(dict(entry.get("cluster") or {}), ("certificate-authority",), host, source)
    if document.get("users"):
        users = [{**entry} for entry in document["users"]]
        for entry in users:
            user = _with_content(dict(entry.get("user") or {}), ("client-certificate", "client-key"), host, source)
            if not user.get("token") and user.get("tokenFile"):
                user["token"] = _content(str(user.pop("tokenFile")), host, source).decode(errors="replace").strip()
            entry["user"] = user
        copy["users"] = users
    return copy


def _with_content(section: Document, fields: tuple[str, ...], host: Host, source: str) -> Document:
    for field in fields:
        if not section.get(f"{field}-data") and section.get(field):
            section[f"{field}-data"] = kubeconfig.encoded(_content(str(section.pop(field)), host, source))
    return section


def _content(path: str, host: Host, source: str) -> bytes:
    try:
        return host.read(path)
    except OSError as error:
        raise OperatorError(f"cannot read {path}, which the discovery file {source} names: {error.strerror or error}") from error


def _connection(document: Document, host: Host, source: str) -> Connection:
    """With the credentials of the file, or as a stranger where it has no context."""
    from slipway.kube.connection import Connection, from_kubeconfig

    if document.get("current-context"):
        return from_kubeconfig(document, host.read, source=source)
    server, ca = discovery.only_cluster(document)
    return Connection(server=server, ca=ca)


def _cluster_info(connection: Connection, host: Host, progress: Progress, timeout: float) -> Manifest | None:
    """cluster-info; None where it may not be read.  A server that does not answer yet is waited for."""
    from slipway.kube.client import Client
    from slipway.kube.errors import ApiError, ForbiddenError, UnauthorizedError, UnreachableError, UntrustedError

    client = Client(connection, timeout=_ANSWER, environment=host.environment)
    told = ""
    found: Manifest | None = None

    def probe() -> str:
        nonlocal told, found
        try:
            found = client.get("v1", "ConfigMap", clusterinfo.NAME, clusterinfo.NAMESPACE)
            problem = "" if found is not None else f"{connection.shown} has no ConfigMap cluster-info"
        except ForbiddenError:
            progress.warn(
                "[discovery] Could not access the cluster-info ConfigMap for refreshing the cluster-info information, "
                "but the TLS cert is valid so proceeding..."
            )
            return ""
        except UntrustedError as error:
            from slipway.node.discovery import distrust

            raise distrust.distrust(error.message, connection.shown, connection.ca, host.now()) from error
        except UnauthorizedError as error:
            raise OperatorError(f"{connection.shown} does not know the credentials of the discovery file: {error.message}") from error
        except (UnreachableError, ApiError) as error:
            problem = error.message
        if problem and problem != told:
            told = problem
            progress.say(f"[discovery] Waiting up to {waiting.shown(timeout)} for the cluster-info ConfigMap: {problem}")
        return problem

    try:
        waiting.until(probe, timeout=timeout, interval=_INTERVAL)
    finally:
        client.close()
    return found


def _download(url: str) -> bytes:
    """A file at an address whose certificate an authority of this machine vouches for; so does one for every address on the way."""
    from http.client import HTTPException, IncompleteRead
    from urllib.error import URLError
    from urllib.request import HTTPRedirectHandler, HTTPSHandler, build_opener

    from slipway.credentials import tls

    class HttpsAlone(HTTPRedirectHandler):
        def redirect_request(self, request: Request, file: Any, code: int, message: str, headers: Any, address: str) -> Request | None:
            if not address.lower().startswith("https://"):
                raise OperatorError(
                    f"the discovery file {shown} is redirected to {redacted(address)}, which anybody could have changed on its way"
                )
            return super().redirect_request(request, file, code, message, headers, address)

    shown = redacted(url)
    failed = f"failed to fetch the discovery file {shown}"
    try:
        with build_opener(HttpsAlone, HTTPSHandler(context=tls.trusting())).open(url, timeout=_DOWNLOAD) as response:
            content: bytes = response.read(_LARGEST + 1)
            if len(content) <= _LARGEST and response.length:
                raise IncompleteRead(content, response.length)
    except URLError as error:
        raise OperatorError(f"{failed}: {error.reason}") from error
    except OSError as error:
        raise OperatorError(f"{failed}: {error.strerror or error}") from error
    except HTTPException as error:
        raise OperatorError(f"{failed}: the server does not answer in HTTP as it should, or not to the end: {error!r}") from error
    except ValueError as error:
        raise OperatorError(f"{failed}: it is not the address of a file: {error}") from error
    if len(content) > _LARGEST:
        raise OperatorError(f"{failed}: it is larger than {_LARGEST >> 20} MiB, which no kubeconfig is")
    return content
