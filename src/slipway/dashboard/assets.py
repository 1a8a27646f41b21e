"""The files of the page: read once, small, and the same for everybody; nothing of a fleet is in them."""

from __future__ import annotations

import gzip
from hashlib import sha256
from importlib import resources
from typing import NamedTuple

_FOLDER = "static"
_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
INDEX = "index.html"


class Asset(NamedTuple):
    content: bytes
    compressed: bytes
    type: str
    tag: str
    """An ETag: a browser that has this need not get it again."""


def load() -> dict[str, Asset]:
    """By their names, which are their paths as well."""
    found = {}
    for each in resources.files("slipway.dashboard").joinpath(_FOLDER).iterdir():
        content = each.read_bytes()
        type_ = _TYPES[each.name.rpartition(".")[2]]
        found[each.name] = Asset(content, gzip.compress(content, mtime=0), type_, f'"{sha256(content).hexdigest()[:20]}"')
    return found
