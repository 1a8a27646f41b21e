"""Hosts that register at a manager, by the protocol alone, and all that they can do wrong."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from fleet.inventory.management import CONTENT, SPACE, Host, Management, RefusedError, connection
from support.ports import free_port
from support.waiting import eventually

from slipway.api.cluster.kinds import MACHINE_INVENTORY, MACHINE_REGISTRATION, NAMESPACE, SECRET
from slipway.api.elemental import protocol
from slipway.api.elemental.protocol import Frame, PlainAuthorization, TpmAuthorization
from slipway.api.elemental.registration import MachineRegistration, MachineRegistrationSpec
from slipway.api.machinery.yaml import goyaml
from slipway.credentials import tls
from slipway.credentials.tpm.software import SoftwareTPM
from slipway.fleet.inventory.registration import draft, identity
from slipway.fleet.inventory.registration.server import RegistrationServer
from slipway.kube.aio import AsyncClient, PatchType

MAC = {"config": {"elemental": {"registration": {"auth": "mac"}}}}
ADDRESS = "52:54:00:12:34:56"
OTHER_BOARD: dict[Frame, Any] = {Frame.SMBIOS: {"System Information": {"UUID": "11111111-2222-4333-8444-555555555555"}}}


async def _get(url: str, serving: RegistrationServer, **headers: str) -> tuple[int, str]:
    context = tls.client_context(url, ca=serving.authorities)
    async with aiohttp.ClientSession(max_field_size=32768) as session, session.get(url, ssl=context, headers=headers) as answer:
        return answer.status, await answer.text()


async def _url(management: Management, **spec: Any) -> str:
    url: str = (await management.registration(**spec))["status"]["registrationURL"]
    return url


async def _inventories(management: Management) -> list[str]:
    return [each["metadata"]["name"] for each in await management.client.list(MACHINE_INVENTORY, SPACE)]


@pytest.mark.asyncio
async def test_a_get_tells_how_to_register(management: Management) -> None:
    serving = await management.start()
    url = await _url(management, config={"elemental": {"registration": {"emulate-tpm": True}}})
    status, text = await _get(url, serving)
    assert status == 200
    told = goyaml.load(text)[0].value["elemental"]["registration"]
    assert told == {"url": url, "ca-cert": serving.authorities.decode(), "auth": "tpm", "emulate-tpm": True}


@pytest.mark.asyncio
async def test_a_host_registers_by_its_tpm_and_reads_its_plan(management: Management, tpm: SoftwareTPM) -> None:
    serving = await management.start()
    url = await _url(
        management, machineName="m-${System Information/UUID}", machineInventoryLabels={"maker": "${System Information/Manufacturer}"}
    )
    config = await Host(url, serving, tpm).register(
        {
            **CONTENT,
            Frame.ANNOTATIONS: {"elemental.cattle.io/registration-ip": "10.0.0.5"},
            Frame.OBSERVED_NETWORK_CONFIG: {"interfaces": [{"name": "eth0", "addresses": ["10.0.0.5/24"]}], "dnsServers": ["10.0.0.1"]},
        }
    )
    name = "m-4c4c4544-0042-3510-8051-b7c04f4e4a32"
    found = await management.client.get(MACHINE_INVENTORY, name, SPACE)
    der = load_pem_public_key(tpm.endorsement_pem).public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert found["spec"]["tpmHash"] == hashlib.sha256(der).hexdigest()
    assert found["spec"]["observedNetwork"]["interfaces"] == [{"name": "eth0", "addresses": ["10.0.0.5/24"]}]
    assert found["metadata"]["labels"]["maker"] == "Dell-Inc"
    assert found["metadata"]["annotations"]["elemental.cattle.io/registration-ip"] == "10.0.0.5"
    agent = config["elemental"]["system-agent"]
    assert (agent["url"], agent["secret-name"], agent["secret-namespace"]) == (management.server.connection().server, name, SPACE)
    async with AsyncClient(connection(config)) as host:
        assert (await host.get(SECRET, name, SPACE))["data"] == {"plan": "e30="}


@pytest.mark.asyncio
async def test_a_wrong_token_registers_nobody(management: Management) -> None:
    serving = await management.start()
    url = await _url(management)
    wrong = url.rpartition("/")[0] + "/" + protocol.generate_token()
    assert (await _get(wrong, serving))[0] == 404
    assert (await _get(wrong, serving, Upgrade="websocket", Connection="Upgrade", Authorization="Bearer PLAINx"))[0] == 404


@pytest.mark.asyncio
async def test_a_host_that_does_not_say_who_it_is_is_refused_before_anything_else(management: Management) -> None:
    serving = await management.start()
    url = await _url(management)
    status, text = await _get(url, serving, Upgrade="websocket", Connection="Upgrade", Authorization="Bearer TPM!!!")
    assert (status, text) == (401, "the Authorization header of a TPM is no base64\n")


@pytest.mark.asyncio
async def test_a_replayed_registration_is_refused(management: Management, tpm: SoftwareTPM) -> None:
    serving = await management.start()
    url = await _url(management)
    header = TpmAuthorization(tpm.endorsement_pem, tpm.attestation_key()).header()
    host = Host(url, serving, tpm)
    await host.register(header=header)
    recorded = tpm.activate(*protocol.read_challenge(host.heard[0]))
    with pytest.raises(RefusedError, match="the TPM did not answer the challenge"):
        await host.register(header=header, answer=recorded)


@pytest.mark.asyncio
async def test_calls_of_hosts_are_counted_by_how_they_end(management: Management, tpm: SoftwareTPM) -> None:
    serving = await management.start()
    url = await _url(management)
    host = Host(url, serving, tpm)
    await host.register()
    await host.register(update=True)
    with pytest.raises(RefusedError):
        await host.register(answer=bytes(32))
    await _get(url, serving, Upgrade="websocket", Connection="Upgrade", Authorization="Bearer TPM!!!")

    def counted() -> dict[str, float | None]:
        """A host may have its answer before the call is counted."""
        value = management.metrics.registry.get_sample_value
        return {result: value("slipway_host_registrations_total", {"result": result}) for result in ("new", "known", "refused")}

    await eventually(lambda: counted() == {"new": 1, "known": 1, "refused": 2}, "all calls are counted")
    ready = management.metrics.registry.get_sample_value("slipway_registrations", {"namespace": SPACE, "ready": "true"})
    assert ready == 1


@pytest.mark.asyncio
async def test_the_attestation_key_of_another_tpm_is_refused(management: Management, tpm: SoftwareTPM, other_tpm: SoftwareTPM) -> None:
    serving = await management.start()
    url = await _url(management)
    forged = TpmAuthorization(tpm.endorsement_pem, other_tpm.attestation_key()).header()
    with pytest.raises(RefusedError, match="the TPM did not answer the challenge"):
        await Host(url, serving, other_tpm).register(header=forged, answer=bytes(32))
    assert await _inventories(management) == []


@pytest.mark.asyncio
async def test_a_host_that_registers_again_keeps_its_inventory_and_gets_a_new_token(management: Management, tpm: SoftwareTPM) -> None:
    serving = await management.start()
    host = Host(await _url(management), serving, tpm)
    first, second = await host.register(), await host.register(update=True)
    tokens = [config["elemental"]["system-agent"]["token"] for config in (first, second)]
    assert len(set(tokens)) == 2
    assert len(await _inventories(management)) == 1
    async with AsyncClient(connection(second)) as client:
        await client.get(SECRET, second["elemental"]["system-agent"]["secret-name"], SPACE)


@pytest.mark.asyncio
async def test_a_second_host_with_the_same_key_is_refused_and_changes_nothing(management: Management, tpm: SoftwareTPM) -> None:
    serving = await management.start()
    host = Host(await _url(management), serving, tpm)
    await host.register()
    (before,) = await management.client.list(MACHINE_INVENTORY, SPACE)
    with pytest.raises(RefusedError, match=r"another host registered as .* with the same identity: give this host a key of its own"):
        await host.register(OTHER_BOARD)
    (after,) = await management.client.list(MACHINE_INVENTORY, SPACE)
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]


@pytest.mark.asyncio
async def test_an_update_of_a_deleted_inventory_is_not_found(management: Management, tpm: SoftwareTPM) -> None:
    serving = await management.start()
    host = Host(await _url(management), serving, tpm)
    with pytest.raises(RefusedError, match=r"^MachineInventory not found$"):
        await host.register(update=True)


@pytest.mark.asyncio
async def test_two_hosts_of_one_name_are_not_mixed_up(management: Management, tpm: SoftwareTPM, other_tpm: SoftwareTPM) -> None:
    serving = await management.start()
    url = await _url(management, machineName="server")
    await Host(url, serving, tpm).register()
    with pytest.raises(RefusedError, match="there is another host of the name server"):
        await Host(url, serving, other_tpm).register()


@pytest.mark.asyncio
async def test_a_host_has_one_namespace(management: Management, tpm: SoftwareTPM) -> None:
    serving = await management.start()
    url = await _url(management)
    await management.client.create(NAMESPACE, {"metadata": {"name": "elsewhere"}})
    await management.client.create(
        MACHINE_INVENTORY, {"metadata": {"name": "m-1", "namespace": "elsewhere"}, "spec": {"machineHash": _hash(ADDRESS)}}
    )
    await management.client.patch(MACHINE_REGISTRATION, "all", SPACE, {"spec": MAC}, type=PatchType.MERGE)

    async def refused() -> bool:
        try:
            await Host(url, serving, ADDRESS).register()
        except RefusedError as error:
            return "registered in the namespace elsewhere as m-1" in str(error)
        except aiohttp.WSServerHandshakeError:
            return False
        return False

    await eventually(refused, "the host is refused")


def _hash(identity: str) -> str:
    return hashlib.sha256(identity.encode()).hexdigest()


@pytest.mark.asyncio
@pytest.mark.parametrize(("auth", "identity"), [("mac", ADDRESS), ("sys-uuid", "4c4c4544-0042-3510-8051-b7c04f4e4a32")])
async def test_a_host_without_a_tpm_is_known_by_the_hash_of_its_identity(management: Management, auth: str, identity: str) -> None:
    serving = await management.start()
    url = await _url(management, machineName="m-1", config={"elemental": {"registration": {"auth": auth}}})
    await Host(url, serving, identity).register()
    found = await management.client.get(MACHINE_INVENTORY, "m-1", SPACE)
    assert (found["spec"]["machineHash"], found["metadata"]["annotations"]["elemental.cattle.io/auth"]) == (_hash(identity), auth)


@pytest.mark.asyncio
async def test_tpms_must_be_of_a_trusted_maker_where_there_are_such(management: Management, tpm: SoftwareTPM) -> None:
    serving = await management.start()
    url = await _url(management)
    await management.client.create(
        SECRET, {"metadata": {"name": "tpm-ca", "namespace": SPACE}, "stringData": {"ca.pem": serving.authorities.decode()}}
    )
    header = TpmAuthorization(tpm.endorsement_pem, tpm.attestation_key()).header()
    status, text = await _get(url, serving, Upgrade="websocket", Connection="Upgrade", Authorization=header)
    assert status == 401
    assert "the TPM has no certificate of its endorsement key" in text


@pytest.mark.asyncio
async def test_smbios_data_of_a_megabyte_is_refused_with_a_sentence_and_the_host_may_come_again(management: Management) -> None:
    serving = await management.start()
    host = Host(await _url(management, **MAC), serving, ADDRESS)
    with pytest.raises(RefusedError, match="more than the 1048576 that are taken"):
        await host.register({Frame.SMBIOS: b"x" * (1 << 20)})
    await host.register()


@pytest.mark.asyncio
async def test_a_host_that_dawdles_is_cut_off_and_its_place_is_free_again(management: Management) -> None:
    serving = await management.start()
    serving.endpoint._deadline, serving.endpoint._places = 0.05, 1
    url = await _url(management, **MAC)
    context = tls.client_context(url, ca=serving.authorities)
    header = {"Authorization": PlainAuthorization(ADDRESS).header()}
    async with aiohttp.ClientSession() as session, session.ws_connect(url, ssl=context, headers=header) as socket:
        assert (await _get(url, serving, Upgrade="websocket", Connection="Upgrade", **header))[0] == 503
        assert (await socket.receive()).data == protocol.encode(Frame.READY)
        closed = await socket.receive(5)
    assert "a registration has 0.05 s in all, and they are over" in str(closed.extra)
    serving.endpoint._deadline = 10.0
    await Host(url, serving, ADDRESS).register()


@pytest.mark.asyncio
async def test_a_host_may_register_at_any_replica(management: Management, tpm: SoftwareTPM) -> None:
    first = await management.start()
    url = await _url(management)
    at_first = management.port
    management.port = free_port()
    second = await management.start()
    assert second.authorities == first.authorities
    elsewhere = url.replace(str(at_first), str(management.port))
    one = await Host(url, first, tpm).register()
    other = await Host(elsewhere, second, tpm).register()
    assert one["elemental"]["system-agent"]["secret-name"] == other["elemental"]["system-agent"]["secret-name"]


@pytest.mark.asyncio
async def test_a_host_that_registers_at_two_replicas_at_once_is_one_host(management: Management, tpm: SoftwareTPM) -> None:
    first = await management.start()
    url = await _url(management, machineName="node-${Random/UUID}")
    elsewhere = url.replace(str(management.port), str(port := free_port()))
    management.port = port
    second = await management.start()
    told = await asyncio.gather(Host(url, first, tpm).register(), Host(elsewhere, second, tpm).register())
    (name,) = await _inventories(management)
    assert [each["elemental"]["system-agent"]["secret-name"] for each in told] == [name, name]


@pytest.mark.asyncio
async def test_hosts_that_chance_names_alike_are_named_apart(management: Management) -> None:
    serving = await management.start()
    given = MachineRegistration(metadata={"namespace": SPACE}, spec=MachineRegistrationSpec(machine_name="node-${Random/Hex/6}"))
    who = identity.claim(PlainAuthorization(ADDRESS).header(), "mac", datetime.now(UTC)).identity
    name = draft.name(given, who, draft.Said())
    await management.inventory(name, tpmHash="a" * 64)
    url = await _url(management, machineName=given.spec.machine_name, **MAC)
    told = await Host(url, serving, ADDRESS).register({})
    assert sorted(await _inventories(management)) == sorted({name, told["elemental"]["system-agent"]["secret-name"]})


@pytest.mark.asyncio
async def test_a_host_of_the_name_of_the_makers_secret_is_not_taken_for_a_maker(management: Management, tpm: SoftwareTPM) -> None:
    serving = await management.start()
    url = await _url(management)
    secret = {"metadata": {"name": "tpm-ca", "namespace": SPACE}, "type": "elemental.cattle.io/plan", "data": {"plan": "e30="}}
    await management.client.create(SECRET, secret)
    await Host(url, serving, tpm).register()


@pytest.mark.asyncio
async def test_no_more_hosts_are_taken_than_there_may_be(management: Management, tpm: SoftwareTPM, other_tpm: SoftwareTPM) -> None:
    serving = await management.start()
    url = await _url(management)
    await Host(url, serving, tpm).register()
    await management.told((await _inventories(management))[0], "Ready", "WaitingForPlan")
    serving.endpoint._most_hosts = 1
    with pytest.raises(RefusedError, match="there are 1 hosts, and no more are taken"):
        await Host(url, serving, other_tpm).register(OTHER_BOARD)
    await Host(url, serving, tpm).register(update=True)


@pytest.mark.asyncio
async def test_a_token_of_the_operators_choice_belongs_to_one_registration(management: Management) -> None:
    serving = await management.start()
    url = await _url(management, token="rack-7")
    assert url == f"https://127.0.0.1:{serving.port}/elemental/registration/rack-7"
    await management.client.create(MACHINE_REGISTRATION, {"metadata": {"name": "zweite", "namespace": SPACE}, "spec": {"token": "rack-7"}})
    told = await management.told("zweite", "Ready", "DuplicateToken", MACHINE_REGISTRATION)
    assert (told["status"], f"{SPACE}/all" in told["message"]) == ("False", True)
    await management.client.delete(MACHINE_REGISTRATION, "all", SPACE)
    await management.told("zweite", "Ready", "SuccessfullyCreated", MACHINE_REGISTRATION)


@pytest.mark.asyncio
async def test_a_token_is_54_characters_without_vowels(management: Management) -> None:
    await management.start()
    token = (await management.registration())["status"]["registrationToken"]
    assert len(token) == 54
    assert set(token) <= set("bcdfghjklmnpqrstvwxz2456789")
