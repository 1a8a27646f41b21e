"""How a run is shown, from the events of a real one with a version that the catalog lacked: lines, JSON, a terminal, and a page."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from slipway.demo.board import Board
from slipway.demo.events import Check, Event
from slipway.demo.options import Options
from slipway.demo.record import Progress
from slipway.demo.report import page
from slipway.demo.views.jsonlines import JsonLines
from slipway.demo.views.live import LiveView
from slipway.demo.views.plain import PlainLines

RECORDED = [
    msgspec.json.decode(line, type=Event) for line in Path(__file__).with_name("recorded.jsonl").read_bytes().splitlines() if line.strip()
]
OPTIONS = Options(control_planes=3, workers=1, hosts=5, fault="catalog-miss")


def test_the_first_lines_say_where_the_web_page_is() -> None:
    out = io.StringIO()
    PlainLines(out).show(Event("dashboard", text="https://127.0.0.1:9444/#token=abc"))
    assert out.getvalue().startswith("The dashboard is at https://127.0.0.1:9444/#token=abc\n")


def test_json_is_one_event_a_line_and_the_last_one_is_the_verification() -> None:
    out = io.StringIO()
    view = JsonLines(out)
    for event in RECORDED:
        view.show(event)
    lines = out.getvalue().splitlines()
    assert len(lines) == len(RECORDED)
    last = msgspec.json.decode(lines[-1])
    assert (last["event"], last["ok"]) == ("verified", True)
    assert {frozenset(check) for check in last["checks"]} == {frozenset(("name", "ok", "seen"))}


def test_lines_tell_the_patches_and_the_fault_and_leave_out_what_is_on_its_way() -> None:
    text = plain(RECORDED)
    assert """$ kubectl -n cpaas-system patch machinedeployment demo-workers --type=merge -p '{"spec": {"template":""" in text
    assert "ImageResolved: ImageCatalogMiss" in text
    assert "→ Add the version to the ConfigMap elemental-image-catalog." in text
    assert "BootstrapWaiting" not in text
    assert "  ok   every BaremetalMachine is Running" in text


def test_an_event_is_one_line_whatever_a_host_printed() -> None:
    text = plain([Event("condition", kind="BaremetalMachine", name="m", reason="PlanFailed", text="a\n\nb", lasting=True)])
    assert text.count("\n") == 1
    assert "a · b" in text


def test_a_check_that_does_not_hold_is_shown() -> None:
    text = plain([Event("verified", ok=False, checks=(Check("all is well", False, "it is not"),))])
    assert "not every check holds" in text
    assert "  NOT  all is well  it is not" in text


def test_what_stays_up_says_in_the_end_what_can_be_typed() -> None:
    kept = Event("kept", command="export KUBECONFIG=/x", text="export KUBECONFIG=/x\nslipway fleet status")
    text = plain([Event("report", text="/r.html"), kept, Event("verified", ok=True, checks=(Check("all is well", True, "it is"),))])
    assert text.startswith("export KUBECONFIG=/x\n")
    assert text.endswith("until Ctrl-C. In another terminal:\n  export KUBECONFIG=/x\n  slipway fleet status\n")


def plain(told: list[Event]) -> str:
    out = io.StringIO()
    view = PlainLines(out)
    for event in told:
        view.show(event)
    return out.getvalue()


def test_progress_ends_at_all_of_it() -> None:
    progress = Progress(OPTIONS)
    for event in RECORDED[:-1]:
        progress.count(event)
    # 5 hosts, 4 nodes made, and the same replaced; with a fault the count may be off, and the end is the end.
    assert progress.total == 13
    assert 0 < progress.done <= 13
    progress.count(RECORDED[-1])
    assert progress.done == 13


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_terminal_of_any_width_shows_every_host(width: int) -> None:
    shown = on_terminal(width)
    assert max(len(line) for line in shown.splitlines()) <= width
    for number in range(1, 6):
        assert f"host-{number}" in shown


def test_a_terminal_shows_the_stages_the_checks_and_the_progress() -> None:
    shown = on_terminal(120)
    assert re.search(r"host-1 +node +v1\.35\.4 +\d+ s +reprovision", shown)
    assert re.search(r"host-5 +registered", shown)
    assert "13/13" in shown
    assert "Verification" in shown


def test_no_color_is_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", on_terminal(100, raw=True))
    monkeypatch.delenv("NO_COLOR")
    assert re.search(r"\x1b\[[0-9;]*3[0-7]m", on_terminal(100, raw=True))


def on_terminal(width: int, *, raw: bool = False) -> str:
    """The last picture, and what follows it."""
    out = io.StringIO()
    view = LiveView(OPTIONS, Console(file=out, force_terminal=True, color_system="standard", width=width, height=40, highlight=False))
    for event in RECORDED:
        view.show(event)
    out.truncate(0)
    view.end()
    text = out.getvalue().replace("\x00", "")
    return text if raw else re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "\n")


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_the_report_has_a_picture_of_every_host_and_nothing_from_outside() -> None:
    text = page(OPTIONS, RECORDED)
    found = _Page()
    found.feed(text)
    pictures = [attributes for tag, attributes in found.tags if tag == "svg" and attributes.get("role") == "img"]
    assert [str(each["aria-label"]).partition(":")[0] for each in pictures] == [f"host-{number}" for number in range(1, 6)]
    assert not [tag for tag, attributes in found.tags if {"src", "href"} & set(attributes) or tag in ("script", "link", "img")]
    assert "url(" not in text
    assert "@import" not in text
    assert "prefers-color-scheme:dark" in text
    assert 'name="viewport"' in text
    assert "What went wrong" in text


def test_a_picture_covers_the_life_of_its_host_without_gaps() -> None:
    for host in Board(RECORDED).hosts:
        for before, after in zip(host.spans, host.spans[1:], strict=False):
            assert before.end == after.begin


def test_what_hosts_say_is_no_markup() -> None:
    text = page(OPTIONS, [*RECORDED, Event("host", host="<script>", stage="node", text="<b>")])
    assert "<script>" not in text
    assert "<b>" not in text


def test_the_page_of_a_run_that_was_not_verified_says_so() -> None:
    assert "It was not verified." in page(OPTIONS, RECORDED[:5])
