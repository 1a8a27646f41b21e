"""Which OS image a Kubernetes version is booted from: the image catalog, and the registry that hosts pull from.

The catalog is a ConfigMap with a key a version, such as ``v1.34.5``.  Its values are image references; at a reprovision the registry part
of one is replaced by the registry of the platform, and tag and digest stay as they are.
"""

from __future__ import annotations

import re
from base64 import b64decode
from typing import TYPE_CHECKING

from slipway.api.cluster.infrastructure.names import REGISTRY_ADDRESS_ANNOTATION
from slipway.api.elemental.names import PLAN_SECRET_TYPE
from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.machinery.objects import Manifest

REGISTRY_KEY = "address"
"""Of the platform registry's Secret."""

# The grammar of distribution/reference, and its limits.
_ALPHANUMERIC = r"[a-z0-9]+"
_COMPONENT = rf"{_ALPHANUMERIC}(?:(?:\.|_|__|-+){_ALPHANUMERIC})*"
_DOMAIN_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PATH = rf"{_COMPONENT}(?:/{_COMPONENT})*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_REST = re.compile(rf"(?P<path>{_PATH})(?::{_TAG})?(?:@{_DIGEST})?", re.ASCII)
_REGISTRY = re.compile(rf"{_DOMAIN}(?:/{_PATH})?", re.ASCII)
_REGISTRY_HOST = re.compile(_DOMAIN, re.ASCII)
_LONGEST_PATH = 255
_SHA256 = re.compile(r"@sha256:(?![0-9a-f]{64}$)", re.ASCII)


class CatalogMissError(OperatorError):
    """The catalog has no image of a version."""


class RegistryMissingError(OperatorError):
    """Nobody has said which registry hosts pull from."""


class InvalidImageError(OperatorError):
    """What the catalog or the registry's address says is no image reference."""


def image(catalog: Mapping[str, str] | None, where: str, version: str, registry: str, cluster: str) -> str:
    """The reference that a host of the version pulls.

    ``catalog`` is the data of the ConfigMap at ``where``, None where there is no such ConfigMap; ``registry`` is the address of the
    platform's registry, empty where none is known; ``cluster`` is whose annotation could name it.
    """
    found = entry(catalog, where, version)
    if not registry:
        raise RegistryMissingError(
            f"it is not known which registry hosts pull from: set the annotation {REGISTRY_ADDRESS_ANNOTATION} on the Cluster {cluster}"
        )
    _, rest = split(found, f"the entry {key(version)} of the ConfigMap {where}")
    address = registry.strip().removeprefix("https://").removeprefix("http://").rstrip("/")
    if not _REGISTRY.fullmatch(address):
        raise InvalidImageError(f'the registry\'s address "{registry}" of the Cluster {cluster} is no host or host:port')
    return f"{address}/{rest}"


def platform_registry(secret: Manifest | None) -> str:
    """The address in the platform registry's Secret; empty where it has none.  A host's own Secret, to which the host writes, is none."""
    if secret is None or secret.get("type") == PLAN_SECRET_TYPE:
        return ""
    return b64decode((secret.get("data") or {}).get(REGISTRY_KEY) or "").decode(errors="replace").strip()


def key(version: str) -> str:
    """The key of a version: with a leading v."""
    return version if version.startswith("v") else f"v{version}"


def split(reference: str, what: str) -> tuple[str, str]:
    """The registry of an image reference, empty where it names none, and the rest of it with tag and digest."""
    first, slash, after = reference.partition("/")
    # As docker tells a registry from a folder of its own.
    named = bool(slash) and ("." in first or ":" in first or first == "localhost" or first != first.lower())
    registry, rest = (first, after) if named else ("", reference)
    parsed = _REST.fullmatch(rest)
    wrong = (
        parsed is None
        or len(parsed["path"]) > _LONGEST_PATH
        or _SHA256.search(rest)
        or (registry and not _REGISTRY_HOST.fullmatch(registry))
    )
    if wrong:
        shown = reference if len(reference) <= 200 else f"{reference[:200]}…"
        raise InvalidImageError(f'{what} is no image reference: "{shown}"; one is such as registry.example.com/folder/image:tag')
    return registry, rest


def entry(catalog: Mapping[str, str] | None, where: str, version: str) -> str:
    """What the catalog has for a version."""
    if not version:
        raise CatalogMissError("the Machine has no spec.version, by which its image is found: set it in what the Machine is made from")
    if catalog is None:
        raise CatalogMissError(f"there is no ConfigMap {where}, which says by which image a host gets Kubernetes {version}: make it")
    wanted = key(version)
    if wanted in catalog:
        return catalog[wanted].strip()
    if wanted.removeprefix("v") in catalog:
        raise CatalogMissError(
            f'the ConfigMap {where} has the key "{wanted.removeprefix("v")}" without its leading v: rename it to "{wanted}"'
        )
    has = ", ".join(sorted(catalog)[:20]) or "nothing"
    raise CatalogMissError(f'the ConfigMap {where} has no key "{wanted}": add it with the image of that version; it has {has}')
