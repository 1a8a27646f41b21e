"""Kubeconfigs as documents: made, written as the releases write them, and read."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import TYPE_CHECKING, Any

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml

if TYPE_CHECKING:
    from slipway.api.releases import Release

Document = dict[str, Any]

_LISTS = ("clusters", "contexts", "users")


def document(*, server: str, cluster: str, user: str, ca: bytes, credentials: dict[str, str]) -> Document:
    """A kubeconfig with one context; ``credentials`` are the fields of its user."""
    trust = {"certificate-authority-data": encoded(ca)} if ca else {}
    context = f"{user}@{cluster}"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {**trust, "server": server}}],
        "contexts": [{"name": context, "context": {"cluster": cluster, "user": user}}],
        "current-context": context,
        "users": [{"name": user, "user": credentials}],
    }


def text(kubeconfig: Document, release: Release) -> str:
    """The file as the release writes it: entries by name, and empty preferences only where the release has them."""
    entries = {kind: sorted(kubeconfig.get(kind) or [], key=lambda entry: str(entry.get("name", ""))) for kind in _LISTS}
    rest = {name: value for name, value in kubeconfig.items() if name != "preferences"}
    preferences = kubeconfig.get("preferences") or {}
    if preferences or release.null_creation_timestamp:
        rest["preferences"] = preferences
    return goyaml.dump({**rest, **entries})


def encoded(data: bytes) -> str:
    return b64encode(data).decode()


def load(data: bytes, path: str) -> Document:
    """An existing file; an error names it."""
    documents = goyaml.load(data.decode(errors="replace"), path)
    value = documents[0].value if documents else None
    if not isinstance(value, dict):
        raise OperatorError(f"failed to load kubeconfig file {path}: it does not hold a kubeconfig")
    for kind in _LISTS:
        entries = value.get(kind) or []
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise OperatorError(f"failed to load kubeconfig file {path}: {kind} must be a list of named entries")
    return value


def named(kubeconfig: Document, kind: str, name: str) -> Document | None:
    """The cluster, context or user of that name: ``named(config, "cluster", "kubernetes")``."""
    for entry in kubeconfig.get(f"{kind}s") or []:
        if entry.get("name") == name:
            found = entry.get(kind)
            return found if isinstance(found, dict) else {}
    return None


def decoded(data: object, what: str) -> bytes:
    """The bytes of a ``*-data`` field."""
    try:
        return b64decode(str(data or ""), validate=True)
    except Base64Error as error:
        raise OperatorError(f"{what} is not base64: {error}") from error
