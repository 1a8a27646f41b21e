"""The TPM's own structures, as bytes: public areas, creation data, attestations and signatures (TPM 2.0 Library, part 2).

Of each there is what registrations need: RSA keys, and attestations of a creation.  Everything that is read comes from a
stranger: what is cut short, goes on too long or is of another kind raises StructureError.
"""

from __future__ import annotations

import hashlib
import struct
from enum import IntFlag
from typing import NamedTuple

RSA, AES, NULL, RSASSA, CFB = 0x0001, 0x0006, 0x0010, 0x0014, 0x0043
SHA256, SHA384, SHA512 = 0x000B, 0x000C, 0x000D
HASHES = {SHA256: "sha256", SHA384: "sha384", SHA512: "sha512"}
GENERATED = 0xFF544347
"""The magic number that a TPM puts before what it made itself, and signs nothing else with a restricted key."""

ATTEST_CREATION = 0x801A
OWNER, ENDORSEMENT = 0x40000001, 0x4000000B
"""Hierarchies of keys; as names they are these four bytes."""

EXPONENT = 65537
KEY_BITS = 2048
ENDORSEMENT_POLICY = bytes.fromhex("837197674484b3f81a90cc8d46a5d724fd52d76e06520b64f2a1da1b331469aa")
"""PolicySecret of the endorsement hierarchy: who may use an EK (TCG EK Credential Profile, template L-1)."""


class StructureError(ValueError):
    """Bytes that are not the structure that they should be."""


class Attribute(IntFlag):
    """What a key is for, and where it may go."""

    FIXED_TPM = 1 << 1
    FIXED_PARENT = 1 << 4
    SENSITIVE_DATA_ORIGIN = 1 << 5
    USER_WITH_AUTH = 1 << 6
    ADMIN_WITH_POLICY = 1 << 7
    NO_DA = 1 << 10
    RESTRICTED = 1 << 16
    DECRYPT = 1 << 17
    SIGN = 1 << 18


class Reader:
    """Takes big-endian values from the front of bytes."""

    def __init__(self, data: bytes, what: str) -> None:
        self._data, self._at, self._what = data, 0, what

    def take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if len(taken) < count:
            raise StructureError(f"{self._what} is cut short")
        self._at += count
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def sized(self) -> bytes:
        """Bytes behind their count of two bytes: a TPM2B."""
        return self.take(self.number(2))

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)

    def end(self) -> None:
        if self._at != len(self._data):
            raise StructureError(f"{self._what} goes on after its end")


def sized(data: bytes) -> bytes:
    """A TPM2B."""
    return struct.pack(">H", len(data)) + data


class Public(NamedTuple):
    """TPMT_PUBLIC of an RSA key.  ``symmetric`` is the cipher of a storage key, ``scheme`` the hash of a signing key (RSASSA)."""

    name_hash: int
    attributes: Attribute
    policy: bytes
    symmetric: tuple[int, int, int] | None
    scheme: int | None
    bits: int
    exponent: int
    modulus: bytes

    def encode(self) -> bytes:
        symmetric = struct.pack(">HHH", *self.symmetric) if self.symmetric else struct.pack(">H", NULL)
        scheme = struct.pack(">HH", RSASSA, self.scheme) if self.scheme else struct.pack(">H", NULL)
        # By its default of zero an exponent is 65537.
        tail = struct.pack(">HI", self.bits, 0 if self.exponent == EXPONENT else self.exponent)
        head = struct.pack(">HHI", RSA, self.name_hash, self.attributes)
        return head + sized(self.policy) + symmetric + scheme + tail + sized(self.modulus)


def read_public(data: bytes) -> Public:
    reader = Reader(data, "the public area of the key")
    kind, name_hash, attributes = reader.number(2), reader.number(2), reader.number(4)
    if kind != RSA:
        raise StructureError(f"the key is of the kind 0x{kind:04x}: only RSA keys are taken")
    policy = reader.sized()
    symmetric = None
    if (cipher := reader.number(2)) != NULL:
        symmetric = cipher, reader.number(2), reader.number(2)
    scheme = None
    if (signing := reader.number(2)) != NULL:
        if signing != RSASSA:
            raise StructureError(f"the key signs by the scheme 0x{signing:04x}: only RSASSA is taken")
        scheme = reader.number(2)
    bits, exponent, modulus = reader.number(2), reader.number(4), reader.sized()
    reader.end()
    return Public(name_hash, Attribute(attributes), policy, symmetric, scheme, bits, exponent or EXPONENT, modulus)


