"""The settings of the bootstrap provider."""

from __future__ import annotations

from datetime import timedelta

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.bootstrap.options import BootstrapOptions


def test_the_defaults_suit_bare_metal_and_the_version_contract() -> None:
    assert BootstrapOptions() == BootstrapOptions(token_ttl=timedelta(hours=2), join_version="control-plane", version_file=True)


def test_a_token_must_outlive_the_looks_at_it() -> None:
    with pytest.raises(OperatorError, match="at least 60 seconds"):
        BootstrapOptions(token_ttl=timedelta(seconds=10))


def test_an_unknown_join_version_is_refused() -> None:
    with pytest.raises(OperatorError, match='"control-plane" or "machine"'):
        BootstrapOptions(join_version="node")  # type: ignore[arg-type]
