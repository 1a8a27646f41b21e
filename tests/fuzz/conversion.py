"""Objects of Cluster API's groups, as anybody who reaches the webhook sends them, between v1beta1 and v1beta2.

The data are JSON: an object, or what an object carries as its v1beta2 form in the annotation for that.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from slipway.api.cluster import crds
from slipway.api.cluster.conversion import convert
from slipway.api.cluster.names import CONVERSION_DATA_ANNOTATION as DATA_ANNOTATION
from slipway.api.machinery.errors import OperatorError

_GOLDEN = Path(__file__).parents[1] / "golden/clusterapi/conversion"
_KINDS = [definition.kind for definition in crds.DEFINITIONS]


def seeds() -> list[bytes]:
    """Objects of both versions, as they were recorded."""
    cases = [case for name in ("objects", "machines") for case in json.loads((_GOLDEN / f"{name}.json").read_text())]
    return [json.dumps(case["object"]).encode() for case in cases]


def fuzz(data: bytes) -> None:
    """Only a sentence may come of it."""
    try:
        given = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # None of these comes so far as to be converted.
        given = None
    text = data.decode(errors="replace")
    for kind in _KINDS:
        old, stored = kind._replace(version="v1beta1").api_version, kind.api_version
        carrier = {"metadata": {"name": "a", "annotations": {DATA_ANNOTATION: text}}, "spec": {"files": [{"path": "/a"}]}}
        _convert({"apiVersion": old, "kind": kind.kind, **carrier}, stored)
        if isinstance(given, dict):
            for had, wanted in ((old, stored), (stored, old)):
                _convert({**given, "apiVersion": had, "kind": kind.kind}, wanted)
    if isinstance(given, dict):
        _convert(given, _KINDS[0].api_version)


def _convert(manifest: dict[str, Any], wanted: str) -> None:
    with suppress(OperatorError):
        convert(manifest, wanted, lambda group, _: f"{group}/v1")
