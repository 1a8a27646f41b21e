"""``fleet snapshot|snapshots|restore``: argv in, text out; what is done is in slipway.fleet.snapshots and slipway.fleet.controlplane."""

from __future__ import annotations

import os
import sys
import time

from slipway.api.machinery.errors import OperatorError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from slipway.cli.argv.parser import Invocation
    from slipway.fleet.snapshots.hostscript import Download
    from slipway.fleet.snapshots.places import Place
    from slipway.fleet.snapshots.record import Snapshot
    from slipway.fleet.snapshots.restoring import Standing, Wanted
    from slipway.fleet.snapshots.store import Store
    from slipway.kube.aio import AsyncClient

# As long as S3 lets a link live.
_LINK_SECONDS = 7 * 24 * 3600
_MIB = 1024**2


def take(call: Invocation) -> None:
    """A snapshot now."""
    import asyncio
    from datetime import UTC, datetime

    from slipway.cli.commands import managerflags
    from slipway.cli.commands.manager import connection, namespace
    from slipway.fleet.controlplane import backup
    from slipway.fleet.snapshots import places
    from slipway.fleet.snapshots import store as stores
    from slipway.fleet.snapshots.taking import Subject
    from slipway.kube.aio import AsyncClient

    form = managerflags.one_of(call, "output")
    cluster = _cluster(call, "whose etcd is meant is missing")
    given = _place(call, "to") if call.text("to") else None
    keep = call.number("keep-last")
    if not 0 <= keep <= places.MOST_KEPT:
        raise UsageError(f"{keep} for --keep-last is not a number from 0 to {places.MOST_KEPT}")
    target = connection(call)
    where = namespace(call, target)

    async def work() -> tuple[Snapshot, Store]:
        async with AsyncClient(target) as client:
            found = await backup.find(client, where, cluster)
            place = given or found.place
            if place is None:
                raise UsageError("where the snapshot is to be kept is missing: name a folder or s3://BUCKET[/PREFIX] with --to")
            store = await places.opened(client, place, where)
            with _Shown("Taking the snapshot", quiet=form == "json") as progress:
                taken = await backup.take_now(client, found, Subject(where, cluster), store, datetime.now(UTC), progress)
            if kept := keep or (found.keep if given is None else None):
                await stores.prune(store, where, cluster, kept, taken.taken)
            return taken, store

    taken, store = asyncio.run(work())
    if form == "json":
        _json({**_told(taken), "store": store.shown})
    else:
        sys.stdout.write(_table([taken]))
        sys.stdout.write(f"Kept in {store.shown}; sha256 {taken.sha256}\n")


def listed(call: Invocation) -> None:
    """What a store has."""
    import asyncio

    from slipway.cli.commands import managerflags
    from slipway.cli.commands.manager import connection, namespace
    from slipway.fleet.snapshots import places
    from slipway.fleet.snapshots import store as stores
    from slipway.kube.aio import AsyncClient

    form = managerflags.one_of(call, "output")
    place = _place(call, "from")

    async def read(store: Store, where: str) -> list[Snapshot]:
        clusters = [(where, call.arguments[0])] if call.arguments else await store.clusters()
        return [each for one in clusters for each in await stores.snapshots(store, *one)]

    async def work() -> list[Snapshot]:
        if place.folder and not call.arguments:
            from slipway.fleet.snapshots.folder import Folder

            return await read(Folder(_path(place.folder)), "")
        target = connection(call)
        async with AsyncClient(target) as client:
            where = namespace(call, target)
            return await read(await places.opened(client, place, where), where)

    found = asyncio.run(work())
    if form == "json":
        _json({"snapshots": [_told(each) for each in found]})
    else:
        sys.stdout.write(_table(found))


def restore(call: Invocation) -> None:
    """The way back: asked for, and followed to its end."""
    import asyncio

    from slipway.cli.commands import managerflags
    from slipway.cli.commands.manager import connection, namespace
    from slipway.fleet.snapshots import restoring, serving
    from slipway.kube.aio import AsyncClient

    form = managerflags.one_of(call, "output")
    cluster = _cluster(call, "which cluster is to be restored is missing")
    place = _place(call, "from")
    serve = serving.address(call.text("serve")) if call.text("serve") else None
    if place.folder and serve is None:
        raise UsageError(
            "--from is a folder or a file: hosts fetch the snapshot from here, so say with --serve HOST:PORT where they reach it"
        )
    if not call.switch("yes") and (form == "json" or not sys.stdin.isatty()):
        raise UsageError("nobody can be asked here: say --yes to restore")
    target = connection(call)
    where = namespace(call, target)

    def tell(standing: Standing) -> None:
        if form == "json":
            _json_line({"stage": standing.stage, "message": standing.message})
        else:
            sys.stdout.write(f"{standing.message[0].upper()}{standing.message[1:]}\n")
            sys.stdout.flush()

    async def work() -> None:
        async with AsyncClient(target) as client:
            wanted = await restoring.look(client, where, cluster)
            snapshot, source = await _source(client, place, where, cluster, call.text("snapshot"))
            refusal = restoring.refusal(wanted, snapshot, answers=not call.switch("force") and await _answers(client, wanted))
            if refusal:
                raise OperatorError(f"the control plane of {where}/{cluster} is not restored: {refusal}")
            if not call.switch("yes") and not _agreed(wanted, snapshot):
                raise OperatorError("nothing was changed")
            async with _download(source, snapshot, serve, tell) as download:
                asked = await restoring.ask(client, wanted, snapshot.name, download, hosts_lost=call.switch("hosts-lost"))
                await restoring.follow(client, wanted, asked, tell)

    asyncio.run(work())


