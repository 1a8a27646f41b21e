"""Certificates as such: signatures that hold, names that match, times that end."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509 as library
from cryptography.hazmat.primitives.asymmetric import rsa
from kube import authorities

from slipway.api.machinery.duration import Duration
from slipway.api.machinery.errors import OperatorError
from slipway.credentials import keys, x509
from slipway.credentials.profile import CLIENT_AUTH, SERVER_AUTH, Profile
from slipway.node.cluster.imagined import CA_CERTIFICATE

NOW = datetime(2026, 3, 1, 12, 0, 0, 999_999, tzinfo=UTC)
CLIENT = Profile(common_name="client", usages=(CLIENT_AUTH,))


def _authority(algorithm: str = "ECDSA-P256") -> x509.Authority:
    key = keys.generate(algorithm)
    valid = x509.period(NOW, Duration.of(hours=24))
    return x509.Authority(x509.self_signed(Profile(common_name="authority"), key, valid, sha256_key_id=True), key)


def _signed(profile: Profile, authority: x509.Authority | None = None) -> library.Certificate:
    public_key = keys.generate("ECDSA-P256").public_key()
    return x509.signed(profile, public_key, authority or _authority(), x509.period(NOW, Duration.of(hours=1)))


def test_a_period_starts_five_minutes_early_and_has_whole_seconds() -> None:
    assert x509.period(NOW, Duration.of(hours=1)) == (
        datetime(2026, 3, 1, 11, 55, tzinfo=UTC),
        datetime(2026, 3, 1, 13, 0, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("offset", "problem"),
    [
        (timedelta(minutes=-5, seconds=-1), "the certificate is not valid yet"),
        (timedelta(minutes=-5), ""),
        (timedelta(hours=1), ""),
        (timedelta(hours=1, seconds=1), "the certificate has expired"),
    ],
)
def test_a_certificate_is_valid_in_its_period_only(offset: timedelta, problem: str) -> None:
    bounds = ": NotBefore: 2026-03-01 11:55:00 +0000 UTC, NotAfter: 2026-03-01 13:00:00 +0000 UTC"
    found = x509.period_problem(_signed(CLIENT), NOW.replace(microsecond=0) + offset)
    assert found == (problem + bounds if problem else "")


# As Go's VerifyHostname decides, by which kubeadm judges existing certificates.
@pytest.mark.parametrize(
    ("offered", "wanted", "covered"),
    [
        ("api.example", "api.example", True),
        ("API.example", "api.EXAMPLE", True),
        ("*.example", "api.example", True),
        ("*.example", "*.example", True),
        ("*.example", "a.b.example", False),
        ("*.example", "example", False),
        ("a.*.example", "a.b.example", False),
        ("api.example", "api.example.com", False),
    ],
)
def test_names_match_label_by_label(offered: str, wanted: str, covered: bool) -> None:
    certificate = _signed(Profile(common_name="x", usages=(SERVER_AUTH,), dns_names=(offered,)))
    assert (x509.missing_names(certificate, Profile(common_name="x", dns_names=(wanted,))) == []) is covered


def test_addresses_are_only_covered_by_addresses() -> None:
    certificate = _signed(Profile(common_name="x", usages=(SERVER_AUTH,), dns_names=("10.0.0.1",), addresses=("10.0.0.2", "fd00::1")))
    wanted = Profile(common_name="x", addresses=("10.0.0.1", "10.0.0.2", "fd00::1"))
    assert x509.missing_names(certificate, wanted) == ["10.0.0.1"]


def test_a_certificate_says_what_its_successor_is_to_say() -> None:
    profile = Profile(
        common_name="jane",
        organizations=("dev", "ops"),
        usages=(SERVER_AUTH, CLIENT_AUTH),
        dns_names=("a", "b"),
        addresses=("10.0.0.1", "::1"),
    )
    assert x509.profile_of(_signed(profile)) == profile


def test_a_certificate_needs_a_name_and_a_purpose() -> None:
    with pytest.raises(OperatorError, match="must specify a CommonName"):
        _signed(Profile(common_name="", usages=(CLIENT_AUTH,)))
    with pytest.raises(OperatorError, match="must specify at least one ExtKeyUsage"):
        _signed(Profile(common_name="x"))


def test_serial_numbers_are_positive_and_below_two_to_the_63() -> None:
    authority = _authority()
    numbers = {_signed(CLIENT, authority).serial_number for _ in range(50)}
    assert len(numbers) == 50
    assert all(0 < number < 1 << 63 for number in numbers)


def test_a_damaged_key_is_found_by_what_it_signs() -> None:
    authority = _authority("RSA-2048")
    assert isinstance(authority.key, rsa.RSAPrivateKey)
    good = authority.key.private_numbers()
    damaged = rsa.RSAPrivateNumbers(good.p, good.q, good.d + 2, good.dmp1 + 2, good.dmq1, good.iqmp, good.public_numbers)
    key = damaged.private_key(unsafe_skip_rsa_key_validation=True)
    with pytest.raises(OperatorError, match="the private key of CN=authority is damaged"):
        _signed(CLIENT, x509.Authority(authority.certificate, keys.parse_private(keys.private_pem(key))))


def test_a_certificate_that_names_itself_as_issuer_has_no_authority_key_id() -> None:
    authority = _authority()
    same, other = _signed(Profile(common_name="authority", usages=(CLIENT_AUTH,)), authority), _signed(CLIENT, authority)
    kinds = [{type(extension.value) for extension in certificate.extensions} for certificate in (same, other)]
    assert kinds[1] - kinds[0] == {library.AuthorityKeyIdentifier}


def test_what_is_not_pem_is_no_certificate() -> None:
    with pytest.raises(ValueError, match="does not contain any valid RSA or ECDSA certificates"):
        x509.parse(b"nonsense")
    with pytest.raises(ValueError, match="parsing"):
        x509.parse(b"-----BEGIN CERTIFICATE-----\nbm9uc2Vuc2U=\n-----END CERTIFICATE-----\n")


def test_a_pin_is_the_hash_of_the_public_key() -> None:
    # discovery/token/token.go names the pin of this certificate.
    assert x509.public_key_pins(CA_CERTIFICATE.encode()) == ["sha256:3b793efefe27a19f93b0fbe6e637e9c41d0dde8a377d6ab1c0f656bf1136dd8a"]


def test_every_certificate_of_a_bundle_has_a_pin() -> None:
    assert len(x509.public_key_pins(CA_CERTIFICATE.encode() * 2)) == 2


def test_what_is_no_certificate_has_no_pin() -> None:
    with pytest.raises(ValueError, match="does not contain any valid"):
        x509.public_key_pins(b"nothing")


@pytest.mark.filterwarnings("ignore:Parsed a serial number")
def test_a_ca_of_cluster_api_with_the_serial_number_zero_has_a_pin_without_a_warning() -> None:
    program = "import sys; from slipway.credentials import x509; print(x509.public_key_pins(sys.stdin.buffer.read())[0][:7])"
    done = subprocess.run([sys.executable, "-c", program], input=authorities.cluster_api().trusted, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"sha256:\n", b"")
