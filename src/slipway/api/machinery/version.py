"""Kubernetes versions: ``v1.35.4``, ``v1.36.0-rc.1``, ``v1.34.2+vendor.1``, compared as semantic versions."""

from __future__ import annotations

import re
from functools import total_ordering

_IDENTIFIERS = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_NUMBER = r"(0|[1-9][0-9]*)"
_SEMANTIC = re.compile(rf"[ \t\n\f\r]*v?{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_IDENTIFIERS}))?(?:\+({_IDENTIFIERS}))?[ \t\f\r]*\Z")
# Longer numbers than anybody has; they have to stop somewhere.
_MAX_DIGITS = 19
_LEADING_ZEROS = re.compile(r"\A0+(?=[0-9])")
_ZERO_PREFIXED = re.compile(r"(?:.*\.)?0[0-9]+(?:\.|\Z)")


@total_ordering
class Version:
    """A semantic version; build metadata does not take part in comparisons."""

    __slots__ = ("build", "major", "minor", "patch", "prerelease")

    def __init__(self, major: int, minor: int, patch: int = 0, prerelease: str = "", build: str = "") -> None:
        self.major, self.minor, self.patch = major, minor, patch
        self.prerelease, self.build = prerelease, build

    @classmethod
    def parse(cls, text: str) -> Version:
        match = _SEMANTIC.match(text)
        if match is None or _ZERO_PREFIXED.match(match[4] or "") or any(len(number) > _MAX_DIGITS for number in match.groups()[:3]):
            raise ValueError(_not_a_version(text))
        major, minor, patch = (int(number) for number in match.groups()[:3])
        return cls(major, minor, patch, match[4] or "", match[5] or "")

    @classmethod
    def tolerant(cls, text: str) -> Version:
        """As the semver library of Cluster API reads versions (blang/semver 4, ParseTolerant): 1.35 is v1.35.0, 1.035.04 is v1.35.4.

        A version that is short cannot be a pre-release or have build metadata.
        """
        parts = [_LEADING_ZEROS.sub("", part) for part in text.strip().removeprefix("v").split(".", 2)]
        if len(parts) < 3:
            parts += ["0"] * (3 - len(parts))
        if not all(part.isdecimal() for part in parts[:2]):
            raise ValueError(_not_a_version(text))
        try:
            return cls.parse(".".join(parts))
        except ValueError:
            raise ValueError(_not_a_version(text)) from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._identity == other._identity

    def __lt__(self, other: Version) -> bool:
        numbers, others = self._identity[:3], other._identity[:3]
        if numbers != others or self.prerelease == other.prerelease:
            return numbers < others
        if not self.prerelease or not other.prerelease:
            return bool(self.prerelease)
        return _precedes(self.prerelease.split("."), other.prerelease.split("."))

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[int, int, int, str]:
        return (self.major, self.minor, self.patch, self.prerelease)

    def __str__(self) -> str:
        """Without the leading v, as Go's version package prints it."""
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += f"-{self.prerelease}"
        if self.build:
            text += f"+{self.build}"
        return text

    def __repr__(self) -> str:
        return f"Version('v{self}')"


def _not_a_version(text: str) -> str:
    return f'could not parse "{text}" as version: a semantic version such as v1.35.4 is wanted'


def _precedes(parts: list[str], others: list[str]) -> bool:
    """The order of pre-releases: numbers by value, everything else as text, and the longer one last."""
    for part, other in zip(parts, others, strict=False):
        if part != other:
            return int(part) < int(other) if part.isdigit() and other.isdigit() else part < other
    return len(parts) < len(others)
