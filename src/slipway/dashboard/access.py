"""Who looks, and what they may see: the API server says both, by a TokenReview and by SubjectAccessReviews.

The page shows somebody what `kubectl get` would list for them, and nothing else: each kind is asked about in the whole cluster, and where
that is refused in every namespace that has some of it.  Answers are kept for a short time, so that many who look cost the API server
little, and a right that is taken away is gone from the page soon.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from hashlib import sha256
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from slipway.api.cluster.kinds import SUBJECT_ACCESS_REVIEW, TOKEN_REVIEW
from slipway.kube.errors import ApiError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.kube.aio import AsyncClient

KEPT = 30.0
"""For how many seconds an answer of the API server holds."""
# What is refused may be granted in this moment, by who was just asked to; about each of many namespaces it is not asked that often.
_KEPT_REFUSAL, _KEPT_REFUSAL_WITHIN = 5.0, 120.0
# Tokens of OpenID Connect with many groups have some kilobytes.
_LONGEST_TOKEN = 16 << 10
_MOST_ANSWERS = 20_000
# So many questions are under way at once, and so many more wait for their turn.
_AT_ONCE, _MOST_WAITING = 16, 1024

T = TypeVar("T")


class RefusedError(Exception):
    """Somebody gets nothing: the HTTP status, and a sentence for them."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class Visitor(NamedTuple):
    """Whom the API server takes a token for."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Sight(NamedTuple):
    """The kinds that somebody may list: in all namespaces, and by namespace."""

    everywhere: frozenset[Kind]
    within: Mapping[str, frozenset[Kind]] = {}

    def of(self, namespace: str) -> frozenset[Kind]:
        return self.everywhere | self.within.get(namespace, frozenset())

    def __bool__(self) -> bool:
        return bool(self.everywhere) or any(self.within.values())


class Access:
    """``kinds`` are those that the page shows."""

    def __init__(self, client: AsyncClient, kinds: Collection[Kind], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self._kinds = client, tuple(kinds)
        self._visitors: _Answers[Visitor | None] = _Answers(clock)
        self._verdicts: _Answers[bool] = _Answers(clock)
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._waiting = 0

    async def visitor(self, token: str) -> Visitor:
        """Whose token it is; RefusedError where it is nobody's."""
        if not token or len(token) > _LONGEST_TOKEN or not token.isascii() or not token.isprintable():
            raise RefusedError(401, "a bearer token is needed: one that the API server takes, such as `kubectl create token` makes")
        key = sha256(token.encode()).digest()
        found = self._visitors.get(key)
        if found is None:
            visitor = await self._review_token(token)
            found = self._visitors.keep(key, visitor, KEPT if visitor is not None else _KEPT_REFUSAL)
        if found[0] is None:
            raise RefusedError(401, "the API server does not take this token: it is wrong, or its time is over")
        return found[0]

    async def sight(self, visitor: Visitor, present: Mapping[str, Collection[Kind]], *, named: str = "") -> Sight:
        """What they may see; RefusedError where that is nothing.

        ``present`` are the namespaces with the kinds that are there; ``named`` is one more, which may have nothing yet.
        """
        verdicts = await asyncio.gather(*(self._may_list(visitor, kind, "") for kind in self._kinds))
        everywhere = frozenset(kind for kind, may in zip(self._kinds, verdicts, strict=True) if may)
        places = {namespace: set(found) - everywhere for namespace, found in present.items()}
        if named:
            places[named] = set(self._kinds) - everywhere
        questions = [(namespace, kind) for namespace, kinds in places.items() for kind in sorted(kinds)]
        answers = await asyncio.gather(*(self._may_list(visitor, kind, namespace) for namespace, kind in questions))
        within: dict[str, set[Kind]] = {}
        for (namespace, kind), may in zip(questions, answers, strict=True):
            if may:
                within.setdefault(namespace, set()).add(kind)
        found = Sight(everywhere, {namespace: frozenset(kinds) for namespace, kinds in within.items()})
        if not found:
            raise RefusedError(403, _nothing_to_see(visitor, self._kinds, named))
        return found

    async def _may_list(self, visitor: Visitor, kind: Kind, namespace: str) -> bool:
        key = (visitor, kind, namespace)
        known = self._verdicts.get(key)
        if known is None:
            may = await self._review_access(visitor, kind, namespace)
            known = self._verdicts.keep(key, may, KEPT if may else _KEPT_REFUSAL_WITHIN if namespace else _KEPT_REFUSAL)
        return known[0]

    async def _review_token(self, token: str) -> Visitor | None:
        status = await self._ask(TOKEN_REVIEW, {"token": token})
        if status.get("authenticated") is not True:
            return None
        user = status.get("user") or {}
        extra = tuple(sorted((str(key), tuple(map(str, values or ()))) for key, values in (user.get("extra") or {}).items()))
        return Visitor(str(user.get("username") or ""), tuple(map(str, user.get("groups") or ())), str(user.get("uid") or ""), extra)

    async def _review_access(self, visitor: Visitor, kind: Kind, namespace: str) -> bool:
        wanted = {"verb": "list", "group": kind.group, "resource": kind.plural, "version": kind.version}
        if namespace:
            wanted["namespace"] = namespace
        spec = {
            "user": visitor.name,
            "groups": list(visitor.groups),
            "uid": visitor.uid,
            "extra": {key: list(values) for key, values in visitor.extra},
            "resourceAttributes": wanted,
        }
        return (await self._ask(SUBJECT_ACCESS_REVIEW, spec)).get("allowed") is True

    async def _ask(self, kind: Kind, spec: Manifest) -> Manifest:
        if self._waiting >= _MOST_WAITING:
            raise RefusedError(503, "too many people ask at the same time: try again in a moment")
        self._waiting += 1
        try:
            async with self._turns:
                answer = await self._client.create(kind, {"spec": spec})
        except (ApiError, UnreachableError) as error:
            raise RefusedError(503, f"the API server was asked for a {kind.kind} and did not answer it: {error.message}") from error
        finally:
            self._waiting -= 1
        return answer.get("status") or {}


class _Answers(Generic[T]):
    """Answers for a time, the newest of them."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: OrderedDict[object, tuple[T, float]] = OrderedDict()

    def get(self, key: object) -> tuple[T] | None:
        found = self._kept.get(key)
        return (found[0],) if found is not None and self._clock() < found[1] else None

    def keep(self, key: object, answer: T, seconds: float) -> tuple[T]:
        self._kept.pop(key, None)
        self._kept[key] = answer, self._clock() + seconds
        while len(self._kept) > _MOST_ANSWERS:
            self._kept.popitem(last=False)
        return (answer,)


def _nothing_to_see(visitor: Visitor, kinds: Iterable[Kind], named: str) -> str:
    wanted = ", ".join(f"{kind.plural}.{kind.group}" for kind in kinds)
    where = f"in the namespace {named}" if named else "in all namespaces, or in one that has some"
    return f"{visitor.name} may list none of what this page shows {where}: {wanted}"
