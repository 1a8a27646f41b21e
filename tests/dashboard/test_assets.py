"""The files of the page: small, its own, and such that the strictest policy lets them be."""

from __future__ import annotations

import re

from slipway.dashboard import assets

FOUND = assets.load()


def test_all_files_together_are_small() -> None:
    assert sum(len(each.content) for each in FOUND.values()) < 150_000


def test_no_file_is_long() -> None:
    assert [name for name, each in FOUND.items() if each.content.count(b"\n") > 400] == []


def test_nothing_is_loaded_from_elsewhere() -> None:
    for name, each in FOUND.items():
        urls = set(re.findall(rb"(?:https?:)?//[a-z0-9.-]+\.[a-z]+[^\s\"')]*", each.content))
        # The name of a language, which nobody fetches.
        assert urls <= {b"http://www.w3.org/2000/svg"}, name


def test_the_page_has_no_script_and_no_style_in_it() -> None:
    page = FOUND[assets.INDEX].content.decode()
    assert not re.search(r"<style|style=|\son[a-z]+=|<script(?![^>]*\ssrc=)", page)


def test_every_file_that_a_file_names_is_there() -> None:
    for name, each in FOUND.items():
        text = each.content.decode()
        wanted = re.findall(r'"/static/([^"]+)"', text) + re.findall(r'from "\./([^"]+)"', text)
        assert set(wanted) <= set(FOUND), name


def test_markup_is_never_made_of_strings() -> None:
    for name, each in FOUND.items():
        assert not re.search(rb"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", each.content), name
