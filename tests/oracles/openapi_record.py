"""Records the types of the built-in kinds that the embedded API server knows, from the OpenAPI documents of Kubernetes itself.

``python tests/oracles/openapi_record.py`` needs Go, for the module's source only, and rewrites src/slipway/embedded/registry/builtins.json:
the definitions of every version that is served by default, without their descriptions.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from slipway.lab.programs.gobuild import KUBERNETES, module_source

RELEASE = "v1.35.4"
TABLE = Path(__file__).parent.parent.parent / "src/slipway/embedded/registry/builtins.json"
GENERAL_AVAILABILITY = re.compile(r"api(s__[a-z0-9.]+)?__v[0-9]+_openapi\.json")


def stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: stripped(item) for name, item in value.items() if not (name == "description" and isinstance(item, str))}
    return [stripped(item) for item in value] if isinstance(value, list) else value


def main() -> None:
    known: dict[str, Any] = {}
    for document in sorted((module_source(KUBERNETES, RELEASE) / "api/openapi-spec/v3").glob("*_openapi.json")):
        if GENERAL_AVAILABILITY.fullmatch(document.name):
            known.update(stripped(json.loads(document.read_text())["components"]["schemas"]))
    TABLE.parent.mkdir(exist_ok=True)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(known[name], sort_keys=True, separators=(',', ':'))}" for name in sorted(known))
    TABLE.write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
