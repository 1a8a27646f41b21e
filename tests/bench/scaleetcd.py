"""The client port of a simulated member of etcd as upstream's control-plane manager asks it: gRPC with protobuf, over mutual TLS.

What is answered is the simulation's, which has etcd's JSON; here it is put into etcd's messages (``etcdserverpb``, ``rpc.proto``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import grpc
import grpc.aio

from slipway.api.machinery.duration import Duration
from slipway.credentials import keys, x509
from slipway.credentials.profile import CLIENT_AUTH, SERVER_AUTH, Profile
from slipway.simulation.workload.etcd import Gateway, RefusedError

Answer = dict[str, Any]
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_ALARMS = {"NOSPACE": 1, "CORRUPT": 2}


def _varint(number: int) -> bytes:
    written = bytearray()
    while True:
        number, low = number >> 7, number & 0x7F
        written.append(low | (0x80 if number else 0))
        if not number:
            return bytes(written)


def _number(field: int, value: Any) -> bytes:
    return _varint(field << 3) + _varint(int(value)) if int(value) else b""


def _bytes(field: int, content: bytes | str) -> bytes:
    encoded = content.encode() if isinstance(content, str) else content
    return _varint(field << 3 | 2) + _varint(len(encoded)) + encoded


def _numbers(message: bytes) -> Iterator[tuple[int, int]]:
    """The fields of a message that has nothing but numbers."""
    at = 0

    def varint() -> int:
        nonlocal at
        found, shift = 0, 0
        while True:
            byte = message[at]
            at += 1
            found |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return found

    while at < len(message):
        yield varint() >> 3, varint()


def _header(told: Answer) -> bytes:
    header = told["header"]
    fields = ("cluster_id", "member_id", "revision", "raft_term")
    return _bytes(1, b"".join(_number(number, header[name]) for number, name in enumerate(fields, 1)))


def _members(told: Answer) -> bytes:
    return _header(told) + b"".join(_bytes(2, _member(each)) for each in told["members"])


def _member(told: Answer) -> bytes:
    urls = [*(_bytes(3, url) for url in told["peerURLs"]), *(_bytes(4, url) for url in told.get("clientURLs", ()))]
    return _number(1, told["ID"]) + _bytes(2, told.get("name", "")) + b"".join(urls) + _number(5, told.get("isLearner", False))


def _status(told: Answer) -> bytes:
    numbers = [_number(3, told["dbSize"]), _number(4, told["leader"]), _number(5, told["raftIndex"]), _number(6, told["raftTerm"])]
    errors = [_bytes(8, error) for error in told.get("errors", ())]
    return _header(told) + _bytes(2, told["version"]) + b"".join([*numbers, *errors]) + _number(10, told.get("isLearner", False))


def _alarms(told: Answer) -> bytes:
    return _header(told) + b"".join(
        _bytes(2, _number(1, each["memberID"]) + _number(2, _ALARMS.get(each["alarm"], 0))) for each in told["alarms"]
    )


def _id(message: bytes, name: str) -> Answer:
    return {name: dict(_numbers(message)).get(1, 0)}


# By the name of the call: where the simulation has it, what it is asked with, and how the answer is written.
_CALLS: dict[str, tuple[str, Callable[[bytes], Answer], Callable[[Answer], bytes]]] = {
    "/etcdserverpb.Cluster/MemberList": ("/v3/cluster/member/list", lambda message: {}, _members),
    "/etcdserverpb.Cluster/MemberRemove": ("/v3/cluster/member/remove", lambda message: _id(message, "ID"), _members),
    "/etcdserverpb.Maintenance/MoveLeader": ("/v3/maintenance/transfer-leadership", lambda message: _id(message, "targetID"), _header),
    "/etcdserverpb.Maintenance/Status": ("/v3/maintenance/status", lambda message: {}, _status),
    "/etcdserverpb.Maintenance/Alarm": ("/v3/maintenance/alarm", lambda message: {}, _alarms),
}


class GrpcGateway(Gateway):
    """In the place of the gateway that our own manager asks."""

    async def start(self) -> tuple[str, int]:
        key, name = keys.generate("ECDSA-P256"), self._member.name
        profile = Profile(common_name=name, usages=(SERVER_AUTH, CLIENT_AUTH), dns_names=("localhost", name), addresses=("127.0.0.1",))
        certificate = x509.signed(profile, key.public_key(), self._authority, x509.period(datetime.now(UTC), Duration.of(hours=24 * 365)))
        authority = x509.pem(self._authority.certificate)
        pair = (keys.private_pem(key), x509.pem(certificate))
        credentials = grpc.ssl_server_credentials([pair], root_certificates=authority, require_client_auth=True)
        self._grpc = grpc.aio.server()
        self._grpc.add_generic_rpc_handlers((_Handlers(self),))
        port = self._grpc.add_secure_port("127.0.0.1:0", credentials)
        await self._grpc.start()
        return "127.0.0.1", port

    async def stop(self) -> None:
        await self._grpc.stop(0)

    async def ask(self, call: str, message: bytes, context: Any) -> bytes:
        path, body, written = _CALLS[call]
        try:
            return written(self._etcd.answer(self._member, path, body(message)))
        except RefusedError as error:
            await context.abort(_CODES[error.code], error.message)
            raise AssertionError("unreachable") from None


class _Handlers(grpc.GenericRpcHandler):
    def __init__(self, gateway: GrpcGateway) -> None:
        self._gateway = gateway

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        call = handler_call_details.method
        if call not in _CALLS:
            return None

        async def answer(message: bytes, context: Any) -> bytes:
            return await self._gateway.ask(call, message, context)

        return grpc.unary_unary_rpc_method_handler(answer)
