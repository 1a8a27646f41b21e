"""Container Linux YAML, as the author of a KubeadmConfig writes it, through the rendering of Ignition data."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.fleet.bootstrap.data import data as bootstrapdata

_CASES = Path(__file__).parents[1] / "golden/bootstrapdata/ignition.cases.yaml"
# What the schema of the CRD takes.
_LONGEST = 32_768


def seeds() -> list[bytes]:
    """Additions to begin with: those of the recorded cases."""
    found = []
    for case in goyaml.load(_CASES.read_text())[0].value["cases"]:
        additions = ((case.get("spec") or {}).get("ignition") or {}).get("containerLinuxConfig") or {}
        if additions.get("additionalConfig"):
            found.append(additions["additionalConfig"].encode())
    return found


def fuzz(data: bytes) -> None:
    """Only a sentence may come of it."""
    try:
        text = data.decode()[:_LONGEST]
    except UnicodeDecodeError:
        return
    spec = {"format": "ignition", "ignition": {"containerLinuxConfig": {"additionalConfig": text}}}
    with suppress(OperatorError):
        bootstrapdata.join_worker(spec, version="v1.35.4", files=[], users=[])
