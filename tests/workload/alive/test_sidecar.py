"""The side car with an API server and a process that stands for keepalived: it has its name and ends at the signals that it gets."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from support.waiting import eventually, eventually_blocking

from slipway.api.machinery.errors import OperatorError
from slipway.embedded.server import EmbeddedServer
from slipway.kube.client import Client
from slipway.kube.connection import Connection
from slipway.workload import alive
from slipway.workload.alive import keepalived, pod, pulse, sidecar
from slipway.workload.alive.pulse import Beat
from slipway.workload.alive.sidecar import Files, SideCar

VALUES = alive.host_values(vip="192.0.2.100", interface="eth0", address="192.0.2.11", peers=["192.0.2.12"], vrid=51)
NEW_PEERS = ["192.0.2.11", "192.0.2.12", "192.0.2.13"]
LEASE = ("coordination.k8s.io/v1", "Lease", "alive", "kube-system")


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Connection]:
    async with EmbeddedServer() as made:
        yield made.connection()


@pytest.fixture
def files(tmp_path: Path) -> Files:
    names = ("alive.json", "keepalived.conf", "yield", "pid", "vrrp.pid", "admin.conf")
    made = Files(*(tmp_path / name for name in names))
    made.configuration.write_text(keepalived.rendered(VALUES))
    return made


@pytest.fixture
def process(tmp_path: Path, files: Files) -> Iterator[subprocess.Popen[bytes]]:
    """The kernel knows a process by the name of its program."""
    program = shutil.copy(shutil.which("sleep") or "/bin/sleep", tmp_path / "keepalived")
    # Who runs the tests may have chosen not to hear that a terminal is gone, which a child inherits.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    started = subprocess.Popen([program, "60"])
    signal.signal(signal.SIGHUP, before)
    files.process_id.write_text(f"{started.pid}\n")
    # A starting program has the name of the one that started it for a moment still.
    eventually_blocking(lambda: pulse.process(files.process_id) == started.pid)
    yield started
    started.kill()
    started.wait()


class Host:
    """A host whose network device has what the test says."""

    def __init__(self, name: str, files: Files, server: Connection | None, fault: str = "") -> None:
        self.has: list[str] = []
        self.removed: list[tuple[str, str, int]] = []
        self.now = 0.0
        connect = None if server is None else (lambda: Client(server))
        self.side_car = SideCar(
            name,
            VALUES,
            files,
            addresses=lambda device: self.has,
            remove_address=lambda *what: self.removed.append(what),
            connect=connect,
            fault_of=lambda path: fault,
            clock=lambda: self.now,
        )

    def guard(self, *, after: float) -> None:
        """Another look, so many seconds after the last one."""
        self.now += after
        self.side_car.guard()


async def blocking(function: Callable[[], object]) -> None:
    await asyncio.to_thread(function)


def holder(server: Connection) -> str:
    client = Client(server)
    found = client.get(*LEASE)
    client.close()
    return str(found["spec"]["holderIdentity"]) if found else "nobody yet"


@pytest.mark.asyncio
async def test_new_peers_are_written_and_keepalived_reads_them(server: Connection, files: Files, process: subprocess.Popen[bytes]) -> None:
    host = Host("host-1", files, server)
    client = Client(server)
    await blocking(lambda: client.create(alive.config_map(vip=VALUES.vip, peers=NEW_PEERS, ips=[])))
    watching = asyncio.create_task(blocking(lambda: host.side_car.watch_once(20)))
    await eventually(lambda: "192.0.2.13" in files.configuration.read_text())
    assert await asyncio.to_thread(process.wait) == -signal.SIGHUP
    await blocking(lambda: client.delete("v1", "ConfigMap", "alive", "kube-system"))
    watching.cancel()
    client.close()
    assert "192.0.2.13" in files.configuration.read_text()


def test_what_is_in_the_file_already_disturbs_nobody(files: Files, process: subprocess.Popen[bytes]) -> None:
    before = files.configuration.stat().st_mtime_ns
    Host("host-1", files, None).side_car.apply(VALUES)
    assert files.configuration.stat().st_mtime_ns == before
    assert process.poll() is None


def test_a_file_that_keepalived_does_not_take_is_not_left_there(files: Files, process: subprocess.Popen[bytes]) -> None:
    host = Host("host-1", files, None, fault="Unknown keyword")
    wanted = alive.host_values(vip="192.0.2.100", interface="eth0", address="192.0.2.11", peers=NEW_PEERS, vrid=51)
    with pytest.raises(OperatorError, match="the old one stands: Unknown keyword"):
        host.side_car.apply(wanted)
    assert files.configuration.read_text() == keepalived.rendered(VALUES)
    assert [path.name for path in files.configuration.parent.glob(".*")] == []
    assert process.poll() is None


@pytest.mark.asyncio
async def test_the_host_with_the_address_holds_the_lease_and_lets_go_of_it(server: Connection, files: Files) -> None:
    host = Host("host-1", files, server)
    host.has = ["192.0.2.11", "192.0.2.100"]
    await blocking(host.side_car.arbitrate)
    assert await asyncio.to_thread(holder, server) == "host-1"
    host.has = ["192.0.2.11"]
    await blocking(host.side_car.arbitrate)
    assert await asyncio.to_thread(holder, server) == ""


@pytest.mark.asyncio
async def test_a_backup_does_not_touch_the_lease(server: Connection, files: Files) -> None:
    await blocking(Host("host-1", files, server).side_car.arbitrate)
    assert await asyncio.to_thread(holder, server) == "nobody yet"


@pytest.mark.asyncio
async def test_of_two_hosts_with_the_address_the_one_without_the_lease_gives_way(server: Connection, files: Files, tmp_path: Path) -> None:
    first = Host("host-1", files._replace(give_way=tmp_path / "yield-1"), server)
    second = Host("host-2", files, server)
    first.has = second.has = ["192.0.2.100"]
    for _ in range(4):
        await blocking(first.side_car.arbitrate)
        await blocking(second.side_car.arbitrate)
    assert files.give_way.read_text() == "1\n"
    assert not (tmp_path / "yield-1").exists()
    assert await asyncio.to_thread(holder, server) == "host-1"


@pytest.mark.asyncio
async def test_without_an_api_server_nobody_has_to_give_way(server: Connection, files: Files) -> None:
    connections = [server, server, server, Connection(server="https://127.0.0.1:1")]
    side_car = SideCar("host-2", VALUES, files, addresses=lambda device: ["192.0.2.100"], connect=lambda: Client(connections.pop(0)))
    other = Host("host-1", files._replace(give_way=Path("/dev/null")), server)
    other.has = ["192.0.2.100"]
    for _ in range(4):
        await blocking(other.side_car.arbitrate)
        await blocking(side_car.arbitrate)
    assert files.give_way.read_text() == "1\n"
    side_car._forget_client()
    connections[:] = [Connection(server="https://127.0.0.1:1")]
    await blocking(side_car.arbitrate)
    assert files.give_way.read_text() == "0\n"


@pytest.mark.asyncio
async def test_who_leaves_ends_keepalived_and_waits_for_the_address_to_go(
    server: Connection, files: Files, process: subprocess.Popen[bytes]
) -> None:
    host = Host("host-1", files, server)
    host.has = ["192.0.2.100"]
    await blocking(host.side_car.arbitrate)
    leaving = asyncio.create_task(blocking(host.side_car.leave))
    assert await asyncio.to_thread(process.wait) == -signal.SIGTERM
    assert not leaving.done()
    host.has = []
    await leaving
    assert await asyncio.to_thread(holder, server) == ""


def test_an_address_that_a_killed_keepalived_left_is_taken_away(files: Files, process: subprocess.Popen[bytes]) -> None:
    host = Host("host-1", files, None)
    host.has = ["192.0.2.11", "192.0.2.100"]
    for _ in range(3):
        host.guard(after=0.5)
    assert host.removed == []
    process.kill()
    process.wait()
    host.guard(after=0.5)
    host.guard(after=0.5)
    assert host.removed == []
    host.guard(after=0.5)
    assert host.removed == [("eth0", "192.0.2.100", 32)]


@pytest.fixture
def vrrp(tmp_path: Path, files: Files, process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """keepalived's child, which wakes again and again; its name is that of its program."""
    (tmp_path / "child").mkdir()
    program = shutil.copy("/bin/sh", tmp_path / "child" / "keepalived")
    started = subprocess.Popen([program, "-c", "while :; do sleep 0.01; done"])
    files.vrrp_id.write_text(f"{started.pid}\n")
    yield started
    started.kill()
    started.wait()


