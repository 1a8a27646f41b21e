"""The data Secret as a value; writing it is in test_reconciler.py."""

from __future__ import annotations

from slipway.fleet.bootstrap.data import data as datasecret
from slipway.fleet.bootstrap.data.data import Rendering

CONFIG = {"metadata": {"name": "w", "namespace": "ns", "uid": "u1"}}


def test_a_secret_tells_what_its_data_was_rendered_with() -> None:
    rendering = Rendering("v1.35.0", "abcdef")
    made = datasecret.data_secret(CONFIG, "c", b"data", "cloud-config", rendering)
    assert datasecret.rendering_of(made["metadata"]["annotations"]) == rendering
    assert "annotations" not in datasecret.data_secret(CONFIG, "c", b"data", "cloud-config", Rendering())["metadata"]
    assert datasecret.rendering_of({}) == Rendering()
