"""What an API server's answer means: an object, or one of :mod:`slipway.kube.errors`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.kube import errors

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest

# How much of an answer that nobody understands is shown.
_SHOWN = 200

_decode_any = msgspec.json.Decoder().decode


def decode(content: bytes, status: int) -> Manifest:
    """The object that an answer holds."""
    decoded = _object(content)
    if decoded is None:
        raise not_kubernetes(content, status)
    return decoded


def not_kubernetes(content: bytes, status: int) -> errors.ApiError:
    shown = content[:_SHOWN].decode(errors="replace").strip()
    return errors.ApiError(f"not an answer of a Kubernetes API server: {shown!r}", code=status, reason="InvalidAnswer")


def failure(status: int, content: bytes) -> errors.ApiError:
    """The server's own words where it sent a metav1.Status, else what whatever answered said."""
    decoded = _object(content)
    if decoded is not None and decoded.get("kind") == "Status":
        return status_failure(decoded, status)
    shown = content[:_SHOWN].decode(errors="replace").strip()
    return errors.from_status(status, "", f"the server answered with status {status}: {shown}".rstrip(": "))


def status_failure(status: Manifest, code: int) -> errors.ApiError:
    """The error that a metav1.Status tells of."""
    message = str(status.get("message") or status.get("reason") or "the server does not say why")
    return errors.from_status(int(status.get("code") or code), str(status.get("reason") or ""), message)


def _object(content: bytes) -> Manifest | None:
    try:
        decoded = _decode_any(content)
    except msgspec.DecodeError:
        return None
    return decoded if isinstance(decoded, dict) else None
