"""Bootstrap tokens: their text, how they are kept as Secrets, and when they end."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from slipway.api.kubeadm.internal import BootstrapToken
from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterable

NAMESPACE = "kube-system"
SECRET_TYPE = "bootstrap.kubernetes.io/token"
USAGES = ("signing", "authentication")
PATTERN = r"\A([a-z0-9]{6})\.([a-z0-9]{16})\z"
ID_PATTERN = r"\A([a-z0-9]{6})\z"

_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
_LENGTH = 22
_TOKEN = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")
_ID = re.compile(r"[a-z0-9]{6}")
_GROUP = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]")


def is_token(text: str) -> bool:
    return _TOKEN.fullmatch(text) is not None


def is_token_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def is_group(text: str) -> bool:
    """Whether tokens may put their bearers into the group."""
    return _GROUP.fullmatch(text) is not None


def check(text: str) -> str:
    """The token, if it is one."""
    if not is_token(text):
        # kubeadm shows the pattern as Go quotes it, with its backslashes doubled.
        shown = PATTERN.replace("\\", "\\\\")
        raise OperatorError(f'the bootstrap token "{text}" was not of the form "{shown}"')
    return text


def generate() -> str:
    """A new token; every character is equally likely."""
    text = ""
    while len(text) < _LENGTH:
        # 252 is the largest multiple of 36 that a byte can reach; what is above would favour the first characters.
        text += "".join(_ALPHABET[byte % 36] for byte in os.urandom(_LENGTH) if byte < 252)
    return f"{text[:6]}.{text[6:_LENGTH]}"


def secret_name(token_id: str) -> str:
    return f"bootstrap-token-{token_id}"


def expiration(token: BootstrapToken, now: datetime) -> str:
    """When the token ends, as RFC 3339 in UTC; empty for a token without end."""
    if token.expires is not None:
        return _rfc3339(_parsed(token.expires))
    if token.ttl is not None and token.ttl > 0:
        return _rfc3339(now + timedelta(microseconds=token.ttl // 1000))
    return ""


def secret(token: BootstrapToken, now: datetime) -> dict[str, Any]:
    """The Secret that makes the token known to the cluster."""
    data = {"token-id": token.token_id, "token-secret": token.token_secret}
    if token.description:
        data["description"] = token.description
    if end := expiration(token, now):
        data["expiration"] = end
    data.update({f"usage-bootstrap-{usage}": "true" for usage in token.usages})
    if token.groups:
        data["auth-extra-groups"] = ",".join(token.groups)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": secret_name(token.token_id), "namespace": NAMESPACE},
        "type": SECRET_TYPE,
        "data": {name: _base64(value) for name, value in data.items()},
    }


def from_secret(manifest: dict[str, Any]) -> BootstrapToken:
    """The token that a Secret holds."""
    from base64 import b64decode

    name = manifest["metadata"]["name"]
    data = {key: b64decode(value).decode() for key, value in (manifest.get("data") or {}).items()}
    token_id, token_secret = data.get("token-id", ""), data.get("token-secret", "")
    if not token_id:
        raise OperatorError(f"bootstrap Token Secret has no token-id data: {name}")
    if name != secret_name(token_id):
        raise OperatorError(
            f'bootstrap token name is not of the form \'bootstrap-token-(token-id)\'. Actual: "{name}". Expected: "{secret_name(token_id)}"'
        )
    if not token_secret:
        raise OperatorError(f"bootstrap Token Secret has no token-secret data: {name}")
    try:
        end = _rfc3339(_parsed(data["expiration"])) if data.get("expiration") else None
    except ValueError as error:
        raise OperatorError(f'can\'t parse expiration time of bootstrap token "{name}": {error}') from error
    groups = data.get("auth-extra-groups", "").split(",")
    return BootstrapToken(
        token=check(f"{token_id}.{token_secret}"),
        description=data.get("description", ""),
        expires=end,
        usages=sorted(_usages(data.items())),
        groups=groups if groups[0] else [],
    )


def _usages(entries: Iterable[tuple[str, str]]) -> list[str]:
    prefix = "usage-bootstrap-"
    return [key.removeprefix(prefix) for key, value in entries if key.startswith(prefix) and value == "true"]


def _base64(text: str) -> str:
    from base64 import b64encode

    return b64encode(text.encode()).decode()


def _parsed(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
