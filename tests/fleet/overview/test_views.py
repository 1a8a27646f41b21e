"""How a fleet looks as text, lines, a picture that is drawn anew, and a page."""

from __future__ import annotations

import io
import json
import re
from datetime import timedelta
from html.parser import HTMLParser

import pytest
from fleet.overview.fleets import NEW, NOW, OLD, at_rest, cluster, condition, host_machine, in_a_rollout, plane
from rich.console import Console

from slipway.api.machinery.errors import OperatorError, UsageError
from slipway.fleet.overview.changes import changes
from slipway.fleet.overview.model import overview
from slipway.fleet.overview.objects import Objects
from slipway.fleet.overview.selection import hosts_of, of_cluster, seen
from slipway.fleet.overview.timeline import last_story, since, timeline
from slipway.fleet.overview.views import hosts as hosts_view
from slipway.fleet.overview.views import timeline as timeline_view
from slipway.fleet.overview.views.lines import JsonLines, PlainLines
from slipway.fleet.overview.views.live import LiveView
from slipway.fleet.overview.views.status import status
from slipway.fleet.overview.views.terminal import Terminal, terminal_of

PLAIN, NARROW, COLORED = Terminal(), Terminal(60), Terminal(100, colors=True)
ANSI = re.compile(r"\x1b\[[0-9;]*m")


class FakeTty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("out", "environment", "colors"),
    [
        (FakeTty(), {"TERM": "xterm"}, True),
        (FakeTty(), {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (FakeTty(), {"TERM": "xterm", "NO_COLOR": ""}, True),
        (FakeTty(), {"TERM": "dumb"}, False),
        (FakeTty(), {}, False),
        (io.StringIO(), {"TERM": "xterm"}, False),
    ],
)
def test_colours_are_for_terminals_that_want_them(out: io.StringIO, environment: dict[str, str], colors: bool) -> None:
    assert terminal_of(out, environment).colors is colors


def test_a_rollout_has_a_bar_what_is_done_and_what_is_left() -> None:
    text = status(overview(in_a_rollout(), NOW), PLAIN, NOW)
    # One of three in four minutes since ten minutes: eight more, less the four of one that is overdue.
    assert f"rollout  {OLD} → {NEW}  ████████░░░░░░░░░░░░░░░░  1/3, for 10m, about 4m left" in text
    assert re.search(rf"prod-cp-b +host-2 +reprovisioning +2m +{NEW}", text)
    assert re.search(rf"control plane +prod-cp +{NEW} \(from {OLD}\) +2/3 +2/3 +2/3", text)


def test_a_cluster_at_rest_is_a_few_lines() -> None:
    text = status(overview(at_rest(), NOW), PLAIN, NOW)
    assert text.startswith("fleet/prod  available  Provisioned · 192.0.2.10:6443\n")
    assert "pool: 6 hosts: 1 available, 5 allocated" in text
    assert text.endswith("6 hosts: 1 free, 5 node\n")
    assert len(text.splitlines()) == 7


def test_a_problem_is_told_with_what_to_do() -> None:
    miss = condition("ImageResolved", "False", "ImageCatalogMiss", "no key v9")
    text = status(
        overview(at_rest()._replace(baremetal_machines=[host_machine("prod-cp-0", "host-0", miss, phase="Failed")]), NOW), PLAIN, NOW
    )
    assert "! BaremetalMachine prod-cp-0: ImageResolved: ImageCatalogMiss, for 30m\n      no key v9\n" in text
    assert "→ Add the version to the ConfigMap elemental-image-catalog." in text


def test_nothing_has_colours_where_there_are_none_and_the_words_are_the_same() -> None:
    view = overview(in_a_rollout(), NOW)
    assert not ANSI.search(status(view, PLAIN, NOW))
    assert ANSI.sub("", status(view, COLORED, NOW)) == status(view, Terminal(100), NOW)


def test_no_line_of_a_table_is_wider_than_the_terminal() -> None:
    view = overview(in_a_rollout(), NOW)
    text = hosts_view.page(view.hosts, view, NARROW, NOW, "")
    assert max(map(len, text.splitlines())) <= 60
    assert "HOST" in text
    assert "IMAGE" not in text


def test_no_clusters_is_a_sentence_and_what_may_not_be_seen_is_named() -> None:
    view = overview(Objects(missing={"Machine": "you may not list machines"}), NOW)
    assert (
        status(view, PLAIN, NOW, "fleet")
        == "There are no clusters in the namespace fleet: -A looks in all of them.\n\nnot shown: you may not list machines\n"
    )


def test_kinds_of_hosts_that_nobody_uses_are_not_missed() -> None:
    missing = {"BaremetalMachine": "BaremetalMachine is not installed in this management cluster"}
    theirs = Objects(clusters=[cluster(infrastructure="DockerCluster")], control_planes=[plane()], missing=missing)
    assert "not shown" not in status(overview(theirs, NOW), PLAIN, NOW)
    ours = theirs._replace(clusters=[cluster()])
    assert "not shown: BaremetalMachine is not installed" in status(overview(ours, NOW), PLAIN, NOW)


def test_a_cluster_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(OperatorError, match='there is no Cluster "x" in any namespace: there are fleet/prod'):
        of_cluster(overview(at_rest(), NOW), "x", "")


def test_where_nothing_is_installed_it_is_no_management_cluster() -> None:
    missing = {kind: f"{kind} is not installed in this management cluster" for kind in ("Cluster", "MachineInventory")}
    with pytest.raises(OperatorError, match="this is no management cluster"):
        seen(overview(Objects(missing=missing), NOW))


@pytest.mark.parametrize(
    ("state", "expected"), [("available", ["host-5"]), ("free", ["host-5"]), ("Reprovisioning", ["host-2"]), ("failed", [])]
)
def test_hosts_are_found_by_state_or_stage(state: str, expected: list[str]) -> None:
    assert [host.name for host in hosts_of(overview(in_a_rollout(), NOW), state=state)] == expected


def test_a_state_that_is_none_is_told() -> None:
    with pytest.raises(UsageError, match='"lost" is no state of a host: use one of Available, Allocated'):
        hosts_of(overview(at_rest(), NOW), state="lost")


def test_a_pool_that_is_none_is_told() -> None:
    with pytest.raises(OperatorError, match='there is no pool "p": there are pool'):
        hosts_of(overview(at_rest(), NOW), pool="p")


def test_lines_tell_how_it_stands_and_then_what_changes() -> None:
    out = io.StringIO()
    view = PlainLines(out, PLAIN)
    before, after = overview(at_rest(), NOW), overview(in_a_rollout(), NOW)
    view.begin(before, NOW)
    view.show(after, changes(before, after, NOW), "", NOW)
    view.show(after, [], "connection refused", NOW)
    view.show(after, [], "connection refused", NOW)
    view.show(after, [], "", NOW)
    told = [text[10:] for text in out.getvalue().splitlines()[8:]]
    assert told[0] == f"prod: rollout {OLD} → {NEW}: 1 of 3 machines"
    assert told[1] == f"Machine prod-cp-a is the Node host-1 of Kubernetes {NEW}"
    assert told[-2:] == ["! connection refused: it is tried again", "the API server answers again"]


def test_json_is_all_there_is_and_then_a_change_a_line() -> None:
    out = io.StringIO()
    view = JsonLines(out)
    before, after = overview(at_rest(), NOW), overview(in_a_rollout(), NOW)
    view.begin(before, NOW)
    view.show(after, changes(before, after, NOW), "", NOW)
    view.show(after, [], "gone", NOW)
    told = [json.loads(each) for each in out.getvalue().splitlines()]
    assert (told[0]["event"], told[0]["overview"]["clusters"][0]["name"]) == ("overview", "prod")
    assert (told[1]["event"], told[1]["done"], told[1]["total"]) == ("rollout", 1, 3)
    assert (told[-1]["event"], told[-1]["text"]) == ("unreachable", "gone")


@pytest.mark.parametrize("size", [(100, 40), (60, 12), (200, 60)])
def test_the_picture_fits_the_terminal(size: tuple[int, int]) -> None:
    width, height = size
    out = io.StringIO()
    console = Console(file=out, width=width, height=height, force_terminal=True, color_system="standard")
    view = LiveView(Terminal(width, colors=True), console=console)
    before, after = overview(at_rest(), NOW), overview(in_a_rollout(), NOW)
    view.begin(before, NOW)
    view.show(after, changes(before, after, NOW), "", NOW)
    view.end()
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True)
    lines = console.render_lines(view.picture(after, "", NOW), pad=False)
    assert len(lines) < height
    assert max(sum(segment.cell_length for segment in each) for each in lines) <= width


