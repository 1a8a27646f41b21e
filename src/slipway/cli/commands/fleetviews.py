"""``fleet status|hosts|timeline|watch``: argv in, text out; what is read and how it looks is in slipway.fleet.overview."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.argv.parser import Invocation
    from slipway.fleet.overview.model import Overview
    from slipway.fleet.overview.objects import Objects
    from slipway.fleet.overview.watching import View
    from slipway.kube.connection import Connection


def place(call: Invocation) -> tuple[Connection, str]:
    """The management cluster, and the namespace to look at; empty for all."""
    from slipway.api.machinery.errors import UsageError
    from slipway.cli.commands.manager import connection

    target = connection(call)
    given = call.text("namespace")
    if call.switch("all-namespaces"):
        if given:
            raise UsageError("--all-namespaces and --namespace exclude each other: use one of them")
        return target, ""
    return target, given or target.namespace


def status(call: Invocation) -> None:
    from datetime import UTC, datetime

    from slipway.cli.commands import managerflags
    from slipway.fleet.overview.model import overview
    from slipway.fleet.overview.selection import of_cluster, seen
    from slipway.fleet.overview.views import status as text
    from slipway.fleet.overview.views.terminal import terminal_of

    form = managerflags.one_of(call, "output")
    target, namespace = place(call)
    now = datetime.now(UTC)
    view = seen(overview(_objects(target, namespace), now))
    if call.arguments:
        view = of_cluster(view, call.arguments[0], namespace)
    if form == "json":
        _json(view)
        return
    sys.stdout.write(text.status(view, terminal_of(sys.stdout, call.host.environment), now, namespace, whole=bool(call.arguments)))


def hosts(call: Invocation) -> None:
    from datetime import UTC, datetime

    from slipway.cli.commands import managerflags
    from slipway.fleet.overview.model import overview
    from slipway.fleet.overview.selection import hosts_of, seen_hosts
    from slipway.fleet.overview.views import hosts as text
    from slipway.fleet.overview.views.terminal import Terminal, terminal_of

    form = managerflags.one_of(call, "output")
    target, namespace = place(call)
    now = datetime.now(UTC)
    view = seen_hosts(overview(_objects(target, namespace), now))
    among = _selected(target, namespace, call.text("selector")) if call.text("selector") else None
    found = hosts_of(view, pool=call.text("pool"), state=call.text("state"), among=among)
    if form == "json":
        _json({"hosts": found, "missing": view.missing})
        return
    terminal = terminal_of(sys.stdout, call.host.environment)
    if form == "wide":
        terminal = Terminal(0, terminal.colors)
    sys.stdout.write(text.page(found, view, terminal, now, namespace))


def timeline(call: Invocation) -> None:
    from datetime import UTC, datetime, timedelta

    from slipway.cli.commands import managerflags
    from slipway.fleet.overview import timeline as lives
    from slipway.fleet.overview.model import overview
    from slipway.fleet.overview.selection import of_cluster, seen
    from slipway.fleet.overview.views import timeline as picture
    from slipway.fleet.overview.views.terminal import terminal_of

    form, report = managerflags.one_of(call, "output"), call.text("report")
    target, namespace = place(call)
    objects = _objects(target, namespace, events=True)
    now = datetime.now(UTC)
    view = seen(overview(objects, now))
    rows = lives.timeline(objects, now)
    title = "Hosts"
    if call.arguments:
        chosen = {(each.namespace, each.name) for each in of_cluster(view, call.arguments[0], namespace).clusters}
        rows, title = tuple(row for row in rows if (row.namespace, row.cluster) in chosen), f"Hosts of {call.arguments[0]}"
    back = call.duration("since").seconds
    begin = now - timedelta(seconds=back) if back > 0 else lives.last_story(rows, now)
    rows = lives.since(rows, begin)
    if report:
        _write(report, picture.page(rows, begin, now, title))
        sys.stdout.write(f"The picture is in {report}\n")
    elif form == "html":
        sys.stdout.write(picture.page(rows, begin, now, title))
    elif form == "json":
        _json({"begin": begin, "end": now, "rows": rows})
    else:
        sys.stdout.write(picture.text(rows, begin, now, terminal_of(sys.stdout, call.host.environment)))


def _write(path: str, text: str) -> None:
    from pathlib import Path

    from slipway.api.machinery.errors import OperatorError

    try:
        Path(path).write_text(text)
    except OSError as error:
        raise OperatorError(f"the picture cannot be written to {path}: {error.strerror or error}") from None


def watch(call: Invocation) -> None:
    import asyncio

    from slipway.cli.commands import managerflags
    from slipway.fleet.overview.follow import Follower
    from slipway.fleet.overview.selection import of_cluster, seen
    from slipway.fleet.overview.watching import watch as look
    from slipway.kube.aio import AsyncClient
    from slipway.runtime import logs
    from slipway.runtime.signals import heard

    form = managerflags.one_of(call, "output")
    target, namespace = place(call)
    name = call.arguments[0] if call.arguments else ""

    def choose(view: Overview) -> Overview:
        return of_cluster(view, name, namespace) if name else seen(view)

    async def work() -> None:
        async with AsyncClient(target) as client, Follower(client, namespace) as follower:
            await look(follower, _view(call, form, namespace), choose)

    # A server that goes and comes back is told by the view.
    with logs.beside_output(call.verbosity):
        asyncio.run(heard(work()))


def _view(call: Invocation, form: str, namespace: str) -> View:
    from slipway.fleet.overview.views.lines import JsonLines, PlainLines
    from slipway.fleet.overview.views.terminal import terminal_of

    environment = call.host.environment
    terminal = terminal_of(sys.stdout, environment)
    if form == "json":
        return JsonLines(sys.stdout)
    if not terminal.width or environment.get("TERM", "dumb") == "dumb":
        return PlainLines(sys.stdout, terminal, namespace)
    from slipway.fleet.overview.views.live import LiveView

    return LiveView(terminal, namespace, whole=bool(call.arguments))


def _objects(target: Connection, namespace: str, *, events: bool = False) -> Objects:
    import asyncio

    from slipway.fleet.overview.objects import gather
    from slipway.kube.aio import AsyncClient

    async def work() -> Objects:
        async with AsyncClient(target) as client:
            return await gather(client, namespace, events=events)

    return asyncio.run(work())


def _selected(target: Connection, namespace: str, selector: str) -> set[tuple[str, str]]:
    """The hosts that the API server finds by their labels: it alone says what a selector means."""
    import asyncio

    from slipway.fleet.overview.objects import chosen
    from slipway.kube.aio import AsyncClient

    async def work() -> set[tuple[str, str]]:
        async with AsyncClient(target) as client:
            return await chosen(client, namespace, selector)

    return asyncio.run(work())


def _json(value: object) -> None:
    import msgspec

    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value)).decode() + "\n")
