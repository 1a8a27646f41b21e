"""Kubeconfigs as documents: made, written as the releases write them, and read."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import TYPE_CHECKING, Any

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.api.releases import Release

Document = dict[str, Any]

_LISTS = ("clusters", "contexts", "users")
# What an entry says where a file is: from the kubeconfig's own folder, unless the path is absolute.
_PATHS = {"cluster": ("certificate-authority",), "user": ("client-certificate", "client-key", "tokenFile")}


def document(*, server: str, cluster: str, user: str, ca: bytes, credentials: dict[str, str], namespace: str = "") -> Document:
    """A kubeconfig with one context; ``credentials`` are the fields of its user."""
    trust = {"certificate-authority-data": encoded(ca)} if ca else {}
    context = f"{user}@{cluster}"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {**trust, "server": server}}],
        "contexts": [{"name": context, "context": {"cluster": cluster, **({"namespace": namespace} if namespace else {}), "user": user}}],
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
        if not isinstance(entries, list) or not all(_is_entry(entry, kind.removesuffix("s")) for entry in entries):
            raise OperatorError(f"failed to load kubeconfig file {path}: {kind} must be a list of named entries")
    if not isinstance(value.get("current-context") or "", str):
        raise OperatorError(f"failed to load kubeconfig file {path}: current-context must be the name of a context")
    return value


def _is_entry(entry: object, kind: str) -> bool:
    """Whether something in a list has a name and what the list is of, each left out or of its own type."""
    return isinstance(entry, dict) and isinstance(entry.get("name") or "", str) and isinstance(entry.get(kind) or {}, dict)


def named(kubeconfig: Document, kind: str, name: str) -> Document | None:
    """The cluster, context or user of that name: ``named(config, "cluster", "kubernetes")``."""
    for entry in kubeconfig.get(f"{kind}s") or []:
        if entry.get("name") == name:
            found = entry.get(kind)
            return found if isinstance(found, dict) else {}
    return None


def standard_files(environment: Mapping[str, str]) -> list[str]:
    """Where a user's kubeconfig is looked for, as NewDefaultClientConfigLoadingRules of client-go 0.35.4 has it: in the files of
    KUBECONFIG, and only where that is not set in ~/.kube/config.
    """
    if named_files := environment.get("KUBECONFIG"):
        return list(dict.fromkeys(path for path in named_files.split(":") if path))
    return [f"{environment['HOME']}/.kube/config"] if environment.get("HOME") else []


def merged(documents: Mapping[str, Document]) -> Document:
    """Kubeconfigs by path as one, as ClientConfigLoadingRules.Load of client-go 0.35.4 merges them: what comes first wins, and an
    entry is taken whole.  Paths in entries become absolute where their file's is.
    """
    result: Document = {}
    for path, kubeconfig in documents.items():
        for field, value in kubeconfig.items():
            if field not in _LISTS and value:
                result.setdefault(field, value)
        for kind in _LISTS:
            known = result.setdefault(kind, [])
            names = {entry.get("name") for entry in known}
            known += [
                _resolved(entry, kind.removesuffix("s"), path) for entry in kubeconfig.get(kind) or [] if entry.get("name") not in names
            ]
    return result


def _resolved(entry: Document, kind: str, path: str) -> Document:
    content, folder = entry.get(kind), path.rpartition("/")[0]
    if not isinstance(content, dict) or not folder:
        return entry
    relative = {field: content[field] for field in _PATHS.get(kind, ()) if content.get(field) and not str(content[field]).startswith("/")}
    return {**entry, kind: {**content, **{field: f"{folder}/{reference}" for field, reference in relative.items()}}}


def decoded(data: object, what: str) -> bytes:
    """The bytes of a ``*-data`` field; the ends of lines in it are passed over, as Go does."""
    if not isinstance(data, str | None):
        raise OperatorError(f"{what} must be text in base64")
    try:
        return b64decode((data or "").replace("\r", "").replace("\n", ""), validate=True)
    except Base64Error as error:
        raise OperatorError(f"{what} is not base64: {error}") from error
