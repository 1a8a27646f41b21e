"""Plans from the Secret to the host and back, by the production agent against an API server."""

from __future__ import annotations

import os

import pytest
from agent.world import ANYWHERE, Site, shell
from support.waiting import eventually

from slipway.agent import paths
from slipway.agent.plan.journal import Journal
from slipway.api.elemental import plan as plans
from slipway.api.elemental.plan import Instruction, Plan, PlanFile

pytestmark = pytest.mark.asyncio

UID, GID = os.getuid(), os.getgid()


@ANYWHERE
async def test_an_agent_applies_the_empty_plan_of_a_new_host(site: Site) -> None:
    async with site.agent():
        state = await site.settled("applied")
    # The checksum that elemental-operator waits for before a host is Ready.
    assert state.plan_checksum.startswith("44136fa3")


@ANYWHERE
async def test_files_are_written_before_the_first_instruction(site: Site) -> None:
    file = PlanFile("/etc/app/conf", b"42", "0600", UID, GID)
    await site.give(Plan(files=(file,), instructions=(shell("read", f"cat {site.under}/etc/app/conf"),)))
    async with site.agent():
        state = await site.settled("applied")
    assert state.output == {"read": "42"}


@ANYWHERE
async def test_what_a_plan_said_is_reported_of_both_streams(site: Site) -> None:
    await site.give(Plan(instructions=(shell("both", "echo out; echo err >&2"), shell("unsaved", "echo no", save_output=False))))
    async with site.agent():
        state = await site.settled("applied")
    assert state.output == {"both": "out\nerr\n"}


@ANYWHERE
async def test_an_instruction_knows_its_folder_and_its_attempt(site: Site) -> None:
    script = 'echo "$CATTLE_AGENT_ATTEMPT_NUMBER $MORE"; test "$PWD" = "$CATTLE_AGENT_EXECUTION_PWD"'
    await site.give(Plan(instructions=(shell("env", script, env=("MORE=a=b",)),)))
    async with site.agent():
        state = await site.settled("applied")
    assert state.output == {"env": "1 a=b\n"}


@ANYWHERE
async def test_without_a_command_it_is_run_sh_of_the_image_folder(site: Site) -> None:
    site.machine.host.write("/opt/tools/run.sh", b"#!/bin/sh\necho from the image\n", 0o755)
    await site.give(Plan(instructions=(Instruction("tool", image="dir:/opt/tools"),)))
    async with site.agent():
        state = await site.settled("applied")
    assert state.output == {"tool": "from the image\n"}


@ANYWHERE
async def test_a_failure_stops_the_plan_and_says_why(site: Site) -> None:
    bad = shell("bad", "echo a reason >&2; exit 18", save_output=False)
    await site.give(Plan(instructions=(bad, shell("never", f"touch {site.under}/never"))))
    async with site.agent():
        state = await site.settled("failed")
    assert state.output["plan"] == 'the instruction "bad" failed: it ended with exit code 18 after it said: a reason'
    assert state.output["bad"] == "a reason\n"
    assert not site.machine.host.exists("/never")


@ANYWHERE
async def test_a_plan_that_failed_is_tried_again_until_it_may_no_more(site: Site) -> None:
    """The pause is passed by setting the journal's clock back."""
    await site.give(Plan(instructions=(shell("bad", f"echo $CATTLE_AGENT_ATTEMPT_NUMBER >> {site.under}/log; exit 1"),)), max_failures=2)
    async with site.agent():
        await eventually(lambda: site.journal().reported and site.journal().failures == 1, "the first failure")
    assert (await site.state()).outcome == "in-progress"
    journal = site.journal()
    site.keep_journal(Journal(checksum=journal.checksum, state="failed", attempt=1, failures=1, reported=True, finished=1.0))
    async with site.agent():
        state = await site.settled("failed")
    assert state.failures == 2
    assert site.lines("log") == ["1", "2"]


async def test_a_success_after_a_failure_blanks_the_failure(site: Site) -> None:
    await site.give(Plan(instructions=(shell("bad", "exit 1"),)))
    async with site.agent():
        await site.settled("failed")
        await site.give(Plan(instructions=(shell("good", "true"),)))
        await site.settled("applied")
    data = await site.data()
    assert (data[plans.FAILED_CHECKSUM], data[plans.FAILED_OUTPUT], data[plans.FAILURE_COUNT]) == (b"", b"", b"0")


async def test_a_failure_takes_away_the_checksum_that_would_hide_it(site: Site) -> None:
    """elemental-operator takes any applied-checksum for the success of the current plan, and does not blank it itself."""
    async with site.agent():
        await site.settled("applied")
        await site.give_as_elemental(Plan(instructions=(shell("bad", "exit 1"),)), max_failures="1")
        await site.settled("failed")
    assert (await site.data())[plans.APPLIED_CHECKSUM] == b""


async def test_a_secret_without_a_state_gets_none(site: Site) -> None:
    await site.give_as_elemental(Plan(instructions=(shell("good", "true"),)))
    async with site.agent():
        await site.settled("applied")
    assert plans.PLAN_STATE not in await site.data()


async def test_a_plan_is_not_run_again_when_the_agent_starts(site: Site) -> None:
    await site.give_as_elemental(Plan(instructions=(shell("count", f"echo x >> {site.under}/log"),)))
    for _ in range(3):
        async with site.agent():
            await site.settled("applied")
            await eventually(lambda: "the plan is applied" in site.said)
    assert site.lines("log") == ["x"]


