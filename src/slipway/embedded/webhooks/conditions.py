"""The conditions of an admission webhook: expressions in CEL that tell which writes it is asked about, as apiserver 1.35 evaluates them.

They read the object, the one before and the request, and may ask what its user may do.  One that is false keeps the webhook out of it,
whatever the others say; where none is and one has no value, the webhook's failurePolicy decides.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery import labels
from slipway.embedded.access import authentication
from slipway.embedded.access.authorization import Attributes
from slipway.embedded.apiextensions.cel import values
from slipway.embedded.apiextensions.cel.library.authorization import Question, authorizer, resource_check
from slipway.embedded.apiextensions.cel.patience import AT_ONCE, apart
from slipway.embedded.apiextensions.cel.program import ExpressionError, Program, compiled
from slipway.embedded.apiextensions.cel.rules import CALL_LIMIT, OUT_OF_BUDGET
from slipway.embedded.apiextensions.cel.types import AUTHORIZER, BOOL, DYN, INT, RESOURCE_CHECK, STRING, TIMESTAMP, Type, list_of, map_of
from slipway.embedded.apiextensions.cel.values import CostError, EvaluationError
from slipway.embedded.errors import FieldError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.access.authentication import User
    from slipway.embedded.access.authorization import Authorizer
    from slipway.embedded.apiextensions.cel.library.authorization import Asker

BUDGET = 2_500_000
"""What all conditions of a webhook may cost together on one write."""
MOST = 64


def _object(name: str) -> Type:
    return Type("object", name=f"kubernetes.{name}")


def _strings(*names: str) -> dict[str, Type]:
    return dict.fromkeys(names, STRING)


_CONDITION, _METADATA = _object("NamespaceCondition"), _object("NamespaceMetadata")
_KIND, _RESOURCE, _USER = _object("GroupVersionKind"), _object("GroupVersionResource"), _object("UserInfo")
_FIELDS = {
    "kubernetes.AdmissionRequest": {
        **dict.fromkeys(("kind", "requestKind"), _KIND),
        **dict.fromkeys(("resource", "requestResource"), _RESOURCE),
        **_strings("subResource", "requestSubResource", "name", "namespace", "operation"),
        "userInfo": _USER,
        "dryRun": BOOL,
        "options": DYN,
    },
    _KIND.name: _strings("group", "version", "kind"),
    _RESOURCE.name: _strings("group", "version", "resource"),
    _USER.name: {**_strings("username", "uid"), "groups": list_of(STRING), "extra": map_of(STRING, list_of(STRING))},
    "kubernetes.Namespace": {"metadata": _METADATA, "spec": _object("NamespaceSpec"), "status": _object("NamespaceStatus")},
    _METADATA.name: {
        **_strings("name", "generateName", "namespace", "UID", "resourceVersion"),
        **dict.fromkeys(("labels", "annotations"), map_of(STRING, STRING)),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), TIMESTAMP),
        **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), INT),
        "finalizers": list_of(STRING),
    },
    "kubernetes.NamespaceSpec": {"finalizers": list_of(STRING)},
    "kubernetes.NamespaceStatus": {"conditions": list_of(_CONDITION), "phase": STRING},
    _CONDITION.name: {**_strings("status", "type", "message", "reason"), "lastTransitionTime": TIMESTAMP},
}
# A namespaceObject can be written, since policies share the environment; for webhooks it is always null.
_VARIABLES = {
    "object": DYN,
    "oldObject": DYN,
    "namespaceObject": _object("Namespace"),
    "request": _object("AdmissionRequest"),
    "authorizer": AUTHORIZER,
    "authorizer.requestResource": RESOURCE_CHECK,
}


class ConditionsError(Exception):
    """Conditions that have no value for a write; the text says why."""


class Rights(NamedTuple):
    """What a user may do, as conditions ask for it."""

    authorizer: Authorizer
    user: User

    def ask(self, question: Question) -> tuple[bool, str]:
        version = "*" if question.resource else ""
        verdict = self.authorizer.decide(self.user, Attributes(version=version, **question._asdict()))
        return verdict.allowed, verdict.why

    def account(self, namespace: str, name: str) -> Rights:
        # Not as one who has come and proved it: everybody's group is not among its own.
        account = authentication.service_account(namespace, name)
        return self._replace(
            user=account._replace(groups=tuple(group for group in account.groups if group != authentication.AUTHENTICATED))
        )


class _Distant(NamedTuple):
    """Rights that a thread asks for: they are looked up where they are changed."""

    rights: Rights
    loop: asyncio.AbstractEventLoop

    def ask(self, question: Question) -> tuple[bool, str]:
        async def asked() -> tuple[bool, str]:
            return self.rights.ask(question)

        return asyncio.run_coroutine_threadsafe(asked(), self.loop).result()

    def account(self, namespace: str, name: str) -> _Distant:
        return self._replace(rights=self.rights.account(namespace, name))


class _TooMuchError(Exception):
    """The conditions cost more than may be spent at once."""


class _Condition(NamedTuple):
    expression: str
    program: Program | None
    fault: str
    """Why there is no program."""
    is_ours: bool = False
    """Whether the fault is not that of the expression."""


def _read(expression: str) -> _Condition:
    try:
        program = compiled(expression, _VARIABLES, _FIELDS)
    except ExpressionError as error:
        return _Condition(expression, None, f"compilation failed: {error}")
    except EvaluationError as error:
        return _Condition(expression, None, f"program instantiation failed: {error}", is_ours=True)
    if program.type != BOOL:
        return _Condition(expression, None, f"must evaluate to bool but got {program.type}")
    return _Condition(expression, program, "")


class Conditions:
    """Those of one webhook, compiled."""

    def __init__(self, written: Iterable[Manifest]) -> None:
        self._all = [_read(str(each.get("expression") or "").strip()) for each in written]

    def __bool__(self) -> bool:
        return bool(self._all)

    async def hold(self, request: Manifest, rights: Rights) -> bool:
        """Whether a webhook wants to see the write that an AdmissionRequest tells of."""
        try:
            return self._hold(request, rights, AT_ONCE)
        except _TooMuchError:
            return await apart(partial(self._hold, request, _Distant(rights, asyncio.get_running_loop())))

    def _hold(self, request: Manifest, rights: Asker, most: int = BUDGET) -> bool:
        """``most`` is what may be spent; a _TooMuchError where it does not do, and is less than the budget."""
        variables = {name: values.of_json(request[name]) for name in ("object", "oldObject")}
        shown = {name: value for name, value in request.items() if name not in ("uid", "object", "oldObject") and value != ""}
        variables["request"] = values.of_json(shown)
        resource = request["resource"]
        about = Question(
            group=resource["group"],
            resource=resource["resource"],
            subresource=request.get("subResource", ""),
            namespace=request.get("namespace", ""),
            name=request["name"],
        )
        variables |= {"authorizer": authorizer(rights), "authorizer.requestResource": resource_check(rights, about)}
        outcomes, budget = [], BUDGET
        # All of them are evaluated, and cost, before the first is looked at.
        for condition in self._all:
            outcome, cost = _evaluated(condition, variables, min(CALL_LIMIT, most))
            if BUDGET - budget + cost > most:
                raise ConditionsError(OUT_OF_BUDGET) if most == BUDGET else _TooMuchError
            budget -= cost
            outcomes.append(outcome)
        if False in outcomes:
            return False
        problems = [each for each in outcomes if isinstance(each, str)]
        if problems:
            raise ConditionsError(problems[0] if len(problems) == 1 else f"[{', '.join(dict.fromkeys(problems))}]")
        return True


def _evaluated(condition: _Condition, variables: Manifest, limit: int) -> tuple[bool | str, int]:
    """What a condition says, or why it says nothing; and what it cost."""
    program = condition.program
    if program is None:
        return f"compilation error: {condition.fault}", 0
    run = program.start(variables, limit)
    try:
        outcome = program.step(run)
        run.charge(0)
    except EvaluationError as error:
        return _problem(condition, str(error)), run.cost
    except CostError:
        return _problem(condition, "operation cancelled: actual cost limit exceeded"), run.cost
    return outcome is True, run.cost


def _problem(condition: _Condition, why: str) -> str:
    return f"expression '{condition.expression}' resulted in error: {why}"


def errors(new: Manifest, old: Manifest | None) -> list[FieldError]:
    """What is wrong with the conditions of a configuration; those that an update leaves as they were are not looked at."""
    webhooks = [each.get("matchConditions") or [] for each in new.get("webhooks") or ()]
    if old is not None and webhooks == [each.get("matchConditions") or [] for each in old.get("webhooks") or ()]:
        return []
    return [error for at, written in enumerate(webhooks) for error in _errors(written, f"webhooks[{at}].matchConditions")]


def _errors(written: Sequence[Manifest], place: str) -> list[FieldError]:
    found = [FieldError.too_many(place, len(written), MOST)] if len(written) > MOST else []
    names: set[str] = set()
    for index, each in enumerate(written):
        at, name = f"{place}[{index}]", each.get("name") or ""
        expression = str(each.get("expression") or "").strip()
        if not expression:
            found.append(FieldError.required(f"{at}.expression"))
        else:
            condition = _read(expression)
            if condition.is_ours:
                found.append(FieldError(f"{at}.expression", "InternalError", f"Internal error: {condition.fault}"))
            elif condition.fault:
                found.append(FieldError.invalid(f"{at}.expression", expression, condition.fault))
        if not name:
            found.append(FieldError.required(f"{at}.name"))
        found += [FieldError.invalid(f"{at}.name", name, problem) for problem in (labels.key_problems(name) if name else ())]
        if name in names:
            found.append(FieldError.duplicate(f"{at}.name", name))
        names |= {name} - {""}
    return found
