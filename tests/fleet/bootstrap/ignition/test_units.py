"""systemd units as Ignition reads them; the texts of errors are go-systemd's, whose longest line is systemd's LINE_MAX of 2048 bytes."""

from __future__ import annotations

import pytest

from slipway.fleet.bootstrap.ignition.units import UnitError, sections


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("[Unit]\nA=b\nC=d\n[Install]\nE=f", ["Unit", "Unit", "Install"]),
        ("[Install]\n", []),
        ("before [Unit]\nA=b", ["Unit"]),
        ("# [Unit]\nA=b", []),
        ("[Unit]\nA=b \\\n[Install]\n", ["Unit"]),
        ("[Unit]\n; c \\\nA=b\nC=d\n", ["Unit"]),
    ],
)
def test_options_are_counted_by_section(text: str, found: list[str]) -> None:
    assert sections(text) == found


@pytest.mark.parametrize("length", [2045, 2046, 5000])
def test_a_line_that_systemd_would_cut_is_refused(length: int) -> None:
    text = "[Unit]\nA=" + "x" * length + "\nB=c\n"
    if length + len("A=") < 2048:
        assert sections(text) == ["Unit", "Unit"]
        return
    with pytest.raises(UnitError, match=r"line too long \(max 2048 bytes\)"):
        sections(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[Unit", "unable to find end of section"),
        ("[Unit] ab\n", "found garbage after section name : [97 98]"),
        ("[Unit]\nA", "EOF"),
        ("[Unit]\nA\nB=c", "unexpected newline encountered while parsing option name"),
    ],
)
def test_what_is_no_unit_is_refused(text: str, message: str) -> None:
    with pytest.raises(UnitError) as caught:
        sections(text)
    assert str(caught.value) == message