def name_of(public: bytes) -> bytes:
    """The name of a key, which changes with every bit of its public area: the algorithm and the hash."""
    reader = Reader(public, "the public area of the key")
    reader.take(2)
    algorithm = reader.number(2)
    return struct.pack(">H", algorithm) + digest(algorithm, public)


def digest(algorithm: int, data: bytes) -> bytes:
    if algorithm not in HASHES:
        raise StructureError(f"the hash 0x{algorithm:04x} is not taken: it must be one of {', '.join(HASHES.values())}")
    return hashlib.new(HASHES[algorithm], data).digest()


def check_creation_data(data: bytes) -> None:
    """Whether the bytes are a TPMS_CREATION_DATA: which PCRs there were, where, and below which key the key was made."""
    reader = Reader(data, "the creation data")
    count = reader.number(4)
    if count > 16:
        raise StructureError(f"the creation data selects {count} banks of PCRs")
    for _ in range(count):
        reader.take(2)
        reader.take(reader.number(1))
    reader.sized()
    reader.take(1 + 2)
    for _ in range(3):
        reader.sized()
    reader.end()


def encode_creation_data(parent: bytes, qualified_parent: bytes, parent_hash: int = NULL) -> bytes:
    """No PCRs, locality 0, and the names of the parent."""
    return struct.pack(">I", 0) + sized(b"") + struct.pack(">BH", 1, parent_hash) + sized(parent) + sized(qualified_parent) + sized(b"")


class CreationAttest(NamedTuple):
    """TPMS_ATTEST of a creation: this key was made from that creation data, says the TPM."""

    magic: int
    signer: bytes
    name: bytes
    creation_hash: bytes

    def encode(self) -> bytes:
        head = struct.pack(">IH", self.magic, ATTEST_CREATION)
        clock_and_firmware = struct.pack(">QIIBQ", 0, 0, 0, 1, 0)
        return head + sized(self.signer) + sized(b"") + clock_and_firmware + sized(self.name) + sized(self.creation_hash)


def read_creation_attest(data: bytes) -> CreationAttest:
    reader = Reader(data, "the attestation")
    magic, kind = reader.number(4), reader.number(2)
    if kind != ATTEST_CREATION:
        raise StructureError(f"the attestation is of the kind 0x{kind:04x}: it must be that of a creation")
    signer = reader.sized()
    reader.sized()
    reader.take(8 + 4 + 4 + 1 + 8)
    name, creation_hash = reader.sized(), reader.sized()
    reader.end()
    return CreationAttest(magic, signer, name, creation_hash)


class Signature(NamedTuple):
    """TPMT_SIGNATURE by RSASSA."""

    hash: int
    value: bytes

    def encode(self) -> bytes:
        return struct.pack(">HH", RSASSA, self.hash) + sized(self.value)


def read_signature(data: bytes) -> Signature:
    reader = Reader(data, "the signature")
    scheme, algorithm = reader.number(2), reader.number(2)
    if scheme != RSASSA:
        raise StructureError(f"the signature is of the scheme 0x{scheme:04x}: only RSASSA is taken")
    value = reader.sized()
    reader.end()
    return Signature(algorithm, value)


_MADE_HERE = Attribute.FIXED_TPM | Attribute.FIXED_PARENT | Attribute.SENSITIVE_DATA_ORIGIN


def endorsement_public(modulus: bytes) -> Public:
    """The EK of TCG's template L-1: RSA-2048 that decrypts, with AES-128-CFB, for whoever knows the endorsement secret."""
    attributes = _MADE_HERE | Attribute.ADMIN_WITH_POLICY | Attribute.RESTRICTED | Attribute.DECRYPT
    return Public(SHA256, attributes, ENDORSEMENT_POLICY, (AES, 128, CFB), None, KEY_BITS, EXPONENT, modulus)


def attestation_public(modulus: bytes) -> Public:
    """An AK as go-attestation makes it: RSA-2048 that signs by RSASSA with SHA-256, and nothing that the TPM did not make."""
    attributes = _MADE_HERE | Attribute.USER_WITH_AUTH | Attribute.NO_DA | Attribute.RESTRICTED | Attribute.SIGN
    return Public(SHA256, attributes, b"", None, SHA256, KEY_BITS, EXPONENT, modulus)
