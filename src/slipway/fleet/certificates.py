"""The certificate authorities and keys of a cluster, Secrets of the management cluster: looked up, generated, and as files of a host.

With a control-plane object the controller of that makes them; without one, the first control-plane machine's KubeadmConfig does.
"""

from __future__ import annotations

import asyncio
import time
from base64 import b64decode, b64encode
from collections import OrderedDict
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.cluster.kinds import SECRET
from slipway.api.cluster.names import CLUSTER_NAME_LABEL, SECRET_TYPE
from slipway.api.elemental.names import PLAN_SECRET_TYPE
from slipway.api.machinery.duration import Duration
from slipway.api.machinery.errors import OperatorError
from slipway.kube.errors import AlreadyExistsError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.facts import ClusterFacts
    from slipway.kube.aio import AsyncClient

CA, ETCD_CA, SERVICE_ACCOUNT, FRONT_PROXY_CA, ETCD_CLIENT = "ca", "etcd", "sa", "proxy", "apiserver-etcd-client"

_DEFAULT_FOLDER = "/etc/kubernetes/pki"
_DEFAULT_DAYS = 3650
_REMEMBERED_SECONDS = 10.0
_REMEMBERED = 64
# The order in which they are written on a host, as upstream's provider does.
_ORDER = (CA, ETCD_CA, FRONT_PROXY_CA, SERVICE_ACCOUNT, ETCD_CLIENT)


class CertificatesError(OperatorError):
    """Certificates that a host needs are missing or cannot be used.  ``corrupted`` tells what was found from what failed to be made."""

    def __init__(self, message: str, *, corrupted: bool = True) -> None:
        super().__init__(message)
        self.corrupted = corrupted


class Purpose(NamedTuple):
    """One pair: the last part of its Secret's name and where it goes on a host.  An external one is never made here."""

    name: str
    certificate_path: str
    key_path: str = ""
    external: bool = False
    key_needed: bool = False


class KeyPair(NamedTuple):
    certificate: bytes
    key: bytes = b""


Pairs = dict[str, KeyPair]


def for_control_plane(cluster_configuration: Mapping[str, Any]) -> list[Purpose]:
    """What a control-plane node gets.  A CA without a key is an external one: the host must bring what it would have signed."""
    folder = cluster_configuration.get("certificatesDir") or _DEFAULT_FOLDER
    external = (cluster_configuration.get("etcd") or {}).get("external") or {}
    purposes = [
        Purpose(CA, f"{folder}/ca.crt", f"{folder}/ca.key"),
        Purpose(SERVICE_ACCOUNT, f"{folder}/sa.pub", f"{folder}/sa.key", key_needed=True),
        Purpose(FRONT_PROXY_CA, f"{folder}/front-proxy-ca.crt", f"{folder}/front-proxy-ca.key"),
    ]
    if not external:
        return [*purposes, Purpose(ETCD_CA, f"{folder}/etcd/ca.crt", f"{folder}/etcd/ca.key")]
    client = Purpose(ETCD_CLIENT, external.get("certFile") or "", external.get("keyFile") or "", external=True, key_needed=True)
    return [*purposes, client, Purpose(ETCD_CA, external.get("caFile") or "", external=True)]


def for_worker() -> list[Purpose]:
    """A worker is told the hash of the CA, nothing else."""
    return [Purpose(CA, "")]


def secret_name(cluster: str, purpose: str) -> str:
    return f"{cluster}-{purpose}"


def pair_from(secret: Mapping[str, Any]) -> KeyPair:
    metadata, data = secret["metadata"], secret.get("data") or {}
    where = f"{metadata.get('namespace')}/{metadata['name']}"
    if secret.get("type") == PLAN_SECRET_TYPE:
        raise CertificatesError(f"the Secret {where} is a host's own: delete the MachineInventory of that name, or rename the cluster")
    try:
        certificate, key = b64decode(data.get("tls.crt") or ""), b64decode(data.get("tls.key") or "")
    except ValueError as error:
        raise CertificatesError(f"failed to read keypair from certificate {where}: {error}") from None
    if not certificate:
        raise CertificatesError(f"failed to read keypair from certificate {where}: missing data for key tls.crt")
    for name, content in (("tls.crt", certificate), ("tls.key", key)):
        try:
            content.decode()
        except UnicodeDecodeError as error:
            why = f"{error.reason} at byte {error.start}"
            raise CertificatesError(f"failed to read keypair from certificate {where}: {name} is not PEM, which is text: {why}") from None
    return KeyPair(certificate, key)


def require(purposes: Iterable[Purpose], pairs: Pairs, cluster: ClusterFacts) -> None:
    """Every pair is there, with its key where the host needs it."""
    for purpose in purposes:
        where = f"Secret {cluster.namespace}/{secret_name(cluster.name, purpose.name)}"
        pair = pairs.get(purpose.name)
        if pair is None:
            raise CertificatesError(f"missing certificate: there is no {where}")
        if purpose.key_needed and not pair.key:
            raise CertificatesError(f"missing key data for certificate: {purpose.name}: the {where} has no tls.key")


