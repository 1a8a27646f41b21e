"""The etcd of a simulated cluster: members that come and go by etcd's own rules, behind its JSON gateway over mutual TLS.

What is not simulated is the log: the members agree on everything at once, as long as more than half of the voters run.
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.api.machinery.duration import Duration
from slipway.credentials import keys, tls, x509
from slipway.credentials.profile import CLIENT_AUTH, SERVER_AUTH, Profile

if TYPE_CHECKING:
    from collections.abc import Callable

# gRPC's codes.
_NOT_FOUND, _FAILED_PRECONDITION, _UNAVAILABLE, _UNIMPLEMENTED = 5, 9, 14, 12
_LARGEST = 1 << 20


class RefusedError(Exception):
    """What etcd answers instead of doing it."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class Member(msgspec.Struct):
    id: int
    peer_url: str
    name: str = ""
    """Empty until it has started once."""
    client_url: str = ""
    learner: bool = False
    alarm: str = ""
    running: bool = False


class Etcd:
    """``version`` is what members say of themselves."""

    def __init__(self, version: str = "3.6.5") -> None:
        self.version = version
        self.members: dict[int, Member] = {}
        self.leader = 0
        self.index = 100
        self.changed: Callable[[], None] = lambda: None

    # What runs.

    def start(self, name: str, peer_url: str, client_url: str) -> Member:
        """A member that was added starts, or one that there was starts again; the first one makes the cluster."""
        found = next((member for member in self.members.values() if member.peer_url == peer_url), None)
        if found is None:
            if self.members:
                raise RefusedError(_UNAVAILABLE, f"the member {name} was removed from the cluster, or never added")
            found = self._new(peer_url)
        found.name, found.client_url, found.running = name, client_url, True
        self.settle()
        return found

    def know(self, peer_url: str) -> None:
        """A member of a cluster that there was before: it votes, and runs when it is started."""
        self._new(peer_url)

    def stop(self, member_id: int) -> None:
        if member_id in self.members:
            self.members[member_id].running = False
            self.settle()

    def settle(self) -> None:
        """An election, where there is nobody who leads and most voters run."""
        leader = self.members.get(self.leader)
        if not self.has_quorum():
            self.leader = 0
        elif leader is None or not leader.running or leader.learner:
            self.leader = min(member.id for member in self.members.values() if member.running and not member.learner)
        self.changed()

    def has_quorum(self) -> bool:
        voters = [member for member in self.members.values() if not member.learner]
        return bool(voters) and sum(member.running for member in voters) > len(voters) // 2

    def leading(self) -> Member | None:
        return self.members.get(self.leader)

    # What is asked.

    def answer(self, member: Member, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """What one member answers; RefusedError where it does not do it."""
        self.index += 1
        header = {"cluster_id": "7", "member_id": str(member.id), "revision": str(self.index), "raft_term": "2"}
        match path:
            case "/v3/maintenance/status":
                return {
                    "header": header,
                    "version": self.version,
                    "dbSize": "4194304",
                    "leader": str(self.leader),
                    "raftIndex": str(self.index),
                    "raftTerm": "2",
                    **({"isLearner": True} if member.learner else {}),
                    **({"errors": ["etcdserver: no leader"]} if not self.leader else {}),
                }
            case "/v3/maintenance/alarm":
                return {
                    "header": header,
                    "alarms": [{"memberID": str(each.id), "alarm": each.alarm} for each in self.members.values() if each.alarm],
                }
        if member.learner:
            raise RefusedError(_UNAVAILABLE, "etcdserver: rpc not supported for learner")
        if not self.has_quorum():
            raise RefusedError(_UNAVAILABLE, "etcdserver: no leader")
        match path:
            case "/v3/cluster/member/list":
                return {"header": header, "members": self._listed()}
            case "/v3/cluster/member/add":
                added = self.add(body["peerURLs"][0], learner=bool(body.get("isLearner")))
                return {"header": header, "member": _shown(added), "members": self._listed()}
            case "/v3/cluster/member/promote":
                self.promote(int(body["ID"]))
                return {"header": header, "members": self._listed()}
            case "/v3/cluster/member/remove":
                self.remove(int(body["ID"]))
                return {"header": header, "members": self._listed()}
            case "/v3/maintenance/transfer-leadership":
                self.move_leader(member, int(body["targetID"]))
                return {"header": header}
        raise RefusedError(_UNIMPLEMENTED, f"this is not simulated: {path}")

    def add(self, peer_url: str, *, learner: bool) -> Member:
        if any(member.peer_url == peer_url for member in self.members.values()):
            raise RefusedError(_FAILED_PRECONDITION, "etcdserver: Peer URLs already exists")
        if learner and any(member.learner for member in self.members.values()):
            raise RefusedError(_FAILED_PRECONDITION, "etcdserver: too many learner members in cluster")
        if any(not member.running for member in self.members.values() if not member.learner):
            raise RefusedError(_UNAVAILABLE, "etcdserver: unhealthy cluster")
        made = self._new(peer_url, learner=learner)
        self.settle()
        return made

    def promote(self, member_id: int) -> None:
        member = self._member(member_id)
        if not member.learner:
            raise RefusedError(_FAILED_PRECONDITION, "etcdserver: can only promote a learner member")
        if not member.running:
            raise RefusedError(_FAILED_PRECONDITION, "etcdserver: can only promote a learner member which is in sync with leader")
        member.learner = False
        self.settle()

    def remove(self, member_id: int) -> None:
        leaving = self._member(member_id)
        voters = [member for member in self.members.values() if not member.learner and member is not leaving]
        if not leaving.learner and sum(member.running for member in voters) <= len(voters) // 2:
            raise RefusedError(_FAILED_PRECONDITION, "etcdserver: re-configuration failed due to not enough started members")
        del self.members[member_id]
        self.settle()

    def move_leader(self, asked: Member, target: int) -> None:
        if asked.id != self.leader:
            raise RefusedError(_FAILED_PRECONDITION, "etcdserver: not leader")
        wanted = self.members.get(target)
        if wanted is None or wanted.learner:
            raise RefusedError(_FAILED_PRECONDITION, "etcdserver: bad leader transferee")
        self.leader = target
        self.settle()

    def _new(self, peer_url: str, *, learner: bool = False) -> Member:
        self.index += 1
        number = int.from_bytes(hashlib.sha1(f"{peer_url}{self.index}".encode(), usedforsecurity=False).digest()[:8], "big") >> 1
        made = self.members[number] = Member(number, peer_url, learner=learner)
        return made

    def _member(self, member_id: int) -> Member:
        found = self.members.get(member_id)
        if found is None:
            raise RefusedError(_NOT_FOUND, "etcdserver: member not found")
        return found

    def _listed(self) -> list[dict[str, Any]]:
        return [_shown(member) for member in self.members.values()]


def _shown(member: Member) -> dict[str, Any]:
    told: dict[str, Any] = {"ID": str(member.id), "peerURLs": [member.peer_url]}
    if member.name:
        told |= {"name": member.name, "clientURLs": [member.client_url]}
    return {**told, "isLearner": True} if member.learner else told


class Gateway:
    """The client port of one member, on a port of this machine: mutual TLS with the cluster's etcd CA."""

    def __init__(self, etcd: Etcd, member: Member, authority: x509.Authority) -> None:
        self._etcd, self._member, self._authority = etcd, member, authority
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.StreamWriter] = set()

    async def start(self) -> tuple[str, int]:
        context = member_context(self._member.name, self._authority)
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        host, port = self._server.sockets[0].getsockname()[:2]
        return host, port

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in list(self._connections):
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            while (request := await _request(reader)) is not None:
                path, body = request
                writer.write(self._answer(path, body))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, ssl.SSLError):
            # Who asked is gone.
            return
        finally:
            self._connections.discard(writer)
            writer.close()

    def _answer(self, path: str, body: bytes) -> bytes:
        try:
            status, content = "200 OK", self._etcd.answer(self._member, path, msgspec.json.decode(body or b"{}"))
        except RefusedError as error:
            status = "503 Service Unavailable" if error.code == _UNAVAILABLE else "400 Bad Request"
            content = {"code": error.code, "message": error.message}
        encoded = msgspec.json.encode(content)
        return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(encoded)}\r\n\r\n".encode() + encoded


async def _request(reader: asyncio.StreamReader) -> tuple[str, bytes] | None:
    line = await reader.readline()
    if not line:
        return None
    path = line.split(b" ")[1].decode()
    length = 0
    while (header := await reader.readline()) not in (b"\r\n", b""):
        name, _, value = header.partition(b":")
        if name.strip().lower() == b"content-length":
            length = min(int(value), _LARGEST)
    return path, await reader.readexactly(length) if length else b""


def member_context(name: str, authority: x509.Authority) -> ssl.SSLContext:
    """What a member shows to its clients, and whom it talks to: those of the cluster's etcd CA alone."""
    key = keys.generate("ECDSA-P256")
    profile = Profile(common_name=name, usages=(SERVER_AUTH, CLIENT_AUTH), dns_names=("localhost", name), addresses=("127.0.0.1",))
    certificate = x509.signed(profile, key.public_key(), authority, x509.period(datetime.now(UTC), Duration.of(hours=24 * 365)))
    context = tls.server_context(x509.pem(certificate), keys.private_pem(key), f"the certificate of the etcd member {name}")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=x509.pem(authority.certificate).decode())
    return context
