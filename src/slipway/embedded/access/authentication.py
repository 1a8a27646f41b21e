"""Who asks: client certificates, bearer tokens of the server's own, bootstrap tokens and tokens of ServiceAccounts.

A certificate says the user in its common name and the groups in its organizations.  A bootstrap token is a Secret in kube-system.
"""

from __future__ import annotations

import secrets
from base64 import b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import msgspec

from slipway.credentials import tokens
from slipway.embedded import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from slipway.embedded.storage.store import Store

AUTHENTICATED, UNAUTHENTICATED, ANONYMOUS = "system:authenticated", "system:unauthenticated", "system:anonymous"
MASTERS = "system:masters"
_BOOTSTRAPPERS = "system:bootstrappers"
_ISSUER = "https://kubernetes.default.svc.cluster.local"


class User(NamedTuple):
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, list[str]] = {}


NOBODY = User(ANONYMOUS, (UNAUTHENTICATED,))
ADMIN = User("admin", (MASTERS, AUTHENTICATED))


class _Issued(NamedTuple):
    """A token that the server gave to a ServiceAccount."""

    user: User
    account: tuple[str, str, str]
    ends: datetime


class Authenticator:
    """``tokens`` are the static ones, as those of kube-apiserver's token file."""

    def __init__(self, store: Store, clock: Callable[[], datetime], static: Mapping[str, User]) -> None:
        self._store, self._clock = store, clock
        self._static = static
        self._issued: dict[str, _Issued] = {}

    def user(self, certificate: Mapping[str, Any] | None, authorization: str) -> User:
        """The user of a request; a certificate that TLS has verified goes first, a wrong token is an error."""
        if certificate:
            return from_certificate(certificate)
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return NOBODY
        found = self.of_token(token.strip())
        if found is None:
            raise errors.unauthorized()
        return found

    def of_token(self, token: str) -> User | None:
        """The user that a bearer token stands for."""
        for known, user in self._static.items():
            if compare_digest(known.encode(), token.encode()):
                return with_authenticated(user)
        issued = self._issued.get(token)
        if issued is not None:
            return self._of_issued(issued)
        return self._of_bootstrap_token(token) if tokens.is_token(token) else None

    def issue(self, namespace: str, name: str, uid: str, seconds: int) -> tuple[str, datetime]:
        """A token for a ServiceAccount, and when it ends.  It does not outlive the process."""
        now = self._clock()
        ends = now + timedelta(seconds=seconds)
        token = _web_token(service_account(namespace, name, uid), namespace, name, uid, now, ends)
        self._issued[token] = _Issued(service_account(namespace, name, uid), (namespace, name, uid), ends)
        return token, ends

    def _of_issued(self, issued: _Issued) -> User | None:
        namespace, name, uid = issued.account
        stored = self._store.get("serviceaccounts", namespace, name)
        return issued.user if stored is not None and stored.uid == uid and self._clock() < issued.ends else None

    def _of_bootstrap_token(self, token: str) -> User | None:
        token_id, _, secret = token.partition(".")
        stored = self._store.get("secrets", tokens.NAMESPACE, tokens.secret_name(token_id))
        if stored is None or stored.deleting:
            return None
        manifest = stored.manifest()
        data = {key: _text(value) for key, value in (manifest.get("data") or {}).items()}
        if manifest.get("type") != tokens.SECRET_TYPE or data.get("token-id") != token_id:
            return None
        if (
            not compare_digest(data.get("token-secret", "").encode(), secret.encode())
            or data.get("usage-bootstrap-authentication") != "true"
        ):
            return None
        if data.get("expiration") and not self._is_ahead(data["expiration"]):
            return None
        extra = [group.strip() for group in data.get("auth-extra-groups", "").split(",") if group.strip()]
        if not all(tokens.is_group(group) for group in extra):
            return None
        return with_authenticated(User(f"system:bootstrap:{token_id}", (*extra, _BOOTSTRAPPERS)))

    def _is_ahead(self, moment: str) -> bool:
        try:
            return datetime.fromisoformat(moment) > self._clock()
        except (ValueError, TypeError):
            return False


def _web_token(user: User, namespace: str, name: str, uid: str, now: datetime, ends: datetime) -> str:
    """As kube-apiserver's are to who reads them.  Nobody verifies it: the server knows the tokens that it has issued."""
    begins = int(now.timestamp())
    claims = {
        "aud": [_ISSUER],
        "exp": int(ends.timestamp()),
        "iat": begins,
        "iss": _ISSUER,
        "jti": str(uuid4()),
        "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}},
        "nbf": begins,
        "sub": user.name,
    }
    parts = (*(msgspec.json.encode(each) for each in ({"alg": "RS256", "typ": "JWT"}, claims)), secrets.token_bytes(48))
    return ".".join(urlsafe_b64encode(each).decode().rstrip("=") for each in parts)


def from_certificate(certificate: Mapping[str, Any]) -> User:
    """The user of a certificate as :mod:`ssl` describes it."""
    names: dict[str, list[str]] = {}
    for relative in certificate.get("subject", ()):
        for attribute, value in relative:
            names.setdefault(attribute, []).append(value)
    common_names = names.get("commonName", [""])
    return with_authenticated(User(common_names[-1], tuple(names.get("organizationName", ()))))


def service_account(namespace: str, name: str, uid: str = "") -> User:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return with_authenticated(User(f"system:serviceaccount:{namespace}:{name}", groups, uid))


def with_authenticated(user: User) -> User:
    if AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return user._replace(groups=(*user.groups, AUTHENTICATED))


def impersonated(name: str, groups: Iterable[str]) -> User:
    """Whom a request wants to be taken for; a ServiceAccount brings its own groups."""
    groups = tuple(groups)
    parts = name.split(":")
    if name.startswith("system:serviceaccount:") and len(parts) == 4 and not groups:
        return service_account(parts[2], parts[3])
    return User(name, (UNAUTHENTICATED,)) if name == ANONYMOUS else with_authenticated(User(name, groups))


def _text(value: Any) -> str:
    try:
        return b64decode(str(value)).decode()
    except (Base64Error, ValueError):
        return ""
