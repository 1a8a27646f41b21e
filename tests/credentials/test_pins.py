"""Pins of certificate authorities."""

from __future__ import annotations

import pytest

from slipway.credentials import pins
from slipway.node.cluster.imagined import CA_CERTIFICATE


def test_a_pin_is_the_hash_of_the_public_key() -> None:
    # discovery/token/token.go names the pin of this certificate.
    assert pins.of(CA_CERTIFICATE.encode()) == ["sha256:3b793efefe27a19f93b0fbe6e637e9c41d0dde8a377d6ab1c0f656bf1136dd8a"]


def test_every_certificate_of_a_bundle_has_a_pin() -> None:
    assert len(pins.of(CA_CERTIFICATE.encode() * 2)) == 2


def test_what_is_no_certificate_has_no_pin() -> None:
    with pytest.raises(ValueError, match="does not contain any valid"):
        pins.of(b"nothing")
