"""The line that shows how far a long step is."""

from __future__ import annotations

import io

import pytest

from slipway.lab.programs.obtain import Meter, transfer_text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("here", "total", "text"),
    [
        (0, 60_000_000, "[..............................] 0.0 of 60.0 MB"),
        (20_000_000, 60_000_000, "[##########....................] 20.0 of 60.0 MB"),
        (60_000_000, 60_000_000, "[##############################] 60.0 of 60.0 MB"),
        (1_500_000, None, "1.5 MB"),
    ],
)
def test_bar_fills_with_the_bytes_that_arrived(here: int, total: int | None, text: str) -> None:
    assert transfer_text(here, total) == text


def test_terminal_sees_the_line_and_it_is_wiped_at_the_end() -> None:
    terminal = Terminal()
    with Meter("kubelet v1.35.4", terminal) as meter:
        meter.transferred(1_500_000, None)
    assert terminal.getvalue() == "\r\x1b[Kkubelet v1.35.4: 1.5 MB\r\x1b[K"


def test_nothing_is_drawn_where_nobody_looks_at_a_terminal() -> None:
    log = io.StringIO()
    with Meter("kubelet v1.35.4", log) as meter:
        meter.compiled("k8s.io/api/core/v1")
    assert log.getvalue() == ""
