"""Conditions of admission webhooks: which writes they let a webhook see, what is said of those that fail, and which are never taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from conformance.api import MERGE, Api, Manifest
from conformance.gauges import CONFIGURATIONS, PLURAL, Asked, gauge
from conformance.widgets import GROUP
from support.waiting import eventually_blocking

VALIDATING = f"{CONFIGURATIONS}/validatingwebhookconfigurations"
DEAR = "!object.spec.text.contains(object.spec.part)"
"""Costs the product of what both texts cost to read."""
OPERATIONS = ["CREATE", "UPDATE", "DELETE"]


def conditions(*expressions: str) -> list[Manifest]:
    return [{"name": f"c{index}", "expression": each} for index, each in enumerate(expressions)]


class Seen(NamedTuple):
    """Conditions, what is in a gauge, and the writes of its life that the webhook is asked about."""

    expressions: tuple[str, ...]
    spec: Manifest
    operations: list[str]


SEEN = [
    Seen(("object == null || object.spec.size == 1",), {"size": 1}, OPERATIONS),
    Seen(("object == null || object.spec.size == 1",), {"size": 2}, ["DELETE"]),
    Seen(("has(object.spec)",), {}, ["CREATE", "UPDATE"]),
    Seen(("!has(object.spec)",), {}, ["DELETE"]),
    Seen(("oldObject == null",), {}, ["CREATE"]),
    Seen(("oldObject != null && object != null && object.spec != oldObject.spec",), {}, ["UPDATE"]),
    Seen(("object != null", "object.spec.size == 1 || true"), {}, ["CREATE", "UPDATE"]),
    Seen(("object == null || has(object.spec.x) && object.spec.x == null",), {"x": None}, OPERATIONS),
    Seen(
        ("object == null || object.spec.l + [3] == [1, 2, 3] && object.spec.m == {'a': [1.5]}",),
        {"l": [1, 2], "m": {"a": [1.5]}},
        OPERATIONS,
    ),
    Seen(("request.operation == 'DELETE'",), {}, ["DELETE"]),
    Seen(("'system:masters' in request.userInfo.groups && request.userInfo.username != ''",), {}, OPERATIONS),
    Seen(("request.kind.kind == 'Gauge' && request.resource.resource == 'gauges'",), {}, OPERATIONS),
    Seen(("request.requestKind.version == 'v1' && request.name.startsWith('t-')",), {}, OPERATIONS),
    Seen(("has(request.subResource) || request.dryRun",), {}, []),
    Seen(("request.options.kind == 'CreateOptions'",), {}, ["CREATE"]),
    Seen(("namespaceObject == null",), {}, OPERATIONS),
]


@pytest.mark.parametrize("case", SEEN, ids=[" and ".join(case.expressions) for case in SEEN])
def test_conditions_tell_which_writes_are_shown(api: Api, asked: Asked, gauges: Callable[..., str], unique: str, case: Seen) -> None:
    with asked.about(PLURAL, versions=("v1",), matchConditions=conditions(*case.expressions)) as seen:
        api.post(gauges("v1"), gauge("v1", unique, **case.spec)).ok()
        api.patch(gauges("v1", unique), {"spec": {"other": 1}}, MERGE).ok()
        api.delete(gauges("v1", unique)).ok()
    assert [each["operation"] for each in seen] == case.operations


def test_conditions_see_the_version_that_the_webhook_wants(api: Api, asked: Asked, gauges: Callable[..., str], unique: str) -> None:
    with asked.about(PLURAL, matchConditions=conditions("object.spec.width == 1 && request.requestKind.version == 'v1'")) as seen:
        api.post(gauges("v1"), gauge("v1", unique, size=1)).ok()
    assert [each["object"]["spec"]["width"] for each in seen] == [1]


def test_conditions_keep_a_mutating_webhook_out_too(api: Api, asked: Asked, gauges: Callable[..., str], unique: str) -> None:
    asked.patches({"op": "add", "path": "/spec/unit", "value": "mm"})
    with asked.about(PLURAL, kind="mutating", versions=("v1",), matchConditions=conditions("object.spec.size == 1")):
        made = [api.post(gauges("v1"), gauge("v1", f"{unique}-{size}", size=size)).ok() for size in (1, 2)]
    assert [each["spec"].get("unit") for each in made] == ["mm", None]


# What a user may do.

ACCOUNT = "authorizer.serviceAccount('NAMESPACE', 'reader')"
PODS = f"{ACCOUNT}.group('').resource('pods').namespace('NAMESPACE')"
SECRETS = f"{ACCOUNT}.group('').resource('secrets').namespace('NAMESPACE')"
RIGHTS = [
    ("authorizer.requestResource.check('create').allowed()", True),
    ("authorizer.path('/metrics').check('get').allowed()", True),
    (f"{PODS}.check('get').allowed()", True),
    (f"{PODS}.check('list').allowed()", False),
    (f"{PODS}.name('a').fieldSelector('a=b').labelSelector('c=d').check('get').allowed()", True),
    (f"{PODS}.subresource('log').check('get').allowed()", True),
    (f"{PODS}.subresource('exec').check('get').allowed()", False),
    (f"{PODS}.namespace('other').check('get').allowed()", False),
    (f"{SECRETS}.name('one').check('get').allowed()", True),
    (f"{SECRETS}.name('two').check('get').allowed()", False),
    (f"{ACCOUNT}.path('/healthz').check('get').allowed()", False),
    (f"{PODS}.check('get').reason().contains('allowed by RoleBinding')", True),
    (f"{PODS}.check('list').reason() == '' && !{PODS}.check('list').errored()", True),
    ("[1].all(authorizer, authorizer == 1)", True),
    ("authorizer == null || authorizer.requestResource == null", False),
]


@pytest.fixture(scope="module")
def reader(api: Api, namespace: str) -> str:
    """A ServiceAccount that may read some things; its namespace."""
    group, home = "rbac.authorization.k8s.io", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    rules = [
        {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"], "verbs": ["get"]},
    ]
    subjects = [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}]
    api.post(f"{home}/roles", {"metadata": {"name": "reader"}, "rules": rules}).ok()
    role = {"apiGroup": group, "kind": "Role", "name": "reader"}
    api.post(f"{home}/rolebindings", {"metadata": {"name": "reader"}, "roleRef": role, "subjects": subjects}).ok()
    review = {
        "user": f"system:serviceaccount:{namespace}:reader",
        "resourceAttributes": {"namespace": namespace, "verb": "get", "resource": "pods"},
    }

    def known() -> bool:
        asked = api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": review}).ok()
        return bool(asked["status"]["allowed"])

    eventually_blocking(known, "the rights are known")
    return namespace


@pytest.mark.parametrize(("expression", "holds"), RIGHTS)
def test_conditions_ask_what_somebody_may_do(
    api: Api, asked: Asked, gauges: Callable[..., str], unique: str, reader: str, expression: str, holds: bool
) -> None:
    with asked.about(PLURAL, versions=("v1",), matchConditions=conditions(expression.replace("NAMESPACE", reader))) as seen:
        api.post(gauges("v1"), gauge("v1", unique)).ok()
    assert len(seen) == holds


# What has no value.


class Failing(NamedTuple):
    expressions: tuple[str, ...]
    spec: Manifest
    why: str


def texts(length: int) -> Manifest:
    return {"text": "a" * length, "part": "b" * (length // 10)}


def failed(expression: str, why: str) -> str:
    return f"expression '{expression}' resulted in error: {why}"


def check(account: str) -> str:
    return f"{account}.path('/x').check('get').allowed()"


THRICE = " || ".join(f"authorizer.serviceAccount('a', 'b').path('{path}').check('get').allowed()" for path in ("/x", "/y", "/z"))
ONE, OTHER = "object.spec.size == 1", "object.spec.other == 1"
FAILING = [
    Failing((ONE,), {}, failed(ONE, "no such key: size")),
    Failing((ONE, "true", OTHER), {}, f"[{failed(ONE, 'no such key: size')}, {failed(OTHER, 'no such key: other')}]"),
    Failing(("object.spec.l[3] == 1",), {"l": [1]}, failed("object.spec.l[3] == 1", "index out of bounds: 3")),
    Failing(("1 / object.spec.size > 0",), {"size": 0}, failed("1 / object.spec.size > 0", "division by zero")),
    Failing(("object.spec.s.startsWith('a')",), {"s": 1}, failed("object.spec.s.startsWith('a')", "no such overload")),
    Failing(("object.spec.x > 1",), {"x": None}, failed("object.spec.x > 1", "no such overload: _>_")),
    Failing(("object.spec.x + object.spec.x == 1",), {"x": {}}, failed("object.spec.x + object.spec.x == 1", "no such overload: _+_")),
    Failing(("object.spec.x - object.spec.x == 1",), {"x": "a"}, failed("object.spec.x - object.spec.x == 1", "no such overload")),
    Failing(("request.options.x == 1",), {}, failed("request.options.x == 1", "no such key: x")),
    Failing(("namespaceObject.metadata.name == 'a'",), {}, failed("namespaceObject.metadata.name == 'a'", "no such key: metadata")),
    Failing(
        (check("authorizer.serviceAccount('A', 'b')"),),
        {},
        failed(check("authorizer.serviceAccount('A', 'b')"), "Invalid service account namespace"),
    ),
    Failing(
        (check("authorizer.serviceAccount('a', 'B')"),),
        {},
        failed(check("authorizer.serviceAccount('a', 'B')"), "Invalid service account name"),
    ),
    Failing(
        ("authorizer.path('').check('get').allowed()",), {}, failed("authorizer.path('').check('get').allowed()", "path must not be empty")
    ),
    Failing(
        ("authorizer.group('') == authorizer.group('')",), {}, failed("authorizer.group('') == authorizer.group('')", "no such overload")
    ),
    Failing((THRICE,), {}, failed(THRICE, "operation cancelled: actual cost limit exceeded")),
    Failing((DEAR,), texts(40_000), failed(DEAR, "operation cancelled: actual cost limit exceeded")),
    Failing(
        ("false", *[DEAR] * 4),
        texts(25_000),
        "validation failed due to running out of cost budget, no further validation rules will be run",
    ),
]


@pytest.mark.parametrize("case", FAILING, ids=[case.why[:60] for case in FAILING])
def test_a_condition_without_a_value_refuses_the_write(
    api: Api, asked: Asked, gauges: Callable[..., str], unique: str, case: Failing
) -> None:
    with asked.about(PLURAL, versions=("v1",), matchConditions=conditions(*case.expressions)) as seen:
        answer = api.post(gauges("v1"), gauge("v1", unique, **case.spec))
    assert answer.summary == (403, "Forbidden", f'{PLURAL}.{GROUP} "{unique}" is forbidden: {case.why}')
    assert not seen


@pytest.mark.parametrize("expressions", [(ONE,), (DEAR,) * 5], ids=["no such key", "no more budget"])
def test_a_webhook_that_may_be_ignored_is_not_asked_then(
    api: Api, asked: Asked, gauges: Callable[..., str], unique: str, expressions: tuple[str, ...]
) -> None:
    with asked.about(PLURAL, versions=("v1",), matchConditions=conditions(*expressions), failurePolicy="Ignore") as seen:
        api.post(gauges("v1"), gauge("v1", unique, **texts(25_000))).ok()
    assert not seen


def test_one_that_is_false_makes_up_for_those_that_fail(api: Api, asked: Asked, gauges: Callable[..., str], unique: str) -> None:
    with asked.about(PLURAL, versions=("v1",), matchConditions=conditions(ONE, "false")) as seen:
        api.post(gauges("v1"), gauge("v1", unique)).ok()
    assert not seen


# What is refused when the configuration is written.


def configuration(*written: Manifest) -> Manifest:
    rule = {"apiGroups": [GROUP], "apiVersions": ["v1"], "resources": ["nothing"], "operations": ["*"]}
    webhook: dict[str, Any] = {
        "name": f"asked.{GROUP}",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "matchConditions": list(written),
    }
    return {"metadata": {"name": "conditions"}, "webhooks": [webhook]}


def uncompiled(expression: str, column: int, why: str) -> str:
    shown = f"compilation failed: ERROR: <input>:1:{column}: {why}\n | {expression}\n | {'.' * (column - 1)}^"
    return f'[0].expression: Invalid value: "{expression}": {shown}'


NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
REFUSED: list[tuple[list[Manifest], str]] = [
    (conditions("nothing == 1"), uncompiled("nothing == 1", 1, "undeclared reference to 'nothing' (in container '')")),
    (conditions("self.spec == 1"), uncompiled("self.spec == 1", 1, "undeclared reference to 'self' (in container '')")),
    (conditions("request.object == 1"), uncompiled("request.object == 1", 8, "undefined field 'object'")),
    (conditions("request.uid == ''"), uncompiled("request.uid == ''", 8, "undefined field 'uid'")),
    (conditions("namespaceObject.kind == ''"), uncompiled("namespaceObject.kind == ''", 16, "undefined field 'kind'")),
    (
        conditions("request.name == 1"),
        uncompiled("request.name == 1", 14, "found no matching overload for '_==_' applied to '(string, int)'"),
    ),
    (
        conditions("1 == request.userInfo.extra"),
        uncompiled("1 == request.userInfo.extra", 3, "found no matching overload for '_==_' applied to '(int, map(string, list(string)))'"),
    ),
    (
        conditions("authorizer.nothing == 1"),
        uncompiled("authorizer.nothing == 1", 11, "unexpected failed resolution of 'kubernetes.authorization.Authorizer'"),
    ),
    (
        conditions("authorizer.check('get').allowed()"),
        uncompiled(
            "authorizer.check('get').allowed()",
            17,
            "found no matching overload for 'check' applied to 'kubernetes.authorization.Authorizer.(string)'",
        ),
    ),
    (conditions("''.matches('(')"), uncompiled("''.matches('(')", 12, "invalid matches argument")),
    (conditions("'x'"), "[0].expression: Invalid value: \"'x'\": must evaluate to bool but got string"),
    (conditions("object.spec"), '[0].expression: Invalid value: "object.spec": must evaluate to bool but got dyn'),
    (conditions("   "), "[0].expression: Required value"),
    ([{"expression": "true"}], "[0].name: Required value"),
    ([{"name": "a b", "expression": "true"}], f'[0].name: Invalid value: "a b": {NAME_RULE}'),
    ([{"name": "a", "expression": "true"}] * 2, '[1].name: Duplicate value: "a"'),
    (conditions(*["true"] * 65), ": Too many: 65: must have at most 64 items"),
]


@pytest.mark.parametrize(("written", "why"), REFUSED, ids=[why.replace("\n", " ")[:70] for _, why in REFUSED])
def test_conditions_that_cannot_be_are_refused(api: Api, written: list[Manifest], why: str) -> None:
    answer = api.post(VALIDATING, configuration(*written), dryRun="All")
    kind = "ValidatingWebhookConfiguration.admissionregistration.k8s.io"
    assert answer.summary == (422, "Invalid", f'{kind} "conditions" is invalid: webhooks[0].matchConditions{why}')


@pytest.mark.parametrize("written", [conditions(" true "), conditions("request == null"), conditions(*[DEAR] * 64)])
def test_what_can_be_evaluated_is_taken_whatever_it_may_cost(api: Api, written: list[Manifest]) -> None:
    api.post(VALIDATING, configuration(*written), dryRun="All").ok()


def test_an_update_is_held_to_the_same(api: Api) -> None:
    api.post(VALIDATING, configuration(*conditions("true"))).ok()
    try:
        answer = api.patch(f"{VALIDATING}/conditions", configuration(*conditions("'x'")), MERGE)
        assert answer.summary[:2] == (422, "Invalid")
    finally:
        api.delete(f"{VALIDATING}/conditions")
