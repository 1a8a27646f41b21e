"""The Secrets of a cluster that its control plane keeps: certificate authorities, the key of service accounts, and the kubeconfig.

Authorities are made until the cluster is initialized, and only looked up from then on: another CA would be another cluster's.  The
kubeconfig holds for a year and is renewed when half of it is over.  Secrets of another type than Cluster API's are a person's: they are
used, and never owned or renewed.  What was read once is not read again while the cache says that it has not changed.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.kinds import SECRET
from slipway.api.cluster.meta import manifest
from slipway.api.cluster.names import SECRET_TYPE
from slipway.api.machinery.errors import OperatorError
from slipway.fleet import certificates
from slipway.fleet import kubeconfig as adminaccess
from slipway.fleet.certificates import CertificatesError, Purpose
from slipway.fleet.clustercache import secret_name as kubeconfig_name
from slipway.fleet.controlplane import desired
from slipway.kube import kubeconfig
from slipway.kube.aio import PatchType
from slipway.kube.errors import AlreadyExistsError
from slipway.runtime import owners

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.cluster.controlplane.kubeadmcontrolplane import KubeadmControlPlane
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.contract.facts import ClusterFacts
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache

RENEWED_BEFORE = timedelta(days=365) / 2


class _Checked(NamedTuple):
    version: str
    until: datetime | None = None
    """When it is to be looked at again, however unchanged it is."""


class Credentials:
    """Looks after the Secrets of all clusters; one of it lives as long as the controller."""

    def __init__(self, client: AsyncClient, cache: Cache, clock: Callable[[], datetime]) -> None:
        self._client = client
        self._cache = cache
        self._clock = clock
        self._checked: dict[tuple[str, str], _Checked] = {}

    async def certificates(self, plane: KubeadmControlPlane, cluster: ClusterFacts, *, initialized: bool) -> list[str]:
        """The purposes for which there is no Secret.  Before the cluster is initialized what is missing is made, and nothing is left."""
        configuration = manifest(plane.spec.kubeadm_config_spec.cluster_configuration)
        owner = desired.owner(plane, controller=True)
        missing: list[Purpose] = []
        for purpose in certificates.for_control_plane(configuration):
            name = certificates.secret_name(cluster.name, purpose.name)
            if not await self._is_checked(cluster.namespace, name):
                secret = await self._client.find(SECRET, name, cluster.namespace)
                if secret is None:
                    missing.append(purpose)
                    continue
                certificates.pair_from(secret)
                self._remember(await self._own(secret, owned_certificate(secret, owner)))
        if not missing or initialized:
            return [purpose.name for purpose in missing]
        external = [certificates.secret_name(cluster.name, purpose.name) for purpose in missing if purpose.external]
        if external:
            listed = ", ".join(f"{cluster.namespace}/{name}" for name in external)
            raise CertificatesError(f"the certificates of an external etcd are a person's to bring: there is no Secret {listed}")
        await certificates.complete(self._client, cluster, missing, {}, configuration, owner)
        return []

    async def kubeconfig(self, plane: KubeadmControlPlane, cluster: ClusterFacts) -> bool:
        """Whether there is a kubeconfig; there is none while there is no CA."""
        name, namespace = kubeconfig_name(cluster.name), cluster.namespace
        if await self._is_checked(namespace, name):
            return True
        owner = desired.owner(plane, controller=True)
        secret = await self._client.find(SECRET, name, namespace)
        algorithm = plane.spec.kubeadm_config_spec.cluster_configuration.encryption_algorithm
        if secret is None:
            content = await self._make(cluster, f"https://{cluster.endpoint}", algorithm)
            if content is None:
                return False
            # Where somebody else was faster, theirs is looked at the next time.
            with suppress(AlreadyExistsError):
                await self._client.create(SECRET, adminaccess.secret(cluster, content, owner))
            return True
        if secret.get("type") == SECRET_TYPE:
            references = owners.ensure(_without_controller(secret, owner), owner)
            secret = await self._own(secret, references)
        if not owners.is_controlled_by(secret, {"metadata": plane.metadata}):
            self._remember(secret)
            return True
        document = _document(secret)
        expiry = _expiry(document, f"{namespace}/{name}")
        if expiry - self._clock() < RENEWED_BEFORE:
            content = await self._make(cluster, _server(document, cluster), algorithm)
            if content is None:
                return False
            secret = await self._client.update(SECRET, {**secret, "data": {"value": b64encode(content).decode()}})
            expiry = _expiry(_document(secret), f"{namespace}/{name}")
        self._remember(secret, expiry - RENEWED_BEFORE)
        return True

    async def _make(self, cluster: ClusterFacts, server: str, algorithm: str) -> bytes | None:
        secret = await self._client.find(SECRET, certificates.secret_name(cluster.name, certificates.CA), cluster.namespace)
        if secret is None:
            return None
        pair = certificates.pair_from(secret)
        return await asyncio.to_thread(adminaccess.content, cluster.name, server, pair, self._clock(), algorithm)

    async def _own(self, secret: Manifest, references: list[Manifest]) -> Manifest:
        metadata = secret["metadata"]
        if references == (metadata.get("ownerReferences") or []):
            return secret
        patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "ownerReferences": references}}
        return await self._client.patch(SECRET, metadata["name"], metadata["namespace"], patch, type=PatchType.MERGE)

    async def _is_checked(self, namespace: str, name: str) -> bool:
        checked = self._checked.get((namespace, name))
        if checked is None or (checked.until is not None and self._clock() >= checked.until):
            return False
        # One without the label of its cluster is not in the cache, and is read every time.
        known = await self._cache.get(SECRET, name, namespace)
        return known is not None and known.metadata.resource_version == checked.version

    def _remember(self, secret: Manifest, until: datetime | None = None) -> None:
        metadata = secret["metadata"]
        self._checked[metadata["namespace"], metadata["name"]] = _Checked(metadata["resourceVersion"], until)

    def forget(self, cluster: ClusterFacts) -> None:
        """The cluster is gone."""
        for namespace, name in list(self._checked):
            if namespace == cluster.namespace and name.startswith(f"{cluster.name}-"):
                del self._checked[namespace, name]


def owned_certificate(secret: Manifest, owner: Manifest) -> list[Manifest]:
    """The owner references that a Secret is to have: the control plane controls those of Cluster API's type, and no others."""
    controller = owners.controller_of(secret)
    references: list[Manifest] = list(secret["metadata"].get("ownerReferences") or ())
    if controller is not None and controller.get("kind") == owner["kind"]:
        references = owners.ensure(references, owner)
    if secret.get("type") == SECRET_TYPE:
        references = owners.ensure(_without_controller(secret, owner), owner)
    return references


