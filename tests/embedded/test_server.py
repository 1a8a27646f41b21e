"""The server's life: where it listens, whom it lets in, and what is left of it in its database."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import ssl
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
from embedded.wire import Wire, config_map, define, definition, wire
from support.waiting import eventually

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.embedded.server import EmbeddedServer
from slipway.kube.connection import Connection, from_kubeconfig

pytestmark = pytest.mark.asyncio

MAPS = "/api/v1/namespaces/default/configmaps"
GADGETS = "/apis/embedded.test/v1/namespaces/default/gadgets"


def no_file(path: str) -> bytes:
    raise FileNotFoundError(path)


async def test_the_kubeconfig_connects() -> None:
    async with EmbeddedServer() as server:
        document = goyaml.load(server.kubeconfig("jane", ("system:masters",)))[0].value
        connection = from_kubeconfig(document, no_file, source="kubeconfig")
        async with wire(connection) as asker:
            assert (await asker.ask("GET", "/api/v1/nodes"))[0] == 200


async def test_a_port_that_is_taken_is_said() -> None:
    async with EmbeddedServer() as server:
        with pytest.raises(OperatorError, match=rf"cannot listen on 127\.0\.0\.1:{server.port}: "):
            await EmbeddedServer(port=server.port).start()


async def test_a_connection_that_is_made_while_the_server_stops_is_not_served() -> None:
    """Its handshake ends when nobody listens any more; whoever watches would be told nothing, and never that the server is gone."""
    async with EmbeddedServer() as server:
        trusted = ssl.create_default_context(cadata=server.connection().ca.decode())
        reader, writer = await asyncio.open_connection(server.address, server.port)
        # The server accepts it in this same loop, and waits for its handshake.
        await asyncio.sleep(0.1)
        await server.stop()
        await writer.start_tls(trusted, server_hostname=server.address)
        writer.write(f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: {server.address}\r\n\r\n".encode())
        answered = b""
        with suppress(ConnectionResetError):
            answered = await asyncio.wait_for(reader.read(1), 20)
        assert answered == b""
        writer.close()


async def test_a_server_that_does_not_run_has_no_connection() -> None:
    with pytest.raises(OperatorError, match="has not been started"):
        EmbeddedServer().connection()


async def test_the_version_is_what_it_is_told_to_be() -> None:
    async with EmbeddedServer(tls=False, version="v1.34.2") as server, wire(server.connection()) as asker:
        _, document = await asker.ask("GET", "/version")
    assert (document["gitVersion"], document["major"], document["minor"]) == ("v1.34.2", "1", "34")


async def test_two_servers_do_not_know_each_other() -> None:
    async with EmbeddedServer(tls=False) as one, EmbeddedServer(tls=False) as other:
        async with wire(one.connection()) as asker:
            await asker.make(MAPS, config_map("a"))
        async with wire(other.connection()) as asker:
            assert await asker.get(f"{MAPS}/a") is None


async def test_objects_versions_and_certificates_survive_a_restart(tmp_path: Path) -> None:
    database = tmp_path / "server.db"
    async with EmbeddedServer(database=database) as first, wire(first.connection()) as asker:
        await define(asker, definition())
        kept = await asker.make(
            GADGETS, {"apiVersion": "embedded.test/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"a": [1, None]}}
        )
        await asker.make(MAPS, config_map("gone"))
        await asker.ask("DELETE", f"{MAPS}/gone")
        last = first.core.store.version
        connection, port = first.connection(), first.port
    async with EmbeddedServer(database=database, port=port) as second, wire(connection) as asker:
        assert await asker.get(f"{GADGETS}/g") == kept
        assert await asker.get(f"{MAPS}/gone") is None
        made = await asker.make(MAPS, config_map("new"))
        assert int(made["metadata"]["resourceVersion"]) > last
        async with asker.watch(f"{MAPS}?watch=1&resourceVersion={last - 1}") as events:
            event = await anext(events)
        assert (event["type"], event["object"]["reason"]) == ("ERROR", "Expired")
        assert second.core.catalog.find("embedded.test", "v1", "gadgets") is not None


async def test_garbage_of_a_former_life_is_collected(tmp_path: Path) -> None:
    database = tmp_path / "server.db"
    async with EmbeddedServer(database=database, tls=False) as server, wire(server.connection()) as asker:
        owner = await asker.make(MAPS, config_map("owner"))
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
        await asker.make(MAPS, config_map("child", ownerReferences=[reference]))
    # The owner goes while no server runs, as when one was killed before its collector had a turn.
    with sqlite3.connect(database) as connection:
        connection.execute("delete from objects where resource = 'configmaps' and key = 'default/owner'")
    async with EmbeddedServer(database=database, tls=False) as server, wire(server.connection()) as asker:
        await asker.until_gone(f"{MAPS}/child")


async def test_a_database_is_its_owners_alone(tmp_path: Path) -> None:
    database = tmp_path / "server.db"
    async with EmbeddedServer(database=database, tls=False):
        modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
        assert modes == {"server.db": 0o600, "server.db-wal": 0o600}
    database.chmod(0o644)
    async with EmbeddedServer(database=database, tls=False):
        assert database.stat().st_mode & 0o777 == 0o600


async def test_one_database_is_for_one_server(tmp_path: Path) -> None:
    database = tmp_path / "server.db"
    async with EmbeddedServer(database=database, tls=False):
        with pytest.raises(OperatorError, match=r"server\.db as the database of the embedded API server"):
            await EmbeddedServer(database=database, tls=False).start()


async def test_a_file_that_is_no_database_is_said(tmp_path: Path) -> None:
    database = tmp_path / "server.db"
    database.write_bytes(b"not a database at all" * 100)
    with pytest.raises(OperatorError, match="file is not a database"):
        await EmbeddedServer(database=database, tls=False).start()


_CHILD = """
import asyncio, sys
from pathlib import Path
from slipway.embedded.server import EmbeddedServer

