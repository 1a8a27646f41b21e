"""Bootstrap tokens; the rows follow kubeadm's apis/bootstraptoken/v1/utils_test.go (1.36.3)."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slipway.api.kubeadm.internal import BootstrapToken
from slipway.api.machinery.duration import Duration
from slipway.api.machinery.errors import OperatorError
from slipway.credentials import tokens

pytestmark = pytest.mark.upstream_table

NOW = datetime(1993, 2, 26, 1, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        (".", False),
        ("1234567890123456789012", False),
        ("12345.1234567890123456", False),
        (".1234567890123456", False),
        ("123456.", False),
        ("123456:1234567890.123456", False),
        ("abcdef:1234567890123456", False),
        ("Abcdef.1234567890123456", False),
        ("abcdef.123456789012345", False),
        ("abcdef.1234567890123456\n", False),
        ("abcdef.1234567890123456", True),
        ("123456.AABBCCDDEEFFGGHH", False),
        ("abcdef.abcdef0123456789", True),
        ("123456.1234560123456789", True),
    ],
)
def test_a_token_is_six_and_sixteen_digits_and_small_letters(text: str, valid: bool) -> None:
    assert tokens.is_token(text) is valid
    if not valid:
        with pytest.raises(OperatorError, match=r"was not of the form"):
            tokens.check(text)


def test_generated_tokens_are_tokens_and_differ() -> None:
    made = {tokens.generate() for _ in range(50)}
    assert len(made) == 50
    assert all(tokens.is_token(token) for token in made)


# Token, description, ttl, expires, usages, groups; then the entries of the Secret.
SECRETS: list[tuple[BootstrapToken, dict[str, str]]] = [
    (
        BootstrapToken(
            token="abcdef.abcdef0123456789",
            description="foo",
            expires="2019-10-12T07:20:50Z",
            usages=["signing", "authentication"],
            groups=["system:bootstrappers", "system:bootstrappers:foo"],
        ),
        {
            "token-id": "abcdef",
            "token-secret": "abcdef0123456789",
            "description": "foo",
            "expiration": "2019-10-12T07:20:50Z",
            "usage-bootstrap-signing": "true",
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers,system:bootstrappers:foo",
        },
    ),
    (BootstrapToken(token="abcdef.abcdef0123456789"), {"token-id": "abcdef", "token-secret": "abcdef0123456789"}),
    (
        BootstrapToken(token="abcdef.abcdef0123456789", ttl=Duration.of(hours=2)),
        {"token-id": "abcdef", "token-secret": "abcdef0123456789", "expiration": "1993-02-26T03:01:01Z"},
    ),
    # An expiration beats a time to live, and is told in UTC.
    (
        BootstrapToken(token="abcdef.abcdef0123456789", ttl=Duration.of(hours=2), expires="1993-02-26T11:45:00+03:00"),
        {"token-id": "abcdef", "token-secret": "abcdef0123456789", "expiration": "1993-02-26T08:45:00Z"},
    ),
    # A time to live of nothing means that the token has no end.
    (BootstrapToken(token="abcdef.abcdef0123456789", ttl=Duration(0)), {"token-id": "abcdef", "token-secret": "abcdef0123456789"}),
]


@pytest.mark.parametrize(("token", "entries"), SECRETS)
def test_a_token_is_kept_as_a_secret(token: BootstrapToken, entries: dict[str, str]) -> None:
    assert tokens.secret(token, NOW) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "bootstrap-token-abcdef", "namespace": "kube-system"},
        "type": "bootstrap.kubernetes.io/token",
        "data": encoded(entries),
    }


def test_a_secret_gives_its_token_back() -> None:
    token = SECRETS[0][0]
    read = tokens.from_secret(tokens.secret(token, NOW))
    assert read == BootstrapToken(
        token="abcdef.abcdef0123456789",
        description="foo",
        expires="2019-10-12T07:20:50Z",
        usages=["authentication", "signing"],
        groups=["system:bootstrappers", "system:bootstrappers:foo"],
    )


@pytest.mark.parametrize(
    ("name", "entries", "complaint"),
    [
        ("bootstrap-token-foo", {"token-id": "abcdef", "token-secret": "abcdef0123456789"}, 'Expected: "bootstrap-token-abcdef"'),
        ("foo", {"token-id": "abcdef", "token-secret": "abcdef0123456789"}, "bootstrap token name is not of the form"),
        ("bootstrap-token-", {"token-id": "", "token-secret": "abcdef0123456789"}, "has no token-id data"),
        ("bootstrap-token-", {"token-secret": "abcdef0123456789"}, "has no token-id data"),
        ("bootstrap-token-abcdef", {"token-id": "abcdef", "token-secret": ""}, "has no token-secret data"),
        ("bootstrap-token-abcdef", {"token-id": "abcdef"}, "has no token-secret data"),
        ("bootstrap-token-abcdef", {"token-id": "abcdef", "token-secret": "ABCDEF0123456789"}, "was not of the form"),
        (
            "bootstrap-token-abcdef",
            {"token-id": "abcdef", "token-secret": "abcdef0123456789", "expiration": "invalid date"},
            "can't parse expiration time",
        ),
    ],
)
def test_a_secret_that_is_no_token_is_refused(name: str, entries: dict[str, str], complaint: str) -> None:
    with pytest.raises(OperatorError) as raised:
        tokens.from_secret(secret(name, entries))
    assert complaint in raised.value.message


def test_usages_that_are_not_true_do_not_count() -> None:
    entries = {"token-id": "abcdef", "token-secret": "abcdef0123456789", "usage-bootstrap-signing": "True", "auth-extra-groups": ""}
    read = tokens.from_secret(secret("bootstrap-token-abcdef", entries))
    assert (read.usages, read.groups) == ([], [])


def test_a_time_to_live_shorter_than_a_second_is_cut_off() -> None:
    token = BootstrapToken(token="abcdef.abcdef0123456789", ttl=Duration.parse("1s500ms"))
    assert tokens.expiration(token, NOW) == (NOW + timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%SZ")


def secret(name: str, entries: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": encoded(entries)}


def encoded(entries: dict[str, str]) -> dict[str, str]:
    return {key: b64encode(value.encode()).decode() for key, value in entries.items()}
