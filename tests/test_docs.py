"""What the docs say of the program's rooms is so, their links lead somewhere, and their commands are the program's."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from slipway.cli.argv.parser import Invocation, check_arguments, find, parse
from slipway.cli.trees.root import build

ROOT = Path(__file__).parent.parent
ROOMS = "cli|lab|node|fleet|agent|workload|embedded|runtime|host|kube|credentials|api"
MENTIONED = sorted(set(re.findall(rf"`((?:{ROOMS})\.[a-z0-9_.]+)`", (ROOT / "docs/architecture.md").read_text())))


@pytest.mark.parametrize("module", MENTIONED)
def test_the_modules_that_the_architecture_names_are_there(module: str) -> None:
    place = ROOT.joinpath("src", "slipway", *module.split("."))
    assert place.with_suffix(".py").exists() or place.is_dir()


def _commands(block: str) -> Iterator[str]:
    """The program's own, each alone; what is left open by three dots is not one yet."""
    for line in block.replace("\\\n", " ").splitlines():
        for part in re.split(r"\s&&\s|;\s|\s>\s|\s#", line):
            if part.startswith("slipway ") and "…" not in part:
                yield part.strip()


PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
LINKS = [(page, link) for page in PAGES for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()) if "://" not in link]
BLOCKS = re.compile(r"^```(?:bash)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = sorted({line for page in PAGES for block in BLOCKS.findall(page.read_text()) for line in _commands(block)})


@pytest.mark.parametrize(("page", "link"), LINKS, ids=[f"{page.stem} {link}" for page, link in LINKS])
def test_a_link_leads_somewhere(page: Path, link: str) -> None:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    assert target.exists()
    headings = {
        re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
    }
    assert not anchor or anchor in headings


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_is_one_that_the_program_takes(line: str) -> None:
    words = shlex.split(line)
    command, rest = find(build("slipway"), words[1:])
    invocation = Invocation("slipway", command)
    parse(invocation, rest)
    check_arguments(invocation)
    assert command.run or not rest
