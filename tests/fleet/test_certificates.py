"""The certificates of clusters.  Rows of Cluster API's util/secret certificates_test.go are among them."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509 as certificates
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from slipway.credentials import keys, x509
from slipway.fleet import certificates as clustercerts
from slipway.fleet.certificates import CertificatesError, KeyPair
from slipway.fleet.contract.facts import ClusterFacts

pytestmark = pytest.mark.upstream_table

CLUSTER = ClusterFacts("ns", "c")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
EXTERNAL = {"etcd": {"external": {"endpoints": ["e"], "caFile": "/e/ca.crt", "certFile": "/e/c.crt", "keyFile": "/e/c.key"}}}


def names(configuration: dict[str, Any]) -> list[str]:
    return [purpose.name for purpose in clustercerts.for_control_plane(configuration)]


def test_a_control_plane_with_its_own_etcd_has_four_pairs() -> None:
    assert names({}) == ["ca", "sa", "proxy", "etcd"]


def test_a_control_plane_with_an_external_etcd_has_its_client_too() -> None:
    assert names(EXTERNAL) == ["ca", "sa", "proxy", "apiserver-etcd-client", "etcd"]


def test_files_of_a_host_are_in_upstreams_order_with_its_permissions() -> None:
    purposes = clustercerts.for_control_plane({})
    pairs = {purpose.name: KeyPair(purpose.name.encode(), b"key") for purpose in purposes}
    made = clustercerts.files(purposes, pairs)
    folder = "/etc/kubernetes/pki"
    assert [(file["path"], file["permissions"]) for file in made] == [
        (f"{folder}/ca.crt", "0640"),
        (f"{folder}/ca.key", "0600"),
        (f"{folder}/etcd/ca.crt", "0640"),
        (f"{folder}/etcd/ca.key", "0600"),
        (f"{folder}/front-proxy-ca.crt", "0640"),
        (f"{folder}/front-proxy-ca.key", "0600"),
        (f"{folder}/sa.pub", "0640"),
        (f"{folder}/sa.key", "0600"),
    ]
    assert {file["owner"] for file in made} == {"root:root"}


def test_the_ca_of_an_external_etcd_has_no_key_on_the_host() -> None:
    purposes = clustercerts.for_control_plane(EXTERNAL)
    pairs = {"etcd": KeyPair(b"ca", b"key"), "apiserver-etcd-client": KeyPair(b"cert", b"key")}
    assert [file["path"] for file in clustercerts.files(purposes, pairs)] == ["/e/ca.crt", "/e/c.crt", "/e/c.key"]


def test_a_ca_without_a_key_is_an_external_one() -> None:
    purposes = clustercerts.for_control_plane({})
    pairs = {purpose.name: KeyPair(b"cert", b"key") for purpose in purposes} | {"ca": KeyPair(b"cert")}
    clustercerts.require(purposes, pairs, CLUSTER)
    assert "/etc/kubernetes/pki/ca.key" not in [file["path"] for file in clustercerts.files(purposes, pairs)]


def test_what_is_missing_is_named() -> None:
    purposes = clustercerts.for_control_plane({})
    with pytest.raises(CertificatesError, match="missing certificate: there is no Secret ns/c-ca"):
        clustercerts.require(purposes, {}, CLUSTER)
    pairs = {purpose.name: KeyPair(b"cert") for purpose in purposes}
    with pytest.raises(CertificatesError, match=r"missing key data for certificate: sa: the Secret ns/c-sa has no tls\.key"):
        clustercerts.require(purposes, pairs, CLUSTER)


@pytest.mark.parametrize("key", ["tls.crt", "tls.key"])
def test_a_secret_whose_content_is_not_text_is_named(key: str) -> None:
    data = {"tls.crt": b64encode(b"c").decode(), "tls.key": b64encode(b"k").decode(), key: b64encode(b"0\x82").decode()}
    with pytest.raises(CertificatesError, match=f"from certificate ns/c-ca: {key} is not PEM, which is text: .*byte 1"):
        clustercerts.pair_from({"metadata": {"name": "c-ca", "namespace": "ns"}, "data": data})


def test_a_secret_without_a_certificate_is_named() -> None:
    secret = {"metadata": {"namespace": "ns", "name": "c-ca"}, "data": {"tls.key": b64encode(b"k").decode()}}
    with pytest.raises(CertificatesError, match=r"failed to read keypair from certificate ns/c-ca: missing data for key tls\.crt"):
        clustercerts.pair_from(secret)


@pytest.mark.parametrize(
    ("algorithm", "kind", "size"),
    [
        ("", RSAPrivateKey, 2048),
        ("RSA-3072", RSAPrivateKey, 3072),
        ("ECDSA-P256", EllipticCurvePrivateKey, 256),
        ("ECDSA-P384", EllipticCurvePrivateKey, 384),
    ],
)
def test_a_generated_ca_is_one(algorithm: str, kind: type, size: int) -> None:
    pair = clustercerts.generate(clustercerts.CA, algorithm, 3650, NOW)
    [certificate] = x509.parse(pair.certificate)
    key = keys.parse_private(pair.key)
    assert isinstance(key, kind)
    assert key.key_size == size
    assert x509.is_authority(certificate)
    assert x509.belongs_to(certificate, key)
    assert x509.profile_of(certificate).common_name == "kubernetes"
    assert certificate.not_valid_after_utc == NOW + timedelta(days=3650)
    assert certificate.not_valid_before_utc == NOW - timedelta(minutes=5)


def test_a_generated_service_account_pair_is_a_public_and_a_private_key() -> None:
    pair = clustercerts.generate(clustercerts.SERVICE_ACCOUNT, "ECDSA-P256", 1, NOW)
    assert keys.parse_public(pair.certificate) == keys.parse_private(pair.key).public_key()


def test_hashes_are_those_of_every_certificates_public_key() -> None:
    one = clustercerts.generate(clustercerts.CA, "ECDSA-P256", 1, NOW)
    two = clustercerts.generate(clustercerts.CA, "ECDSA-P256", 1, NOW)
    both = clustercerts.ca_hashes(one.certificate + two.certificate)
    assert both == [*clustercerts.ca_hashes(one.certificate), *clustercerts.ca_hashes(two.certificate)]
    [parsed] = certificates.load_pem_x509_certificates(one.certificate)
    # The rest of the certificate does not matter: one with the same key has the same hash.
    renewed = x509.self_signed(
        x509.profile_of(parsed), keys.parse_private(one.key), x509.Period(NOW, NOW + timedelta(days=9)), sha256_key_id=False
    )
    assert clustercerts.ca_hashes(x509.pem(renewed)) == both[:1]


def test_a_ca_that_is_none_is_an_error() -> None:
    with pytest.raises(CertificatesError, match="unable to parse ca certificate"):
        clustercerts.ca_hashes(b"nonsense")


def test_the_secret_of_a_host_is_never_the_authority_of_a_cluster() -> None:
    """A host writes to the Secret of its name."""
    secret = {
        "metadata": {"name": "c-ca", "namespace": "ns"},
        "type": "elemental.cattle.io/plan",
        "data": {"tls.crt": "eA==", "tls.key": "eA=="},
    }
    with pytest.raises(clustercerts.CertificatesError, match="the Secret ns/c-ca is a host's own"):
        clustercerts.pair_from(secret)
