"""Keys: their algorithms and forms, and those that are made ahead."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

from slipway.api.machinery.errors import OperatorError
from slipway.credentials import keys


@pytest.mark.parametrize(("algorithm", "bits"), [("", 2048), ("RSA-2048", 2048), ("RSA-3072", 3072), ("RSA-4096", 4096)])
def test_rsa_keys_are_written_in_pkcs1(algorithm: str, bits: int) -> None:
    key = keys.generate(algorithm)
    assert isinstance(key, rsa.RSAPrivateKey)
    assert key.key_size == bits
    assert key.public_key().public_numbers().e == 65537
    assert keys.private_pem(key).startswith(b"-----BEGIN RSA PRIVATE KEY-----\n")


@pytest.mark.parametrize(("algorithm", "curve"), [("ECDSA-P256", "secp256r1"), ("ECDSA-P384", "secp384r1")])
def test_ecdsa_keys_are_written_in_sec1(algorithm: str, curve: str) -> None:
    key = keys.generate(algorithm)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert key.curve.name == curve
    assert keys.private_pem(key).startswith(b"-----BEGIN EC PRIVATE KEY-----\n")


@pytest.mark.parametrize("algorithm", ["RSA-1024", "ECDSA-P521", "rsa-2048"])
def test_other_algorithms_are_refused(algorithm: str) -> None:
    with pytest.raises(OperatorError, match=f'unknown encryption algorithm "{algorithm}"'):
        keys.generate(algorithm)
    with pytest.raises(OperatorError, match=f'unknown encryption algorithm "{algorithm}"'):
        keys.KeyPool().expect(algorithm, 1)


@pytest.mark.parametrize("algorithm", ["RSA-2048", "ECDSA-P256"])
@pytest.mark.parametrize("form", [PrivateFormat.TraditionalOpenSSL, PrivateFormat.PKCS8])
def test_keys_are_read_in_all_forms_that_kubeadm_reads(algorithm: str, form: PrivateFormat) -> None:
    key = keys.generate(algorithm)
    # openssl puts the parameters of a curve before its key.
    parameters = b"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
    read = keys.parse_private(parameters + key.private_bytes(Encoding.PEM, form, NoEncryption()))
    assert read.public_key() == key.public_key()
    assert keys.parse_public(keys.public_pem(key.public_key())) == key.public_key()
    assert keys.parse_public(keys.private_pem(key)) == key.public_key()


@pytest.mark.parametrize(
    "pem",
    [
        b"",
        b"nonsense",
        b"-----BEGIN RSA PRIVATE KEY-----\nbm9uc2Vuc2U=\n-----END RSA PRIVATE KEY-----\n",
        keys.public_pem(keys.generate("ECDSA-P256").public_key()),
        ed25519.Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        keys.generate("ECDSA-P256").private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")),
    ],
    ids=["empty", "text", "damaged", "public", "Ed25519", "encrypted"],
)
def test_what_is_no_usable_private_key_is_refused(pem: bytes) -> None:
    with pytest.raises(ValueError, match="RSA"):
        keys.parse_private(pem)


@pytest.mark.parametrize("pem", [b"", b"nonsense"])
def test_what_is_no_public_key_is_refused(pem: bytes) -> None:
    with pytest.raises(ValueError, match="RSA"):
        keys.parse_public(pem)


def test_keys_made_ahead_are_given_once_each() -> None:
    pool = keys.KeyPool()
    pool.expect("RSA-2048", 3)
    taken = [keys.private_pem(pool.take("RSA-2048")) for _ in range(4)]
    assert len(set(taken)) == 4


def test_only_rsa_keys_are_made_ahead() -> None:
    before = threading.active_count()
    pool = keys.KeyPool()
    pool.expect("ECDSA-P256", 3)
    pool.expect("RSA-2048", 0)
    assert threading.active_count() == before
    assert isinstance(pool.take("ECDSA-P256"), ec.EllipticCurvePrivateKey)


def test_a_run_that_fails_does_not_wait_for_the_keys_that_nobody_takes() -> None:
    # Two hundred keys take several seconds on any machine; a run that ends must make at most one more for each thread.
    program = (
        "import atexit\n"
        "from slipway.credentials import keys\n"
        "made = []\n"
        "generate = keys.generate\n"
        "keys.generate = lambda algorithm: made.append(generate(algorithm)) or made[-1]\n"
        "pool = keys.KeyPool()\n"
        "pool.expect('RSA-2048', 200)\n"
        "atexit.register(lambda: print(len(made)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 50


def test_importing_the_modules_of_a_node_does_not_import_cryptography() -> None:
    parts = ["pki.specs", "pki.store", "kubeconfigs", "pki.renewal", "pki.expiration", "pki.requests", "pki.copycerts", "context"]
    modules = ", ".join(f"slipway.node.{part}" for part in parts)
    program = f"import sys, slipway.credentials.keys, {modules}; print('cryptography' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
