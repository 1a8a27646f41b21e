"""What is printed of an object: the rules of Go's ``omitempty``."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import pytest

from slipway.api.machinery.duration import Duration
from slipway.api.machinery.objects import Object
from slipway.api.machinery.strict import encode

field = msgspec.field


class Inner(Object):
    size: int = 0


class Outer(Object):
    always_printed: ClassVar[frozenset[str]] = frozenset({"taints", "always"})

    name: str = ""
    count: int = 0
    flag: bool = False
    pointer: bool | None = None
    timeout: Duration | None = None
    inner: Inner = field(default_factory=Inner)
    maybe: Inner | None = None
    cert_sans: list[str] = field(default_factory=list, name="certSANs")
    items: list[Inner] = field(default_factory=list)
    by_name: dict[str, Inner] = field(default_factory=dict)
    anything: dict[str, Any] = field(default_factory=dict)
    taints: list[str] | None = None
    always: str = ""


EMPTY: dict[str, Any] = {"inner": {}, "taints": None, "always": ""}


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (Outer(), {}),
        (Outer(name="x", count=1, flag=True), {"name": "x", "count": 1, "flag": True}),
        (Outer(pointer=False), {"pointer": False}),
        (Outer(timeout=Duration(0)), {"timeout": "0s"}),
        (Outer(timeout=Duration.of(minutes=5)), {"timeout": "5m0s"}),
        (Outer(inner=Inner(size=1)), {"inner": {"size": 1}}),
        (Outer(maybe=Inner()), {"maybe": {}}),
        (Outer(cert_sans=["a"]), {"certSANs": ["a"]}),
        (Outer(items=[Inner(), Inner(size=2)]), {"items": [{}, {"size": 2}]}),
        (Outer(by_name={"a": Inner(size=3)}), {"byName": {"a": {"size": 3}}}),
        (Outer(anything={"a": [1, None, {"b": Duration.of(seconds=1)}]}), {"anything": {"a": [1, None, {"b": "1s"}]}}),
        (Outer(taints=[]), {"taints": []}),
        (Outer(always="x"), {"always": "x"}),
    ],
)
def test_prints_what_differs_from_the_default_and_every_struct(value: Outer, printed: dict[str, Any]) -> None:
    assert encode(value) == EMPTY | printed


def test_lists_are_copied() -> None:
    value = Outer(cert_sans=["a"])
    encode(value)["certSANs"].append("b")
    assert value.cert_sans == ["a"]
