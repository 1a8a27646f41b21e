"""What a soak draws from its seed, what it counts, and what it tells."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

import msgspec
import pytest

from slipway.api.machinery.errors import UsageError
from slipway.simulation.soak import operations
from slipway.simulation.soak.faults import FAULTS, KINDS, draws
from slipway.simulation.soak.judging.invariants import Broken
from slipway.simulation.soak.operations import Shape
from slipway.simulation.soak.options import VERSIONS, Options, parse
from slipway.simulation.soak.page import page
from slipway.simulation.soak.record import Event, Record, Sample, growth
from slipway.simulation.soak.report import FAULT_TEXTS, INVARIANT_TEXTS, Costs, Counts, lines, report


def test_the_same_seed_draws_the_same_faults_and_another_seed_others() -> None:
    first, again, other = (list(islice(draws(seed, 20), 200)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert {each.kind for each in first} == set(FAULTS)


def test_only_the_faults_that_were_asked_for_are_drawn() -> None:
    assert {each.kind for each in islice(draws(1, 20, ("power-cut", "api-away")), 50)} == {"power-cut", "api-away"}
    assert list(draws(1, 20, ("manager-killed",))) == []


def test_a_cluster_walks_up_minor_by_minor_and_comes_down_by_being_made_anew() -> None:
    chance, shape, seen = random.Random(1), Shape(), []
    for _ in range(300):
        chosen = operations.chosen(chance, shape)
        assert chosen.name != operations.UPGRADE or VERSIONS.index(chosen.after.version) == VERSIONS.index(shape.version) + 1
        assert chosen.name in (operations.UPGRADE, operations.REMAKE) or chosen.after.version == shape.version
        assert chosen.name != operations.REMAKE or chosen.after == Shape()
        assert chosen.name != operations.SCALE or chosen.after.workers != shape.workers
        shape = chosen.after
        seen.append((chosen.name, shape.version))
    assert {operations.MAKE, *(name for name, _ in seen)} == set(operations.MEANINGS)
    assert {version for _, version in seen} == set(VERSIONS)


def test_memory_is_compared_between_the_rests_of_the_manager_that_lived_last_without_its_warm_up() -> None:
    samples = [
        Sample(10, 100, 1, at_rest=True),
        Sample(20, 50, 2, at_rest=True),
        Sample(25, 500, 2),
        Sample(30, 80, 2, at_rest=True),
        Sample(40, 84, 2, at_rest=True),
    ]
    found = growth(samples)
    assert found is not None
    assert (found.first, found.last, found.seconds, found.rests) == (80, 84, 10, 2)
    assert found.share == pytest.approx(0.05)


def test_memory_is_not_judged_where_the_last_manager_had_a_single_rest() -> None:
    assert growth([Sample(10, 100, 1, at_rest=True), Sample(20, 50, 2, at_rest=True)]) is None


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--minutes", "0"], "--minutes must be more than 0"),
        (["--clusters", "0"], "--clusters must be 1 to"),
        (["--only", "earthquake"], '"earthquake" is no kind of fault'),
        (["--deadline", "1"], "--deadline must be 5 s to an hour"),
        (["--kills", "-1"], "--kills must not be negative"),
        (["--report", __file__], "must be a folder"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(words: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse(words, KINDS)


def test_managers_die_in_the_first_part_alone() -> None:
    options = Options(minutes=60, clusters=20)
    assert 0 < options.mortal < options.seconds == 3600
    assert options.hosts == 20 * 6 + options.standby


@pytest.mark.parametrize("deadline", [5, 90, 300, 3600])
def test_who_waits_for_a_deadline_is_not_taken_for_stalled(deadline: int) -> None:
    options = parse(["--deadline", str(deadline)], KINDS)
    assert min(options.stalled, options.stalled_at_rest) > deadline


def _recorded(*, violated: bool) -> tuple[Options, Record]:
    told: list[Event] = []
    clock = iter(float(number) for number in range(1000))
    record = Record(told.append, lambda: next(clock))
    record.operation("soak-01", "upgrade", "v1.33.13 → v1.34.10", 12.0)
    record.fault("power-cut", ("host-001",), "host-001 has no power")
    if violated:
        record.violation("claimed-once", Broken(("host-001",), "host-001 is claimed by <a>, b"))
        record.violation("claimed-once", Broken(("host-001",), "host-001 is claimed by <a>, b"))
    record.rested({"Machine": 5}, Sample(10, 90 << 20, 1, at_rest=True), well=not violated)
    record.rested({"Machine": 5}, Sample(20, 91 << 20, 1, at_rest=True), well=True)
    return Options(minutes=1, clusters=1, report=Path("nowhere")), record


@pytest.mark.parametrize("violated", [True, False])
def test_a_report_says_what_was_rolled_what_went_wrong_and_what_was_violated_when(violated: bool) -> None:
    options, record = _recorded(violated=violated)
    found = report(options, record, rounds=1, kills=0, costs=Costs(60.0, 3.0, 20.0), counts=Counts(100))
    assert found.ok is not violated
    assert [each.name for each in found.violations] == (["claimed-once"] if violated else [])
    assert found.faults["power-cut"].occurred == 1
    assert found.faults["power-cut"].ended_well == (0 if violated else 1)
    assert found.memory.share == pytest.approx(1 / 90, abs=0.0001)
    text = "\n".join(lines(found))
    assert "1 × upgrade" in text
    assert ("VIOLATED" in text) is violated
    shown = page(found)
    assert "<polyline" in shown
    assert ("claimed by &lt;a&gt;" in shown) is violated
    assert msgspec.json.decode(msgspec.json.encode(found))["ok"] is not violated


@pytest.mark.parametrize(("heads", "texts"), [("| fault |", FAULT_TEXTS), ("| invariant |", INVARIANT_TEXTS)])
def test_the_docs_have_every_fault_and_every_invariant(heads: str, texts: dict[str, str]) -> None:
    page = (Path(__file__).parents[3] / "docs/soak.md").read_text()
    table = page.partition(heads)[2].partition("\n\n")[0].splitlines()[2:]
    assert table == [f"| `{name}` | {text} |" for name, text in texts.items()]
