"""Resource quantities and semantic versions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from slipway.api.machinery.quantity import QuantityError, canonical
from slipway.embedded.apiextensions.cel.functions import Functions, of_first
from slipway.embedded.apiextensions.cel.types import BOOL, DOUBLE, INT, QUANTITY, SEMVER, STRING, Type
from slipway.embedded.apiextensions.cel.values import EvaluationError

FUNCTIONS = Functions()
_add, _member = FUNCTIONS.add, FUNCTIONS.member
_QUANTITY = re.compile(r"([+-]?[0-9.]+)([eEinumkKMGTP]*)([-+]?[0-9]*)")
_UNITS = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?",
    re.ASCII,
)


@dataclass(frozen=True)
class Quantity:
    amount: Decimal
    cel_type: Type = QUANTITY


@dataclass(frozen=True)
class Semver:
    release: tuple[int, int, int]
    prerelease: tuple[str, ...]
    cel_type: Type = SEMVER

    def order(self) -> tuple[Any, ...]:
        """A release comes after its pre-releases; numbers come before words."""
        parts = tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in self.prerelease)
        return self.release, not self.prerelease, parts


def _quantity(text: str) -> Quantity:
    try:
        canonical(text)
    except QuantityError as error:
        raise EvaluationError(str(error)) from None
    found = _QUANTITY.fullmatch(text)
    assert found is not None
    number, suffix, exponent = found.groups()
    if exponent or suffix in ("e",):
        return Quantity(Decimal(number) * Decimal(10) ** int(exponent or 0))
    if suffix in _BINARY:
        return Quantity(Decimal(number) * 2 ** _BINARY[suffix])
    return Quantity(Decimal(number) * Decimal(10) ** _UNITS[suffix])


def _is_quantity(text: str) -> bool:
    try:
        canonical(text)
    except QuantityError:
        return False
    return True


def _whole(of: Quantity) -> int:
    if not _is_whole(of):
        raise EvaluationError("cannot convert value to integer")
    return int(of.amount)


def _is_whole(of: Quantity) -> bool:
    return of.amount == of.amount.to_integral_value() and -(2**63) <= of.amount < 2**63


def _sign(of: Quantity) -> int:
    return (of.amount > 0) - (of.amount < 0)


def _compared(one: Any, other: Any) -> int:
    return int(one > other) - int(one < other)


_add("quantity", [STRING], QUANTITY, _quantity, of_first)
_add("isQuantity", [STRING], BOOL, _is_quantity, of_first)
_add("sign", [QUANTITY], INT, _sign)
_member("isGreaterThan", [QUANTITY, QUANTITY], BOOL, lambda one, other: one.amount > other.amount)
_member("isLessThan", [QUANTITY, QUANTITY], BOOL, lambda one, other: one.amount < other.amount)
_member("compareTo", [QUANTITY, QUANTITY], INT, lambda one, other: _compared(one.amount, other.amount))
_member("asApproximateFloat", [QUANTITY], DOUBLE, lambda of: float(of.amount))
_member("asInteger", [QUANTITY], INT, _whole)
_member("isInteger", [QUANTITY], BOOL, _is_whole)
_member("add", [QUANTITY, QUANTITY], QUANTITY, lambda one, other: Quantity(one.amount + other.amount))
_member("add", [QUANTITY, INT], QUANTITY, lambda one, other: Quantity(one.amount + other))
_member("sub", [QUANTITY, QUANTITY], QUANTITY, lambda one, other: Quantity(one.amount - other.amount))
_member("sub", [QUANTITY, INT], QUANTITY, lambda one, other: Quantity(one.amount - other))


def _semver(text: str, normalize: bool = False) -> Semver:
    if normalize:
        text = _normalized(text)
    found = _SEMVER.fullmatch(text)
    if found is None:
        raise EvaluationError(
            "No Major.Minor.Patch elements found" if text.count(".") < 2 else f"Invalid character(s) found in version {text!r}"
        )
    return Semver((int(found[1]), int(found[2]), int(found[3])), tuple(found[4].split(".")) if found[4] else ())


def _normalized(text: str) -> str:
    """Without a leading v, with minor and patch, and without leading zeros."""
    parts = text.removeprefix("v").split(".", 2)
    parts = [
        part.lstrip("0") if part.lstrip("0")[:1].isdigit() else part[-1:] if part.strip("0") == "" and part else part for part in parts
    ]
    return ".".join([*parts, "0", "0"][:3])


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        _semver(text, normalize)
    except EvaluationError:
        return False
    return True


for _arguments in ([STRING], [STRING, BOOL]):
    _add("semver", _arguments, SEMVER, _semver, of_first)
    _add("isSemver", _arguments, BOOL, _is_semver, of_first)
_member("isGreaterThan", [SEMVER, SEMVER], BOOL, lambda one, other: one.order() > other.order())
_member("isLessThan", [SEMVER, SEMVER], BOOL, lambda one, other: one.order() < other.order())
_member("compareTo", [SEMVER, SEMVER], INT, lambda one, other: _compared(one.order(), other.order()))
_member("major", [SEMVER], INT, lambda version: version.release[0])
_member("minor", [SEMVER], INT, lambda version: version.release[1])
_member("patch", [SEMVER], INT, lambda version: version.release[2])
