"""The rows of ``token list``; they and the objects were seen from kubeadm 1.35.4 on a live cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from slipway.api.kubeadm.internal import BootstrapToken
from slipway.node.cluster import tokens

NOW = datetime(2026, 11, 16, 0, 4, 59, tzinfo=UTC)
JOINING = BootstrapToken(
    token="abcdef.0123456789abcdef",
    expires="2026-11-16T23:59:21Z",
    usages=["authentication", "signing"],
    groups=["system:bootstrappers:kubeadm:default-node-token"],
)
FOREVER = BootstrapToken(
    token="aaaaaa.0123456789abcdef",
    description="a & b <c>",
    usages=["authentication"],
    groups=["system:bootstrappers:x", "system:bootstrappers:y"],
)


def test_the_first_row_has_the_heads_above_it() -> None:
    gap = " " * 46
    assert tokens.text(FOREVER, NOW, first=True) == (
        f"TOKEN                     TTL         EXPIRES   USAGES                   DESCRIPTION  {gap}EXTRA GROUPS\n"
        f"aaaaaa.0123456789abcdef   <forever>   <never>   authentication           a & b <c>    {gap}"
        "system:bootstrappers:x,system:bootstrappers:y\n"
    )


def test_a_further_row_stands_alone() -> None:
    assert tokens.text(JOINING, NOW, first=False) == (
        f"abcdef.0123456789abcdef   23h         2026-11-16T23:59:21Z   authentication,signing   <none>{' ' * 53}"
        "system:bootstrappers:kubeadm:default-node-token\n"
    )


def test_a_token_without_anything_says_none() -> None:
    bare = BootstrapToken(token="ihl9vp.zlz86t4y1gibx1lq", expires="2026-11-16T01:59:21Z")
    assert tokens.text(bare, NOW, first=False).split() == [
        "ihl9vp.zlz86t4y1gibx1lq", "1h", "2026-11-16T01:59:21Z", "<none>", "<none>", "<none>",
    ]  # fmt: skip


def test_an_object_has_only_what_the_token_has() -> None:
    assert list(tokens.manifest(JOINING)) == ["kind", "apiVersion", "token", "expires", "usages", "groups"]
    assert tokens.manifest(FOREVER)["apiVersion"] == "output.kubeadm.k8s.io/v1alpha3"
    assert "expires" not in tokens.manifest(FOREVER)


# The borders of ShortHumanDuration in k8s.io/apimachinery v0.35.4.
@pytest.mark.parametrize(
    ("left", "shown"),
    [
        (timedelta(seconds=-2), "<invalid>"),
        (timedelta(seconds=-1), "0s"),
        (timedelta(seconds=0), "0s"),
        (timedelta(seconds=59, milliseconds=900), "59s"),
        (timedelta(minutes=1), "1m"),
        (timedelta(minutes=59, seconds=59), "59m"),
        (timedelta(hours=23, minutes=59), "23h"),
        (timedelta(days=1), "1d"),
        (timedelta(days=364, hours=23), "364d"),
        (timedelta(days=365), "1y"),
        (timedelta(days=729), "1y"),
    ],
)
def test_the_time_that_is_left_has_one_unit(left: timedelta, shown: str) -> None:
    assert tokens.short_duration(left) == shown
