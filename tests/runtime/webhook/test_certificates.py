"""Certificates of webhooks through their lives, by a clock that is moved by hand."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.credentials import keys, x509
from slipway.runtime.webhook import certificates, store
from slipway.runtime.webhook.certificates import OVERLAP, CertificateSet, renewed

NOW = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)
NAMES = ["slipway-webhook.slipway-system.svc", "192.0.2.1"]


def _vouched(current: CertificateSet, bundle: bytes, now: datetime) -> bool:
    """Whether somebody who trusts ``bundle`` accepts what is served."""
    serving = x509.parse(current.certificate)[0]
    return any(not x509.chain_problem(serving, [], authority, now) for authority in x509.parse(bundle))


def test_the_first_set_serves_its_names() -> None:
    made = renewed(None, NAMES, NOW)
    serving = x509.parse(made.certificate)[0]
    profile = x509.profile_of(serving)
    assert profile.dns_names == ("slipway-webhook.slipway-system.svc",)
    assert profile.addresses == ("192.0.2.1",)
    assert x509.belongs_to(serving, keys.parse_private(made.key))
    assert _vouched(made, made.authorities, NOW)


def test_nothing_is_renewed_before_two_thirds_of_its_life() -> None:
    made = renewed(None, NAMES, NOW)
    assert renewed(made, NAMES, NOW + timedelta(days=59)) is made


def test_the_serving_certificate_is_renewed_after_two_thirds_of_its_life_by_the_same_authority() -> None:
    made = renewed(None, NAMES, NOW)
    due = NOW + timedelta(days=60, hours=1)
    after = renewed(made, NAMES, due)
    assert after.certificate != made.certificate
    assert after.authorities == made.authorities
    assert x509.parse(after.certificate)[0].not_valid_after_utc == due + timedelta(days=90)


def test_a_new_name_is_served_at_once() -> None:
    made = renewed(None, NAMES, NOW)
    after = renewed(made, [*NAMES, "manager.example.org"], NOW + timedelta(minutes=1))
    assert "manager.example.org" in x509.profile_of(x509.parse(after.certificate)[0]).dns_names
    assert after.authorities == made.authorities


@pytest.mark.parametrize("looks", [timedelta(days=1), timedelta(days=61)], ids=["daily", "when the serving certificate is due too"])
def test_a_new_authority_is_told_before_it_signs(looks: timedelta) -> None:
    made, now = renewed(None, NAMES, NOW), NOW
    old_bundle = made.authorities
    while len(x509.parse(made.authorities)) == 1:
        before, now = made, now + looks
        made = renewed(made, NAMES, now)
    assert now - NOW >= timedelta(days=365) * 2 / 3 - looks
    assert made.certificate == before.certificate, "what is served is still what everybody trusts"
    assert _vouched(made, old_bundle, now)
    later = renewed(made, NAMES, now + OVERLAP)
    assert later.authorities == made.authorities
    assert later.certificate != made.certificate, "the new authority signs after the overlap"
    assert not _vouched(later, old_bundle, now + OVERLAP)


@pytest.mark.parametrize("step", [timedelta(hours=1), timedelta(days=1), timedelta(days=20)])
def test_whoever_trusts_the_bundle_of_the_last_look_is_served_for_three_years(step: timedelta) -> None:
    """An API server learns of a bundle with the next look at the latest; what is served must be trusted with it."""
    current = renewed(None, NAMES, NOW)
    now, authorities, changes = NOW, {current.authorities}, 0
    while now < NOW + timedelta(days=3 * 365):
        now = max(now + timedelta(minutes=10), min(now + step * 24, certificates.next_renewal(current)))
        after = renewed(current, NAMES, now)
        assert _vouched(after, after.authorities, now)
        assert not x509.period_problem(x509.parse(after.certificate)[0], now)
        changes += after.certificate != current.certificate
        authorities.add(after.authorities)
        current = after
    assert len(x509.parse(current.authorities)) <= 2, "authorities that ended are dropped"
    assert changes >= 3 * 365 // 61
    assert len(authorities) >= 4


def test_the_next_renewal_is_when_something_is_due() -> None:
    made = renewed(None, NAMES, NOW)
    due = certificates.next_renewal(made)
    assert renewed(made, NAMES, due - timedelta(seconds=1)) is made
    assert renewed(made, NAMES, due) != made


@pytest.mark.parametrize("damage", ["authorities", "authority_key", "certificate", "key"])
def test_a_damaged_set_is_made_anew(damage: str) -> None:
    made = renewed(None, NAMES, NOW)
    parts = {field: getattr(made, field) for field in made.__struct_fields__}
    after = renewed(CertificateSet(**{**parts, damage: b"rubbish"}), NAMES, NOW)
    assert _vouched(after, after.authorities, NOW)
    assert x509.belongs_to(x509.parse(after.certificate)[0], keys.parse_private(after.key))


def test_a_set_that_ended_while_nobody_looked_is_made_anew() -> None:
    late = NOW + timedelta(days=1000)
    after = renewed(renewed(None, NAMES, NOW), NAMES, late)
    assert _vouched(after, after.authorities, late)
    assert len(x509.parse(after.authorities)) == 1


def test_a_pair_that_does_not_fit_is_refused() -> None:
    one, other = renewed(None, NAMES, NOW), renewed(None, NAMES, NOW)
    certificates.check_pair(one.certificate, one.key, "here")
    with pytest.raises(OperatorError, match=r"here cannot be used: the key in tls\.key is not that of tls\.crt"):
        certificates.check_pair(one.certificate, other.key, "here")
    with pytest.raises(OperatorError, match="here cannot be used"):
        certificates.check_pair(b"", other.key, "here")


def test_a_set_goes_into_a_secret_and_comes_back() -> None:
    made = renewed(None, NAMES, NOW)
    secret = store.to_secret(made, "n", "ns")
    assert secret["type"] == "kubernetes.io/tls"
    assert store.from_secret(secret) == made
    assert store.from_secret({"data": {"tls.crt": "x"}}) is None
    assert store.from_secret({}) is None


_SERVICE = {"service": {"namespace": "ns", "name": "hook", "path": "/x"}}


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        (_SERVICE, {"hook.ns.svc", "hook.ns.svc.cluster.local"}),
        ({"url": "https://192.0.2.7:9443/x"}, {"192.0.2.7"}),
        ({"url": "https://[2001:db8::1]:9443/x"}, {"2001:db8::1"}),
        ({"url": "https://manager.example.org/x"}, {"manager.example.org"}),
    ],
)
def test_the_hosts_that_an_api_server_calls(client: dict[str, Any], expected: set[str]) -> None:
    crd = {"spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": client}}}}
    assert store.hosts({"webhooks": [{"name": "a", "clientConfig": client}]}) == expected
    assert store.hosts(crd) == expected
    assert store.hosts({"spec": {"conversion": {"strategy": "None"}}}) == set()


def test_the_bundle_goes_where_it_is_missing_and_nowhere_else() -> None:
    bundle = b64encode(b"pem").decode()
    hooks = [{"name": "a", "clientConfig": _SERVICE}, {"name": "b", "clientConfig": {**_SERVICE, "caBundle": bundle}}]
    patch = store.injection({"webhooks": hooks}, b"pem")
    assert patch == {"webhooks": [{"name": name, "clientConfig": {**_SERVICE, "caBundle": bundle}} for name in "ab"]}
    assert store.injection(patch, b"pem") == {}
    crd = {"spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": dict(_SERVICE)}}}}
    assert store.injection(crd, b"pem") == {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}}}
    assert store.injection({"spec": {"conversion": {"strategy": "None"}}}, b"pem") == {}
