"""What can be asked of etcd, and what its answers mean; how it is asked is :mod:`etcdclient`'s and :mod:`etcdaio`'s.

The requests are those of etcd's JSON gateway: 64-bit numbers are strings in its JSON, and fields that are zero are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

# What gRPC calls them.  A deadline or "unavailable" says nothing about the request: leader lost, cluster not settled yet.
_DEADLINE_EXCEEDED, _NOT_FOUND, _FAILED_PRECONDITION, _UNAVAILABLE = 4, 5, 9, 14
_GATEWAY_STATUS = (502, 503, 504)


class EtcdMember(NamedTuple):
    """A member as the cluster knows it; one that never started has no name and no client URLs."""

    id: int
    name: str
    peer_urls: tuple[str, ...]
    client_urls: tuple[str, ...]
    is_learner: bool


class EtcdStatus(NamedTuple):
    """How one member is."""

    version: str
    db_size: int
    leader: int
    member_id: int
    raft_index: int
    is_learner: bool
    errors: tuple[str, ...]


class EtcdAlarm(NamedTuple):
    """Why a member refuses work: NOSPACE or CORRUPT."""

    member_id: int
    kind: str


class EtcdError(OperatorError):
    """An answer of etcd that is not success; ``code`` is gRPC's."""

    def __init__(self, message: str, code: int = 0, *, transient: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.transient = transient

    @property
    def says_not_found(self) -> bool:
        return self.code == _NOT_FOUND

    @property
    def says_peer_exists(self) -> bool:
        # The id is made of the URL and the second: added twice within one, the id is what is found to exist.
        return "Peer URLs already exists" in self.message or "member ID already exist" in self.message

    @property
    def says_too_many_learners(self) -> bool:
        return "too many learner members" in self.message

    @property
    def says_not_in_sync(self) -> bool:
        """The learner has not caught up with the leader yet."""
        return "in sync with leader" in self.message

    @property
    def says_not_a_learner(self) -> bool:
        return self.code == _FAILED_PRECONDITION and self.message.endswith("can only promote a learner member")


class EtcdUnreachableError(EtcdError):
    """No answer: refused, no route, timed out, connection lost."""

    def __init__(self, message: str) -> None:
        super().__init__(message, _UNAVAILABLE, transient=True)


class Call(NamedTuple, Generic[T]):
    """One request, and how its answer is read."""

    path: str
    body: dict[str, Any]
    read: Callable[[dict[str, Any]], T]

    @property
    def target(self) -> str:
        return f"/v3/{self.path}"


def members() -> Call[list[EtcdMember]]:
    """All members; it needs a quorum, so that the answer is the cluster's and not one member's memory."""
    return Call("cluster/member/list", {"linearizable": True}, _members)


def cluster_id() -> Call[int]:
    return Call("cluster/member/list", {"linearizable": True}, lambda answer: int(answer["header"]["cluster_id"]))


def revision() -> Call[int]:
    """The revision of a member that has everything that the cluster has agreed on until now: any read that is not told to be stale asks."""
    return Call("kv/range", {"key": "AA==", "limit": "1", "keys_only": True}, lambda answer: int(answer["header"]["revision"]))


def snapshot() -> Call[None]:
    """The whole database, as a stream of messages; :mod:`etcdsnapshot` reads them."""
    return Call("maintenance/snapshot", {}, lambda answer: None)


def add_learner(peer_url: str) -> Call[tuple[int, list[EtcdMember]]]:
    """The id of the new member, and all members."""
    body = {"peerURLs": [peer_url], "isLearner": True}
    return Call("cluster/member/add", body, lambda answer: (int(answer["member"]["ID"]), _members(answer)))


def promote(member_id: int) -> Call[list[EtcdMember]]:
    return Call("cluster/member/promote", {"ID": str(member_id)}, _members)


def remove(member_id: int) -> Call[list[EtcdMember]]:
    """The members that stay."""
    return Call("cluster/member/remove", {"ID": str(member_id)}, _members)


def status() -> Call[EtcdStatus]:
    """How the member is that answers, and whom it takes for the leader."""
    return Call("maintenance/status", {}, _status)


def alarms() -> Call[list[EtcdAlarm]]:
    return Call("maintenance/alarm", {"action": "GET"}, _alarms)


def move_leader(member_id: int) -> Call[None]:
    """Make another voter the leader; only the leader can be asked."""
    return Call("maintenance/transfer-leadership", {"targetID": str(member_id)}, lambda answer: None)


def understood(call: Call[T], endpoint: str, http_status: int, content: bytes) -> T:
    """What an answer says; an EtcdError where it is not success."""
    import msgspec

    try:
        answer = msgspec.json.decode(content)
    except msgspec.DecodeError:
        answer = None
    if http_status != 200 or not isinstance(answer, dict):
        raise failure(endpoint, answer if isinstance(answer, dict) else {}, http_status)
    try:
        return call.read(answer)
    except (KeyError, TypeError, ValueError) as error:
        raise EtcdError(f"{endpoint}: not an answer of etcd to {call.path}: {error!r}") from error


def failure(endpoint: str, answer: dict[str, Any], http_status: int) -> EtcdError:
    code = int(answer.get("code") or answer.get("grpc_code") or 0)
    text = answer.get("message") or answer.get("error") or f"HTTP status {http_status}"
    transient = code in (_DEADLINE_EXCEEDED, _UNAVAILABLE) or http_status in _GATEWAY_STATUS or "leader changed" in text
    return EtcdError(f"{endpoint}: {text}", code, transient=transient)


def _members(answer: dict[str, Any]) -> list[EtcdMember]:
    return [
        EtcdMember(
            id=int(item["ID"]),
            name=item.get("name", ""),
            peer_urls=tuple(item.get("peerURLs") or ()),
            client_urls=tuple(item.get("clientURLs") or ()),
            is_learner=bool(item.get("isLearner")),
        )
        for item in answer.get("members") or ()
    ]


def _status(answer: dict[str, Any]) -> EtcdStatus:
    return EtcdStatus(
        version=answer.get("version", ""),
        db_size=int(answer.get("dbSize", 0)),
        leader=int(answer.get("leader", 0)),
        member_id=int(answer.get("header", {}).get("member_id", 0)),
        raft_index=int(answer.get("raftIndex", 0)),
        is_learner=bool(answer.get("isLearner")),
        errors=tuple(answer.get("errors") or ()),
    )


def _alarms(answer: dict[str, Any]) -> list[EtcdAlarm]:
    return [EtcdAlarm(int(item.get("memberID", 0)), item.get("alarm", "NONE")) for item in answer.get("alarms") or ()]