def _without_controller(secret: Manifest, owner: Manifest) -> list[Manifest]:
    return [
        reference
        for reference in secret["metadata"].get("ownerReferences") or ()
        if not reference.get("controller") or owners.same_owner(reference, owner)
    ]


def _document(secret: Manifest) -> kubeconfig.Document:
    metadata = secret["metadata"]
    where = f"of the Secret {metadata['namespace']}/{metadata['name']}"
    return kubeconfig.load(kubeconfig.decoded((secret.get("data") or {}).get("value"), f"the kubeconfig {where}"), where)


def _server(document: kubeconfig.Document, cluster: ClusterFacts) -> str:
    """Where the kubeconfig led so far: somebody may have changed it."""
    found = kubeconfig.named(document, "cluster", cluster.name) or {}
    return str(found.get("server") or f"https://{cluster.endpoint}")


def _expiry(document: kubeconfig.Document, where: str) -> datetime:
    """When the first of the certificates that it holds ends."""
    from slipway.credentials import x509

    ends = []
    for user in document.get("users") or ():
        data = kubeconfig.decoded((user.get("user") or {}).get("client-certificate-data"), f"the client certificate in the Secret {where}")
        try:
            ends.append(x509.parse(data)[0].not_valid_after_utc)
        except (ValueError, IndexError) as error:
            raise OperatorError(
                f"the client certificate in the kubeconfig of the Secret {where} cannot be read: {error or 'there is none'}; "
                "delete the Secret and it is made anew"
            ) from None
    if not ends:
        raise OperatorError(f"the kubeconfig of the Secret {where} has no user; delete the Secret and it is made anew")
    return min(ends)
