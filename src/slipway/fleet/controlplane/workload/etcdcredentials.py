"""Who a control plane is for the etcd of its cluster: a client certificate that the cluster's etcd CA signs, kept while that CA stays.

It is made in memory and goes nowhere.  An etcd CA without a key is an external one, which signs nothing for us: its etcd is not asked.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.duration import Duration
from slipway.api.machinery.errors import OperatorError
from slipway.credentials import tls
from slipway.workload import etcdaio

if TYPE_CHECKING:
    import ssl
    from datetime import datetime

    from slipway.fleet.certificates import KeyPair

_VALIDITY = Duration.of(hours=24)
# Half of the time is left then, for a clock that is wrong and for a reconcile that takes long.
_RENEWED = timedelta(hours=12)
_KEPT = 1000
_ALGORITHM = "ECDSA-P256"


class _Kept(NamedTuple):
    authority: bytes
    made: datetime
    context: ssl.SSLContext


class EtcdCredentials:
    """TLS contexts by cluster; one for all reconciles of a manager."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], _Kept] = {}

    def context(self, namespace: str, cluster: str, authority: KeyPair, now: datetime) -> ssl.SSLContext:
        """What is shown to the members of a cluster, and whom they must be signed by."""
        kept = self._kept.pop((namespace, cluster), None)
        if kept is None or kept.authority != authority.certificate or now - kept.made > _RENEWED:
            kept = _Kept(authority.certificate, now, client_context(f"etcd of the cluster {namespace}/{cluster}", authority, now))
        # Last used, last to go.
        self._kept[namespace, cluster] = kept
        while len(self._kept) > _KEPT:
            del self._kept[next(iter(self._kept))]
        return kept.context

    def forget(self, namespace: str, cluster: str) -> None:
        self._kept.pop((namespace, cluster), None)


def client_context(whose: str, authority: KeyPair, now: datetime) -> ssl.SSLContext:
    from slipway.credentials import keys, x509
    from slipway.credentials.profile import CLIENT_AUTH, Profile

    if not authority.key:
        raise OperatorError(f"the CA of the {whose} has no key with which a client certificate could be signed")
    try:
        certificates, key = x509.parse(authority.certificate), keys.parse_private(authority.key)
    except ValueError as error:
        raise OperatorError(f"the CA of the {whose} cannot be read: {error}") from None
    client = keys.generate(_ALGORITHM)
    profile = Profile(common_name="slipway-controlplane", usages=(CLIENT_AUTH,))
    signed = x509.signed(profile, client.public_key(), x509.Authority(certificates[0], key), x509.period(now, _VALIDITY))
    context = tls.client_context(whose, ca=authority.certificate, certificate=x509.pem(signed), key=keys.private_pem(client))
    return etcdaio.chain_only(context)
