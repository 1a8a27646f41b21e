"""Names that controllers give: random endings, names from templates, and label values for names that are too long to be one."""

from __future__ import annotations

import random
import re
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.gotemplate import Template, TemplateError

if TYPE_CHECKING:
    from collections.abc import Mapping

# Kubernetes' own: without vowels, and without what looks like one, nobody is called names.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_RANDOM = 5
# A Machine's name becomes a host name and a label's value.
LONGEST = 63
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?")
_FNV_OFFSET, _FNV_PRIME = 0x811C9DC5, 0x01000193
_TEMPLATE_LIMIT = 4096


def suffix() -> str:
    """Five random characters."""
    return "".join(random.choices(_ALPHABET, k=_RANDOM))


def generated(base: str, *, longest: int = LONGEST) -> str:
    """The base, cut so that a random ending fits behind it."""
    return base[: longest - _RANDOM] + suffix()


def rendered(template: str, values: Mapping[str, Any]) -> str:
    """The name that a naming template makes of the values and of ``.random``; what is too long is cut and gets a random ending."""
    try:
        name = Template.parse("name", template).execute(
            {**values, "random": suffix()}, missing_key="error", limit=_TEMPLATE_LIMIT, refuse_no_value=True
        )
    except TemplateError as error:
        raise OperatorError(f'no name can be made from the template "{template}": {error.message}') from None
    return name if len(name) <= LONGEST else generated(name)


def label_value(name: str) -> str:
    """The name where a label can have it as its value, else a hash of it, as Cluster API makes one."""
    if _LABEL_VALUE.fullmatch(name):
        return name
    value = _FNV_OFFSET
    for byte in name.encode():
        value = (value ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    encoded = urlsafe_b64encode(value.to_bytes(4, "big")).decode().rstrip("=")
    return f"hash_{encoded}_z"
