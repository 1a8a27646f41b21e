"""``slipway lab`` where nothing of a lab is there: what it says, and what it prints for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Run


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize("what", [("components", "--list"), ("image", "list")])
def test_an_empty_cache_is_an_empty_list(run: Run, what: tuple[str, ...]) -> None:
    assert json.loads(run("lab", *what, "-o", "json").out) == []
    assert len(run("lab", *what).out.splitlines()) == 1, "the head of the table alone"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("up", "--image", "v1.35.4"), "build one with `slipway lab image build`"),
        (("up",), 'required flag(s) "image" not set'),
        (("components",), "name the versions to obtain"),
        (("components", "v1.99.0"), "v1.99.0 is not supported"),
        (("components", "one"), '"one" is not a Kubernetes version'),
        (("image", "build", "--kubernetes-version", "v1.35.4", "--node-tool", "hammer"), "node tool"),
        (("--lab", "Not a name", "down"), "cannot be the name of a lab"),
        (("--lab", "no-such", "host", "list"), 'no lab named "no-such"'),
        (("--lab", "no-such", "host", "exec", "a"), "name a host and a command"),
        (("--lab", "no-such", "host", "start"), "name a host"),
        (("image", "list", "-o", "xml"), "use text or json"),
    ],
)
def test_what_cannot_be_done_gets_a_sentence(run: Run, words: tuple[str, ...], sentence: str) -> None:
    outcome = run("lab", *words)
    assert outcome.code == 1
    assert sentence in outcome.err