def files(purposes: Sequence[Purpose], pairs: Pairs) -> list[dict[str, str]]:
    """The pairs as files of a host; what there is no pair for is left out."""
    made = []
    for purpose in sorted(purposes, key=lambda purpose: _ORDER.index(purpose.name)):
        pair = pairs.get(purpose.name, KeyPair(b""))
        for path, content, permissions in ((purpose.certificate_path, pair.certificate, "0640"), (purpose.key_path, pair.key, "0600")):
            if content and path:
                made.append({"path": path, "owner": "root:root", "permissions": permissions, "content": content.decode()})
    return made


def ca_hashes(certificate: bytes) -> list[str]:
    """What a joining node checks the CA with: a hash of the public key of each certificate."""
    return list(_ca_hashes(certificate))


# The nodes of a cluster all have the same.
@lru_cache(maxsize=256)
def _ca_hashes(certificate: bytes) -> tuple[str, ...]:
    from slipway.credentials import x509

    try:
        return tuple(x509.public_key_pins(certificate))
    except ValueError as error:
        raise CertificatesError(f"unable to parse {CA} certificate: {error}") from None


class CertificateSecrets:
    """Reads the Secrets; for some seconds they are remembered, as the machines of a cluster tend to come together."""

    def __init__(self, client: AsyncClient, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._known: OrderedDict[tuple[str, str], tuple[float, Manifest]] = OrderedDict()

    async def read(self, namespace: str, name: str) -> Manifest | None:
        known = self._known.get((namespace, name))
        if known is not None and self._clock() - known[0] < _REMEMBERED_SECONDS:
            return known[1]
        return await self.read_anew(namespace, name)

    async def read_anew(self, namespace: str, name: str) -> Manifest | None:
        """For what begins a cluster: one of the same name that is gone had others a moment ago."""
        secret = await self._client.find(SECRET, name, namespace)
        self._known.pop((namespace, name), None)
        if secret is not None:
            self._known[namespace, name] = self._clock(), secret
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return secret


async def look_up(read: Callable[[str, str], Awaitable[Manifest | None]], cluster: ClusterFacts, purposes: Iterable[Purpose]) -> Pairs:
    """The pairs that have a Secret; an external one must have it."""
    pairs: Pairs = {}
    for purpose in purposes:
        name = secret_name(cluster.name, purpose.name)
        secret = await read(cluster.namespace, name)
        if secret is not None:
            pairs[purpose.name] = pair_from(secret)
        elif purpose.external:
            raise CertificatesError(f"external certificate not found: there is no Secret {cluster.namespace}/{name}", corrupted=False)
    return pairs


async def complete(
    client: AsyncClient,
    cluster: ClusterFacts,
    purposes: Iterable[Purpose],
    pairs: Pairs,
    cluster_configuration: Mapping[str, Any],
    owner: Manifest,
) -> Pairs:
    """``pairs`` and new ones for what is missing, kept as Secrets that belong to ``owner``.

    A Secret that somebody else made in the meantime counts, so that there is one CA however often this is killed and run again.
    """
    done = dict(pairs)
    for purpose in purposes:
        if purpose.name in done or purpose.external:
            continue
        algorithm = cluster_configuration.get("encryptionAlgorithm") or ""
        days = cluster_configuration.get("caCertificateValidityPeriodDays") or _DEFAULT_DAYS
        pair = await asyncio.to_thread(generate, purpose.name, algorithm, days, datetime.now(UTC))
        try:
            await client.create(SECRET, _secret(cluster, purpose.name, pair, owner))
        except AlreadyExistsError:
            pair = pair_from(await client.get(SECRET, secret_name(cluster.name, purpose.name), cluster.namespace))
        done[purpose.name] = pair
    return done


def generate(purpose: str, algorithm: str, days: int, now: datetime) -> KeyPair:
    """A new CA, or a key pair for service accounts."""
    from slipway.credentials import keys, x509
    from slipway.credentials.profile import Profile

    key = keys.generate(algorithm)
    if purpose == SERVICE_ACCOUNT:
        return KeyPair(keys.public_pem(key.public_key()), keys.private_pem(key))
    period = x509.period(now, Duration.of(hours=24 * days))
    certificate = x509.self_signed(Profile(common_name="kubernetes"), key, period, sha256_key_id=False)
    return KeyPair(x509.pem(certificate), keys.private_pem(key))


def _secret(cluster: ClusterFacts, purpose: str, pair: KeyPair, owner: Manifest) -> Manifest:
    return {
        "metadata": {
            "name": secret_name(cluster.name, purpose),
            "namespace": cluster.namespace,
            "labels": {CLUSTER_NAME_LABEL: cluster.name},
            "ownerReferences": [owner],
        },
        "type": SECRET_TYPE,
        "data": {"tls.crt": b64encode(pair.certificate).decode(), "tls.key": b64encode(pair.key).decode()},
    }
