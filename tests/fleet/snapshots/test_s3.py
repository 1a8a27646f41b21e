"""What a store of somebody else's answers: in pieces, without an end, or more than it should."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.snapshots import s3
from slipway.fleet.snapshots.s3 import S3, Bucket
from slipway.fleet.snapshots.sigv4 import Credentials

pytestmark = pytest.mark.asyncio
NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


@asynccontextmanager
async def answering(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[S3]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield S3(Bucket(f"http://127.0.0.1:{runner.addresses[0][1]}", "backups", "", Credentials("who", "secret")))
    finally:
        await runner.cleanup()


def page(*keys: str, following: str = "") -> bytes:
    contents = "".join(f"<Contents><Key>{key}</Key></Contents>" for key in keys)
    more = f"<NextContinuationToken>{following}</NextContinuationToken>" if following else ""
    return f'<ListBucketResult xmlns="{NAMESPACE}">{contents}{more}</ListBucketResult>'.encode()


async def test_a_list_that_comes_in_pieces_is_read_to_its_end() -> None:
    files = [f"20260301T12{number // 60:02}{number % 60:02}Z-r7.db" for number in range(1000)]
    content = page(*(f"n/c/{file}" for file in files))

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-length": str(len(content))})
        await response.prepare(request)
        for piece in (content[:100], content[100:]):
            await response.write(piece)
            # Who reads has its turns, in this very loop, before the rest comes.
            for _ in range(50):
                await asyncio.sleep(0)
        return response

    async with answering(answer) as store:
        assert await store.files("n", "c") == files


async def test_a_list_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3, "_MOST_PAGES", 3)

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(body=page("n/c/one", following="more"))

    async with answering(answer) as store:
        with pytest.raises(OperatorError, match="its list does not end after 3 pages"):
            await store.files("n", "c")


async def test_an_answer_that_is_too_large_is_not_kept_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3, "_SMALL", 1000)

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(body=bytes(2000))

    async with answering(answer) as store:
        with pytest.raises(OperatorError, match="an answer has more than 1000 bytes"):
            await store.read("n", "c", "one.json")


async def test_what_a_killed_manager_left_in_the_spool_goes_after_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in ("20260301T120000Z-r0.ab12.part", "20260302T115900Z-r0.cd34.part", "other.part", "20260101T120000Z-r7.db"):
        (tmp_path / name).touch()
    store = S3(Bucket("http://127.0.0.1:1", "b", "", Credentials("who", "s")), clock=lambda: datetime(2026, 3, 2, 12, 1, tzinfo=UTC))
    assert store.spool("n", "c") == tmp_path
    assert sorted(os.listdir(tmp_path)) == ["20260101T120000Z-r7.db", "20260302T115900Z-r0.cd34.part", "other.part"]
