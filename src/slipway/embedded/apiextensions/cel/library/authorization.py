"""Questions to the authorizer: ``authorizer.group('').resource('pods').namespace('n').check('get').allowed()``.

Who decides is not known here: a :class:`Asker` is handed the question.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from slipway.embedded.apiextensions.cel.functions import Functions
from slipway.embedded.apiextensions.cel.types import AUTHORIZER, BOOL, DECISION, GROUP_CHECK, PATH_CHECK, RESOURCE_CHECK, STRING, Type
from slipway.embedded.apiextensions.cel.values import EvaluationError, no_such_overload
from slipway.embedded.registry import metadata

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

FUNCTIONS = Functions()
# So that an expression has two of them at most.
_CHECK_COST = 350_000


class Question(NamedTuple):
    """What somebody wants to do: to a resource, or where there is none to a path."""

    verb: str = ""
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class Asker(Protocol):
    """Somebody about whose rights can be asked."""

    def ask(self, question: Question) -> tuple[bool, str]:
        """Whether they may, and why."""

    def account(self, namespace: str, name: str) -> Asker:
        """The same about a ServiceAccount."""


class _Opaque:
    """Nothing is equal to it, not even itself."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise no_such_overload()


@dataclass(frozen=True, eq=False)
class _Check(_Opaque):
    """A question on its way, and of which type it is by now."""

    asker: Asker
    question: Question
    cel_type: Type


@dataclass(frozen=True, eq=False)
class _Decision(_Opaque):
    allowed: bool
    reason: str
    cel_type: Type = DECISION


def authorizer(asker: Asker) -> Any:
    """The variable ``authorizer``."""
    return _Check(asker, Question(), AUTHORIZER)


def resource_check(asker: Asker, question: Question) -> Any:
    """The variable ``authorizer.requestResource``."""
    return _Check(asker, question, RESOURCE_CHECK)


def _path(check: _Check, path: str) -> _Check:
    if not path.strip():
        raise EvaluationError("path must not be empty")
    return _Check(check.asker, Question(path=path), PATH_CHECK)


def _group(check: _Check, group: str) -> _Check:
    return _Check(check.asker, Question(group=group), GROUP_CHECK)


def _resource(check: _Check, resource: str) -> _Check:
    if not resource.strip():
        raise EvaluationError("resource must not be empty")
    return replace(check, question=check.question._replace(resource=resource), cel_type=RESOURCE_CHECK)


def _subresource(check: _Check, subresource: str) -> _Check:
    return replace(check, question=check.question._replace(subresource=subresource))


def _namespace(check: _Check, namespace: str) -> _Check:
    return replace(check, question=check.question._replace(namespace=namespace))


def _name(check: _Check, name: str) -> _Check:
    return replace(check, question=check.question._replace(name=name))


def _selected(check: _Check, selector: str) -> _Check:
    """Rules of RBAC do not look at selectors."""
    del selector
    return check


def _account(check: _Check, namespace: str, name: str) -> _Check:
    if metadata.label_problems(namespace):
        raise EvaluationError("Invalid service account namespace")
    if metadata.subdomain_problems(name):
        raise EvaluationError("Invalid service account name")
    return replace(check, asker=check.asker.account(namespace, name))


def _asked(check: _Check, verb: str) -> _Decision:
    return _Decision(*check.asker.ask(check.question._replace(verb=verb)))


def _cost_of_check(arguments: Sequence[Any], result: Any) -> int:
    del arguments, result
    return _CHECK_COST


_member = FUNCTIONS.member

_member("path", [AUTHORIZER, STRING], PATH_CHECK, _path)
_member("check", [PATH_CHECK, STRING], DECISION, _asked, _cost_of_check)
_member("group", [AUTHORIZER, STRING], GROUP_CHECK, _group)
_member("serviceAccount", [AUTHORIZER, STRING, STRING], AUTHORIZER, _account)
_member("resource", [GROUP_CHECK, STRING], RESOURCE_CHECK, _resource)
_member("subresource", [RESOURCE_CHECK, STRING], RESOURCE_CHECK, _subresource)
_member("namespace", [RESOURCE_CHECK, STRING], RESOURCE_CHECK, _namespace)
_member("name", [RESOURCE_CHECK, STRING], RESOURCE_CHECK, _name)
_member("fieldSelector", [RESOURCE_CHECK, STRING], RESOURCE_CHECK, _selected)
_member("labelSelector", [RESOURCE_CHECK, STRING], RESOURCE_CHECK, _selected)
_member("check", [RESOURCE_CHECK, STRING], DECISION, _asked, _cost_of_check)
_member("errored", [DECISION], BOOL, lambda decision: False)
_member("error", [DECISION], STRING, lambda decision: "")
_member("allowed", [DECISION], BOOL, lambda decision: decision.allowed)
_member("reason", [DECISION], STRING, lambda decision: decision.reason)
