"""Snapshots in a real S3-compatible store: Versity's gateway over a folder of this machine."""

from __future__ import annotations

import asyncio
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from e2e.nodes import real_hosts
from fleet.snapshots.databases import REVISION, database
from fleet.snapshots.test_taking import Model
from lab.recorded_progress import RecordedProgress
from support.ports import free_port

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.snapshots import store as stores
from slipway.fleet.snapshots.record import Snapshot
from slipway.fleet.snapshots.s3 import S3, Bucket
from slipway.fleet.snapshots.sigv4 import Credentials
from slipway.fleet.snapshots.taking import Subject, take
from slipway.host import waiting
from slipway.lab.programs import obtain

pytestmark = real_hosts
KEYS = Credentials("slipway", "a secret / with + odd characters")


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    program = obtain.obtain("v1.35.4", ["versitygw"], progress=RecordedProgress())["versitygw"].path
    folder = tmp_path_factory.mktemp("s3")
    (folder / "backups").mkdir()
    port = free_port()
    environment = {**os.environ, "ROOT_ACCESS_KEY": KEYS.access_key, "ROOT_SECRET_KEY": KEYS.secret_key}
    with (folder.parent / "s3.log").open("wb") as log:
        command = [str(program), "--port", f"127.0.0.1:{port}", "posix", "--nometa", str(folder)]
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    endpoint = f"http://127.0.0.1:{port}"

    def answers() -> str:
        try:
            urllib.request.urlopen(endpoint, timeout=2).close()
        except urllib.error.HTTPError:
            return ""
        except OSError as error:
            return str(error)
        return ""

    try:
        waiting.until(answers, timeout=20)
        yield Bucket(endpoint, "backups", "fleet/one", KEYS)
    finally:
        process.terminate()
        process.wait(timeout=10)


def test_a_snapshot_is_kept_listed_fetched_and_pruned(bucket: Bucket, tmp_path: Path) -> None:
    async def work() -> list[Snapshot]:
        store, now = S3(bucket), datetime.now(UTC)
        taken = [await take(Model(), store, Subject("n", "c"), now + timedelta(seconds=number)) for number in range(3)]
        assert await stores.snapshots(store, "n", "c") == taken
        assert await store.clusters() == [("n", "c")]
        told: list[tuple[int, int]] = []
        await store.fetch(taken[0], tmp_path / "fetched", lambda done, whole: told.append((done, whole)))
        assert told[-1] == (taken[0].size, taken[0].size)
        assert len(await stores.prune(store, "n", "c", 1, now)) == 4
        return await stores.snapshots(store, "n", "c")

    (left,) = asyncio.run(work())
    assert left.revision == REVISION
    assert (tmp_path / "fetched").read_bytes() == database()


def test_a_link_needs_no_credentials_and_ends(bucket: Bucket) -> None:
    store = S3(bucket)
    taken = asyncio.run(take(Model(), store, Subject("n", "linked"), datetime.now(UTC)))
    with urllib.request.urlopen(store.link(taken, 60), timeout=10) as answer:
        assert answer.read() == database()
    # What a host does with it.
    fetched = subprocess.run(["curl", "-fsS", store.link(taken, 60)], capture_output=True, check=True).stdout
    assert fetched == database()
    old = S3(bucket, clock=lambda: datetime.now(UTC) - timedelta(hours=2))
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(old.link(taken, 60), timeout=10)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"credentials": Credentials("slipway", "another")}, r"HTTP status 403 \(SignatureDoesNotMatch: "),
        ({"bucket": "elsewhere"}, r"HTTP status 404 \(NoSuchBucket: "),
        ({"endpoint": "http://127.0.0.1:1"}, "s3://backups/fleet/one at http://127.0.0.1:1: .*refused|Connect call failed"),
    ],
)
def test_what_a_store_refuses_is_told_in_its_words(bucket: Bucket, changed: dict[str, object], said: str) -> None:
    store = S3(bucket._replace(**changed))  # type: ignore[arg-type]
    with pytest.raises(OperatorError, match=said):
        asyncio.run(take(Model(), store, Subject("n", "refused"), datetime.now(UTC)))


def test_what_does_not_arrive_whole_is_not_kept(bucket: Bucket) -> None:
    """The store itself compares the SHA-256 that was signed."""

    async def work() -> None:
        store = S3(bucket)
        taken = await take(Model(), store, Subject("n", "whole"), datetime.now(UTC))
        wrong = Path(store.spool("n", "whole")) / "wrong.part"
        wrong.write_bytes(bytes(taken.size))
        try:
            await store.put(msgspec.structs.replace(taken, revision=43), wrong)
        finally:
            wrong.unlink(missing_ok=True)

    with pytest.raises(OperatorError, match="XAmzContentSHA256Mismatch"):
        asyncio.run(work())
    assert [name for name in asyncio.run(S3(bucket).files("n", "whole")) if "-r43" in name] == []
