"""What is wrong with the rules of a CustomResourceDefinition: those that do not compile, or ask for an old value that nobody knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.embedded.apiextensions.cel import fieldpaths
from slipway.embedded.errors import FieldError, json_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.apiextensions.cel.rules import Rule, Rules

Schema = dict[str, Any]

_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")


def errors(schema: Schema, rules: Rules, path: str) -> list[FieldError]:
    """What is wrong with the rules of a schema; where the form of one is wrong, only that is told."""
    found = [
        error
        for place, written, at in _written(schema, path)
        for error in _form_errors(written, f"{place}.x-kubernetes-validations[{at}]", schema)
    ]
    found += _misplaced(schema, path)
    if found:
        return found
    uncorrelatable = dict(_uncorrelatable(schema, path, ""))
    for place, tree in rules.tree.walk(path):
        for index, rule in enumerate(tree.rules):
            found += _rule_errors(rule, f"{place}.x-kubernetes-validations[{index}]", uncorrelatable.get(place, ""))
    return found


def _rule_errors(rule: Rule, place: str, uncorrelatable: str) -> Iterator[FieldError]:
    if rule.fault is not None:
        message = f"Invalid value: {_shown(rule.written)}: {rule.fault.detail}"
        yield FieldError(f"{place}.{rule.fault.field}", "FieldValueInvalid", message)
    if rule.uses_old:
        if uncorrelatable:
            why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}"
            yield FieldError.invalid(f"{place}.rule", rule.written["rule"], why)
    elif rule.program is not None and rule.written.get("optionalOldSelf") is not None:
        yield FieldError.invalid(
            f"{place}.optionalOldSelf", rule.written["optionalOldSelf"], "may not be set if oldSelf is not used in rule"
        )


def _shown(written: Manifest) -> str:
    """A rule as Go prints its own type."""
    fields = {
        "Rule": written.get("rule") or "",
        "Message": written.get("message") or "",
        "MessageExpression": written.get("messageExpression") or "",
        "Reason": written.get("reason"),
        "FieldPath": written.get("fieldPath") or "",
        "OptionalOldSelf": written.get("optionalOldSelf"),
    }
    return "{" + ",".join(f'"{name}":{json_text(value)}' for name, value in fields.items()) + "}"


def _written(schema: Schema, path: str) -> Iterator[tuple[str, Manifest, int]]:
    for place, node in _nodes(schema, path):
        for index, written in enumerate(node.get("x-kubernetes-validations") or ()):
            yield place, {**written, "": node}, index


def _nodes(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    for step in ("additionalProperties", "items"):
        if isinstance(schema.get(step), dict):
            yield from _nodes(schema[step], f"{path}.{step}")
    for name, child in sorted((schema.get("properties") or {}).items()):
        yield from _nodes(child, f"{path}.properties[{name}]")
    yield path, schema


def _misplaced(schema: Schema, path: str) -> Iterator[FieldError]:
    """Rules belong to the nodes of a schema, not to the conditions that its values have to meet."""
    for place, node in _nodes(schema, path):
        for name in ("allOf", "anyOf", "oneOf"):
            for index, part in enumerate(node.get(name) or ()):
                if part.get("x-kubernetes-validations"):
                    yield FieldError.forbidden(f"{place}.{name}[{index}].x-kubernetes-validations", "must be empty to be structural")
        if (node.get("not") or {}).get("x-kubernetes-validations"):
            yield FieldError.forbidden(f"{place}.not.x-kubernetes-validations", "must be empty to be structural")


def _form_errors(written: Manifest, place: str, schema: Schema) -> Iterator[FieldError]:
    rule, message = written.get("rule") or "", written.get("message") or ""
    if not rule.strip():
        yield FieldError.required(f"{place}.rule", "rule is not specified")
    elif message and not message.strip():
        yield FieldError.invalid(f"{place}.message", message, "must be non-empty if specified")
    elif "\n" in message.strip():
        yield FieldError.invalid(f"{place}.message", message, "must not contain line breaks")
    elif "\n" in rule.strip() and not message.strip():
        yield FieldError.required(f"{place}.message", "message must be specified if rule contains line breaks")
    expression = written.get("messageExpression") or ""
    if expression and not expression.strip():
        yield FieldError.required(f"{place}.messageExpression", "messageExpression must be non-empty if specified")
    reason = written.get("reason")
    if reason is not None and reason not in _REASONS:
        yield FieldError.not_supported(f"{place}.reason", reason, _REASONS)
    path = written.get("fieldPath") or ""
    if path and not path.strip():
        yield FieldError.invalid(f"{place}.fieldPath", path, "must be non-empty if specified")
    if "\n" in path:
        yield FieldError.invalid(f"{place}.fieldPath", path, "must not contain line breaks")
    if path and fieldpaths.normalised(path, written[""]) is None:
        yield FieldError.invalid(f"{place}.fieldPath", path, "must be a valid path")


def _uncorrelatable(schema: Schema, path: str, within: str) -> Iterator[tuple[str, str]]:
    """Nodes whose old value cannot be told: below lists that are no maps."""
    yield path, within
    if isinstance(schema.get("items"), dict):
        is_map = schema.get("x-kubernetes-list-type") == "map"
        yield from _uncorrelatable(schema["items"], f"{path}.items", within or ("" if is_map else path))
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _uncorrelatable(schema["additionalProperties"], f"{path}.additionalProperties", within)
    for name, child in (schema.get("properties") or {}).items():
        yield from _uncorrelatable(child, f"{path}.properties[{name}]", within)
