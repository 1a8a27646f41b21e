"""``fleet upgrade`` and ``fleet explain``: argv in, text out; what is done is in slipway.fleet.upgrades and slipway.fleet.overview."""

from __future__ import annotations

import sys

from slipway.api.machinery.errors import OperatorError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from slipway.cli.argv.parser import Invocation
    from slipway.fleet.overview.explanation import Explanation
    from slipway.fleet.overview.views.terminal import Terminal
    from slipway.fleet.upgrades.events import Event
    from slipway.fleet.upgrades.run import Options

    class View(Protocol):
        """How an upgrade is shown; ``begin`` is when nothing is asked any more."""

        def show(self, event: Event) -> None: ...
        def begin(self) -> None: ...
        def end(self) -> None: ...


def upgrade(call: Invocation) -> None:
    """Preflight, patches in the right order, and a wait for each."""
    import asyncio

    from slipway.cli.commands import managerflags
    from slipway.cli.commands.manager import connection, namespace
    from slipway.fleet.upgrades.run import Upgrade
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.signals import heard

    form = managerflags.one_of(call, "output")
    options = _options(call)
    target = connection(call)
    options = options._replace(namespace=namespace(call, target))
    asks = not call.switch("yes") and not options.dry_run
    if asks and (form == "json" or not sys.stdin.isatty()):
        raise UsageError("nobody can be asked here: say --yes to upgrade, or --dry-run to see what would be done")
    view = _view(call, form)
    run = Upgrade(options, view.show)

    async def prepare() -> bool:
        async with AsyncClient(target) as client:
            return await run.prepare(client)

    async def work() -> None:
        async with AsyncClient(target) as client:
            await run.run(client)

    patches = asyncio.run(heard(prepare()))
    if options.dry_run:
        return
    if patches and asks and not _agreed():
        raise OperatorError("nothing was changed")
    view.begin()
    try:
        asyncio.run(heard(work()))
    finally:
        view.end()


def _options(call: Invocation) -> Options:
    from slipway.api.machinery.version import Version
    from slipway.fleet.upgrades.patches import Tags
    from slipway.fleet.upgrades.run import Options

    if not call.arguments:
        raise UsageError("which cluster is to be upgraded is missing: name it as CLUSTER")
    try:
        Version.parse(call.text("to"))
    except ValueError as error:
        raise UsageError(f"--to: {error}") from None
    if call.switch("control-plane-only") and call.switch("workers-only"):
        raise UsageError("--control-plane-only and --workers-only exclude each other: without both, all of the cluster is upgraded")
    return Options(
        namespace=call.text("namespace"),
        cluster=call.arguments[0],
        to=call.text("to"),
        control_plane=not call.switch("workers-only"),
        workers=not call.switch("control-plane-only"),
        tags=Tags(call.text("dns-image-tag"), call.text("etcd-image-tag")),
        catalog_namespace=call.text("catalog-namespace"),
        ignore_preflight=call.switch("ignore-preflight"),
        dry_run=call.switch("dry-run"),
        timeout=call.duration("timeout").seconds,
    )


def _view(call: Invocation, form: str) -> View:
    from slipway.fleet.overview.views.terminal import terminal_of
    from slipway.fleet.upgrades import views

    if form == "json":
        return views.JsonLines(sys.stdout)
    terminal = terminal_of(sys.stdout, call.host.environment)
    if terminal.width and not call.switch("dry-run") and call.host.environment.get("TERM", "dumb") != "dumb":
        from slipway.fleet.upgrades.live import LiveView

        return LiveView(sys.stdout, terminal)
    return views.PlainLines(sys.stdout, terminal)


def _agreed() -> bool:
    sys.stdout.write("Go on? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def explain(call: Invocation) -> None:
    """What an object waits for, in sentences."""
    import asyncio
    from datetime import UTC, datetime

    import msgspec

    from slipway.cli.commands import managerflags
    from slipway.cli.commands.fleetviews import place
    from slipway.fleet.overview.explanation import explain as explained
    from slipway.fleet.overview.objects import Objects, gather
    from slipway.fleet.overview.references import resolve
    from slipway.fleet.overview.views.terminal import terminal_of
    from slipway.kube.aio import AsyncClient

    form = managerflags.one_of(call, "output")
    if not call.arguments:
        raise UsageError("what is to be explained is missing: name it as KIND/NAME, KIND NAME, or by a cluster's name")
    target, namespace = place(call)

    async def read() -> Objects:
        async with AsyncClient(target) as client:
            return await gather(client, namespace, events=True)

    objects = asyncio.run(read())
    found = explained(objects, resolve(objects, call.arguments, namespace), datetime.now(UTC))
    if form == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found)).decode() + "\n")
    else:
        sys.stdout.write(_text(found, terminal_of(sys.stdout, call.host.environment)))


def _text(found: Explanation, terminal: Terminal) -> str:
    from slipway.fleet.overview.views.terminal import wrapped

    told = "".join(wrapped(each, terminal, "") for each in found.sentences)
    if not found.to_do:
        return told
    ways = "".join(wrapped(f"* {each}", terminal, "  ") for each in found.to_do)
    return f"{told}{terminal.paint('What to do:', 'bad' if found.lasting else 'wait')}\n{ways}"
