"""Where this machine gets its Debian packages from: apt's own sources, read in both of their formats.

A machine behind a company's mirror has that mirror there, so a root file system is made from it and no address is
written into Slipway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

DEBIAN_MIRROR = "http://deb.debian.org/debian"
"""Debian's own, for a machine whose sources name none for the suite (another distribution, say)."""

_REMOTE = ("http://", "https://")


class Source(msgspec.Struct, frozen=True):
    """One place with binary packages of one suite."""

    uri: str
    suite: str
    components: tuple[str, ...]
    signed_by: str = ""


def parse_list(text: str) -> list[Source]:
    """The sources of a ``.list`` file: ``deb [options] uri suite component…``, one a line."""
    found = []
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if not words or words[0] != "deb":
            continue
        options, words = _split_options(words[1:])
        if len(words) >= 2:
            found.append(Source(words[0].rstrip("/"), words[1], tuple(words[2:]), options.get("signed-by", "")))
    return found


def parse_deb822(text: str) -> list[Source]:
    """The sources of a ``.sources`` file: stanzas of fields, each with any number of addresses and suites."""
    found = []
    for fields in _stanzas(text):
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() in {"no", "false", "0", "off"}:
            continue
        components = tuple(fields.get("components", "").split())
        keyring = fields.get("signed-by", "")
        # A key may also stand in the stanza itself, over many lines; debootstrap can only use a file.
        signed_by = keyring if keyring.startswith("/") and len(keyring.split()) == 1 else ""
        found += [
            Source(uri.rstrip("/"), suite, components, signed_by)
            for uri in fields.get("uris", "").split()
            for suite in fields.get("suites", "").split()
        ]
    return found


def read(apt: Path) -> list[Source]:
    """All sources of the machine whose ``/etc/apt`` is ``apt``, in the order in which apt reads them."""
    files = [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))]
    found = []
    for path in files:
        if path.suffix in {".list", ".sources"} and path.is_file():
            parse = parse_list if path.suffix == ".list" else parse_deb822
            found += parse(path.read_text())
    return found


def for_suite(sources: Iterable[Source], suite: str) -> Source:
    """The source that a root file system of ``suite`` is made from: the first with its main component, or Debian's own."""
    for source in sources:
        if source.suite == suite and "main" in source.components and source.uri.startswith(_REMOTE):
            return source
    return Source(DEBIAN_MIRROR, suite, ("main",))


def _split_options(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """``[arch=amd64 signed-by=/x]`` in front of an address, as words, and the words after it."""
    if not words or not words[0].startswith("["):
        return {}, words
    end = next((number for number, word in enumerate(words) if word.endswith("]")), len(words) - 1)
    inner = " ".join(words[: end + 1]).strip("[]").split()
    options = dict(word.split("=", 1) for word in inner if "=" in word)
    return {name.lower(): value for name, value in options.items()}, words[end + 1 :]


def _stanzas(text: str) -> Iterator[dict[str, str]]:
    fields: dict[str, str] = {}
    name = ""
    for line in [*text.splitlines(), ""]:
        if line.startswith("#"):
            continue
        if not line.strip():
            if fields:
                yield fields
            fields, name = {}, ""
        elif line[0].isspace():
            fields[name] = f"{fields.get(name, '')} {line.strip()}"
        else:
            name, _, value = line.partition(":")
            name = name.strip().lower()
            fields[name] = value.strip()
