"""An image that a host is to have on its disk before a plan boots it: how it is asked for, and where it lies.

The question is an annotation of the host's Secret, beside the plan and no part of it.  Where the image lies follows from its reference
alone, so that whoever writes a plan need not know whether it is there: the plan looks.
"""

from __future__ import annotations

import hashlib

import msgspec

FOLDER = "/var/lib/slipway/ahead"
ROOT = "root"
"""In the folder of an image: its root file system."""
RECORD = "image.json"
"""In the folder of an image: what it is.  It is there once all of the image is, and has been checked."""

# Of what a host says of it.
FETCHING = "Fetching"
STAGED = "Staged"
FAILED = "Failed"
STATES = (FETCHING, STAGED, FAILED)


class Wanted(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is to be fetched."""

    image: str
    version: str = ""
    """The Kubernetes version that must be in it; empty where any will do."""
    since: str = ""
    """When the host was asked; for whoever asks."""


def place(image: str) -> str:
    """The folder of an image, by its reference."""
    return f"{FOLDER}/{hashlib.sha256(image.encode()).hexdigest()[:16]}"


def encode(wanted: Wanted) -> str:
    return msgspec.json.encode(wanted).decode()


def decode(text: str) -> Wanted | None:
    """None where nothing is wanted, or where the annotation does not say what."""
    try:
        found = msgspec.json.decode(text, type=Wanted) if text else None
    except (msgspec.DecodeError, UnicodeError):
        return None
    return found if found is not None and found.image else None
