"""The agent has the image that its host is to have ahead, in no plan's way, and over kills and power cuts."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from agent.world import ANYWHERE, SIMULATED, Site, shell, unregistered
from support.waiting import eventually

from slipway.agent.loop import Agent
from slipway.agent.machine import Command, Finished, RealMachine
from slipway.api.elemental import names, staging
from slipway.api.elemental import plan as plans
from slipway.api.elemental.plan import Plan
from slipway.api.elemental.staging import Wanted
from slipway.host.real import RealHost
from slipway.simulation.agent import AgentMachine

pytestmark = pytest.mark.asyncio
VERSION = "v1.36.3"
IMAGE = f"registry.test/os:{VERSION}"
PLACE = staging.place(IMAGE)

# In place of Slipway's own program: writes a root file system, or waits until it is told to go on.
FETCH = """#!/bin/sh
shift 2
echo "$@" >> {here}/asked
for word in "$@"; do
    case $word in
        --into=*) into=${{word#--into=}} ;;
        --unless=$(cat {here}/digest)) echo '{{"digest":"x","same":true}}'; exit ;;
    esac
done
mkdir -p $into/usr/bin
if [ -e {here}/hold ]; then touch {here}/holding; exec sleep 60; fi
if [ -e {here}/away ]; then echo "error: the registry does not answer" >&2; exit 1; fi
printf '#!/bin/sh\\necho Kubernetes %s\\n' "$(cat {here}/version)" > $into/usr/bin/kubelet
chmod 755 $into/usr/bin/kubelet
printf '{{"digest":"%s","bytes":7}}\\n' "$(cat {here}/digest)"
"""


class Prepared(RealMachine):
    """A real machine whose Slipway is a script."""

    def __init__(self, root: Path) -> None:
        super().__init__(RealHost(str(root), {"PATH": os.environ["PATH"]}))
        program = root / "fetch.sh"
        program.write_text(FETCH.format(here=root))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        (root / "digest").write_text("sha256:1")
        (root / "version").write_text(VERSION)

    @property
    def slipway(self) -> tuple[str, ...]:
        return (self.host.location("/fetch.sh"),)


async def ask(site: Site, image: str = IMAGE, version: str = VERSION) -> None:
    await site.edit({}, {names.STAGE_IMAGE_ANNOTATION: staging.encode(Wanted(image, version)) if image else ""})


async def told(site: Site) -> dict[str, Any]:
    found = msgspec.json.decode((await site.data()).get(plans.HOST_FACTS) or b"{}")
    return found.get("staging") or {}


async def until(site: Site, state: str, image: str = IMAGE) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        found = await told(site)
        return found if (found.get("state"), found.get("image")) == (state, image) else None

    found: dict[str, Any] = await eventually(look, f"{image} to be {state}; the agent said {site.said}")
    return found


def simulated_registry(site: Site) -> None:
    assert isinstance(site.machine, AgentMachine)
    site.machine.host.machine.registry.push("os", VERSION, VERSION)


@pytest.fixture
def prepared(site: Site) -> Site:
    site.machine = Prepared(site.root)
    return site


@ANYWHERE
async def test_the_image_that_is_asked_for_is_fetched_and_told_of_and_dropped_when_nobody_wants_it(site: Site) -> None:
    if site.under:
        site.machine = Prepared(site.root)
    else:
        simulated_registry(site)
    checksum = await site.give(Plan(instructions=(shell("once", f"echo x >> {site.under}/ran"),)))
    async with site.agent():
        await site.settled("applied", checksum)
        await ask(site)
        found = await until(site, "Staged")
        assert found["version"] == VERSION
        assert site.machine.host.exists(f"{PLACE}/{staging.ROOT}/usr/bin/kubelet")
        await ask(site, "")
        await eventually(lambda: site.machine.host.list_dir(staging.FOLDER) == [], "the image to be dropped")
        await eventually(partial(_is_silent, site), "nothing to be told of it")
    # The plan is no part of it.
    assert (await site.state()).outcome == "applied"
    assert site.lines("ran") == ["x"]


async def _is_silent(site: Site) -> bool:
    return not await told(site)


async def test_a_plan_ends_a_fetch_at_once_and_the_fetch_begins_anew_after_it(prepared: Site) -> None:
    (prepared.root / "hold").touch()
    async with prepared.agent():
        await prepared.settled("applied")
        await ask(prepared)
        await eventually((prepared.root / "holding").exists, "the fetch to be under way")
        assert (await told(prepared))["state"] == "Fetching"
        (prepared.root / "hold").unlink()
        checksum = await prepared.give(Plan(instructions=(shell("look", f"ls {prepared.root}{PLACE}* > {prepared.root}/seen; true"),)))
        await prepared.settled("applied", checksum)
        await until(prepared, "Staged")
    assert len(prepared.lines("asked")) == 2


async def test_what_an_agent_that_was_killed_left_half_done_is_dropped_and_fetched_anew(prepared: Site) -> None:
    half = prepared.root / f"{PLACE.lstrip('/')}.partial/root"
    half.mkdir(parents=True)
    (half / "rest").touch()
    without_record = prepared.root / PLACE.lstrip("/")
    without_record.mkdir()
    await ask(prepared)
    async with prepared.agent():
        await until(prepared, "Staged")
    assert not half.exists()
    assert (without_record / staging.RECORD).exists()


async def test_an_image_that_was_fetched_is_there_for_the_next_agent_though_its_registry_is_away(prepared: Site) -> None:
    await ask(prepared)
    async with prepared.agent():
        await until(prepared, "Staged")
    (prepared.root / "away").touch()
    (prepared.root / "digest").write_text("sha256:2")
    await prepared.edit({plans.HOST_FACTS: ""})
    async with prepared.agent():
        assert (await until(prepared, "Staged"))["digest"] == "sha256:1"
        await eventually(lambda: len(prepared.lines("asked")) == 2, "the registry to be asked")


async def test_a_tag_that_names_another_image_now_is_fetched_anew(prepared: Site) -> None:
    await ask(prepared)
    async with prepared.agent():
        await until(prepared, "Staged")
    (prepared.root / "digest").write_text("sha256:2")

    async def is_new() -> bool:
        return (await told(prepared)).get("digest") == "sha256:2"

    async with prepared.agent():
        await eventually(is_new, "the new image")
        await eventually(lambda: prepared.machine.host.list_dir(staging.FOLDER) == [PLACE.rpartition("/")[2]], "the old one to go")


async def test_an_image_that_cannot_be_had_is_told_with_the_reason(prepared: Site) -> None:
    (prepared.root / "away").touch()
    await ask(prepared)
    async with prepared.agent():
        assert (await until(prepared, "Failed"))["message"] == "the registry does not answer"
        # Another one is not held up by it.
        (prepared.root / "away").unlink()
        await ask(prepared, "registry.test/os:other")
        await until(prepared, "Staged", "registry.test/os:other")


async def test_an_image_of_another_version_is_found_out_before_any_plan(prepared: Site) -> None:
    (prepared.root / "version").write_text("v1.33.1")
    await ask(prepared)
    async with prepared.agent():
        found = await until(prepared, "Failed")
    assert found["message"] == f"its kubelet is v1.33.1, and {VERSION} is wanted: mend the entry {VERSION} of the image catalog"
    assert not prepared.machine.host.exists(PLACE)


class KilledError(BaseException):
    """Ends the agent at once, as SIGKILL does: nothing of it catches this for good."""


class _Mortal(Prepared):
    """Dies at the n-th thing that a fetch asks of it."""

    def __init__(self, root: Path, at: int) -> None:
        super().__init__(root)
        self._left = at

    def _act(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise KilledError

    def execute(self, command: Command, *, stop: Callable[[], bool]) -> Finished:
        if "staging" in command.folder:
            self._act()
        return super().execute(command, stop=stop)

    def keep(self, path: str, content: bytes) -> None:
        if staging.FOLDER in path:
            self._act()
        super().keep(path, content)

    def flush(self) -> None:
        self._act()


def _until_killed(agent: Agent) -> None:
    with suppress(KilledError):
        agent.run()


async def test_wherever_an_agent_dies_in_a_fetch_the_next_one_has_the_image_whole(prepared: Site) -> None:
    await ask(prepared)
    for at in range(5):
        agent = Agent(_Mortal(prepared.root, at), register=unregistered, log=prepared.said.append)
        thread = threading.Thread(target=_until_killed, args=(agent,), daemon=True)
        thread.start()
        await eventually(partial(_is_dead, thread), f"death {at}")
        await prepared.edit({plans.HOST_FACTS: ""})
        async with prepared.agent():
            await until(prepared, "Staged")
        assert (prepared.root / PLACE.lstrip("/") / "root/usr/bin/kubelet").exists()
        await _drop(prepared)


def _is_dead(thread: threading.Thread) -> bool:
    return not thread.is_alive()


async def _drop(site: Site) -> None:
    await ask(site, "")
    async with site.agent():
        await eventually(lambda: site.machine.host.list_dir(staging.FOLDER) == [], "the image to be dropped")
    await site.edit({plans.HOST_FACTS: ""})
    await ask(site)


@pytest.mark.parametrize("site", [SIMULATED], indirect=True)
async def test_a_simulated_host_without_room_says_so(site: Site) -> None:
    simulated_registry(site)
    assert isinstance(site.machine, AgentMachine)
    machine = site.machine.host.machine
    machine.hardware = machine.hardware._replace(disk=4 << 30)
    await ask(site)
    async with site.agent():
        assert "no room" in (await until(site, "Failed"))["message"]
