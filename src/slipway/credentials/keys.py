"""Private keys: making them, on threads ahead of their use, and their PEM forms as kubeadm writes and reads them.

Nothing here imports cryptography before a key is asked for.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from queue import SimpleQueue

    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

    PrivateKey = RSAPrivateKey | EllipticCurvePrivateKey
    PublicKey = RSAPublicKey | EllipticCurvePublicKey

_RSA_BITS = {"": 2048, "RSA-2048": 2048, "RSA-3072": 3072, "RSA-4096": 4096}
_CURVES = {"ECDSA-P256": "SECP256R1", "ECDSA-P384": "SECP384R1"}


def generate(algorithm: str) -> PrivateKey:
    """A new key of one of the algorithms of ``ClusterConfiguration.encryptionAlgorithm``; empty means RSA-2048."""
    if algorithm in _CURVES:
        from cryptography.hazmat.primitives.asymmetric import ec

        return ec.generate_private_key(getattr(ec, _CURVES[algorithm])())
    from cryptography.hazmat.primitives.asymmetric import rsa

    return rsa.generate_private_key(65537, _bits(algorithm))


def private_pem(key: PrivateKey) -> bytes:
    """PKCS#1 for RSA and SEC 1 for ECDSA, as kubeadm writes keys."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


def public_pem(key: PublicKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def parse_private(pem: bytes) -> PrivateKey:
    """The first private key in PKCS#1, SEC 1 or PKCS#8 form; ValueError says what is wrong.

    The primes of an RSA key are not tested, which would take as long as making a new one: a key that does not belong
    to its certificate is found by comparing them, and a damaged one by the check of the first signature.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ValueError("data does not contain a valid RSA or ECDSA private key") from error
    if not isinstance(key, RSAPrivateKey | EllipticCurvePrivateKey):
        raise ValueError("the private key is neither in RSA nor ECDSA format")
    return key


def parse_public(pem: bytes) -> PublicKey:
    """The public key of a PUBLIC KEY block, or that of a private key; ValueError says what is wrong."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    if b"PRIVATE KEY-----" in pem:
        return parse_private(pem).public_key()
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError("data does not contain any valid RSA or ECDSA public keys") from error
    if not isinstance(key, RSAPublicKey | EllipticCurvePublicKey):
        raise ValueError("the public key is neither in RSA nor ECDSA format")
    return key


class KeyPool:
    """Keys that a run will need, generated on threads while the run does other things.

    Making an RSA key takes tens of milliseconds without the interpreter lock, so two threads make them twice as fast;
    ECDSA keys are made in no time and never ahead.
    """

    def __init__(self) -> None:
        self._promised: dict[str, int] = {}
        self._made: dict[str, SimpleQueue[PrivateKey | Exception]] = {}

    def expect(self, algorithm: str, count: int) -> None:
        """Start to make ``count`` keys; each of the next ``count`` calls of :meth:`take` gets one of them."""
        if algorithm in _CURVES or count <= 0:
            return
        _bits(algorithm)  # an unknown algorithm is the caller's error, not a thread's
        from queue import SimpleQueue
        from threading import Thread

        # Imported once, here: threads that import the same module at once wait for each other.
        from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: F401

        made = self._made.setdefault(algorithm, SimpleQueue())
        self._promised[algorithm] = self._promised.get(algorithm, 0) + count
        tickets = [algorithm] * count
        for _ in range(min(count, len(os.sched_getaffinity(0)))):
            Thread(target=_make, args=(tickets, made), name="keys").start()

    def take(self, algorithm: str) -> PrivateKey:
        """A key that nobody else has: one that was made ahead, or a new one."""
        if not self._promised.get(algorithm):
            return generate(algorithm)
        self._promised[algorithm] -= 1
        key = self._made[algorithm].get()
        if isinstance(key, Exception):
            raise key
        return key


def _make(tickets: list[str], made: SimpleQueue[PrivateKey | Exception]) -> None:
    from threading import main_thread

    # A run that failed must not wait for keys that nobody will take.
    while main_thread().is_alive():
        try:
            algorithm = tickets.pop()
        except IndexError:
            return
        try:
            made.put(generate(algorithm))
        except Exception as error:  # handed to whoever takes this key
            made.put(error)


def _bits(algorithm: str) -> int:
    bits = _RSA_BITS.get(algorithm)
    if bits is None:
        known = ", ".join(sorted(name for name in (*_RSA_BITS, *_CURVES) if name))
        raise OperatorError(f'cannot make a key for the unknown encryption algorithm "{algorithm}": it must be one of {known}')
    return bits