async def _source(client: AsyncClient, place: Place, namespace: str, cluster: str, name: str) -> tuple[Snapshot, Store | Path]:
    """The snapshot, and where it is: in a store, or a file."""
    from datetime import UTC, datetime

    from slipway.fleet.snapshots import places, record
    from slipway.fleet.snapshots import store as stores
    from slipway.fleet.snapshots.record import Snapshot
    from slipway.workload import etcdsnapshot

    path = _path(place.folder) if place.folder else None
    if path is not None and path.is_file():
        found = etcdsnapshot.check(path)
        taken = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        return (
            Snapshot(namespace=namespace, cluster=cluster, taken=taken, revision=found.revision, size=found.size, sha256=found.sha256),
            path,
        )
    store = await places.opened(client, place, namespace)
    chosen = record.chosen(await stores.snapshots(store, namespace, cluster), name)
    return chosen, store


def _download(
    source: Store | Path, snapshot: Snapshot, serve: tuple[str, int] | None, tell: Callable[[Standing], None]
) -> AbstractAsyncContextManager[Download]:
    """Where hosts get it, during the block: a link to the store, or from here."""
    from contextlib import asynccontextmanager
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from slipway.fleet.snapshots import serving
    from slipway.fleet.snapshots.hostscript import Download
    from slipway.fleet.snapshots.restoring import Standing
    from slipway.fleet.snapshots.s3 import S3
    from slipway.workload import etcdsnapshot

    def fetched(who: str) -> None:
        tell(Standing("fetching", f"{who} fetches the snapshot"))

    @asynccontextmanager
    async def made() -> AsyncIterator[Download]:
        if isinstance(source, S3) and serve is None:
            yield Download(source.link(snapshot, _LINK_SECONDS), snapshot.sha256, source.authority)
            return
        assert serve is not None
        with TemporaryDirectory() as folder:
            file = source if isinstance(source, Path) else Path(folder) / "snapshot.db"
            if not isinstance(source, Path):
                with _Shown("Fetching the snapshot") as progress:
                    await source.fetch(snapshot, file, progress)
            if etcdsnapshot.check(file).sha256 != snapshot.sha256:
                raise OperatorError(f"the snapshot {snapshot.name} is not any more what was kept: its SHA-256 is another one")
            async with serving.served(file, snapshot.sha256, *serve, fetched) as download:
                yield download

    return made()


async def _answers(client: AsyncClient, wanted: Wanted) -> bool:
    """Whether the API server of the cluster is there after all."""
    from slipway.fleet.clustercache import WorkloadClusters

    clusters = WorkloadClusters(client)
    try:
        async with clusters.client(wanted.namespace, wanted.cluster) as inside:
            await inside.raw("/version")
    except OperatorError:
        return False
    finally:
        await clusters.close()
    return True


def _agreed(wanted: Wanted, snapshot: Snapshot) -> bool:
    names = ", ".join(each["metadata"]["name"] for each in wanted.machines) or "none"
    sys.stdout.write(
        f"The control plane of {wanted.namespace}/{wanted.cluster} is made anew with the snapshot {snapshot.name}.\n"
        f"Its Machines are deleted: {names}. What was changed in the cluster since then is lost.\nGo on? [y/N] "
    )
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _cluster(call: Invocation, missing: str) -> str:
    if not call.arguments:
        raise UsageError(f"{missing}: name the cluster as CLUSTER")
    return call.arguments[0]


def _place(call: Invocation, flag: str) -> Place:
    from slipway.fleet.snapshots import places

    text, secret = call.text(flag), call.text("store-secret")
    try:
        return places.place(text if text.startswith("s3://") else os.path.abspath(text), secret)
    except OperatorError as error:
        raise UsageError(f"--{flag}: {error.message}{'' if secret else '; name it with --store-secret'}") from None


def _path(text: str) -> Path:
    from pathlib import Path

    return Path(text)


def _told(snapshot: Snapshot) -> dict[str, object]:
    import msgspec

    return {"name": snapshot.name, **msgspec.to_builtins(snapshot)}


def _table(found: list[Snapshot]) -> str:
    from slipway.api.machinery.tabwriter import aligned

    rows = [
        (each.namespace, each.cluster, each.name, f"{each.size / _MIB:.1f} MiB", each.kubernetes_version or "?", each.etcd_version or "?")
        for each in found
    ]
    return aligned([("NAMESPACE", "CLUSTER", "SNAPSHOT", "SIZE", "KUBERNETES", "ETCD"), *rows])


def _json(value: object) -> None:
    import json

    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def _json_line(value: object) -> None:
    import json

    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


class _Shown:
    """How far something is, on standard error: a line that is drawn anew on a terminal, one every ten seconds elsewhere."""

    def __init__(self, doing: str, *, quiet: bool = False) -> None:
        self._doing, self._quiet = doing, quiet
        self._live = sys.stderr.isatty()
        self._last = time.monotonic()
        self._drawn = False

    def __enter__(self) -> _Shown:
        return self

    def __exit__(self, *error: object) -> None:
        if self._drawn and self._live:
            sys.stderr.write("\n")

    def __call__(self, done: int, whole: int) -> None:
        now = time.monotonic()
        if self._quiet or (now - self._last < (0.2 if self._live else 10.0) and not (self._live and done == whole)):
            return
        self._last, self._drawn = now, True
        text = f"{self._doing}: {done / _MIB:.1f} of {whole / _MIB:.1f} MiB"
        sys.stderr.write(f"\r{text}" if self._live else f"{text}\n")
        sys.stderr.flush()
