"""A host registers with the production agent at the production endpoint, and works from then on."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from functools import partial
from itertools import count
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from agent.world import Site
from fleet.inventory.management import SPACE, Management
from support.waiting import eventually

from slipway.agent import connection, paths
from slipway.agent.machine import RealMachine
from slipway.agent.registration import exchange, inspection, settings
from slipway.agent.registration.settings import Settings
from slipway.api.cluster.kinds import MACHINE_INVENTORY, SECRET
from slipway.api.elemental import plan as plans
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.embedded.server import EmbeddedServer
from slipway.host.interface import CommandResult
from slipway.host.real import RealHost
from slipway.kube import kubeconfig
from slipway.kube.aio import AsyncClient
from slipway.kube.client import Client
from slipway.kube.errors import ForbiddenError, UntrustedError
from slipway.workload import alive
from slipway.workload.alive import pod

pytestmark = pytest.mark.asyncio(loop_scope="module")

DMI = {"sys_vendor": "Example Inc.", "product_serial": "S/N 7"}
KEY = b"5a" * 32
DMIDECODE = """# dmidecode 3.4
Handle 0x0001, DMI type 1, 27 bytes
System Information
\tManufacturer: Printed Inc.
\tUUID: {uuid}

"""


class BoardHost(RealHost):
    """A host under a folder whose dmidecode prints what a test says."""

    printed: str | None = None

    def run(self, *command: str) -> CommandResult:
        assert command[0] == "dmidecode"
        return CommandResult(127, "", "") if self.printed is None else CommandResult(0, self.printed if command[2] == "1" else "", "")


class BoardMachine(RealMachine):
    def networks(self, interface: str) -> list[str]:
        return ["10.0.0.5/24", "fe80::1/64"]


class Stage:
    """One host; its board, its address and its registration are its own."""

    def __init__(self, management: Management, root: Path, authorities: bytes, number: int) -> None:
        self.management = management
        self.uuid = f"4c4c4544-0042-3510-8051-{number:012d}"
        self.name = f"m-{self.uuid}"
        self.mac = f"52:54:00:00:00:{number:02x}"
        self.root = root
        self.host = BoardHost(str(root), {"PATH": os.environ["PATH"]})
        self.machine = BoardMachine(self.host)
        self.authorities = authorities
        self.said: list[str] = []
        for name, text in (*DMI.items(), ("product_uuid", self.uuid)):
            self.host.write(f"/sys/class/dmi/id/{name}", text.encode())
        self.host.write("/etc/os-release", b'ID=debian\nPRETTY_NAME="Debian 12"\nIMAGE=registry.example/os:v1\n')
        self.host.write("/sys/class/net/lo/address", b"00:00:00:00:00:00\n")
        self.host.write("/sys/class/net/eth0/address", self.mac.encode())
        self.host.write("/sys/class/net/eth0/mtu", b"1500\n")
        self.machine.keep(paths.KEY, KEY)

    async def settings(self, auth: str = "mac", **spec: object) -> Settings:
        """As a registration's configuration file has it."""
        config = {"elemental": {"registration": {"auth": auth}}}
        made = await self.management.registration(self.name, machineName="m-${System Information/UUID}", config=config, **spec)
        section = {"url": made["status"]["registrationURL"], "auth": auth, "ca-cert": self.authorities.decode()}
        self.host.write(paths.REGISTRATION, goyaml.dump({"elemental": {"registration": section}}).encode())
        return settings.settings(settings.load(self.host))

    async def register(self, wanted: Settings) -> None:
        await asyncio.to_thread(exchange.register, self.machine, wanted, log=self.said.append)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def endpoint() -> AsyncIterator[tuple[Management, bytes]]:
    async with EmbeddedServer() as server, AsyncClient(server.connection()) as client, Management(server, client) as management:
        serving = await management.start()
        yield management, serving.authorities


_numbers = count(1)


@pytest.fixture
def stage(endpoint: tuple[Management, bytes], tmp_path: Path) -> Stage:
    return Stage(endpoint[0], tmp_path, endpoint[1], next(_numbers))


