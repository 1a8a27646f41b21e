"""What a host is given: its plan Secret, and an account that can read and update that one Secret and nothing else.

The Secret comes first, and the rights only when it is known to be the host's: a host may bring a name that a Secret of somebody else has.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.api import rbac as api
from slipway.api.cluster.kinds import ROLE, ROLE_BINDING, SECRET, SERVICE_ACCOUNT, path
from slipway.api.elemental import names, plan
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract import secrets
from slipway.kube.errors import AlreadyExistsError
from slipway.runtime import owners, rbac
from slipway.runtime.rbac import READ, rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient
    from slipway.runtime.cache.cache import Cache

VERBS = ("get", "list", "watch", "update")
"""What an agent does with its Secret."""
LABELS = {names.MANAGED_LABEL: names.MANAGED}
SELECTOR = f"{names.MANAGED_LABEL}={names.MANAGED}"
TOKEN_SECONDS = 365 * 24 * 3600
"""How long a token is asked for; the API server may give a shorter life.  A host asks for the next one in time, or registers anew."""

RULES = (
    # Nobody gives a right away that they do not hold: these are also what the hosts' roles have.
    rule(SECRET, *VERBS),
    rule(SECRET, "create"),
    rule(SERVICE_ACCOUNT, *READ, "create"),
    rule(SERVICE_ACCOUNT, "create", subresource="token"),
    rule(ROLE, *READ, "create", "update"),
    rule(ROLE_BINDING, *READ, "create", "update", "delete"),
)


class TakenError(OperatorError):
    """An object of the wanted name is there and is somebody else's."""


class Part(NamedTuple):
    """One of the objects that a host has, and what of it must be as we want it."""

    kind: Kind
    manifest: Manifest
    held: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        name: str = self.manifest["metadata"]["name"]
        return name

    @property
    def namespace(self) -> str:
        namespace: str = self.manifest["metadata"]["namespace"]
        return namespace

    def is_met(self, found: Manifest) -> bool:
        metadata = found["metadata"]
        labelled = LABELS.items() <= (metadata.get("labels") or {}).items()
        return labelled and all(found.get(field) == self.manifest[field] for field in self.held)


def account_name(inventory: str) -> str:
    """A host may be called ``default``, and the account of that name is not for it."""
    return f"host-{inventory}"


def parts(inventory: Manifest) -> list[Part]:
    """Everything that a host has, in the order in which it comes to be."""
    metadata = inventory["metadata"]
    name, namespace = metadata["name"], metadata["namespace"]
    account = account_name(name)
    common = {"namespace": namespace, "labels": LABELS, "ownerReferences": [owners.reference(inventory, block_deletion=False)]}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, **common, "annotations": {names.PLAN_TYPE_ANNOTATION: names.PLAN_EMPTY}},
        "type": names.PLAN_SECRET_TYPE,
        "data": {plan.PLAN: b64encode(plan.EMPTY).decode()},
    }
    holder = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, **common}, "automountServiceAccountToken": False}
    role = rbac.role(account, namespace, [rule(SECRET, *VERBS, names=(name,))])
    binding = api.binding(account, account, [rbac.service_account(account, namespace)], namespace=namespace)
    return [
        Part(SECRET, secret),
        Part(SERVICE_ACCOUNT, holder),
        Part(ROLE, {**role, "metadata": {"name": account, **common}}, ("rules",)),
        Part(ROLE_BINDING, {**binding, "metadata": {"name": account, **common}}, ("roleRef", "subjects")),
    ]


def restrict(cache: Cache) -> None:
    """Let the cache have what hosts are given, and of Secrets and accounts the metadata alone; to be said before the first use."""
    secrets.restrict(cache)
    cache.restrict(SERVICE_ACCOUNT, labels=SELECTOR, metadata_only=True)
    cache.restrict(ROLE, labels=SELECTOR)
    cache.restrict(ROLE_BINDING, labels=SELECTOR)


def cached(cache: Cache) -> Callable[[Part], Manifest | None]:
    """What the cache has of a host; what it does not have yet is made again, which the API server refuses."""

    def known(part: Part) -> Manifest | None:
        found = cache.informer(part.kind, labels=SELECTOR).store.get(part.name, part.namespace)
        return None if found is None else found.content()

    return known


async def ensure(client: AsyncClient, inventory: Manifest, known: Callable[[Part], Manifest | None]) -> None:
    """Make what is missing and mend what is not as it should be.  ``known`` says what a cache has, which spares asking for it."""
    for part in parts(inventory):
        found = known(part)
        if found is not None and owners.is_controlled_by(found, inventory) and part.is_met(found):
            continue
        await _ensure(client, inventory, part)


async def _ensure(client: AsyncClient, inventory: Manifest, part: Part) -> None:
    try:
        await client.create(part.kind, part.manifest)
        return
    except AlreadyExistsError:
        found = await client.get(part.kind, part.name, part.namespace)
    require_ours(found, part.kind, inventory)
    if part.is_met(found):
        return
    if part.kind is ROLE_BINDING and found.get("roleRef") != part.manifest["roleRef"]:
        # What a binding refers to cannot be changed.
        await client.delete(part.kind, part.name, part.namespace, resource_version=found["metadata"]["resourceVersion"])
        await client.create(part.kind, part.manifest)
        return
    metadata = {**found["metadata"], "labels": {**(found["metadata"].get("labels") or {}), **LABELS}}
    await client.update(part.kind, {**found, "metadata": metadata, **{field: part.manifest[field] for field in part.held}})


def is_ours(found: Manifest, kind: Kind, inventory: Manifest) -> bool:
    """Whether the object was made for the inventory."""
    return owners.is_controlled_by(found, inventory) and (kind is not SECRET or found.get("type") == names.PLAN_SECRET_TYPE)


def require_ours(found: Manifest, kind: Kind, inventory: Manifest) -> None:
    """An error unless the object is the inventory's own."""
    metadata = found["metadata"]
    if not is_ours(found, kind, inventory):
        where = f"{metadata.get('namespace')}/{metadata['name']}"
        raise TakenError(
            f"the {kind.kind} {where} was not made for the MachineInventory {inventory['metadata']['name']} and is left as it is: "
            "rename or delete it, or delete the MachineInventory and let the host register under another name"
        )


async def token(client: AsyncClient, inventory: str, namespace: str) -> str:
    """A token of the host's account, to be given to the host alone."""
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": TOKEN_SECONDS},
    }
    where = path(SERVICE_ACCOUNT, namespace, account_name(inventory), "token")
    answer = msgspec.json.decode(await client.raw(where, method="POST", body=msgspec.json.encode(request)))
    given: str = answer["status"]["token"]
    return given