@ANYWHERE
async def test_a_plan_is_not_run_again_when_the_secret_forgot_that_it_was(site: Site) -> None:
    """As after a reboot before the outcome was stored, or after a restore of the management cluster."""
    plan = Plan(instructions=(shell("count", f"echo x >> {site.under}/log"),))
    await site.give(plan)
    async with site.agent():
        await site.settled("applied")
        await site.give(plan)
        await site.settled("applied")
    assert site.lines("log") == ["x"]


@ANYWHERE
async def test_the_same_plan_runs_again_after_another_one(site: Site) -> None:
    """A host is cleaned by the same bytes each time."""
    clean = Plan(instructions=(shell("count", f"echo x >> {site.under}/log"),))
    async with site.agent():
        for plan in (clean, Plan(instructions=(shell("other", "true"),)), clean):
            await site.settled("applied", await site.give(plan))
    assert site.lines("log") == ["x", "x"]


async def test_progress_is_told_while_an_instruction_runs(site: Site) -> None:
    gate = site.root / "gate"
    await site.give(Plan(instructions=(shell("wait", f"while ! test -e {gate}; do sleep 0.02; done"), shell("last", "true"))))
    async with site.agent():
        told = await eventually(site.progress, "progress")
        assert (told["instruction"], told["index"], told["of"]) == ("wait", 1, 2)
        assert (await site.state()).plan_state == "in-progress"
        gate.touch()
        await site.settled("applied")
    assert (await site.data())["slipway-progress"] == b""


async def test_a_canceled_plan_ends_with_its_instruction_and_stays_canceled(site: Site) -> None:
    checksum = await site.give(Plan(instructions=(shell("long", f"touch {site.root}/begun; sleep 60"), shell("never", "true"))))
    async with site.agent():
        await eventually(lambda: (site.root / "begun").exists())
        await site.edit({}, {"plan.cattle.io/canceled": "true"})
        state = await site.settled("failed", checksum)
        assert state.plan_state == "canceled"
        await site.edit({}, {"plan.cattle.io/canceled": "false"})
        await eventually(lambda: any("a new one is needed" in line for line in site.said))
    assert site.journal().completed == 0


async def test_a_paused_plan_begins_once_it_may(site: Site) -> None:
    await site.edit({}, {"plan.cattle.io/paused": "true"})
    checksum = await site.give(Plan(instructions=(shell("x", "true"),)))
    async with site.agent():
        await eventually(lambda: any("held by the annotation" in line for line in site.said))
        assert (await site.state()).outcome == "pending"
        await site.edit({}, {"plan.cattle.io/paused": "false"})
        await site.settled("applied", checksum)


async def test_output_is_kept_as_far_as_there_is_room(site: Site) -> None:
    await site.give(Plan(instructions=tuple(shell(f"loud-{n}", "head -c 300000 /dev/urandom; echo; echo the end") for n in range(8))))
    async with site.agent():
        await site.settled("applied")
    data = await site.data()
    assert sum(map(len, data.values())) < 512 << 10
    assert all(text for text in plans.unpack_output(data[plans.APPLIED_OUTPUT]).values())


BAD: dict[str, tuple[bytes, str]] = {
    "no JSON": (b'{"instructions": [', "the plan is not JSON"),
    "a list": (b"[]", "is to be a JSON object, and is a list"),
    "no text": (b"\xff\xfe", "the plan is not JSON"),
    "a file outside": (plans.encode(Plan(files=(PlanFile("/etc/../proc/x", b""),))), "is refused"),
    "an image": (plans.encode(Plan(instructions=(Instruction("pull", image="registry.example/tool:1"),))), "agents pull no images"),
    "no such program": (plans.encode(Plan(instructions=(Instruction("x", "no-such-program"),))), '"no-such-program" is not on this host'),
    "a program that is none": (plans.encode(Plan(instructions=(Instruction("x", "/etc"),))), "may not be run"),
    "a NUL in an argument": (plans.encode(Plan(instructions=(Instruction("x", "echo", ("a\0b",)),))), "cannot be run"),
}


@pytest.mark.parametrize("case", BAD)
async def test_a_bad_plan_fails_with_a_sentence_and_the_next_one_runs(site: Site, case: str) -> None:
    raw, why = BAD[case]
    async with site.agent():
        state = await site.settled("failed", await site.give(raw))
        assert why in state.output["plan"]
        await site.settled("applied", await site.give(Plan(instructions=(shell("good", "true"),))))


@ANYWHERE
async def test_nothing_of_a_plan_is_done_where_a_part_of_it_is_refused(site: Site) -> None:
    await site.give(Plan(files=(PlanFile("/etc/good", b"", "0600", UID, GID), PlanFile("relative", b""))))
    async with site.agent():
        await site.settled("failed")
    assert not site.machine.host.exists("/etc/good")


@ANYWHERE
async def test_a_journal_that_cannot_be_read_is_put_aside(site: Site) -> None:
    site.machine.keep(paths.JOURNAL, b"{")
    async with site.agent():
        await site.settled("applied")
    assert site.machine.host.exists(f"{paths.JOURNAL}.unreadable")


async def test_an_outcome_that_finds_no_room_is_told_without_what_was_said(site: Site) -> None:
    """A Secret has 1 MiB, and its writer may have filled it."""
    loud = shell("loud", "head -c 60000 /dev/urandom | od -An -c")
    await site.give(Plan(instructions=(loud,)))
    await site.edit(plans.wire({"filling": b"x" * (1024 * 1024 - 2500)}))
    async with site.agent():
        state = await site.settled("applied")
    assert state.output == {}
    assert any("is left out" in line for line in site.said)
