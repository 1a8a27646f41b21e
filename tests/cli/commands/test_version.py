"""``version``: kubeadm's shapes, and which kubeadm is acted as."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from slipway import NEWEST_KUBERNETES, __version__
from slipway.api import releases

if TYPE_CHECKING:
    from cli.conftest import Run


def test_short_is_the_release_that_is_acted_as(run: Run) -> None:
    assert run("version", "-o", "short").out == f"{NEWEST_KUBERNETES}\n"
    assert run("version", "-o", "short", acting_as="v1.34.10").out == "v1.34.10\n"


def test_the_newest_release_is_named_once() -> None:
    assert f"v{releases.NEWEST}" == NEWEST_KUBERNETES


def test_json_has_kubeadms_fields_and_slipways_version_beside_them(run: Run) -> None:
    document = json.loads(run("version", "-o", "json", acting_as="v1.35.4").out)
    info = document["clientVersion"]
    # The fields of kubeadm 1.35.4, in its order.
    assert list(info) == ["major", "minor", "gitVersion", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"]
    assert (info["major"], info["minor"], info["gitVersion"]) == ("1", "35", "v1.35.4")
    assert document["slipwayVersion"] == {"version": __version__}


def test_text_is_a_go_literal_with_kubeadms_fields(run: Run) -> None:
    text = run("version", acting_as="v1.35.4").out
    # The beginning of what kubeadm 1.35.4 prints.
    assert text.startswith(
        'kubeadm version: &version.Info{Major:"1", Minor:"35", EmulationMajor:"", EmulationMinor:"", MinCompatibilityMajor:"", '
        'MinCompatibilityMinor:"", GitVersion:"v1.35.4", GitCommit:"'
    )
    assert re.search(rf'Platform:"linux/[a-z0-9]+", SlipwayVersion:"{re.escape(__version__)}"}}\n$', text)


@pytest.mark.parametrize(
    ("acting_as", "complaint"),
    [
        ("v1.20.0", "error: Kubernetes v1.20.0 is not supported"),
        ("latest", 'error: SLIPWAY_AS_KUBEADM: could not parse "latest" as version'),
    ],
)
def test_acting_as_an_unknown_kubeadm_is_refused(acting_as: str, complaint: str, run: Run) -> None:
    outcome = run("version", acting_as=acting_as)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(complaint)
