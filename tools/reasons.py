#!/usr/bin/env python3
"""Writes the table of conditions and reasons into docs/baremetal.md, between its two marks."""

from __future__ import annotations

from pathlib import Path

from slipway.fleet.baremetal.reasons import reference

BEGIN, END = "<!-- reasons: begin -->\n", "<!-- reasons: end -->"
PAGE = Path(__file__).parents[1] / "docs" / "baremetal.md"


def main() -> None:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{reference()}{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
