"""Where the webhooks' certificates are kept, and who must know their authority.

The Secret is shared by all replicas: whoever is first writes it, with the resourceVersion as its precondition, and the others take
what is there.  The authority goes into the webhook configurations and the CRDs' conversion clauses before a certificate is shown.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from slipway.api.cluster import kinds
from slipway.kube.aio import PatchType
from slipway.kube.errors import AlreadyExistsError, ConflictError
from slipway.runtime.webhook import certificates
from slipway.runtime.webhook.certificates import CertificateSet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.duration import Duration
    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient

_KEYS = {"authorities": "ca.crt", "authority_key": "ca.key", "certificate": "tls.crt", "key": "tls.key"}
_ATTEMPTS = 5


class Target(NamedTuple):
    """An object that names the authority: a webhook configuration, or a CRD with a conversion webhook."""

    kind: Kind
    name: str


class CertificateStore:
    """Keeps the set of certificates in ``namespace/name``; the names that it must serve are ``names`` and those that the targets call.

    An authority that is kept where nobody renews it, such as on a host's disk, needs a longer validity than that of webhooks.
    """

    def __init__(
        self,
        client: AsyncClient,
        namespace: str,
        name: str,
        targets: Sequence[Target],
        *,
        names: Sequence[str] = (),
        authority_validity: Duration = certificates.AUTHORITY_VALIDITY,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._targets = targets
        self._names = names
        self._authority_validity = authority_validity

    async def ensure(self, now: datetime) -> CertificateSet:
        """The set to serve with; made, renewed and told to the targets where that is due."""
        found = [(target, await self._client.find(target.kind, target.name)) for target in self._targets]
        called = {host for _, manifest in found if manifest is not None for host in hosts(manifest)}
        current = await self._kept(sorted({*self._names, *called}), now)
        for target, manifest in found:
            await self._tell(target, manifest, current.authorities)
        return current

    async def _kept(self, names: Sequence[str], now: datetime) -> CertificateSet:
        for attempt in range(_ATTEMPTS):
            secret = await self._client.find(kinds.SECRET, self._name, self._namespace)
            current = from_secret(secret) if secret is not None else None
            wanted = certificates.renewed(current, names, now, authority_validity=self._authority_validity)
            if wanted == current:
                return wanted
            try:
                if secret is None:
                    await self._client.create(kinds.SECRET, to_secret(wanted, self._name, self._namespace))
                else:
                    await self._client.update(kinds.SECRET, {**secret, "data": {**(secret.get("data") or {}), **_data(wanted)}})
            except (AlreadyExistsError, ConflictError):
                # Another replica was faster: what it made is as good.
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                return wanted
        raise AssertionError("unreachable")

    async def _tell(self, target: Target, manifest: Manifest | None, authorities: bytes) -> None:
        for attempt in range(_ATTEMPTS):
            if manifest is None:
                return
            patch = injection(manifest, authorities)
            if not patch:
                return
            patch["metadata"] = {"resourceVersion": manifest["metadata"]["resourceVersion"]}
            try:
                await self._client.patch(target.kind, target.name, "", patch, type=PatchType.MERGE)
                return
            except ConflictError:
                if attempt == _ATTEMPTS - 1:
                    raise
            manifest = await self._client.find(target.kind, target.name)


def hosts(manifest: Manifest) -> set[str]:
    """The hosts at which the API server will call: of a URL, or the names of a Service."""
    found = set()
    for client in _clients(manifest):
        service = client.get("service")
        if client.get("url"):
            host = urlsplit(str(client["url"])).hostname
            found |= {host} if host else set()
        elif service:
            name = f"{service.get('name')}.{service.get('namespace')}.svc"
            found |= {name, f"{name}.cluster.local"}
    return found


def injection(manifest: Manifest, authorities: bytes) -> Manifest:
    """The merge patch after which the API server trusts the authorities; empty where it does."""
    bundle = b64encode(authorities).decode()
    if all(client.get("caBundle") == bundle for client in _clients(manifest)):
        return {}
    if "webhooks" in manifest:
        hooks = [{**hook, "clientConfig": {**hook["clientConfig"], "caBundle": bundle}} for hook in manifest["webhooks"]]
        return {"webhooks": hooks}
    return {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}}}


def from_secret(secret: Manifest) -> CertificateSet | None:
    """The set in a Secret; None where a part of it is missing or is no base64."""
    data = secret.get("data") or {}
    try:
        parts = {field: b64decode(data[key], validate=True) for field, key in _KEYS.items()}
    except (KeyError, ValueError):
        return None
    return CertificateSet(**parts)


def to_secret(current: CertificateSet, name: str, namespace: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/managed-by": "slipway"}},
        "type": "kubernetes.io/tls",
        "data": _data(current),
    }


def _data(current: CertificateSet) -> dict[str, str]:
    return {key: b64encode(getattr(current, field)).decode() for field, key in _KEYS.items()}


def _clients(manifest: Manifest) -> Iterator[Manifest]:
    for hook in manifest.get("webhooks") or ():
        yield hook["clientConfig"]
    conversion = (manifest.get("spec") or {}).get("conversion") or {}
    if conversion.get("strategy") == "Webhook":
        yield (conversion.get("webhook") or {}).get("clientConfig") or {}
