"""Writes the generated parts of the Helm chart: ``make chart``."""

from pathlib import Path

from slipway.fleet import chart

ROOT = Path(__file__).parent.parent / "charts" / "slipway"


def main() -> None:
    wanted = chart.files()
    for path in (ROOT / chart.FOLDER).glob("*"):
        if str(path.relative_to(ROOT)) not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(text)


if __name__ == "__main__":
    main()
