"""TPMs of simulated hosts: each with an endorsement key of its own, and all of them made in no time.

Making a key takes tens of milliseconds, and deriving one from a secret hundreds; a thousand hosts would wait for minutes.  Here
every two primes make a key, so that a thousand hosts need forty-six.  Who knows two such keys can compute both: they are for
hosts that are not there.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from slipway.credentials.tpm.software import SoftwareTPM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

_EXPONENT = 65537


class SimulatedTPMs:
    """Gives every host that asks another one, on any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made = _endorsement_keys()
        self._attestation: RSAPrivateKey | None = None

    def take(self) -> SoftwareTPM:
        with self._lock:
            if self._attestation is None:
                # It signs how it was made and names nobody, so that all may have the same one.
                self._attestation = _generate()
            return SoftwareTPM.of_keys(next(self._made), self._attestation)


def _endorsement_keys() -> Iterator[RSAPrivateKey]:
    """Every product of two primes of a growing list."""
    primes: list[int] = []
    while True:
        key = _generate()
        numbers = key.private_numbers()
        yield key
        for old in primes:
            for new in (numbers.p, numbers.q):
                yield _key(old, new)
        primes += (numbers.p, numbers.q)


def _generate() -> RSAPrivateKey:
    from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

    return generate_private_key(_EXPONENT, 2048)


def _key(p: int, q: int) -> RSAPrivateKey:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateNumbers, RSAPublicNumbers, rsa_crt_dmp1, rsa_crt_dmq1, rsa_crt_iqmp

    d = pow(_EXPONENT, -1, (p - 1) * (q - 1))
    public = RSAPublicNumbers(_EXPONENT, p * q)
    numbers = RSAPrivateNumbers(p, q, d, rsa_crt_dmp1(d, p), rsa_crt_dmq1(d, q), rsa_crt_iqmp(p, q), public)
    # Testing the primes again would take longer than making new ones.
    return numbers.private_key(unsafe_skip_rsa_key_validation=True)
