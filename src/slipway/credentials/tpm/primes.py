"""RSA keys that follow from a secret: the same secret and label give the same key, on every host and in every release.

A host's identity is the hash of such a key, so how it is found must never change.
"""

from __future__ import annotations

from functools import cache
from hashlib import shake_256
from math import gcd
from typing import TYPE_CHECKING

from slipway.credentials.tpm.structures import EXPONENT, KEY_BITS

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

_SIEVED_UP_TO = 1 << 15
_WINDOW = 4096
_ROUNDS = 5
"""Of Miller and Rabin: enough for 1,024 bits and a chance below 2^-100 of a wrong one (FIPS 186-5, table B.1)."""


def derive_key(secret: bytes, label: str) -> RSAPrivateKey:
    """An RSA-2048 key; it takes a fifth of a second."""
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateNumbers, RSAPublicNumbers, rsa_crt_dmp1, rsa_crt_dmq1, rsa_crt_iqmp

    p, q = (_prime(secret, f"slipway tpm {label} {which}".encode()) for which in "pq")
    d = pow(EXPONENT, -1, (p - 1) * (q - 1) // gcd(p - 1, q - 1))
    public = RSAPublicNumbers(EXPONENT, p * q)
    numbers = RSAPrivateNumbers(p, q, d, rsa_crt_dmp1(d, p), rsa_crt_dmq1(d, q), rsa_crt_iqmp(p, q), public)
    # The primes were tested just now; testing them again takes as long as finding them.
    return numbers.private_key(unsafe_skip_rsa_key_validation=True)


def _prime(secret: bytes, label: bytes) -> int:
    """The first prime after a start that the secret gives, such that the product of two has all of its bits."""
    stream = shake_256(len(secret).to_bytes(4, "big") + secret + label).digest(KEY_BITS // 16 * (1 + _ROUNDS))
    size = KEY_BITS // 16
    start = int.from_bytes(stream[:size], "big") | 3 << (KEY_BITS // 2 - 2) | 1
    witnesses = [2, *(int.from_bytes(stream[at : at + size], "big") for at in range(size, len(stream), size))]
    while True:
        composite = bytearray(_WINDOW)
        for small in _small_primes():
            # start + 2 k is a multiple of the small prime at this k and at every small-th after it.
            first = -start * ((small + 1) // 2) % small
            composite[first::small] = b"\1" * len(range(first, _WINDOW, small))
        for k in range(_WINDOW):
            candidate = start + 2 * k
            if not composite[k] and gcd(candidate - 1, EXPONENT) == 1 and all(_is_witnessed(candidate, base) for base in witnesses):
                return candidate
        start += 2 * _WINDOW


def _is_witnessed(candidate: int, base: int) -> bool:
    """Whether the base speaks for the candidate being prime (Miller and Rabin)."""
    base = 2 + base % (candidate - 3)
    odd = candidate - 1
    twos = (odd & -odd).bit_length() - 1
    power = pow(base, odd >> twos, candidate)
    if power in (1, candidate - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % candidate
        if power == candidate - 1:
            return True
    return False


@cache
def _small_primes() -> list[int]:
    """The odd ones."""
    prime = bytearray(b"\1") * _SIEVED_UP_TO
    for number in range(3, int(_SIEVED_UP_TO**0.5) + 1, 2):
        if prime[number]:
            prime[number * number :: 2 * number] = bytes(len(range(number * number, _SIEVED_UP_TO, 2 * number)))
    return [number for number in range(3, _SIEVED_UP_TO, 2) if prime[number]]
