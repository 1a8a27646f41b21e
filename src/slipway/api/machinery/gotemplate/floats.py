"""Floating-point numbers as Go's strconv.FormatFloat writes them."""

from __future__ import annotations

import math

_MANTISSA_BITS = 52


def format_float(value: float, verb: str, precision: int) -> str:
    """With one of the verbs e, E, f, g, G, x, X, b; a negative precision asks for the shortest text that is the same number."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if verb == "b":
        return _binary(value)
    if verb in "xX":
        text = _hexadecimal(value, precision)
        return text.upper() if verb == "X" else text
    text = _shortest(value, verb.lower()) if precision < 0 else _rounded(value, verb.lower(), precision)
    return text.upper() if verb in "EG" else text


def _rounded(value: float, verb: str, precision: int) -> str:
    return format(value, f".{precision}{verb}")


def _shortest(value: float, verb: str) -> str:
    digits, exponent = _digits(value)
    sign = "-" if math.copysign(1, value) < 0 else ""
    if verb == "e" or (verb == "g" and not -4 <= exponent < 6):
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole, fraction = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return f"{sign}{whole}{'.' if fraction else ''}{fraction}"


def _digits(value: float) -> tuple[str, int]:
    """The fewest digits that are the same number, and the power of ten of the first."""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    if not digits.rstrip("0"):
        return "0", 0
    return digits.rstrip("0"), int(exponent or 0) + len(whole) - 1 - leading


def _parts(value: float) -> tuple[str, int, int]:
    """Sign, mantissa as a whole number, and the power of two of its last bit."""
    mantissa, exponent = math.frexp(abs(value))
    sign = "-" if math.copysign(1, value) < 0 else ""
    whole = int(math.ldexp(mantissa, _MANTISSA_BITS + 1))
    power = exponent - _MANTISSA_BITS - 1
    # Numbers below the normal range have fewer bits, zero among them.
    lowest = -1074
    if value == 0 or power < lowest:
        whole, power = whole >> (lowest - power) if value else 0, lowest
    return sign, whole, power


def _binary(value: float) -> str:
    sign, mantissa, power = _parts(value)
    return f"{sign}{mantissa}p{power:+d}"


def _hexadecimal(value: float, precision: int) -> str:
    sign, mantissa, power = _parts(value)
    bits = mantissa.bit_length()
    exponent = power + bits - 1 if mantissa else 0
    # One digit before the point and 60 bits after it.
    mantissa <<= 61 - bits if bits else 0
    if 0 <= precision < 15:
        dropped = 60 - 4 * precision
        low, mantissa = mantissa & ((1 << dropped) - 1), mantissa >> dropped
        if low | (mantissa & 1) > 1 << (dropped - 1):
            mantissa += 1
        mantissa <<= dropped
        if mantissa >> 61:
            mantissa, exponent = mantissa >> 1, exponent + 1
    fraction = f"{mantissa & ((1 << 60) - 1):015x}"
    fraction = fraction.rstrip("0") if precision < 0 else fraction.ljust(precision, "0")[:precision]
    return f"{sign}0x{mantissa >> 60}{'.' if fraction else ''}{fraction}p{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
