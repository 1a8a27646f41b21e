"""Pulls an OS image from a registry: the reading half of the OCI distribution protocol, with every byte checked against its digest.

A private address is also asked over plain HTTP, as elemental's own client does, and any address is where certificates need not be
verified.  A registry that asks who is there gets what the host's docker configuration has for it, or is asked for a token for anybody.

It stands on the standard library alone: hosts of the lab run it beside their ``elemental``, with no package around it.
"""

from __future__ import annotations

import hashlib
import http.client
import ipaddress
import json
import os
import platform
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATIENCE = 20.0
_CHUNK = 1 << 20
_LARGEST_DOCUMENT = 4 << 20
_INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
_MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
_REFERENCE = re.compile(
    r"(?:(?P<registry>localhost(?::\d+)?|[A-Za-z0-9.-]+(?:\.[A-Za-z0-9-]+|:\d+)(?::\d+)?)/)?"
    r"(?P<repository>[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_CHALLENGE = re.compile(r'(?P<key>[a-zA-Z_]+)="(?P<value>[^"]*)"')
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class PullError(Exception):
    """An image that cannot be had, with the reason."""


class Reference(NamedTuple):
    """Where an image is."""

    registry: str
    repository: str
    tag: str
    digest: str

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{self.registry}/{self.repository}{tag}{digest}"


class Layer(NamedTuple):
    """One layer of an image."""

    digest: str
    size: int
    media_type: str
    content: str
    """The digest of the layer when it is not compressed."""


class Manifest(NamedTuple):
    """An image as its registry describes it, the lowest layer first."""

    digest: str
    layers: list[Layer]


def parse(text: str) -> Reference:
    """A reference as container tools write it; ValueError where it is none."""
    found = _REFERENCE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a reference to an image, such as registry.example:5000/os/image:v1")
    parts = found.groupdict(default="")
    registry, repository = parts["registry"], parts["repository"]
    if not registry:
        registry, repository = "index.docker.io", repository if "/" in repository else f"library/{repository}"
    return Reference(registry, repository, parts["tag"] or ("" if parts["digest"] else "latest"), parts["digest"])


class Registry:
    """A registry that answers; ``verify`` is whether its certificate must be one that this host trusts."""

    def __init__(self, address: str, *, verify: bool = True) -> None:
        self.address = address
        self._context = ssl.create_default_context()
        if not verify:
            self._context.check_hostname = False
            self._context.verify_mode = ssl.CERT_NONE
        self._authorization = ""
        self._base = self._reachable(["https"] + (["http"] if not verify or is_private(address) else []))

    def manifest(self, reference: Reference) -> Manifest:
        """The manifest of an image for this kind of processor, checked against the digest by which it was asked for."""
        digest, document = self._document(reference, reference.digest or reference.tag, reference.digest)
        if document.get("mediaType") in _INDEXES or "manifests" in document:
            digest = self._choose(reference, document)
            digest, document = self._document(reference, digest, digest)
        try:
            config = json.loads(self._small(reference, str(document["config"]["digest"])))
            contents = config["rootfs"]["diff_ids"]
            described = document["layers"]
            layers = [
                Layer(str(layer["digest"]), int(layer["size"]), str(layer["mediaType"]), str(content))
                for layer, content in zip(described, contents, strict=True)
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise PullError(f"{reference} is not an image with a root file system: {type(error).__name__} {error}") from error
        if not layers:
            raise PullError(f"{reference} is not an image with a root file system: it has no layers")
        return Manifest(digest, layers)

    def has(self, reference: Reference, layer: Layer) -> bool:
        """Whether the registry has a layer, without its transfer."""
        try:
            with self._open(f"{reference.repository}/blobs/{layer.digest}", method="HEAD"):
                return True
        except urllib.error.HTTPError:
            return False

    def blob(self, reference: Reference, digest: str) -> Iterator[bytes]:
        """The bytes of a blob; PullError at their end where they are not those of the digest."""
        total = hashlib.sha256()
        try:
            with self._open(f"{reference.repository}/blobs/{digest}") as answer:
                while chunk := answer.read(_CHUNK):
                    total.update(chunk)
                    yield chunk
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise PullError(f"{digest} of {reference} could not be read: {_reason(error)}") from error
        check(digest, f"sha256:{total.hexdigest()}", f"a blob of {reference}")

    def _document(self, reference: Reference, name: str, expected: str) -> tuple[str, dict[str, Any]]:
        accepted = ", ".join((*_MANIFESTS, *_INDEXES))
        try:
            with self._open(f"{reference.repository}/manifests/{name}", accept=accepted) as answer:
                body = answer.read(_LARGEST_DOCUMENT)
                stated = answer.headers.get("Docker-Content-Digest", "")
        except urllib.error.HTTPError as error:
            if error.code == 404:
                raise PullError(f"the registry {self.address} has no image {reference}") from error
            raise PullError(f"the registry {self.address} refuses {reference}: {error.code} {error.reason}") from error
        except OSError as error:
            raise PullError(f"the registry {self.address} does not give {reference}: {_reason(error)}") from error
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        check(expected or stated or digest, digest, f"the manifest of {reference}")
        try:
            document = json.loads(body)
        except ValueError as error:
            raise PullError(f"the manifest of {reference} is not JSON: {error}") from error
        if not isinstance(document, dict):
            raise PullError(f"the manifest of {reference} is not an object")
        return digest, document

    def _small(self, reference: Reference, digest: str) -> bytes:
        found = b""
        for chunk in self.blob(reference, digest):
            found += chunk
            if len(found) > _LARGEST_DOCUMENT:
                raise PullError(f"the configuration of {reference} is larger than {_LARGEST_DOCUMENT} bytes")
        return found

    def _choose(self, reference: Reference, index: dict[str, Any]) -> str:
        machine = _ARCHITECTURES.get(platform.machine(), platform.machine())
        for entry in index.get("manifests") or ():
            built_for = entry.get("platform") or {}
            if (built_for.get("os", "linux"), built_for.get("architecture", machine)) == ("linux", machine):
                return str(entry["digest"])
        raise PullError(f"{reference} has no image for linux/{machine}")

    def _reachable(self, schemes: list[str]) -> str:
        reasons = []
        for scheme in schemes:
            base = f"{scheme}://{self.address}/v2/"
            try:
                with urllib.request.urlopen(base, timeout=_PATIENCE, context=self._context if scheme == "https" else None):
                    return base
            except urllib.error.HTTPError as error:
                if error.code == 401:
                    # It asks who is there, and will be told where it matters.
                    return base
                reasons.append(f"{base}: {error.code} {error.reason}")
            except (OSError, ValueError) as error:
                reasons.append(f"{base}: {_reason(error)}")
        raise PullError(f"the registry {self.address} does not answer ({'; '.join(reasons)})")

    def _open(self, path: str, *, method: str = "GET", accept: str = "*/*") -> Any:
        request = urllib.request.Request(self._base + path, method=method, headers={"Accept": accept})
        try:
            return self._send(request)
        except urllib.error.HTTPError as error:
            if error.code != 401 or not (answer := self._introduction(error.headers.get("WWW-Authenticate", ""))):
                raise
            self._authorization = answer
        return self._send(request)

    def _send(self, request: urllib.request.Request) -> Any:
        if self._authorization:
            # A registry may send us on to a store of somebody else, who must not learn it.
            request.add_unredirected_header("Authorization", self._authorization)
        context = self._context if request.full_url.startswith("https:") else None
        return urllib.request.urlopen(request, timeout=_PATIENCE, context=context)

    def _introduction(self, challenge: str) -> str:
        """The answer to a registry that asks who is there; empty where there is none, or none that it has not had."""
        own = credentials(self.address)
        scheme, _, rest = challenge.partition(" ")
        if scheme.lower() == "basic":
            return own if own != self._authorization else ""
        fields = {found["key"]: found["value"] for found in _CHALLENGE.finditer(rest)}
        realm = fields.pop("realm", "")
        if scheme.lower() != "bearer" or not realm.startswith(("https://", "http://")):
            return ""
        if own and realm.startswith("http:") and self._base.startswith("https:"):
            # Who is asked over TLS for a password need not send us to somebody who hears it in the clear.
            raise PullError(f"the registry {self.address} wants the host's password to be sent to {realm}, without TLS: it is not sent")
        request = urllib.request.Request(f"{realm}?{urllib.parse.urlencode(fields)}")
        if own:
            request.add_unredirected_header("Authorization", own)
        context = self._context if realm.startswith("https:") else None
        with urllib.request.urlopen(request, timeout=_PATIENCE, context=context) as answer:
            found = json.loads(answer.read(_LARGEST_DOCUMENT))
        token = found.get("token") or found.get("access_token") if isinstance(found, dict) else ""
        return f"Bearer {token}" if token else ""


def credentials(address: str) -> str:
    """What the host's docker configuration, where other tools of the host look as well, has for a registry."""
    path = os.path.join(os.environ.get("DOCKER_CONFIG") or os.path.join(os.environ.get("HOME") or "/root", ".docker"), "config.json")
    try:
        with open(path, encoding="utf-8") as handle:
            known = json.load(handle)["auths"]
        return f"Basic {known[address]['auth']}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def check(expected: str, found: str, what: str) -> None:
    if expected != found:
        raise PullError(f"{what} is not what it is named: expected {expected}, received {found}")


def is_private(address: str) -> bool:
    """Whether a registry's address is one that plain HTTP is tried at: this host's, a .local name, or one of RFC 1918."""
    host = address.rpartition(":")[0] if re.search(r":\d+$", address) else address
    if host == "localhost" or host.endswith((".local", ".localhost")):
        return True
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return False
    return found.is_private


def _reason(error: BaseException) -> str:
    inner = getattr(error, "reason", None)
    return str(inner or error) or type(error).__name__
