"""What a CustomResourceDefinition's ``openAPIV3Schema`` does to objects: pruning, defaulting, validation, and their type for apply.

As apiextensions 0.35 does it, in this order: :meth:`StructuralSchema.prune`, :meth:`StructuralSchema.default`, then, with the fields
that the server itself sets in place, :meth:`StructuralSchema.validate`, and where the form of the object is right
:meth:`StructuralSchema.rule_errors`.
"""

from __future__ import annotations

import functools
from itertools import islice
from typing import TYPE_CHECKING, Any

from slipway.embedded.apiextensions import quickcheck, structural, validation
from slipway.embedded.errors import MOST, NO_FIELD, FieldError
from slipway.embedded.fieldmanager.types import Type
from slipway.embedded.registry.types import definitions

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.apiextensions.cel.rules import Rules

Schema = dict[str, Any]

_OBJECT_META = {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
_STRING = {"type": "string"}
_BLOCKING = frozenset(f"FieldValue{reason}" for reason in ("NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid"))
_UNCHECKED = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"


class StructuralSchema:
    """The schema of one version of a custom resource; none at all keeps every field, as ``x-kubernetes-preserve-unknown-fields`` does."""

    def __init__(self, openapi_v3: Schema | None) -> None:
        self.schema: Schema = openapi_v3 or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

    def prune(self, manifest: Manifest) -> list[str]:
        """Take out unknown fields; their paths."""
        return structural.prune(manifest, self.schema)

    def default(self, manifest: Manifest, *, applied: bool = False) -> None:
        """Drop stray nulls and fill in defaults.  The metadata of the object itself has no defaults.

        What server-side apply merged is not decoded again, so that its nulls stay, and are refused where they are not allowed.
        """
        metadata = manifest.pop("metadata", None)
        if not applied:
            structural.drop_nulls(manifest, self.schema)
        structural.default(manifest, self.schema)
        if metadata is not None:
            manifest["metadata"] = metadata

    def validate(self, manifest: Manifest, old: Manifest | None = None) -> list[FieldError]:
        """Everything wrong with an object; with ``old``, what the update leaves as it was is let pass."""
        errors: list[FieldError] = []
        if not self._is_good(manifest):
            errors = validation.validate(manifest, self.schema, old=validation.ABSENT if old is None else old)
        if self._has_embedded_resources:
            errors += self._embedded_errors(manifest, self.schema, "")
        if old is None or not any(structural.repeated(old, self.schema)):
            errors += islice(structural.repeated(manifest, self.schema), MOST)
        return errors

    def validate_status(self, manifest: Manifest, old: Manifest) -> list[FieldError]:
        """The same for a write to the status: the rest of the object is not looked at."""
        schema = (self.schema.get("properties") or {}).get("status")
        if schema is None or "status" not in manifest:
            return []
        errors = validation.validate(manifest["status"], schema, "status", old.get("status", validation.ABSENT))
        if not any(structural.repeated(old, self.schema)):
            errors += islice(structural.repeated(manifest, self.schema), MOST)
        return errors

    async def rule_errors(
        self, manifest: Manifest, old: Manifest | None, errors: list[FieldError], warnings: list[str]
    ) -> list[FieldError]:
        """What the rules in CEL say; they are not asked about an object of which ``errors`` say that its form is wrong.

        A rule that is broken by what the update leaves as it was is a warning.
        """
        if self._rules is None:
            return []
        if any(error.reason in _BLOCKING for error in errors):
            return [FieldError.invalid(NO_FIELD, None, _UNCHECKED)]
        found = await self._rules.judge(manifest, old)
        warnings += found.warnings
        return found.errors[:MOST]

    def definition_errors(self, path: str) -> list[FieldError]:
        """What is wrong with the rules of the schema, which is at ``path`` of its definition."""
        if self._rules is None:
            return []
        from slipway.embedded.apiextensions.cel import definitions

        return definitions.errors(self.schema, self._rules, path)

    @functools.cached_property
    def _rules(self) -> Rules | None:
        if not _may_have_rules(self.schema):
            return None
        # Only schemas with rules need the compiler.
        from slipway.embedded.apiextensions.cel.rules import Rules

        return Rules(self.schema)

    @functools.cached_property
    def type(self) -> Type:
        """The type that server-side apply merges by."""
        return Type(self.published, definitions())

    @functools.cached_property
    def published(self) -> Schema:
        """The schema as the OpenAPI document shows it: with apiVersion, kind and metadata."""
        return _published(self.schema, is_root=True)

    @functools.cached_property
    def _is_good(self) -> Callable[[Any], bool]:
        return quickcheck.compiled(self.schema)

    @functools.cached_property
    def _has_embedded_resources(self) -> bool:
        return "'x-kubernetes-embedded-resource': True" in str(self.schema)

    def _embedded_errors(self, value: Any, schema: Schema | None, path: str) -> list[FieldError]:
        """Embedded resources name their apiVersion and kind."""
        errors: list[FieldError] = []
        if schema is None:
            return errors
        if isinstance(value, dict):
            if schema.get("x-kubernetes-embedded-resource"):
                for name in ("apiVersion", "kind"):
                    if name not in value:
                        errors.append(FieldError.required(f"{path}.{name}"))
                    elif not isinstance(value[name], str):
                        errors.append(FieldError.invalid(f"{path}.{name}", value[name], "must be a string"))
                    elif not value[name]:
                        errors.append(FieldError.invalid(f"{path}.{name}", "", "must not be empty"))
            properties: dict[str, Schema] = schema.get("properties") or {}
            additional = schema.get("additionalProperties")
            for key, item in value.items():
                if isinstance(item, (dict, list)):
                    if key in properties:
                        errors += self._embedded_errors(item, properties[key], f"{path}.{key}" if path else key)
                    elif isinstance(additional, dict):
                        errors += self._embedded_errors(item, additional, f"{path}[{key}]")
        elif isinstance(value, list):
            for index, item in enumerate(value):
                errors += self._embedded_errors(item, schema.get("items"), f"{path}[{index}]")
        return errors


def _may_have_rules(schema: Schema) -> bool:
    return "'x-kubernetes-validations'" in str(schema)


def _published(schema: Schema, *, is_root: bool = False) -> Schema:
    """The schema with the fields that every resource has, at the root and in embedded resources."""
    published = dict(schema)
    if isinstance(schema.get("properties"), dict):
        published["properties"] = {name: _published(child) for name, child in schema["properties"].items()}
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            published[name] = _published(schema[name])
    if is_root or schema.get("x-kubernetes-embedded-resource"):
        known = published.get("properties") or {}
        published["properties"] = {"apiVersion": _STRING, "kind": _STRING, **known, "metadata": _OBJECT_META}
    return published
