"""How this host registers: what elemental-register's configuration file says, and what a command line says instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from slipway.agent import paths
from slipway.api.elemental import names, protocol
from slipway.api.machinery.errors import ConfigurationError, OperatorError

if TYPE_CHECKING:
    from slipway.host.interface import Host


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    ca: bytes = b""
    """The authorities, in PEM, that the endpoint is verified with; without them those of the machine."""
    auth: str = names.AUTH_TPM
    emulate_tpm: bool = False
    no_smbios: bool = False
    no_toolkit: bool = False
    labels: dict[str, str] = {}


def load(host: Host, path: str = paths.REGISTRATION) -> dict[str, Any]:
    """The section ``elemental.registration`` of the file; empty where there is no file."""
    from slipway.api.machinery.yaml import goyaml

    try:
        text = host.read(path).decode()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"cannot read {path}: {getattr(error, 'strerror', '') or error}") from None
    documents = goyaml.load(text, path)
    return section(documents[0].value if documents else None, path, "elemental", "registration")


def section(value: object, source: str, *keys: str) -> dict[str, Any]:
    """A mapping within a document; empty where it is left out."""
    found = _mapping(value, source, "the document")
    for position, key in enumerate(keys):
        found = _mapping(found.get(key), source, ".".join(keys[: position + 1]))
    return found


def _mapping(value: object, source: str, what: str) -> dict[str, Any]:
    if not isinstance(value, dict | None):
        raise ConfigurationError(f"{source}: {what} must be a mapping")
    return value or {}


def settings(
    given: dict[str, Any],
    *,
    url: str = "",
    token: str = "",
    ca: bytes = b"",
    auth: str = "",
    emulate_tpm: bool = False,
    labels: dict[str, str] | None = None,
) -> Settings:
    """The file's section, with what the command line says in its place; a token is the last part of the address."""
    address = url or _text(given, "url")
    if not address:
        raise OperatorError(
            f"there is no address to register at: put elemental.registration.url into {paths.REGISTRATION}, or give --registration-url"
        )
    if token:
        if not protocol.is_token(token):
            raise OperatorError("the token is none: it has lower-case letters, digits and - in between")
        if protocol.PATH not in address:
            address = address.rstrip("/") + protocol.PATH + token
    chosen = auth or _text(given, "auth") or names.AUTH_TPM
    if chosen not in names.AUTHS:
        raise OperatorError(f'a host cannot prove who it is by "{chosen}": use one of {", ".join(names.AUTHS)}')
    return Settings(
        url=address,
        ca=ca or _text(given, "ca-cert").encode(),
        auth=chosen,
        emulate_tpm=emulate_tpm or _flag(given, "emulate-tpm"),
        no_smbios=_flag(given, "no-smbios"),
        no_toolkit=_flag(given, "no-toolkit"),
        labels=labels or {},
    )


def _text(given: dict[str, Any], key: str) -> str:
    value = given.get(key)
    if not isinstance(value, str | None):
        raise ConfigurationError(f"elemental.registration.{key} must be text")
    return value or ""


def _flag(given: dict[str, Any], key: str) -> bool:
    value = given.get(key)
    if not isinstance(value, bool | None):
        raise ConfigurationError(f"elemental.registration.{key} must be true or false")
    return bool(value)
