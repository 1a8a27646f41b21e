#!/usr/bin/env python3
"""Writes the table of faults, and which tests provoke them, into docs/faults.md, each between its two marks."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "faults.md"


def main() -> None:
    sys.path.insert(0, str(ROOT / "tests"))
    import faulttable

    text = PAGE.read_text()
    for name, made in (("faults", faulttable.table()), ("tests", faulttable.held_by())):
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}{made}{end}{rest.partition(end)[2]}"
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
