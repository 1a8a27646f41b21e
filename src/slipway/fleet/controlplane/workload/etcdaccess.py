"""Ways to the etcd members of a workload cluster: through the API server to the Pod, or straight to the host.

The Pod is reached through its kubelet, so that a dead kubelet on the host of the leader would keep a control plane from moving the
leadership away, and from replacing the host at all.  Then, where the network allows it, the member is asked at the address that it tells
its clients, port 2379 of its host.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from slipway.fleet.controlplane.workload import podhealth
from slipway.fleet.controlplane.workload.view import ETCD
from slipway.kube import portforward
from slipway.kube.bytestream import TcpStream
from slipway.kube.errors import ApiError
from slipway.kube.portforward import PortForwardError
from slipway.workload import etcdaio, etcdapi
from slipway.workload.etcdapi import EtcdError, EtcdUnreachableError

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient
    from slipway.kube.bytestream import ByteStream
    from slipway.workload.etcdaio import AsyncEtcd
    from slipway.workload.etcdapi import EtcdStatus

    Way = Callable[[], AbstractAsyncContextManager[ByteStream]]

PORT = 2379
NAMESPACE = "kube-system"
CLIENT_URLS_ANNOTATION = "kubeadm.kubernetes.io/etcd.advertise-client-urls"
_DIAL = 10.0
# For a member that is asked how it is: a look must not take as long as all ways to a dead host do.
_ANSWER = 5.0


class EtcdAccess:
    """Opens connections to members, each by the name of its Node."""

    def __init__(
        self,
        client: AsyncClient,
        context: ssl.SSLContext,
        nodes: Mapping[str, Manifest],
        pods: Mapping[tuple[str, str], Manifest],
        *,
        dial_timeout: float = _DIAL,
        call_timeout: float = etcdaio.TIMEOUT,
    ) -> None:
        self._client = client
        self._context = context
        self._nodes = nodes
        self._pods = pods
        self._dial_timeout = dial_timeout
        self._call_timeout = call_timeout

    @asynccontextmanager
    async def member(self, node_name: str) -> AsyncIterator[tuple[AsyncEtcd, EtcdStatus]]:
        """The member of a Node for the time of the block, and how it is; an EtcdError where it cannot be reached in any way."""
        async with AsyncExitStack() as stack:
            failures = []
            for way in self._ways(node_name):
                attempt = AsyncExitStack()
                try:
                    stream = await attempt.enter_async_context(way())
                    name = f"etcd-{node_name}"
                    client = await attempt.enter_async_context(etcdaio.over(stream, self._context, name, timeout=self._call_timeout))
                    # Only an answer shows that there is somebody: a tunnel opens to a port at which nobody listens, too.
                    status = await client.ask(etcdapi.status())
                except (EtcdError, ApiError, PortForwardError) as error:
                    await attempt.aclose()
                    failures.append(error.message)
                    continue
                except BaseException:
                    await attempt.aclose()
                    raise
                stack.push_async_exit(attempt)
                break
            else:
                raise EtcdUnreachableError("; ".join(failures))
            yield client, status

    @asynccontextmanager
    async def first(self, node_names: Sequence[str], *, but: int = 0) -> AsyncIterator[tuple[AsyncEtcd, EtcdStatus]]:
        """The first member that answers, of those of some Nodes, ``but`` for the one with that id."""
        if not node_names:
            raise EtcdError("there is no Node with an etcd member to ask")
        async with AsyncExitStack() as stack:
            failures = []
            for node_name in node_names:
                attempt = AsyncExitStack()
                try:
                    found = await attempt.enter_async_context(self.member(node_name))
                except EtcdError as error:
                    failures.append(error.message)
                    continue
                if found[1].member_id == but:
                    await attempt.aclose()
                    continue
                stack.push_async_exit(attempt)
                break
            else:
                raise EtcdUnreachableError("; ".join(failures) or "there is no other etcd member to ask")
            yield found

    async def answers(self, node_name: str) -> EtcdStatus | None:
        """How the member of a Node is; None where it does not say, or takes too long to."""
        try:
            async with asyncio.timeout(_ANSWER), self.member(node_name) as (_, status):
                return status
        except (EtcdError, TimeoutError):
            return None

    def _ways(self, node_name: str) -> list[Way]:
        def through_the_api() -> AbstractAsyncContextManager[ByteStream]:
            return portforward.connect(self._client, NAMESPACE, f"{ETCD}-{node_name}", PORT)

        def straight(host: str, port: int) -> Way:
            return lambda: _dialled(host, port, self._dial_timeout)

        direct = [straight(host, port) for host, port in addresses(self._nodes.get(node_name), self._pods.get((ETCD, node_name)))]
        node = self._nodes.get(node_name)
        # A kubelet that has gone quiet would be waited for in vain.
        quiet = node is not None and (podhealth.is_unreachable(node) or podhealth.is_ready_unknown(node))
        return [*direct, through_the_api] if quiet else [through_the_api, *direct]


def addresses(node: Manifest | None, pod: Manifest | None) -> list[tuple[str, int]]:
    """Where the member of a Node listens: what kubeadm wrote about it on its Pod, else port 2379 of the Node's own addresses."""
    annotations = ((pod or {}).get("metadata") or {}).get("annotations") or {}
    urls = [urlsplit(url) for url in annotations.get(CLIENT_URLS_ANNOTATION, "").split(",") if url]
    told = [(url.hostname, url.port or PORT) for url in urls if url.hostname]
    if told:
        return told
    listed = ((node or {}).get("status") or {}).get("addresses") or ()
    return [(str(item["address"]), PORT) for item in listed if item.get("type") == "InternalIP" and item.get("address")]


@asynccontextmanager
async def _dialled(host: str, port: int, timeout: float) -> AsyncIterator[TcpStream]:
    try:
        async with asyncio.timeout(timeout):
            stream = await TcpStream.connect(host, port)
    except TimeoutError as error:
        raise EtcdUnreachableError(f"{host}:{port}: it does not answer in time") from error
    except OSError as error:
        raise EtcdUnreachableError(f"{host}:{port}: {error.strerror or error}") from error
    try:
        yield stream
    finally:
        await stream.close()
