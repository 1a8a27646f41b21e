"""Objects that a structural schema allows, for tests of what survives a conversion."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

DURATIONS = st.sampled_from(["0s", "1s", "1m30s", "24h0m0s"])
TEXTS = st.text(alphabet="ab/<é ", max_size=3)
# Strings that the schema does not tell apart from others.
KNOWN = {
    **dict.fromkeys(("timeout", "timeoutForControlPlane", "ttl"), DURATIONS),
    "apiVersion": st.sampled_from(["g.io/v1", "v1"]),
    "apiGroup": st.sampled_from(["g.io", "h.io"]),
}


def values(schema: dict[str, Any], name: str = "") -> st.SearchStrategy[Any]:
    """Any value that a structural schema allows, as far as a conversion could tell the difference."""
    if name in KNOWN:
        return KNOWN[name]
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return st.sampled_from(["1", "2m"])
    if "type" not in schema:
        return st.sampled_from(["a", 1, {"b": [True]}])
    match schema["type"]:
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(schema.get("minimum", 0), min(schema.get("maximum", 9), 9))
        case "string" if schema.get("format") == "date-time":
            return st.just("2026-05-16T10:00:00Z")
        case "string":
            return TEXTS.filter(lambda text: len(text) >= schema.get("minLength", 0))
        case "array":
            return st.lists(values(schema["items"]), min_size=schema.get("minItems", 0), max_size=2)
        case "object" if "additionalProperties" in schema:
            return st.dictionaries(TEXTS, values(schema["additionalProperties"]), max_size=2)
    required = schema.get("required", [])
    properties = {name: values(each, name) for name, each in schema.get("properties", {}).items()}
    return st.fixed_dictionaries(
        {name: each for name, each in properties.items() if name in required},
        optional={name: each for name, each in properties.items() if name not in required},
    )


def objects(kind: str, api_version: str, schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    whole = {name: values(each) for name, each in schema["properties"].items() if name in ("spec", "status")}
    about = {"apiVersion": st.just(api_version), "kind": st.just(kind), "metadata": st.just({"name": "a", "namespace": "n"})}
    return st.fixed_dictionaries(about | whole)