@pytest.mark.parametrize("auth", ["mac", "sys-uuid"])
async def test_a_host_registers_and_reaches_its_secret_and_no_other(stage: Stage, auth: str) -> None:
    await stage.register(await stage.settings(auth))
    place = connection.load(stage.host)
    assert place is not None
    assert (place.namespace, place.name) == (SPACE, stage.name)
    client = Client(place.connection)
    found = await asyncio.to_thread(client.get, "v1", "Secret", place.name, SPACE)
    assert found is not None
    assert plans.plain(found["data"]) == {"plan": b"{}"}
    with pytest.raises(ForbiddenError):
        await asyncio.to_thread(client.get, "v1", "Secret", "another", SPACE)
    client.close()


async def test_what_a_host_says_of_itself_is_in_its_inventory(stage: Stage) -> None:
    wanted = await stage.settings(machineInventoryLabels={"maker": "${System Information/Manufacturer}"})
    stage.host.write(
        "/proc/net/route", b"Iface Destination Gateway Flags RefCnt Use Metric Mask\neth0 00000000 0100000A 3 0 0 100 00000000\n"
    )
    stage.host.write("/etc/resolv.conf", b"nameserver 10.0.0.1\nsearch example.org\n")
    await stage.register(wanted)
    found = await stage.management.client.get(MACHINE_INVENTORY, stage.name, SPACE)
    notes = found["metadata"]["annotations"]
    assert found["metadata"]["labels"]["maker"] == "Example-Inc"
    assert notes["elemental.cattle.io/os.image"] == "registry.example/os:v1"
    assert notes["elemental.cattle.io/registration-ip"] == "127.0.0.1"
    assert notes["elemental.cattle.io/auth"] == "mac"
    network = found["spec"]["observedNetwork"]
    assert network["interfaces"] == [{"name": "eth0", "mac": stage.mac, "mtu": 1500, "addresses": ["10.0.0.5/24"]}]
    assert network["routes"] == [{"destination": "default", "gateway": "10.0.0.1", "interface": "eth0", "metric": 100}]
    assert (network["dnsServers"], network["searchDomains"]) == (["10.0.0.1"], ["example.org"])


async def test_a_part_of_a_bond_is_known_by_the_address_that_it_boots_with(stage: Stage) -> None:
    stage.host.write("/sys/class/net/eth0/bonding_slave/perm_hwaddr", b"52:54:00:ff:ff:01\n")
    stage.host.write("/sys/class/net/eth0/master/uevent", b"INTERFACE=bond0\n")
    stage.host.write("/sys/class/net/cilium_host/address", b"52:54:00:ff:ff:02\n")
    (found,) = inspection.interfaces(stage.machine)
    assert (found["name"], found["mac"], found["master"]) == ("eth0", "52:54:00:ff:ff:01", "bond0")


async def test_the_virtual_address_of_a_control_plane_is_not_its_hosts_own(stage: Stage) -> None:
    values = alive.host_values(vip="10.0.0.5", interface="eth0", address="10.0.0.6", peers=["10.0.0.7"], vrid=7)
    stage.host.write(pod.VALUES, msgspec.json.encode(values))
    (found,) = inspection.interfaces(stage.machine)
    assert found["addresses"] == []


async def test_what_dmidecode_prints_has_precedence(stage: Stage) -> None:
    stage.host.printed = DMIDECODE.format(uuid=stage.uuid)
    await stage.register(await stage.settings(machineInventoryLabels={"maker": "${System Information/Manufacturer}"}))
    found = await stage.management.client.get(MACHINE_INVENTORY, stage.name, SPACE)
    assert found["metadata"]["labels"]["maker"] == "Printed-Inc"


@pytest.mark.parametrize("printed", ["\x00\x01garbage", "x" * (5 << 20)], ids=["garbage", "megabytes"])
async def test_a_board_whose_firmware_says_rubbish_registers_by_what_the_kernel_knows(stage: Stage, printed: str) -> None:
    stage.host.printed = printed
    await stage.register(await stage.settings())
    assert (await stage.management.client.get(MACHINE_INVENTORY, stage.name, SPACE))["spec"]["machineHash"]


async def test_credentials_and_keys_are_for_root_alone(stage: Stage) -> None:
    await stage.register(await stage.settings())
    for path in (paths.CONNECTION, paths.KEY, paths.CONFIG, paths.REGISTRATION_STATE):
        assert (stage.root / path.removeprefix("/")).stat().st_mode & 0o777 == 0o600, path


