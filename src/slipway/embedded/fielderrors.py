"""What is wrong with one field of an object, in the words of apimachinery's field errors.

The texts are read by people and by programs (``kubectl``, controllers that look for ``Required value``), so they follow the real
server to the letter; ``reason`` is what a Status carries as the type of a cause.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.machinery.fieldpath import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slipway.api.machinery import fieldpath

NO_FIELD = "<nil>"
"""How Go prints the path of an error that belongs to the whole object."""

_HTML = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


class FieldError(NamedTuple):
    """One thing wrong at one place: ``message`` says what, without the place."""

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def of(error: fieldpath.FieldError) -> FieldError:
    """An error of :mod:`slipway.api.machinery.fieldpath`, for a Status."""
    reason = "FieldValue" + error.fault.name.title().replace("_", "")
    return FieldError(str(error.path), reason, str(error).removeprefix(f"{error.path}: "))


def required(field: str, detail: str = "") -> FieldError:
    return FieldError(field, "FieldValueRequired", _joined("Required value", detail))


def invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError(field, "FieldValueInvalid", _joined(f"Invalid value: {shown(value)}", detail))


def type_invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError(field, "FieldValueTypeInvalid", _joined(f"Invalid value: {shown(value)}", detail))


def forbidden(field: str, detail: str) -> FieldError:
    return FieldError(field, "FieldValueForbidden", _joined("Forbidden", detail))


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError(field, "FieldValueDuplicate", f"Duplicate value: {shown(value)}")


def not_supported(field: str, value: Any, allowed: Iterable[str]) -> FieldError:
    listed = ", ".join(quoted(item) for item in allowed)
    return FieldError(
        field, "FieldValueNotSupported", _joined(f"Unsupported value: {shown(value)}", f"supported values: {listed}" if listed else "")
    )


def too_long(field: str, limit: int) -> FieldError:
    return FieldError(field, "FieldValueTooLong", f"Too long: may not be more than {limit} {'byte' if limit == 1 else 'bytes'}")


def too_many(field: str, actual: int, limit: int) -> FieldError:
    return FieldError(field, "FieldValueTooMany", f"Too many: {actual}: must have at most {limit} {'item' if limit == 1 else 'items'}")


def aggregate(errors: Iterable[FieldError]) -> str:
    """All errors as one text: ``[a, b]``, a single one alone, equal ones once."""
    texts = list(dict.fromkeys(str(error) for error in errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def causes(errors: Iterable[FieldError]) -> list[dict[str, str]]:
    """The errors as ``details.causes`` of a Status."""
    return [{"reason": error.reason, "message": error.message, "field": error.field} for error in errors]


def shown(value: Any) -> str:
    """A value inside a message: text in Go's quotes, everything else as Go's JSON, keys sorted and safe inside HTML."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float):
        return go_float(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).translate(_HTML)


def go_float(value: float) -> str:
    """Go's ``%v`` of a float64: no fraction where there is none, an exponent from 21 digits on."""
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    text = repr(value)
    if "e" in text:
        mantissa, exponent = text.split("e")
        return f"{mantissa.removesuffix('.0')}e{exponent[0]}{exponent[1:].zfill(2)}"
    return text


def _joined(head: str, detail: str) -> str:
    return f"{head}: {detail}" if detail else head
