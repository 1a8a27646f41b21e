"""A real TPM 2.0, or swtpm in place of one, as a host's identity.

The endorsement key is that of TCG's RSA-2048 template, which gives the same key each time, with the certificate of the maker
where the TPM has one.  The attestation key is made beside it, below the endorsement hierarchy, so that nothing has to be kept
on the host's disk or in the TPM.  Making keys takes a TPM some seconds, and every call waits for it.
"""

from __future__ import annotations

import struct
from base64 import b64encode
from functools import cached_property
from typing import TYPE_CHECKING, Any

from slipway.credentials.tpm import structures
from slipway.credentials.tpm.channel import Channel, ResponseError, TPMError
from slipway.credentials.tpm.structures import Reader, StructureError, sized

if TYPE_CHECKING:
    from types import TracebackType

    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

RESOURCE_MANAGER = "/dev/tpmrm0"
_CREATE_PRIMARY, _CERTIFY_CREATION, _ACTIVATE_CREDENTIAL = 0x131, 0x14A, 0x147
_START_SESSION, _POLICY_SECRET, _FLUSH, _READ_PUBLIC = 0x176, 0x151, 0x165, 0x173
_NV_READ_PUBLIC, _NV_READ = 0x169, 0x14E
_NO_KEY = 0x40000007
_POLICY_SESSION = 0x01
_PERSISTENT_ENDORSEMENT = 0x81010001
_CERTIFICATE, _NONCE = 0x01C00002, 0x01C00003
_NV_CHUNK, _NV_MOST = 512, 8192


