"""The serving certificate of webhooks and the authority that vouches for it: made here, renewed in time, shared by all replicas.

What a set of certificates needs is decided by :func:`renewed`, a function of the set and the time.  Where the set is kept and who must
learn of it is in :mod:`slipway.runtime.webhook.store`.
"""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING

import msgspec

from slipway.api.machinery.duration import Duration
from slipway.api.machinery.errors import OperatorError
from slipway.credentials import keys, x509
from slipway.credentials.profile import SERVER_AUTH, Profile

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cryptography.x509 import Certificate

AUTHORITY_VALIDITY = Duration.of(hours=24 * 365)
SERVING_VALIDITY = Duration.of(hours=24 * 90)
# An authority is told to everybody this long before the first certificate of its own is shown.
OVERLAP = timedelta(hours=1)
# Of its life, when a certificate is renewed.
_DUE = 2 / 3
_ALGORITHM = "ECDSA-P256"
_AUTHORITY = "slipway-webhook-ca"


class CertificateSet(msgspec.Struct, frozen=True):
    """PEM.  ``authorities`` has the newest first, with those before it until they end; ``authority_key`` is the newest one's key."""

    authorities: bytes
    authority_key: bytes
    certificate: bytes
    key: bytes


def renewed(
    current: CertificateSet | None, names: Sequence[str], now: datetime, *, authority_validity: Duration = AUTHORITY_VALIDITY
) -> CertificateSet:
    """The set that should be there now; the same one while nothing is due.  ``names`` are host names and addresses.

    A new authority stands beside the old one first, and signs once everybody had the time to learn of it.
    """
    known = _known(current, now)
    if known is None or current is None:
        authority = _authority(now, authority_validity)
        return _set([authority.certificate], authority, *_serving(authority, names, now))
    authorities, authority, serving = known
    if _due(authorities[0], now):
        authority = _authority(now, authority_validity)
        authorities = [authority.certificate, *authorities]
    certificate, key = current.certificate, current.key
    if _needs_renewal(serving, authorities, names, now):
        certificate, key = _serving(authority, names, now)
    made = _set(authorities, authority, certificate, key)
    return current if made == current else made


def next_renewal(current: CertificateSet) -> datetime:
    """When there is something to do for this set."""
    newest, serving = x509.parse(current.authorities)[0], x509.parse(current.certificate)[0]
    settled = newest.not_valid_before_utc + OVERLAP
    return min(_due_at(newest), settled if _unsigned(serving, newest) else max(settled, _due_at(serving)))


def check_pair(certificate: bytes, key: bytes, source: str) -> None:
    """That a certificate can be read and its key belongs to it."""
    try:
        matches = x509.belongs_to(x509.parse(certificate)[0], keys.parse_private(key))
    except ValueError as error:
        raise OperatorError(f"{source} cannot be used: {error}") from None
    if not matches:
        raise OperatorError(f"{source} cannot be used: the key in tls.key is not that of tls.crt")


def _known(current: CertificateSet | None, now: datetime) -> tuple[list[Certificate], x509.Authority, Certificate] | None:
    """The authorities that still hold, the newest with its key, and the serving certificate; None where the set is of no use."""
    if current is None:
        return None
    try:
        authorities = [found for found in x509.parse(current.authorities) if not x509.period_problem(found, now)]
        authority_key, serving = keys.parse_private(current.authority_key), x509.parse(current.certificate)[0]
        keys.parse_private(current.key)
    except ValueError:
        return None
    if not authorities or not x509.belongs_to(authorities[0], authority_key):
        return None
    return authorities, x509.Authority(authorities[0], authority_key), serving


def _needs_renewal(serving: Certificate, authorities: Sequence[Certificate], names: Sequence[str], now: datetime) -> bool:
    if x509.missing_names(serving, serving_profile(names)) or all(
        x509.chain_problem(serving, [], authority, now) for authority in authorities
    ):
        # Nobody is served as it is.
        return True
    settled = now >= authorities[0].not_valid_before_utc + OVERLAP
    return settled and (_due(serving, now) or _unsigned(serving, authorities[0]))


def _unsigned(serving: Certificate, authority: Certificate) -> bool:
    return bool(x509.chain_problem(serving, [], authority, serving.not_valid_before_utc + timedelta(minutes=6)))


def _due(certificate: Certificate, now: datetime) -> bool:
    return now >= _due_at(certificate)


def _due_at(certificate: Certificate) -> datetime:
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return certificate.not_valid_before_utc + life * _DUE


def _authority(now: datetime, validity: Duration) -> x509.Authority:
    # Each one has a name of its own, or a chain could be tried with the wrong one.
    profile = Profile(common_name=f"{_AUTHORITY}-{int(now.timestamp())}")
    key = keys.generate(_ALGORITHM)
    return x509.Authority(x509.self_signed(profile, key, x509.period(now, validity), sha256_key_id=True), key)


def _serving(authority: x509.Authority, names: Sequence[str], now: datetime) -> tuple[bytes, bytes]:
    key = keys.generate(_ALGORITHM)
    certificate = x509.signed(serving_profile(names), key.public_key(), authority, x509.period(now, SERVING_VALIDITY))
    return x509.pem(certificate), keys.private_pem(key)


def serving_profile(names: Sequence[str]) -> Profile:
    addresses = [name for name in names if is_address(name)]
    dns_names = sorted({name for name in names if not is_address(name)})
    return Profile(
        common_name=(dns_names or addresses or ["slipway-webhook"])[0][:64],
        usages=(SERVER_AUTH,),
        dns_names=tuple(dns_names),
        addresses=tuple(dict.fromkeys(str(ip_address(address)) for address in addresses)),
    )


def is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _set(authorities: Sequence[Certificate], authority: x509.Authority, certificate: bytes, key: bytes) -> CertificateSet:
    return CertificateSet(b"".join(map(x509.pem, authorities)), keys.private_pem(authority.key), certificate, key)
