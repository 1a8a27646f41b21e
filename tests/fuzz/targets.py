"""The parsers that take what strangers write: every module beside this one that has ``fuzz(data: bytes) -> None``.

``fuzz`` returns, whatever the bytes are.  A target may have ``SEEDS`` or ``seeds()``, inputs to begin with, and ``DICTIONARY``,
words of its language.  Reproducers of what was found and mended are in ``corpus/<target>/``: they are seeds too, and a test
replays them.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

_HERE = Path(__file__).parent


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """One parser, ready to be given inputs."""

    name: str
    fuzz: Callable[[bytes], None]
    seeds: tuple[bytes, ...]
    dictionary: tuple[bytes, ...]


def names() -> list[str]:
    """All targets; none is imported for it."""
    return sorted(path.stem for path in _HERE.glob("*.py") if re.search(r"^def fuzz\(", path.read_text(), re.MULTILINE))


def reproducers(name: str) -> list[Path]:
    """What was found in the past."""
    return sorted(path for path in (_HERE / "corpus" / name).glob("*") if path.is_file())


def load(name: str) -> Target:
    module = importlib.import_module(f"fuzz.{name}")
    own = module.seeds() if hasattr(module, "seeds") else getattr(module, "SEEDS", ())
    words = (word if isinstance(word, bytes) else str(word).encode() for word in getattr(module, "DICTIONARY", ()))
    return Target(
        name=name,
        fuzz=module.fuzz,
        seeds=(*own, *(path.read_bytes() for path in reproducers(name))),
        dictionary=tuple(words),
    )