class TPMDevice:
    """The TPM at a path; see :mod:`.channel` for which paths there are.  It is to be closed."""

    def __init__(self, path: str = RESOURCE_MANAGER) -> None:
        self._channel = Channel(path)
        self._loaded: list[int] = []

    def __enter__(self) -> TPMDevice:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Free the TPM's few places for keys, which a device without a resource manager would not get back."""
        try:
            for handle in reversed(self._loaded):
                self._flush(handle)
        finally:
            self._loaded.clear()
            self._channel.close()

    @cached_property
    def endorsement_pem(self) -> bytes:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
        from cryptography.x509 import load_der_x509_certificate

        public = self._endorsement_public_key
        if data := self._nv(_CERTIFICATE):
            try:
                certificate = load_der_x509_certificate(_der(data))
                if certificate.public_key() == public:
                    return certificate.public_bytes(Encoding.PEM)
            except ValueError:
                pass  # makers leave other things there too; the key speaks for itself
        return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def attestation_key(self) -> dict[str, Any]:
        handle, public, created, created_hash, ticket = self._attestation
        # Our own qualifying data, then the scheme of the key itself.
        parameters = sized(b"") + sized(created_hash) + struct.pack(">H", structures.NULL) + ticket
        reader = _parameters(self._channel.run("CertifyCreation", _CERTIFY_CREATION, (handle, handle), parameters, (0,)), "CertifyCreation")
        attest, signature = reader.sized(), reader.rest()
        blobs = {"Public": public, "CreateData": created, "CreateAttestation": attest, "CreateSignature": signature}
        return {"UseTCSDActivationFormat": False, **{name: b64encode(blob).decode() for name, blob in blobs.items()}}

    def activate(self, credential: bytes, secret: bytes) -> bytes:
        endorsement, attestation = self._endorsement[0], self._attestation[0]
        # No key, not bound, a nonce that nobody needs, no secret, no encryption of parameters.
        parameters = sized(bytes(16)) + sized(b"") + struct.pack(">BHH", _POLICY_SESSION, structures.NULL, structures.SHA256)
        started = self._channel.run("StartAuthSession", _START_SESSION, (_NO_KEY, _NO_KEY), parameters)
        session = _Response(started, "StartAuthSession").number(4)
        try:
            no_limits = sized(b"") + sized(b"") + sized(b"") + struct.pack(">i", 0)
            self._channel.run("PolicySecret", _POLICY_SECRET, (structures.ENDORSEMENT, session), no_limits, (0,))
            answer = self._channel.run(
                "ActivateCredential", _ACTIVATE_CREDENTIAL, (attestation, endorsement), credential + secret, (0, session)
            )
        finally:
            self._flush(session)
        return _parameters(answer, "ActivateCredential").sized()

    @cached_property
    def _endorsement(self) -> tuple[int, bytes]:
        """The handle and the public area of the EK."""
        try:
            # Who set the TPM up may have kept the key in it, which saves the seconds of making it.
            public = _Response(self._channel.run("ReadPublic", _READ_PUBLIC, (_PERSISTENT_ENDORSEMENT,)), "ReadPublic").sized()
            if structures.read_public(public).policy == structures.ENDORSEMENT_POLICY:
                return _PERSISTENT_ENDORSEMENT, public
        except (ResponseError, StructureError):
            pass  # there is none, or it is another key
        nonce = self._nv(_NONCE)
        unique = nonce[: structures.KEY_BITS // 8].ljust(structures.KEY_BITS // 8, b"\0")
        handle, public, *_ = self._create_primary(structures.endorsement_public(unique))
        return handle, public

    @cached_property
    def _endorsement_public_key(self) -> RSAPublicKey:
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

        public = structures.read_public(self._endorsement[1])
        return RSAPublicNumbers(public.exponent, int.from_bytes(public.modulus, "big")).public_key()

    @cached_property
    def _attestation(self) -> tuple[int, bytes, bytes, bytes, bytes]:
        return self._create_primary(structures.attestation_public(b""))

    def _create_primary(self, template: structures.Public) -> tuple[int, bytes, bytes, bytes, bytes]:
        """The handle, the public area, the creation data with its hash, and the ticket that says that they belong together."""
        no_secret = sized(sized(b"") + sized(b""))
        parameters = no_secret + sized(template.encode()) + sized(b"") + struct.pack(">I", 0)
        response = self._channel.run("CreatePrimary", _CREATE_PRIMARY, (structures.ENDORSEMENT,), parameters, (0,))
        handle = _Response(response, "CreatePrimary").number(4)
        self._loaded.append(handle)
        reader = _parameters(response[4:], "CreatePrimary")
        public, created, created_hash = reader.sized(), reader.sized(), reader.sized()
        ticket = reader.take(6)
        return handle, public, created, created_hash, ticket + sized(reader.sized())

    def _nv(self, index: int) -> bytes:
        """What the TPM keeps at an index, if anything."""
        try:
            public = _Response(self._channel.run("NV_ReadPublic", _NV_READ_PUBLIC, (index,)), "NV_ReadPublic")
        except ResponseError:
            return b""
        # Index, hash and attributes are before the policy, and the size is after it.
        area = _Response(public.sized(), "NV_ReadPublic")
        area.take(4 + 2 + 4)
        area.sized()
        size = min(area.number(2), _NV_MOST)
        # What makers put there is for whoever asks; some ask for the owner to ask.
        for reader in (index, structures.OWNER):
            data = b""
            try:
                while len(data) < size:
                    span = struct.pack(">HH", min(_NV_CHUNK, size - len(data)), len(data))
                    data += _parameters(self._channel.run("NV_Read", _NV_READ, (reader, index), span, (0,)), "NV_Read").sized()
            except ResponseError:
                continue
            return data
        return b""

    def _flush(self, handle: int) -> None:
        self._channel.run("FlushContext", _FLUSH, (), struct.pack(">I", handle))


class _Response(Reader):
    """What a TPM says; the operator learns of one that speaks otherwise than it should."""

    def __init__(self, data: bytes, command: str) -> None:
        super().__init__(data, f"the TPM's response to {command}")

    def take(self, count: int) -> bytes:
        try:
            return super().take(count)
        except StructureError as error:
            raise TPMError(str(error)) from error


def _parameters(response: bytes, command: str) -> _Response:
    """The parameters of a response with sessions; the sessions are after them."""
    outer = _Response(response, command)
    return _Response(outer.take(outer.number(4)), command)


def _der(data: bytes) -> bytes:
    """The certificate without what fills the place after it."""
    if len(data) < 4 or data[:2] != b"\x30\x82":
        return data
    return data[: 4 + int.from_bytes(data[2:4], "big")]
