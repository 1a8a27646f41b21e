"""A server that answers lists and watches with the bytes that a test gives it, as a kube-apiserver v1.35.4 was seen to answer.

It knows nothing of Kubernetes: it is for what a real server does only after minutes or in trouble, such as forgetting its past.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

from aiohttp import web

from slipway.kube.connection import Connection

FORBIDDEN = (
    '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"configmaps is forbidden: User \\"nobody\\" cannot '
    'list resource \\"configmaps\\" in API group \\"\\" in the namespace \\"default\\"","reason":"Forbidden",'
    '"details":{"kind":"configmaps"},"code":403}'
)
EXPIRED = (
    '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 1 (348)",'
    '"reason":"Expired","code":410}'
)
EXPIRED_EVENT = f'{{"type":"ERROR","object":{EXPIRED}}}\n'
NO_SUCH_RESOURCE = "404 page not found\n"


def item(name: str, version: int, *, namespace: str = "default", kind: str = "", labels: str = "") -> str:
    """A ConfigMap; in lists it comes without its kind, in events with it."""
    head = f'"kind":"{kind}","apiVersion":"v1",' if kind else ""
    marked = f',"labels":{labels}' if labels else ""
    return (
        f'{{{head}"metadata":{{"name":"{name}","namespace":"{namespace}","uid":"uid-{name}","resourceVersion":"{version}",'
        f'"creationTimestamp":"2026-11-16T03:22:48Z"{marked},"managedFields":[{{"manager":"kubectl-create","operation":"Update",'
        '"apiVersion":"v1","time":"2026-11-16T03:22:48Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:k":{}}}}]},'
        f'"data":{{"k":"{version}"}}}}'
    )


def page(version: int, *items: str, more: str = "") -> str:
    token = f',"continue":"{more}"' if more else ""
    return f'{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"{token}}},"items":[{",".join(items)}]}}'


def event(type: str, name: str, version: int, **more: str) -> str:  # noqa: A002
    return f'{{"type":"{type}","object":{item(name, version, kind="ConfigMap", **more)}}}\n'


def bookmark(version: int) -> str:
    return f'{{"type":"BOOKMARK","object":{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}}}}}}\n'


class Asked:
    """A request that waits for its answer."""

    def __init__(self, request: web.Request) -> None:
        self.request = request
        self.query = dict(request.query)
        self._response: web.StreamResponse | None = None
        self._ended: asyncio.Future[web.StreamResponse] = asyncio.get_running_loop().create_future()

    async def answer(self, body: str, status: int = 200) -> None:
        self._ended.set_result(web.Response(text=body, status=status, content_type="application/json"))

    async def send(self, *lines: str) -> None:
        """Lines of a watch, which stays open."""
        if self._response is None:
            self._response = web.StreamResponse(headers={"Content-Type": "application/json"})
            await self._response.prepare(self.request)
        for line in lines:
            await self._response.write(line.encode())

    async def end(self) -> None:
        """The server's own end of a watch."""
        await self.send()
        assert self._response is not None
        await self._response.write_eof()
        self._ended.set_result(self._response)

    async def break_off(self) -> None:
        """The end of a connection that nobody announced."""
        assert self.request.transport is not None
        self.request.transport.abort()
        self._ended.set_result(web.Response())

    def give_up(self) -> None:
        self._ended.cancel()

    async def wait(self) -> web.StreamResponse:
        return await self._ended


class ReplayServer:
    def __init__(self) -> None:
        self.asked: asyncio.Queue[Asked] = asyncio.Queue()
        self._all: list[Asked] = []
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        self.connection = Connection(server="http://127.0.0.1:1")

    async def __aenter__(self) -> ReplayServer:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.connection = Connection(server=f"http://127.0.0.1:{self._runner.addresses[0][1]}")
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for asked in self._all:
            asked.give_up()
        await self._runner.cleanup()

    async def next(self) -> Asked:
        return await asyncio.wait_for(self.asked.get(), 10)

    async def next_list(self) -> Asked:
        found = await self.next()
        assert "watch" not in found.query, f"a list was expected and {found.request.path_qs} came"
        return found

    async def next_watch(self) -> Asked:
        found = await self.next()
        assert found.query.get("watch") == "true", f"a watch was expected and {found.request.path_qs} came"
        return found

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        asked = Asked(request)
        self._all.append(asked)
        await self.asked.put(asked)
        return await asked.wait()
