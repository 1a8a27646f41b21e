"""Man pages: one a command, and nothing in them that roff stumbles over."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Run


def test_every_command_gets_a_page(run: Run, tmp_path: Path) -> None:
    assert run("man", str(tmp_path / "man1")).code == 0
    pages = {path.name for path in (tmp_path / "man1").iterdir()}
    assert {"slipway.1", "slipway-init.1", "slipway-init-phase-certs-ca.1", "slipway-config-migrate.1"} <= pages
    assert len(pages) > 130


def test_a_page_has_synopsis_options_and_phases(run: Run, tmp_path: Path) -> None:
    run("man", str(tmp_path))
    page = (tmp_path / "slipway-init.1").read_text()
    assert ".SH SYNOPSIS\n.B slipway init [flags]\n" in page
    assert "\\fB\\-\\-apiserver\\-bind\\-port\\fR \\fIint32\\fR\nPort that the API server of this node listens on (default 6443)\n" in page
    assert "certs/ca" in page


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not here")
def test_groff_has_nothing_to_complain_about(run: Run, tmp_path: Path) -> None:
    run("man", str(tmp_path))
    pages = sorted(map(str, tmp_path.iterdir()))
    done = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8", "-Kutf8", *pages], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_a_folder_that_cannot_be_written_is_a_sentence(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    outcome = run("man", str(tmp_path / "file" / "man1"))
    assert outcome.code == 1
    assert outcome.err.startswith(f'error: cannot write man pages into "{tmp_path}/file/man1": ')
