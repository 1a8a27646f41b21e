"""The manager's web page in a real Chromium, with 10,000 hosts: it loads, lives, scrolls, and serves keyboards, readers and telephones.

Photographs of it go into the folder that SLIPWAY_PHOTOGRAPHS names, for people to look at.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tarfile
import time
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from dashboard import fleets
from dashboard.site import Site, serving
from e2e import browser
from e2e.browser import Browser, Page
from support.waiting import eventually

from slipway.api.cluster.infrastructure import names
from slipway.api.cluster.kinds import MACHINE_INVENTORY
from slipway.fleet.overview.objects import KINDS
from slipway.kube.aio import PatchType
from slipway.lab.programs.cache import cache_root

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(os.environ.get("SLIPWAY_E2E") != "1", reason="runs a real browser: run it with `make e2e`"),
    pytest.mark.skipif(browser.PROGRAM is None, reason="there is no Chromium: install Debian's package chromium"),
]
HOSTS = 10_000
AXE = "4.14.0"
VIEWS = ("/", "/?view=hosts", "/?view=machines", "/?view=problems", "/?view=cluster&namespace=team-a&name=red")
HOST = "/?view=hosts&open=host/team-a/host-0"
# Rules of a page for people; the page is no site, so it has no landmarks but its own.
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
MARKUP = "<img src=x onerror=alert(1)> the disk is full"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site() -> AsyncIterator[Site]:
    async with serving() as made:
        wrong = fleets.condition(names.PLAN_APPLIED_CONDITION, "False", names.PLAN_FAILED_REASON, MARKUP)
        await made.create(fleets.cluster("team-a", "red"), fleets.pool("team-a", "reds", "red", ["host-0", "host-1", "host-2", "host-3"]))
        for number in range(4):
            await made.create(
                *fleets.machine("team-a", f"red-{number}", "red", f"host-{number}", problem=wrong if number == 3 else None),
                fleets.host("team-a", f"host-{number}", pool="reds", cluster="red", machine=f"red-{number}", state="Allocated"),
            )
        # Ten thousand requests would take a minute: these are put where the requests would have put them.
        resource = f"{MACHINE_INVENTORY.plural}.{MACHINE_INVENTORY.group}"
        for number in range(4, HOSTS):
            host = fleets.host("team-b", f"host-{number}", pool="spare", state="Available")
            host["metadata"]["uid"] = f"uid-{number}"
            made.server.core.store.put(resource, host, 0)
        token = await made.allow("anna", *KINDS.values())

        async def all_there() -> bool:
            return len(await made.rows(token)) > HOSTS

        await eventually(all_there, "all hosts are seen", 120)
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    async with browser.chromium(tmp_path_factory.mktemp("chromium")) as started:
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def page(chromium: Browser, site: Site) -> AsyncIterator[Page]:
    """A page of somebody who has signed in, against which nothing is said in the end."""
    opened = await chromium.page()
    await opened.colours("light")
    await opened.open(f"{site.url}/#token=token-of-anna")
    await shown(opened)
    yield opened
    assert opened.complaints == []


async def shown(page: Page) -> None:
    """Everything has come once."""
    await page.until("document.querySelector('main[aria-busy=false] .view')", 60)


async def visit(page: Page, site: Site, path: str) -> None:
    await page.open(site.url + path)
    await shown(page)
    await page.until("document.querySelector('.tile strong, .row[aria-rowindex=\"2\"], .problem, .title .badge')", 60)


async def photograph(page: Page, name: str) -> None:
    folder = os.environ.get("SLIPWAY_PHOTOGRAPHS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        await page.photograph(Path(folder) / f"{name}.png")


async def text(page: Page, selector: str) -> str:
    return str(await page.evaluate(f"document.querySelector({selector!r})?.innerText ?? ''"))


async def test_a_wrong_token_gets_a_sentence_and_a_right_one_the_fleet(chromium: Browser, site: Site) -> None:
    page = await chromium.page()
    await page.open(site.url)
    await page.until("document.activeElement?.id === 'token'")
    await photograph(page, "sign-in")
    await page.type("wrong")
    await page.press("Enter")
    await page.until("document.querySelector('[role=alert]')?.innerText.includes('does not take this token')")
    await page.type("token-of-anna")
    await page.press("Enter")
    await shown(page)
    await page.until("document.querySelector('.tile.hosts strong')?.innerText === '10,000'", 60)
    # The browser itself tells of every answer that is not a success.
    assert [each for each in page.complaints if "401" not in each] == []
    assert await page.evaluate("document.cookie === '' && localStorage.length === 0")


async def test_the_token_of_a_link_does_not_stay_in_the_address(page: Page) -> None:
    assert "token" not in await page.evaluate("location.href")


async def test_a_change_is_seen_while_it_happens(page: Page, site: Site) -> None:
    await visit(page, site, "/?view=hosts&q=host-9")
    row = "[...document.querySelectorAll('.rows .row')].find((row) => row.innerText.startsWith('host-9\\n'))"
    await page.until(f"{row}?.innerText.includes('free')", 60)
    change = {"metadata": {"annotations": {names.ALLOCATION_STATE_ANNOTATION: "Unavailable"}}}
    await site.client.patch(MACHINE_INVENTORY, "host-9", "team-b", change, type=PatchType.MERGE)
    await page.until(f"{row}?.innerText.includes('unavailable')")
    change["metadata"]["annotations"][names.ALLOCATION_STATE_ANNOTATION] = "Available"
    await site.client.patch(MACHINE_INVENTORY, "host-9", "team-b", change, type=PatchType.MERGE)
    await page.until(f"{row}?.innerText.includes('free')")


async def test_filters_are_in_the_address_and_the_address_filters(page: Page, site: Site) -> None:
    await visit(page, site, "/?view=hosts&cluster=red")
    await page.until("document.querySelector('.title [role=status]').innerText === '4 of 10,000 hosts'", 60)
    await page.evaluate("document.querySelector('#q').focus()")
    await page.type("host-2")
    await page.until("document.querySelector('.title [role=status]').innerText === '1 of 10,000 hosts'")
    assert await page.evaluate("new URLSearchParams(location.search).get('q')") == "host-2"


async def test_of_ten_thousand_rows_those_on_the_screen_are_drawn_and_scrolling_does_not_freeze(page: Page, site: Site) -> None:
    await visit(page, site, "/?view=hosts")
    await page.until("document.querySelector('.title [role=status]').innerText === '10,000 hosts'", 60)
    worked = await page.worked([f"({_SCROLL})({step} / {_FRAMES})" for step in range(_FRAMES + 1)])
    # A frame in which the page works for longer than this is one that people see.
    assert max(worked) < 0.1, worked
    assert await page.evaluate("document.querySelectorAll('.rows .row').length") < 100
    assert await page.evaluate("document.querySelector('.table').getAttribute('aria-rowcount')") == "10001"
    await page.until("document.querySelector('.rows').innerText.includes('host-9999')")


_FRAMES = 60
# Scroll to a part of the whole height, and let the browser draw that.
_SCROLL = """(part) => {
  scrollTo(0, (document.documentElement.scrollHeight - innerHeight) * part);
  return new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(true))));
}"""


async def test_ten_thousand_hosts_begin_to_come_at_once_and_are_small(site: Site) -> None:
    took = []
    headers = {"Authorization": "Bearer token-of-anna", "Accept-Encoding": "gzip"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False), auto_decompress=False) as session:
        for _ in range(3):
            began, sent, told, reading = time.monotonic(), 0, b"", zlib.decompressobj(31)
            async with session.get(f"{site.url}/api/stream", headers=headers) as answer:
                async for chunk in answer.content.iter_any():
                    sent, before = sent + len(chunk), told
                    told += reading.decompress(chunk)
                    if b"event: rows" in told and b"event: rows" not in before:
                        took.append(time.monotonic() - began)
                    if b"event: seen" in told:
                        break
            assert sent < 400_000
            assert len(told) < 4_000_000
    assert min(took) < 0.5, took


async def test_all_of_it_can_be_done_with_a_keyboard(page: Page, site: Site) -> None:
    await visit(page, site, "/?view=hosts")
    await page.until("document.querySelectorAll('.rows .row').length > 10", 60)
    await page.evaluate("document.querySelector('#q').focus()")
    for _ in range(30):
        await page.press("Tab")
        if await page.evaluate("document.activeElement.matches('.rows .row')"):
            break
    for key in ("ArrowDown", "ArrowDown", "ArrowUp"):
        await page.press(key)
    assert await page.evaluate("document.activeElement.getAttribute('aria-rowindex')") == "3"
    await page.press("Enter")
    await page.until("document.activeElement.id === 'detail-title' && document.activeElement.innerText === 'host-1'")
    await page.press("Escape")
    await page.until("document.activeElement.getAttribute('aria-rowindex') === '3'")
    assert "open" not in await page.evaluate("location.search")
    await page.press("End")
    await page.until("document.activeElement.innerText.startsWith('host-9999')")


async def test_what_is_red_has_its_explanation_beside_it_and_no_message_becomes_markup(page: Page, site: Site) -> None:
    await visit(page, site, "/?view=problems")
    assert MARKUP in await text(page, ".problem.lasting .message")
    assert "What to do" in await text(page, ".problem.lasting .to-do")
    await page.evaluate("document.querySelector('.problem.lasting summary').click()")
    await page.until("document.querySelector('.explanation .chain')")
    assert "host-3" in await text(page, ".explanation")
    assert await page.evaluate("document.querySelectorAll('main img').length") == 0


async def test_a_cluster_has_its_timeline(page: Page, site: Site) -> None:
    await visit(page, site, VIEWS[-1])
    await page.until("document.querySelectorAll('.lives li').length === 4")
    label = await page.evaluate("document.querySelector('.lives svg').getAttribute('aria-label')")
    assert label.startswith("host-0: ")
    assert "a Node v1.35.4" in label


async def test_colours_follow_the_system_until_somebody_chooses(page: Page, site: Site) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    light = await page.evaluate(background)
    await page.colours("dark")
    dark = await page.evaluate(background)
    assert dark != light
    await page.evaluate("document.querySelector('#theme').click()")
    assert await page.evaluate(background) == light
    await visit(page, site, "/?view=hosts")
    assert await page.evaluate(background) == light
    await page.evaluate("document.querySelector('#theme').click()")
    assert await page.evaluate(background) == dark


@pytest.mark.parametrize("path", [*VIEWS, HOST])
async def test_on_a_telephone_nothing_is_wider_than_the_screen(page: Page, site: Site, path: str) -> None:
    await page.size(390, 844, mobile=True)
    await visit(page, site, path)
    assert await page.evaluate("document.documentElement.scrollWidth") == 390


async def test_photographs(page: Page, site: Site) -> None:
    if not os.environ.get("SLIPWAY_PHOTOGRAPHS"):
        pytest.skip("nobody asked for photographs: SLIPWAY_PHOTOGRAPHS names the folder for them")
    for scheme in ("light", "dark"):
        await page.colours(scheme)
        for device, width, height in (("desk", 1360, 900), ("phone", 390, 844)):
            await page.size(width, height, mobile=device == "phone")
            for name, path in zip(("fleet", "hosts", "machines", "problems", "cluster", "host"), (*VIEWS, HOST), strict=True):
                await visit(page, site, path)
                await asyncio.sleep(0.7)
                await photograph(page, f"{name}-{device}-{scheme}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_no_rule_of_axe_is_broken(chromium: Browser, site: Site, scheme: str) -> None:
    rules = axe()
    page = await chromium.page()
    # What judges the page is no part of it, and may do what the page may not.
    await page.call("Page.setBypassCSP", enabled=True)
    await page.colours(scheme)
    await page.open(f"{site.url}/#token=token-of-anna")
    await shown(page)
    found: dict[str, Any] = {}
    for width in (1360, 390):
        await page.size(width, 900)
        for path in (*VIEWS, HOST):
            await visit(page, site, path)
            await page.evaluate(rules)
            options = {"runOnly": {"type": "tag", "values": TAGS}, "resultTypes": ["violations"]}
            broken = await page.evaluate(
                f"axe.run(document, {options}).then((r) => r.violations.map((v) => [v.id, v.help, v.nodes.slice(0, 3).map((n) => n.html)]))"
            )
            if broken:
                found[f"{width} {path}"] = broken
    assert found == {}


def axe() -> str:
    """axe-core's rules, fetched once."""
    kept = cache_root() / "npm" / f"axe-core-{AXE}.js"
    if not kept.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("there is no npm to fetch axe-core with")
        kept.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [npm, "pack", f"axe-core@{AXE}", "--pack-destination", str(kept.parent)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"axe-core cannot be fetched: {done.stderr.strip().splitlines()[-1:]}")
        with tarfile.open(kept.parent / f"axe-core-{AXE}.tgz") as archive:
            member = archive.extractfile("package/axe.min.js")
            assert member is not None
            kept.write_bytes(member.read())
    return kept.read_text()
