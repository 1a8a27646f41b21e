"""Kubeconfigs as documents."""

from __future__ import annotations

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.kube import kubeconfig


def test_data_is_text_in_base64_of_one_line_or_more() -> None:
    assert kubeconfig.decoded("Y2\nE=\n", "the CA") == b"ca"
    with pytest.raises(OperatorError, match="the CA must be text in base64"):
        kubeconfig.decoded(5555, "the CA")
