"""The rules of a schema, compiled once, and what they say of an object: as apiextensions 0.35, in its order and its words.

Every node of the schema may have rules; ``self`` is the value there, ``oldSelf`` the value before an update, where there is one that is
known to be the same: fields of objects, entries of maps, elements of lists that are maps.  What an update leaves as it was is let pass
with a warning, unless the rule asks for the old value.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.embedded.apiextensions.cel import fieldpaths
from slipway.embedded.apiextensions.cel.patience import AT_ONCE, apart
from slipway.embedded.apiextensions.cel.program import ExpressionError, Program, compiled
from slipway.embedded.apiextensions.cel.shapes import Shape
from slipway.embedded.apiextensions.cel.types import BOOL, STRING, Type, optional_of
from slipway.embedded.apiextensions.cel.values import NONE, CostError, EvaluationError, Maybe
from slipway.embedded.errors import NO_FIELD, OMITTED, FieldError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.apiextensions.cel.checker import Fields

Schema = dict[str, Any]

CALL_LIMIT = 1_000_000
"""What one evaluation may cost."""
OBJECT_LIMIT = 10_000_000
"""What all rules together may cost on one object."""
LONGEST_MESSAGE = 5 * 1024


class RuleFault(NamedTuple):
    """Why a rule does not compile: the field of the rule that is wrong, and what about it."""

    field: str
    detail: str


class Rule:
    """One rule at one node."""

    def __init__(self, written: Manifest, shape: Shape, fields: Fields, schema: Schema) -> None:
        self.written = written
        self.fault: RuleFault | None = None
        self.program: Program | None = None
        self.message: Program | None = None
        self.optional = bool(written.get("optionalOldSelf"))
        self.path = fieldpaths.normalised(written.get("fieldPath") or "", schema) or ""
        self._type_name = shape.name
        self._compile(shape, fields)

    @property
    def uses_old(self) -> bool:
        return self.program is not None and "oldSelf" in self.program.names

    @property
    def text(self) -> str:
        """The rule as errors name it."""
        return str(self.written.get("message") or self.written.get("rule") or "").strip()

    def _compile(self, shape: Shape, fields: Fields) -> None:
        rule, message = self.written.get("rule") or "", self.written.get("messageExpression") or ""
        if not rule.strip() or shape.type is None:
            return
        variables = {"self": shape.type, "oldSelf": optional_of(shape.type) if self.optional else shape.type}
        self.program = self._compiled("rule", rule, variables, fields, BOOL)
        if self.program is not None and message:
            self.message = self._compiled("messageExpression", message, variables, fields, STRING)

    def _compiled(self, field: str, text: str, variables: dict[str, Type], fields: Fields, wanted: Type) -> Program | None:
        is_rule = field == "rule"
        try:
            program = compiled(text, variables, fields)
        except ExpressionError as error:
            self.fault = RuleFault(
                field, f"{'' if is_rule else 'messageExpression '}compilation failed: {str(error).replace(self._type_name, 'selfType')}"
            )
            return None
        except EvaluationError as error:
            what = "program instantiation failed" if is_rule else "messageExpression instantiation failed"
            self.fault = RuleFault(field, f"{what}: {error}")
            return None
        if program.type != wanted:
            what = "cel expression must evaluate to a bool" if is_rule else "messageExpression must evaluate to a string"
            self.fault = RuleFault(field, what)
            return None
        return program


class Found:
    """What was found so far in one object, and what there is left to spend."""

    def __init__(self, budget: int) -> None:
        self.errors: list[FieldError] = []
        self.warnings: list[str] = []
        self.budget = budget
        self.call_limit = min(CALL_LIMIT, budget)

    @property
    def is_spent(self) -> bool:
        return self.budget < 0


class _Update(NamedTuple):
    """What ratcheting compares at a node: new and old of the node itself where it was there before, and of the nearest above that was."""

    itself: tuple[Any, Any] | None
    above: tuple[Any, Any] | None = None

    def below(self, new: Any, old: Any) -> _Update:
        if self.itself is None:
            return self
        return _Update(None if old is None else (new, old), self.itself)

    @property
    def changes_nothing(self) -> bool:
        compared = self.itself or self.above
        return compared is not None and bool(compared[0] == compared[1])


_CREATION = _Update(None)


class RuleTree:
    """The rules of a schema node and of those below it."""

    def __init__(self, schema: Schema, shape: Shape, fields: Fields) -> None:
        self._schema, self._shape = schema, shape
        self.rules = [Rule(written, shape, fields, schema) for written in schema.get("x-kubernetes-validations") or ()]
        self._properties = {
            name: RuleTree(child, shape.properties[name], fields)
            for name, child in (schema.get("properties") or {}).items()
            if name in shape.properties and shape.properties[name].type is not None and has_rules(child)
        }
        inner = schema.get("items") if schema.get("type") == "array" else schema.get("additionalProperties")
        self._inner: RuleTree | None = None
        if isinstance(inner, dict) and shape.element is not None and has_rules(inner):
            self._inner = RuleTree(inner, shape.element, fields)

    def walk(self, path: str) -> Iterator[tuple[str, RuleTree]]:
        """Every node that has rules, with its path in the definition."""
        for name in sorted(self._properties):
            yield from self._properties[name].walk(f"{path}.properties[{name}]")
        if self._inner is not None:
            step = "items" if self._schema.get("type") == "array" else "additionalProperties"
            yield from self._inner.walk(f"{path}.{step}")
        if self.rules:
            yield path, self

    def validate(self, value: Any, old: Any, path: str, update: _Update, found: Found) -> None:
        """Evaluate the rules on a value; ``old`` is None where there is none."""
        if value is None or found.is_spent:
            return
        self._evaluate(value, old, path, update, found)
        if isinstance(value, dict):
            self._validate_entries(value, old if isinstance(old, dict) else {}, path, update, found)
        elif isinstance(value, list) and self._inner is not None:
            known = _by_keys(old, self._shape.keys) if self._shape.list_type == "map" and isinstance(old, list) else {}
            for index, item in enumerate(value):
                key = _key(item, self._shape.keys) if known else None
                was = known.get(key) if known else None
                self._inner.validate(item, was, f"{path}[{index}]", update.below(item, was), found)

    def _validate_entries(self, value: Manifest, old: Manifest, path: str, update: _Update, found: Found) -> None:
        for name, item in value.items():
            if name in self._properties:
                child, place = self._properties[name], f"{path}.{name}" if path else name
            elif self._inner is not None:
                child, place = self._inner, f"{path}[{name}]"
            else:
                continue
            child.validate(item, old.get(name), place, update.below(item, old.get(name)), found)

    def _evaluate(self, value: Any, old: Any, path: str, update: _Update, found: Found) -> None:
        if not self.rules:
            return
        place, kind = path or NO_FIELD, self._schema.get("type") or ""
        if found.budget <= 0:
            found.errors.append(FieldError.invalid(place, kind, OUT_OF_BUDGET))
            found.budget = -1
            return
        try:
            current = self._shape.value(value)
            previous = None if old is None else self._shape.value(old)
        except EvaluationError as error:
            found.errors.append(FieldError.invalid(place, kind, str(error)))
            return
        for rule in self.rules:
            if rule.fault is not None and rule.program is None:
                found.errors.append(FieldError.invalid(place, kind, f"rule compile error: {rule.fault.detail}"))
            if rule.program is None or (rule.uses_old and old is None and not rule.optional):
                continue
            had: Any = (NONE if old is None else Maybe(previous, True)) if rule.optional else previous
            self._judge(rule, {"self": current, "oldSelf": had}, value, place, update, found)
            if found.is_spent:
                return

    def _judge(self, rule: Rule, variables: Manifest, value: Any, place: str, update: _Update, found: Found) -> None:
        kind = self._schema.get("type") or ""
        assert rule.program is not None
        run = rule.program.start(variables, found.call_limit)
        problem = ""
        holds: Any = None
        try:
            holds = rule.program.step(run)
            run.charge(0)
        except EvaluationError as error:
            problem = _problem(str(error), rule)
        except CostError:
            why = "operation cancelled: actual cost limit exceeded"
            problem = f"'{why}': no further validation rules will be run due to call cost exceeds limit for rule: {rule.text}"
        if run.cost > found.budget:
            problem = OUT_OF_BUDGET
        if problem:
            found.errors.append(FieldError.invalid(place, kind, problem))
            found.budget = -1 if run.cost > min(CALL_LIMIT, found.budget) else found.budget - run.cost
            return
        found.budget -= run.cost
        if holds is True:
            return
        detail, at = self._detail(rule, variables, found), _joined(place, rule.path)
        shown = OMITTED if kind in ("object", "array") else value
        broken = _error(rule.written.get("reason"), at, shown, detail)
        if not rule.uses_old and update.changes_nothing:
            found.warnings.append(str(broken))
        else:
            found.errors.append(broken)

    def _detail(self, rule: Rule, variables: Manifest, found: Found) -> str:
        """What the error says: the message that the rule computes, the one that it has, or the rule itself."""
        made = ""
        if rule.message is not None:
            run = rule.message.start(variables, found.call_limit)
            try:
                made = str(rule.message.step(run)).strip()
            except EvaluationError:
                made = ""
            except CostError:
                found.budget = -1
                text = rule.written["messageExpression"].replace('"', '\\"')
                return f'no further validation rules will be run due to call cost exceeds limit for messageExpression: "{text}"'
            found.budget -= run.cost
        if made and "\n" not in made and len(made.encode()) <= LONGEST_MESSAGE:
            return made
        return rule.text if rule.written.get("message") else f"failed rule: {rule.text}"


OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


def _problem(error: str, rule: Rule) -> str:
    if error.startswith("no such overload"):
        return f"'{error}': call arguments did not match a supported operator, function or macro signature for rule: {rule.text}"
    return f"{error} evaluating rule: {rule.text}"


def _joined(place: str, path: str) -> str:
    if not path:
        return place
    return (
        path.removeprefix(".") if place == NO_FIELD else f"{place}{path}" if path.startswith("[") else f"{place}.{path.removeprefix('.')}"
    )


def _error(reason: str | None, field: str, value: Any, detail: str) -> FieldError:
    if reason == "FieldValueForbidden":
        return FieldError.forbidden(field, detail)
    if reason == "FieldValueRequired":
        return FieldError.required(field, detail)
    if reason == "FieldValueDuplicate":
        return FieldError.duplicate(field, value)
    return FieldError.invalid(field, value, detail)


def _key(item: Any, keys: list[str]) -> Any:
    return tuple((type(item.get(key)), item.get(key)) for key in keys) if isinstance(item, dict) else None


def _by_keys(items: list[Any], keys: list[str]) -> dict[Any, Any]:
    return {_key(item, keys): item for item in items if isinstance(item, dict)}


def has_rules(schema: Any) -> bool:
    """Whether a schema has rules anywhere."""
    if not isinstance(schema, dict):
        return False
    if schema.get("x-kubernetes-validations"):
        return True
    inside = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return any(map(has_rules, inside))


class Rules:
    """All rules of a custom resource."""

    def __init__(self, schema: Schema) -> None:
        shape = Shape(schema, "selfType", is_resource=True)
        self.tree = RuleTree(schema, shape, shape.declared())

    def validate(self, manifest: Manifest, old: Manifest | None, budget: int = OBJECT_LIMIT) -> Found:
        """What the rules say; ``budget`` is what they may cost together."""
        found = Found(budget)
        update = _CREATION if old is None else _Update((manifest, old))
        self.tree.validate(manifest, old, "", update, found)
        return found

    async def judge(self, manifest: Manifest, old: Manifest | None) -> Found:
        """The same, with no more than a moment in which nobody else has a turn."""
        found = self.validate(manifest, old, AT_ONCE)
        return await apart(partial(self.validate, manifest, old)) if found.is_spent else found