def woken(files: Files, since: Beat) -> Beat:
    found: Beat = eventually_blocking(lambda: (now := pulse.beat(files.vrrp_id)) != since and now, "keepalived's child wakes", pause=0.005)
    return found


def test_a_holder_that_works_is_left_alone(files: Files, vrrp: subprocess.Popen[bytes]) -> None:
    host, beat = Host("host-1", files, None), Beat()
    host.has = ["192.0.2.100"]
    for _ in range(10):
        beat = woken(files, beat)
        host.guard(after=0.5)
    assert (host.removed, vrrp.poll()) == ([], None)


def test_a_holder_that_was_stopped_loses_the_address_and_is_ended(
    files: Files, process: subprocess.Popen[bytes], vrrp: subprocess.Popen[bytes]
) -> None:
    host = Host("host-1", files, None)
    host.has = ["192.0.2.100"]
    woken(files, Beat())
    vrrp.send_signal(signal.SIGSTOP)
    os.waitpid(vrrp.pid, os.WUNTRACED)
    for _ in range(4):
        host.guard(after=0.5)
    assert host.removed == []
    host.guard(after=0.5)
    assert host.removed == [("eth0", "192.0.2.100", 32)]
    assert (vrrp.wait(), process.wait()) == (-signal.SIGKILL, -signal.SIGKILL)


