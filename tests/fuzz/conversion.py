"""Objects of the bootstrap group, as anybody who reaches the webhook sends them, between v1beta1 and v1beta2.

The data are JSON: an object, or what an object carries as its v1beta2 form in the annotation for that.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from slipway.api.cluster.bootstrap import config, v1beta1
from slipway.api.cluster.conversion import convert
from slipway.api.cluster.names import CONVERSION_DATA_ANNOTATION as DATA_ANNOTATION
from slipway.api.machinery.errors import OperatorError

_OBJECTS = Path(__file__).parents[1] / "golden/clusterapi/conversion/objects.json"
_VERSIONS = (v1beta1.API_VERSION, config.API_VERSION)
_KINDS = ("KubeadmConfig", "KubeadmConfigTemplate")


def seeds() -> list[bytes]:
    """Objects of both versions, as they were recorded."""
    return [json.dumps(case["object"]).encode() for case in json.loads(_OBJECTS.read_text())]


def fuzz(data: bytes) -> None:
    """Only a sentence may come of it."""
    try:
        given = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # None of these comes so far as to be converted.
        given = None
    text = data.decode(errors="replace")
    for kind in _KINDS:
        carrier = {"metadata": {"name": "a", "annotations": {DATA_ANNOTATION: text}}, "spec": {"files": [{"path": "/a"}]}}
        _convert({"apiVersion": _VERSIONS[0], "kind": kind, **carrier}, _VERSIONS[1])
        if isinstance(given, dict):
            for had, wanted in (_VERSIONS, _VERSIONS[::-1]):
                _convert({**given, "apiVersion": had, "kind": kind}, wanted)
    if isinstance(given, dict):
        _convert(given, _VERSIONS[1])


def _convert(manifest: dict[str, Any], wanted: str) -> None:
    with suppress(OperatorError):
        convert(manifest, wanted)