def drawn(terminal: Terminal) -> str:
    rows = timeline(in_a_rollout(), NOW)
    begin = last_story(rows, NOW)
    return timeline_view.text(since(rows, begin), begin, NOW, terminal)


def test_lives_are_rows_of_letters_with_a_legend() -> None:
    lines = drawn(PLAIN).splitlines()
    assert [each.split()[0] for each in lines[1:7]] == [f"host-{number}" for number in range(6)]
    assert re.fullmatch(rf"host-1 +,+a+=+  {NEW}", lines[2])
    assert "= a Node of the newest version" in lines[-2]
    assert lines[-1].startswith("one letter is ")


def test_rows_of_letters_are_no_wider_than_the_terminal() -> None:
    assert max(len(each) for each in drawn(NARROW).splitlines()[:7]) <= 60


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.labels: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "svg" and found.get("role") == "img":
            self.labels.append(str(found["aria-label"]))
        self.links += [str(value) for name, value in attrs if name in ("src", "href")]


def test_the_page_has_a_lane_of_every_host_and_nothing_from_outside() -> None:
    rows = timeline(in_a_rollout(), NOW)
    begin = NOW - timedelta(hours=1)
    page = timeline_view.page(since(rows, begin), begin, NOW, "Hosts of <prod>")
    tags = _Tags()
    tags.feed(page)
    assert [label.partition(":")[0] for label in tags.labels] == [f"host-{number}" for number in range(6)]
    assert tags.links == []
    assert "<h1>Hosts of &lt;prod&gt;</h1>" in page