def test_a_backup_that_hangs_has_more_time(files: Files, process: subprocess.Popen[bytes], vrrp: subprocess.Popen[bytes]) -> None:
    host = Host("host-1", files, None)
    vrrp.send_signal(signal.SIGSTOP)
    os.waitpid(vrrp.pid, os.WUNTRACED)
    host.guard(after=0.5)
    host.guard(after=14.5)
    assert process.poll() is None
    host.guard(after=0.5)
    assert (vrrp.wait(), process.wait(), host.removed) == (-signal.SIGKILL, -signal.SIGKILL, [])


def test_a_keepalived_without_its_child_is_not_one_that_works(files: Files, process: subprocess.Popen[bytes]) -> None:
    host = Host("host-1", files, None)
    host.has = ["192.0.2.100"]
    for _ in range(4):
        host.guard(after=0.5)
    assert process.wait() == -signal.SIGKILL
    assert host.removed == [("eth0", "192.0.2.100", 32)]


def test_the_process_of_another_program_gets_no_signal(tmp_path: Path) -> None:
    other = subprocess.Popen([shutil.which("sleep") or "/bin/sleep", "60"])
    try:
        (tmp_path / "pid").write_text(str(other.pid))
        assert pulse.process(tmp_path / "pid") is None
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize("content", [None, "", "no number", "4194999"])
def test_a_file_that_names_no_process_is_none(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "pid").write_text(content)
    assert pulse.process(tmp_path / "pid") is None


@pytest.mark.asyncio
async def test_it_asks_the_api_server_of_its_own_host(server: Connection, files: Files) -> None:
    files.kubeconfig.write_text("apiVersion: v1\nkind: Config\nclusters: []\n")
    with pytest.raises(OperatorError, match=r"admin\.conf"):
        await blocking(lambda: SideCar("host-1", VALUES, files).watch_once(1))


def test_a_host_without_values_is_told_where_they_come_from(files: Files) -> None:
    with pytest.raises(OperatorError, match=r"cannot read .*alive\.json, which comes with the host's user-data"):
        sidecar.run(files)


def test_a_keepalived_that_does_not_judge_a_configuration_does_not_end_the_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "keepalived"
    program.write_text("#!/bin/sh\nexec sleep 30\n")
    program.chmod(0o755)
    monkeypatch.setattr(pod, "PROGRAM", str(program))
    monkeypatch.setattr(sidecar, "_LEAVE_SECONDS", 0.05)
    assert "did not say within 0.05 s" in sidecar._fault_of(tmp_path / "keepalived.conf")