async def test_a_host_registers_anew_as_the_same_one(stage: Stage) -> None:
    wanted = await stage.settings()
    await stage.register(wanted)
    before = await stage.management.client.list(MACHINE_INVENTORY, SPACE)
    await stage.register(wanted)
    assert len(await stage.management.client.list(MACHINE_INVENTORY, SPACE)) == len(before)


async def test_a_host_whose_inventory_is_gone_registers_as_a_new_one(stage: Stage) -> None:
    wanted = await stage.settings()
    await stage.register(wanted)
    client = stage.management.client
    await client.delete(MACHINE_INVENTORY, stage.name, SPACE)
    await eventually(partial(_gone, client, stage.name), "the inventory to be gone")
    await stage.register(wanted)
    assert any("registers as a new one" in line for line in stage.said)


async def test_a_wrong_token_is_told_with_a_sentence(stage: Stage) -> None:
    wanted = await stage.settings()
    wrong = settings.settings({"url": wanted.url.rpartition("/")[0] + "/wrong", "auth": "mac", "ca-cert": stage.authorities.decode()})
    with pytest.raises(OperatorError, match="refuses the registration"):
        await stage.register(wrong)
    assert not stage.host.exists(paths.CONNECTION)


async def test_an_endpoint_of_another_authority_is_not_believed(stage: Stage) -> None:
    wanted = await stage.settings()
    other = settings.settings({"url": wanted.url, "auth": "mac", "ca-cert": stage.management.server.connection().ca.decode()})
    with pytest.raises(UntrustedError, match="cannot be trusted"):
        await stage.register(other)


async def test_an_agent_that_is_not_registered_registers_and_runs_its_plan(stage: Stage) -> None:
    wanted = await stage.settings()
    site = Site(stage.management.client, stage.management.server.connection(), stage.root)

    def register() -> None:
        exchange.register(stage.machine, wanted, log=site.said.append)

    async with site.agent(register):
        await stage.management.when(SECRET, stage.name, lambda found: plans.read(found["data"]).outcome == "applied")


async def test_an_agent_whose_credentials_are_refused_registers_anew_by_its_key(stage: Stage) -> None:
    """The key of a TPM in software, which is what tells the host from others."""
    wanted = await stage.settings("tpm")
    await stage.register(wanted)
    place = connection.load(stage.host)
    assert place is not None
    known = place.connection
    document = kubeconfig.document(server=known.server, cluster="c", user="u", ca=known.ca, credentials={"token": "revoked"})
    connection.save(stage.machine, document, place.namespace, place.name)
    site = Site(stage.management.client, stage.management.server.connection(), stage.root)

    def register() -> None:
        exchange.register(stage.machine, wanted, log=site.said.append)

    async with site.agent(register):
        await stage.management.when(SECRET, place.name, lambda found: plans.read(found["data"]).outcome == "applied")
    assert any("registers anew" in line for line in site.said)


async def test_an_agent_whose_inventory_is_deleted_while_it_watches_registers_anew(stage: Stage) -> None:
    """Its watch goes on, whatever becomes of its account: somebody has to ask."""
    wanted = await stage.settings()
    await stage.register(wanted)
    place = connection.load(stage.host)
    assert place is not None
    management = stage.management
    site = Site(management.client, management.server.connection(), stage.root)

    def register() -> None:
        exchange.register(stage.machine, wanted, log=site.said.append)

    async with site.agent(register):
        await management.when(SECRET, place.name, lambda found: plans.read(found["data"]).outcome == "applied")
        before = await management.client.get(MACHINE_INVENTORY, place.name, SPACE)
        await management.client.delete(MACHINE_INVENTORY, place.name, SPACE)
        await management.when(MACHINE_INVENTORY, place.name, lambda found: found["metadata"]["uid"] != before["metadata"]["uid"])
        await management.when(SECRET, place.name, lambda found: plans.read(found["data"]).outcome == "applied")


async def _gone(client: AsyncClient, name: str) -> bool:
    return await client.find(MACHINE_INVENTORY, name, SPACE) is None
