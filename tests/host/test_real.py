"""The machine behind its interface: how files are written."""

from __future__ import annotations

from pathlib import Path

from slipway.host.real import RealHost


def test_what_a_killed_write_left_goes_with_the_next_one(tmp_path: Path) -> None:
    (tmp_path / ".admin.conf.partial").write_text("half")
    RealHost(str(tmp_path)).write("/admin.conf", b"whole")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"admin.conf": "whole"}


def test_nothing_is_written_through_a_link_that_somebody_put_in_the_way(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("kept")
    (tmp_path / ".admin.conf.partial").symlink_to(elsewhere)
    RealHost(str(tmp_path)).write("/admin.conf", b"whole")
    assert elsewhere.read_text() == "kept"
    assert (tmp_path / "admin.conf").read_text() == "whole"
