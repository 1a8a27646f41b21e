"""Validation rules in CEL: each rule of the CRDs that Slipway serves, and what rules can say, with the real server's verdicts and messages.

The kinds are served under a group of the suite's own, since a server may have them already; their schemas are as they are.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from conformance.api import Api, Manifest
from conformance.widgets import DEFINITIONS, GROUP, STRING, Widgets, definition

from slipway.api.cluster import crds

if TYPE_CHECKING:
    from slipway.api.cluster.definition import Definition

RULES_GROUP = f"rules.{GROUP}"
ITSELF = "@"
"""A step of a path: the elements of a list."""

# What each rule takes and what it refuses, made of one element that the schema takes.
UNIQUE_NAMES = "self.all(x, self.exists_one(y, x.name == y.name))"
UNIQUE = "self.all(x, self.exists_one(y, x == y))"
RESERVED = "!(self in ['Ready','Available','HealthCheckSucceeded','OwnerRemediated','ExternallyRemediated'])"
ONE_LAYOUT = "[has(self.layout),has(self.diskLayout)].filter(x,x==true).size() == 1"
PARTITION = "self.matches('^(Linux|LinuxSwap|LinuxRAID|LVM|Fat32|NTFS|LinuxExtended|[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$')"
SAMPLES: dict[str, tuple[Any, Any]] = {
    UNIQUE_NAMES: ([{"name": "a", "value": "1"}, {"name": "b", "value": "1"}], [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]),
    UNIQUE: (
        [{"selector": {"matchLabels": {"a": "1"}}}, {"selector": {"matchLabels": {"a": "2"}}}],
        [{"selector": {"matchLabels": {"a": "1"}}}, {"selector": {"matchLabels": {"a": "1"}}}],
    ),
    RESERVED: ("DiskPressure", "Ready"),
    ONE_LAYOUT: ({"device": "/dev/sda", "layout": True}, {"device": "/dev/sda"}),
    PARTITION: ("0fc63daf-8483-4772-8e79-3d69d8477de4", "ext4"),
}


class Case(NamedTuple):
    """One rule of one version of a kind."""

    definition: Definition
    version: str
    schema: Manifest
    path: tuple[str, ...]
    rule: Manifest

    @property
    def id(self) -> str:
        return f"{self.definition.kind.kind}-{self.version}-{'.'.join(self.path).replace(ITSELF, '[]')}"


def rules_of(schema: Manifest, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Manifest]]:
    for rule in schema.get("x-kubernetes-validations") or ():
        yield path, rule
    for name, child in (schema.get("properties") or {}).items():
        yield from rules_of(child, (*path, name))
    if isinstance(schema.get("items"), dict):
        yield from rules_of(schema["items"], (*path, ITSELF))


CASES = [
    Case(each, version["name"], version["schema"]["openAPIV3Schema"], path, rule)
    for each in crds.DEFINITIONS
    for version in crds.crd(each)["spec"]["versions"]
    for path, rule in rules_of(version["schema"]["openAPIV3Schema"])
]


def example(schema: Manifest, path: tuple[str, ...], value: Any) -> Any:
    """The least that a schema takes, with a value at a path."""
    if not path:
        return copy.deepcopy(value)
    if path[0] == ITSELF:
        return [example(schema["items"], path[1:], value)]
    made = least(schema)
    made[path[0]] = example(schema["properties"][path[0]], path[1:], value)
    return made


def least(schema: Manifest) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("x-kubernetes-int-or-string"):
        return 1
    kind = schema.get("type")
    if kind == "object":
        return {name: least(schema["properties"][name]) for name in schema.get("required") or ()}
    if kind == "array":
        return [least(schema["items"])] * (schema.get("minItems") or 0)
    if kind == "string":
        return "2020-01-01T00:00:00Z" if schema.get("format") == "date-time" else "a" * max(1, schema.get("minLength") or 0)
    return schema.get("minimum") or 1 if kind in ("integer", "number") else True


@pytest.fixture(scope="module")
def kinds(api: Api) -> Iterator[Api]:
    """Every kind with rules, served."""
    served = list(dict.fromkeys(case.definition.name for case in CASES))
    for name in served:
        made = crds.crd(next(each for each in crds.DEFINITIONS if each.name == name))
        made["spec"]["group"] = RULES_GROUP
        made["spec"]["names"].pop("shortNames", None)
        made["metadata"] = {"name": f"{made['spec']['names']['plural']}.{RULES_GROUP}"}
        api.delete(f"{DEFINITIONS}/{made['metadata']['name']}")
        api.gone(f"{DEFINITIONS}/{made['metadata']['name']}")
        api.post(DEFINITIONS, made).ok()
    for name in served:
        plural = name.partition(".")[0]
        for version in ("v1beta1", "v1beta2"):
            api.eventually(f"/apis/{RULES_GROUP}/{version}/{plural}", lambda answer: answer.code == 200)
    yield api
    for name in served:
        api.delete(f"{DEFINITIONS}/{name.partition('.')[0]}.{RULES_GROUP}")


def answered(api: Api, case: Case, namespace: str, value: Any) -> tuple[int, str]:
    kind = case.definition.kind
    manifest = example(case.schema, case.path, value)
    manifest |= {"apiVersion": f"{RULES_GROUP}/{case.version}", "kind": kind.kind, "metadata": {"name": "thing"}}
    path = f"/apis/{RULES_GROUP}/{case.version}/namespaces/{namespace}/{kind.plural}"
    answer = api.post(path, manifest, dryRun="All")
    return answer.code, answer.body.get("message", "")


def test_every_rule_that_upstream_has_is_among_them() -> None:
    assert {case.rule["rule"] for case in CASES} == set(SAMPLES)
    assert len(CASES) == 46


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_a_rule_takes_what_it_should(kinds: Api, namespace: str, case: Case) -> None:
    assert answered(kinds, case, namespace, SAMPLES[case.rule["rule"]][0]) == (201, "")


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_a_rule_refuses_what_it_should(kinds: Api, namespace: str, case: Case) -> None:
    wrong = SAMPLES[case.rule["rule"]][1]
    field = ".".join(case.path).replace(f".{ITSELF}", "[0]")
    shown = f'Invalid value: "{wrong}"' if isinstance(wrong, str) else "Invalid value"
    message = f'{case.definition.kind.kind}.{RULES_GROUP} "thing" is invalid: {field}: {shown}: {case.rule["message"]}'
    assert answered(kinds, case, namespace, wrong) == (422, message)


# What rules can say beyond those.

IMMUTABLE = {"rule": "self == oldSelf", "message": "is immutable"}
FIELDS: Manifest = {
    "name": {**STRING, "maxLength": 20, "x-kubernetes-validations": [IMMUTABLE]},
    "word": {**STRING, "maxLength": 20, "x-kubernetes-validations": [{"rule": "self != 'bad'", "message": "must not be bad"}]},
    "mode": {**STRING, "enum": ["Fast", "Safe"]},
    "count": {
        "type": "integer",
        "x-kubernetes-validations": [
            {"rule": "self < 10", "messageExpression": "'%d are too many'.format([self])"},
            {"rule": "self != 7", "reason": "FieldValueForbidden", "message": "not seven"},
        ],
    },
    "first": {
        **STRING,
        "maxLength": 20,
        "x-kubernetes-validations": [
            {"rule": "oldSelf.hasValue() || self == 'one'", "optionalOldSelf": True, "message": "begins with one"}
        ],
    },
    "least": {"type": "integer", "default": 1},
    "most": {"type": "integer"},
    "parts": {
        "type": "array",
        "maxItems": 5,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {**STRING, "maxLength": 9},
                "value": {**STRING, "maxLength": 9, "x-kubernetes-validations": [IMMUTABLE]},
            },
        },
    },
    "other": STRING,
}
RANGE = {"rule": "!has(self.most) || self.least <= self.most", "fieldPath": ".most", "message": "not less than least"}
STATUS = {"type": "object", "properties": {"ready": {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= 0"}]}}}
ROOT = {"rule": "!has(self.status) || !has(self.spec.most) || self.status.ready <= self.spec.most", "message": "more ready than there are"}


def schema(spec_rules: list[Manifest], fields: Manifest) -> Manifest:
    spec = {"type": "object", "properties": fields, "x-kubernetes-validations": spec_rules}
    return {"type": "object", "properties": {"spec": spec, "status": STATUS}, "x-kubernetes-validations": [ROOT]}


@pytest.fixture(scope="module")
def ruled(api: Api) -> Iterator[Widgets]:
    with Widgets.installed(
        api, "rulers", "Ruler", schema={"openAPIV3Schema": schema([RANGE], FIELDS)}, subresources={"status": {}}
    ) as made:
        yield made
    api.gone(f"{DEFINITIONS}/rulers.{GROUP}")


def refusal(name: str, *texts: str) -> tuple[int, str, str]:
    shown = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return 422, "Invalid", f'Ruler.{GROUP} "{name}" is invalid: {shown}'


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"word": "bad"}, 'spec.word: Invalid value: "bad": must not be bad'),
        ({"count": 12}, "spec.count: Invalid value: 12: 12 are too many"),
        ({"count": 7}, "spec.count: Forbidden: not seven"),
        ({"first": "two"}, 'spec.first: Invalid value: "two": begins with one'),
        ({"most": 0}, "spec.most: Invalid value: not less than least"),
    ],
)
def test_a_new_object_that_breaks_a_rule(ruled: Widgets, namespace: str, unique: str, spec: Manifest, fault: str) -> None:
    answer = ruled.api.post(ruled.path(namespace), ruled.manifest(unique, spec))
    assert answer.summary == refusal(unique, fault)


def test_causes_name_the_field_and_the_reason(ruled: Widgets, namespace: str, unique: str) -> None:
    answer = ruled.api.post(ruled.path(namespace), ruled.manifest(unique, {"count": 7}))
    assert answer.body["details"]["causes"] == [{"reason": "FieldValueForbidden", "message": "Forbidden: not seven", "field": "spec.count"}]


def test_rules_are_not_asked_of_an_object_of_the_wrong_form(ruled: Widgets, namespace: str, unique: str) -> None:
    answer = ruled.api.post(ruled.path(namespace), ruled.manifest(unique, {"word": "bad", "mode": "Slow"}))
    assert answer.summary == refusal(
        unique,
        'spec.mode: Unsupported value: "Slow": supported values: "Fast", "Safe"',
        "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
        "correct the existing errors to complete validation",
    )


def test_what_was_set_once_stays(ruled: Widgets, namespace: str, unique: str) -> None:
    ruled.create(namespace, unique, {"name": "a", "first": "one"})
    answer = ruled.api.patch(ruled.path(namespace, unique), {"spec": {"name": "b", "first": "two"}})
    assert answer.summary == refusal(unique, 'spec.name: Invalid value: "b": is immutable')
    ruled.api.patch(ruled.path(namespace, unique), {"spec": {"name": "a", "first": "two"}}).ok()
    ruled.api.patch(ruled.path(namespace, unique), {"spec": {"name": None}}).ok()
    ruled.api.patch(ruled.path(namespace, unique), {"spec": {"name": "b"}}).ok()


def test_elements_are_known_by_their_keys(ruled: Widgets, namespace: str, unique: str) -> None:
    ruled.create(namespace, unique, {"parts": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]})
    moved = [{"name": "c", "value": "3"}, {"name": "b", "value": "2"}, {"name": "a", "value": "1"}]
    ruled.api.patch(ruled.path(namespace, unique), {"spec": {"parts": moved}}).ok()
    changed = [{"name": "b", "value": "2"}, {"name": "a", "value": "9"}]
    answer = ruled.api.patch(ruled.path(namespace, unique), {"spec": {"parts": changed}})
    assert answer.summary == refusal(unique, 'spec.parts[1].value: Invalid value: "9": is immutable')


def test_defaults_are_there_when_rules_look(ruled: Widgets, namespace: str, unique: str) -> None:
    assert ruled.create(namespace, unique, {"most": 1})["spec"] == {"least": 1, "most": 1}


def test_applied_objects_are_judged(ruled: Widgets, namespace: str, unique: str) -> None:
    path = ruled.path(namespace, unique)
    assert ruled.api.apply(path, ruled.manifest(unique, {"word": "bad"})).summary == refusal(
        unique, 'spec.word: Invalid value: "bad": must not be bad'
    )
    ruled.api.apply(path, ruled.manifest(unique, {"word": "good", "name": "a"})).ok()
    assert ruled.api.apply(path, ruled.manifest(unique, {"word": "good", "name": "b"})).summary == refusal(
        unique, 'spec.name: Invalid value: "b": is immutable'
    )


def test_a_status_is_judged_with_its_object(ruled: Widgets, namespace: str, unique: str) -> None:
    ruled.create(namespace, unique, {"most": 2})
    path = ruled.path(namespace, unique, "status")
    ruled.api.patch(path, {"status": {"ready": 2}}).ok()
    assert ruled.api.patch(path, {"status": {"ready": -1}}).summary == refusal(
        unique, "status.ready: Invalid value: -1: failed rule: self >= 0"
    )
    assert ruled.api.patch(path, {"status": {"ready": 3}}).summary == refusal(unique, "<nil>: Invalid value: more ready than there are")


def test_what_was_wrong_before_the_rule_came_may_stay(api: Api, namespace: str, unique: str) -> None:
    plain = {**FIELDS, "word": {**STRING, "maxLength": 20}}
    with Widgets.installed(api, "oldies", "Oldie", schema={"openAPIV3Schema": schema([], plain)}) as oldies:
        made = oldies.create(namespace, unique, {"word": "bad"})
        body = api.get(f"{DEFINITIONS}/oldies.{GROUP}").ok()
        body["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema([], FIELDS)
        api.put(f"{DEFINITIONS}/oldies.{GROUP}", body).ok()
        fresh = oldies.manifest("fresh", {"word": "bad"})
        api.eventually(oldies.path(namespace), lambda _: api.post(oldies.path(namespace), fresh, dryRun="All").code == 422)
        answer = api.patch(oldies.path(namespace, unique), {"spec": {"other": "x"}})
        assert answer.ok()["spec"]["other"] == "x"
        assert answer.headers["warning"] == '299 - "spec.word: Invalid value: \\"bad\\": must not be bad"'
        answer = api.put(oldies.path(namespace, unique), {**answer.body, "spec": {"word": "bad", "other": "y", "count": 12}})
        assert answer.code == 422
        assert answer.body["message"].endswith("spec.count: Invalid value: 12: 12 are too many")
        assert made["metadata"]["name"] == unique
    api.gone(f"{DEFINITIONS}/oldies.{GROUP}")


MISTYPED = "self.count == 'a'"
PLACE = "spec.validation.openAPIV3Schema.properties[spec]"


def _shown(rule: str) -> str:
    return f'{{"Rule":"{rule}","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}}'


@pytest.mark.parametrize(
    ("rules", "items", "fault"),
    [
        (
            [{"rule": "self.nothing == 1"}],
            [],
            f"{PLACE}.x-kubernetes-validations[0].rule: Invalid value: {_shown('self.nothing == 1')}: compilation failed: "
            "ERROR: <input>:1:5: undefined field 'nothing'\n | self.nothing == 1\n | ....^",
        ),
        (
            [{"rule": MISTYPED}],
            [],
            f"{PLACE}.x-kubernetes-validations[0].rule: Invalid value: {_shown(MISTYPED)}: compilation failed: "
            "ERROR: <input>:1:12: found no matching overload for '_==_' applied to '(int, string)'\n | self.count == 'a'\n | ...........^",
        ),
        (
            [{"rule": "self.count"}],
            [],
            f"{PLACE}.x-kubernetes-validations[0].rule: Invalid value: {_shown('self.count')}: cel expression must evaluate to a bool",
        ),
        ([{"rule": ""}], [], f"{PLACE}.x-kubernetes-validations[0].rule: Required value: rule is not specified"),
        (
            [{"rule": "true", "fieldPath": ".nothing"}],
            [],
            f'{PLACE}.x-kubernetes-validations[0].fieldPath: Invalid value: ".nothing": must be a valid path',
        ),
        (
            [],
            [IMMUTABLE],
            f"{PLACE}.properties[list].items.x-kubernetes-validations[0].rule: Invalid value: "
            f'"self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within {PLACE}.properties[list]',
        ),
    ],
)
def test_a_definition_with_a_rule_that_is_wrong(api: Api, rules: list[Manifest], items: list[Manifest], fault: str) -> None:
    listed = {"type": "array", "maxItems": 3, "items": {**STRING, "maxLength": 9, "x-kubernetes-validations": items}}
    wrong = schema(rules, {**FIELDS, "list": listed})
    answer = api.post(DEFINITIONS, definition("failures", "Failure", schema={"openAPIV3Schema": wrong}))
    assert answer.summary == (422, "Invalid", f'CustomResourceDefinition.apiextensions.k8s.io "failures.{GROUP}" is invalid: {fault}')
