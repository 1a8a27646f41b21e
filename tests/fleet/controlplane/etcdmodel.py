"""An etcd that is not there: members and a leader, which answers at the place where connections to members are made."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from fleet.snapshots.databases import REVISION, database

from slipway.api.machinery.errors import OperatorError
from slipway.fleet.controlplane.inspection import Inspection
from slipway.fleet.controlplane.workload.cluster import Workload
from slipway.fleet.controlplane.workload.etcdaccess import EtcdAccess
from slipway.fleet.snapshots.store import Progress
from slipway.fleet.snapshots.taking import Write
from slipway.workload import etcdapi
from slipway.workload.etcdapi import Call, EtcdStatus, EtcdUnreachableError

T = TypeVar("T")


class Etcd:
    """``members`` are names of Nodes by member id; those in ``dead`` do not answer."""

    def __init__(self) -> None:
        self.members: dict[int, str] = {}
        self.dead: set[str] = set()
        self.leader = 0
        self.least_healthy: list[tuple[int, int]] = []
        self.broken: OperatorError | None = None
        """Why no snapshot can be had."""

    def join(self, node: str) -> None:
        self.members[max(self.members, default=0) + 1] = node
        self.leader = self.leader or next(iter(self.members))

    @property
    def leading(self) -> str:
        return self.members.get(self.leader, "")

    def has_quorum(self) -> bool:
        alive = sum(name not in self.dead for name in self.members.values())
        return alive >= len(self.members) // 2 + 1

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        listed = [{"ID": str(number), "name": name} for number, name in self.members.items()]
        match path:
            case "cluster/member/list":
                return {"members": listed}
            case "maintenance/alarm":
                return {}
            case "kv/range":
                return {"header": {"revision": str(REVISION)}}
            case "maintenance/transfer-leadership":
                self.leader = int(body["targetID"])
                return {}
            case "cluster/member/remove":
                del self.members[int(body["ID"])]
                assert self.has_quorum(), "etcd has lost its quorum"
                return {"members": listed}
        raise AssertionError(path)


class Client:
    def __init__(self, etcd: Etcd) -> None:
        self._etcd = etcd

    async def ask(self, call: Call[T]) -> T:
        return call.read(self._etcd.answer(call.path, call.body))

    async def snapshot(self, write: Write, progress: Progress | None = None) -> int:
        if self._etcd.broken is not None:
            raise self._etcd.broken
        await write(database())
        return len(database())


class Access(EtcdAccess):
    etcd: Etcd

    @asynccontextmanager
    async def member(self, node_name: str) -> AsyncIterator[tuple[Any, EtcdStatus]]:
        number = next((number for number, name in self.etcd.members.items() if name == node_name), 0)
        if not number or node_name in self.etcd.dead or not self.etcd.has_quorum():
            raise EtcdUnreachableError(f"{node_name} does not answer")
        answer = {"leader": str(self.etcd.leader), "header": {"member_id": str(number)}}
        yield Client(self.etcd), etcdapi.status().read(answer)


def inspection_of(etcd: Etcd) -> type[Inspection]:
    """An inspection that asks this etcd, and everything else of the workload cluster."""

    class Reached(Access):
        pass

    Reached.etcd = etcd

    class Stand(Workload):
        def _access(self) -> EtcdAccess:
            assert self._etcd_tls is not None
            return Reached(self._client, self._etcd_tls, self._nodes, self._pods)

        async def api_server_certificate_expiry(self, node_name: str, port: int = 0) -> None:
            return None

    class Model(Inspection):
        def make_workload(self, client: Any, tls: Any) -> Workload:
            return Stand(client, tls)

    return Model
