"""What is remembered of a KubeadmConfig.  What it is for, looking after data, is in test_reconciler.py."""

from __future__ import annotations

import pytest

from slipway.fleet.bootstrap.upkeep import is_behind


@pytest.mark.parametrize(
    ("version", "written", "seconds", "expected"),
    [
        pytest.param("9", "10", 0.1, True, id="our write is on its way"),
        pytest.param("10", "10", 0.1, False, id="it has arrived"),
        pytest.param("11", "10", 0.1, False, id="somebody wrote after us"),
        pytest.param("9", "", 0.1, False, id="we never wrote"),
        pytest.param("9", "10", 31.0, False, id="it never comes: etcd was restored from a backup"),
        pytest.param("9x", "10", 0.1, False, id="not a number"),
    ],
)
def test_the_cache_is_behind_for_a_moment_after_a_write(version: str, written: str, seconds: float, expected: bool) -> None:
    assert is_behind(version, written, seconds) is expected
