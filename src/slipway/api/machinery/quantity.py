"""Resource quantities (``500m``, ``1Gi``, ``1e3``) in the canonical form that apimachinery prints.

A quantity keeps the notation of its suffix (decimal, binary or exponent), has no fraction and the largest suffix that
allows that.  Nothing is smaller than a nano unit: what is asked for as less is rounded up.
"""

from __future__ import annotations

import re

# Nothing is given back: what three runs of digits could share among them would be tried in every way.
_QUANTITY = re.compile(r"([+-]?)0*+([0-9]*+)(?:\.([0-9]*+))?([eEinumkKMGTP]*+[-+]?[0-9]*+)\Z")
_EXPONENT = re.compile(r"[eE]([-+]?[0-9]+)\Z")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {exponent: suffix for suffix, exponent in _BINARY.items()}

_NANO = -9
_MAX = 2**63 - 1


class QuantityError(ValueError):
    """Text that is no quantity."""


def canonical(text: str) -> str:
    """The text that Kubernetes prints for a quantity; QuantityError has the reason that apimachinery gives."""
    match = _QUANTITY.match(text) if text else None
    if match is None:
        raise QuantityError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    sign, whole, fraction, suffix = match[1], match[2] or "0", match[3] or "", match[4]
    written = text[: match.start(4)]
    if suffix in _BINARY:
        return _binary(text, written, sign, whole, fraction, _BINARY[suffix])
    notation = _EXPONENT.match(suffix)
    if suffix not in _DECIMAL and (notation is None or len(notation[1].lstrip("+-0")) > 20 or not -(2**63) <= int(notation[1]) < 2**63):
        raise QuantityError("unable to parse quantity's suffix")
    exponent = _as_int32(int(notation[1])) if notation else _DECIMAL[suffix]
    digits, scale = whole + fraction, exponent - len(fraction)
    if len(digits) <= 18 and scale >= _NANO:
        # What looks canonical is printed as it was written, leading zeros, plus sign and all.
        if scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0":
            return text
        return _decimal_text(sign, int(digits), scale, exponential=notation is not None)
    number, scale = _at_least_nano(_number(written, digits), scale)
    return _decimal_text(sign, number, scale, exponential=notation is not None)


def _binary(text: str, written: str, sign: str, whole: str, fraction: str, exponent: int) -> str:
    if not fraction and 15 - len(whole) - exponent * 3 // 10 - 1 >= 0:
        if int(whole) & 7:
            return text
        return _binary_text(sign, int(whole) << exponent, 0)
    number, scale = _at_least_nano(_number(written, whole + fraction) << exponent, -len(fraction))
    if number > _MAX * 10**-scale:
        number, scale = _MAX, 0
    return _binary_text(sign, number, scale)


def _binary_text(sign: str, number: int, scale: int) -> str:
    whole, rest = divmod(number, 10**-scale)
    if whole < 1024 or rest:
        return _decimal_text(sign, number, scale, exponential=False)
    exponent = 0
    while whole % 1024 == 0:
        whole //= 1024
        exponent += 10
    return f"{'-' if sign == '-' else ''}{whole}{_BINARY_SUFFIX.get(exponent, '')}"


def _decimal_text(sign: str, number: int, scale: int, *, exponential: bool) -> str:
    if number == 0:
        return "0"
    while number % 10 == 0:
        number //= 10
        scale += 1
    number *= 10 ** (scale % 3)
    scale -= scale % 3
    # apimachinery has no decimal suffix past exa, and then prints none.
    suffix = _DECIMAL_SUFFIX.get(scale, "") if not exponential else f"e{scale}" if scale else ""
    return f"{'-' if sign == '-' else ''}{number}{suffix}"


def _at_least_nano(number: int, scale: int) -> tuple[int, int]:
    """Round away from zero to whole nano units."""
    excess = _NANO - scale
    if number == 0 or excess <= 0:
        return number, scale
    # Far below one unit there is no need to compute the power.
    if excess > len(str(number)):
        return 1, _NANO
    return -(-number // 10**excess), _NANO


def _number(written: str, digits: str) -> int:
    # Only here does apimachinery notice that there is no digit at all; and int() takes no more than 4300 of them, nor does str() give more.
    if not any(character.isdigit() for character in written) or len(digits) > 4000:
        raise QuantityError("unable to parse numeric part of quantity")
    return int(digits)


def _as_int32(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31