async def main():
    async with EmbeddedServer(database=Path(sys.argv[1]), tls=False) as server:
        print(server.port, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_what_was_answered_survives_a_kill(tmp_path: Path) -> None:
    database = tmp_path / "server.db"
    child = subprocess.Popen([sys.executable, "-c", _CHILD, str(database)], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        port = int(await asyncio.to_thread(child.stdout.readline))
        answered: list[str] = []
        async with wire(Connection(server=f"http://127.0.0.1:{port}")) as asker:

            async def write() -> None:
                for number in range(10_000):
                    await asker.make(MAPS, config_map(f"m{number}"))
                    answered.append(f"m{number}")
                    if number == 150:
                        os.kill(child.pid, signal.SIGKILL)

            with pytest.raises(aiohttp.ClientError):
                await write()
    finally:
        child.kill()
        child.wait()
    assert len(answered) >= 150
    async with EmbeddedServer(database=database, tls=False) as server, wire(server.connection()) as asker:
        _, document = await asker.ask("GET", MAPS)
        assert set(answered) <= {item["metadata"]["name"] for item in document["items"]}
        versions = [int(item["metadata"]["resourceVersion"]) for item in document["items"]]
        assert server.core.store.version >= max(versions)


async def test_ten_clients_at_once_lose_no_update(asker: Wire) -> None:
    await asker.make(MAPS, {**config_map("counter"), "data": {"n": "0"}})

    async def count(times: int) -> None:
        for _ in range(times):
            while True:
                found = await asker.get(f"{MAPS}/counter")
                assert found is not None
                found["data"]["n"] = str(int(found["data"]["n"]) + 1)
                code, _ = await asker.ask("PUT", f"{MAPS}/counter", found)
                if code == 200:
                    break
                assert code == 409

    await asyncio.gather(*(count(10) for _ in range(10)))
    found = await asker.get(f"{MAPS}/counter")
    assert found is not None
    assert found["data"]["n"] == "100"


async def test_patches_at_once_all_take_effect(asker: Wire) -> None:
    await asker.make(MAPS, config_map("many"))
    await asyncio.gather(*(asker.patch(f"{MAPS}/many", {"data": {f"k{number}": "x"}}) for number in range(50)))
    found = await asker.get(f"{MAPS}/many")
    assert found is not None
    assert {f"k{number}" for number in range(50)} <= set(found["data"])


async def test_bodies_may_be_large_but_not_too_large(asker: Wire) -> None:
    await define(asker, definition())
    gadget = {"apiVersion": "embedded.test/v1", "kind": "Gadget", "metadata": {"name": "g"}}
    await asker.make(GADGETS, {**gadget, "spec": {"text": "x" * 2_000_000}})
    code, document = await asker.ask("POST", GADGETS, {**gadget, "spec": {"text": "x" * 4_000_000}})
    assert (code, document["reason"]) == (413, "RequestEntityTooLarge")
    assert document["message"] == "Request entity too large: limit is 3145728"


async def test_a_secret_holds_a_megabyte(asker: Wire) -> None:
    path = "/api/v1/namespaces/default/secrets"
    code, document = await asker.ask("POST", path, {"metadata": {"name": "s"}, "stringData": {"a": "x" * 1_048_577}})
    assert (code, document["message"]) == (422, 'Secret "s" is invalid: data: Too long: may not be more than 1048576 bytes')
    await asker.make(path, {"metadata": {"name": "s"}, "stringData": {"a": "x" * 1_048_576}})


async def test_health_is_told_to_anybody(asker: Wire) -> None:
    for path in ("/healthz", "/livez", "/readyz", "/readyz/ping"):
        assert await asker.ask("GET", path) == (200, {"text": "ok"})


async def test_the_account_of_a_namespace_is_there_soon(asker: Wire) -> None:
    await eventually(lambda: asker.get("/api/v1/namespaces/kube-system/serviceaccounts/default"))
