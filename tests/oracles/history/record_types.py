"""Records the fields of kubeadm's old configuration types from its sources, for tests/api/kubeadm/test_history_types.py.

Run it with Go on the path: ``python tests/oracles/history/record_types.py``.  Of a version that several releases read,
the fields of all of them are recorded, the newest declaration first.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from slipway.lab.programs.gobuild import KUBERNETES, module_source

RELEASES = {
    "v1alpha1": ("v1.11.10", "v1.10.13", "v1.9.11"),
    "v1alpha2": ("v1.12.10", "v1.11.10"),
    "v1alpha3": ("v1.14.10", "v1.13.12", "v1.12.10"),
    "v1beta1": ("v1.21.14", "v1.15.12", "v1.14.10", "v1.13.12"),
    "v1beta2": ("v1.26.15", "v1.22.17", "v1.21.14", "v1.15.12"),
}
TARGET = Path(__file__).parents[2] / "golden" / "history" / "types"

_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\s*(?:\w+\s+)?(\S+)\s+`json:\"([^\"]*)\"")


def structs(source: str) -> dict[str, dict[str, dict[str, object]]]:
    """Struct name → name on the wire → Go type and whether it is left out when empty; embedded structs as ``inline``."""
    found: dict[str, dict[str, dict[str, object]]] = {}
    for name, body in _STRUCT.findall(source):
        fields = found[name] = {}
        for line in body.splitlines():
            match = _FIELD.match(line)
            if match is None or match[2] == "-" or match[1] == "metav1.TypeMeta":
                continue
            wire, _, options = match[2].partition(",")
            fields[wire or f"inline {match[1]}"] = {"type": match[1], "omitempty": "omitempty" in options}
    return found


def record(version: str) -> dict[str, dict[str, dict[str, object]]]:
    union: dict[str, dict[str, dict[str, object]]] = {}
    for release in RELEASES[version]:
        types = module_source(KUBERNETES, release) / "cmd/kubeadm/app/apis/kubeadm" / version / "types.go"
        for name, fields in structs(types.read_text()).items():
            for wire, field in fields.items():
                union.setdefault(name, {}).setdefault(wire, field)
    return union


if __name__ == "__main__":
    TARGET.mkdir(parents=True, exist_ok=True)
    for wanted in RELEASES:
        (TARGET / f"{wanted}.json").write_text(json.dumps(record(wanted), indent=1, sort_keys=True) + "\n")
