"""What becomes of what a host says: names, labels, annotations, and what is not the host's to say."""

from __future__ import annotations

from typing import Any

import pytest
from fleet.inventory.management import SMBIOS

from slipway.api.elemental.inventory import ObservedInterface, ObservedNetwork
from slipway.api.elemental.registration import Elemental, MachineRegistration, MachineRegistrationSpec, RegistrationConfig, Reset
from slipway.fleet.inventory.registration import draft
from slipway.fleet.inventory.registration.draft import Identity, Said

WHO = Identity("tpmHash", "a" * 64, "tpm")


def registration(**spec: Any) -> MachineRegistration:
    return MachineRegistration(metadata={"name": "all", "namespace": "hosts"}, spec=MachineRegistrationSpec(**spec))


def test_a_new_inventory() -> None:
    made = draft.create(
        registration(
            machine_name="rack7-${System Information/Serial Number}",
            machine_inventory_labels={"maker": "${System Information/Manufacturer}", "none": "${System Information/Nothing}"},
            machine_inventory_annotations={"baremetal.alauda.io/pool": "workers"},
            config=RegistrationConfig(elemental=Elemental(reset=Reset(enabled=True))),
        ),
        WHO,
        Said(values=SMBIOS, network=ObservedNetwork(interfaces=[ObservedInterface(name="eth0", addresses=["10.0.0.5/24"])])),
    )
    metadata = made["metadata"]
    assert (metadata["name"], metadata["namespace"]) == ("rack7-7b5qjn2", "hosts")
    assert metadata["finalizers"] == ["machineinventory.elemental.cattle.io"]
    assert metadata["labels"] == {"maker": "Dell-Inc", "elemental.cattle.io/registration": "all"}
    assert metadata["annotations"]["elemental.cattle.io/resettable"] == "true"
    assert metadata["annotations"]["elemental.cattle.io/auth"] == "tpm"
    assert metadata["annotations"]["baremetal.alauda.io/pool"] == "workers"
    assert made["spec"] == {"tpmHash": "a" * 64, "observedNetwork": {"interfaces": [{"name": "eth0", "addresses": ["10.0.0.5/24"]}]}}


@pytest.mark.parametrize(
    "key",
    [
        "baremetal.alauda.io/pool",
        "baremetal.alauda.io/owner-machine",
        "elemental.cattle.io/resettable",
        "elemental.cattle.io/auth",
        "cluster.x-k8s.io/paused",
        "slipway.io/host-fingerprint",
        "example.com/anything",
    ],
)
def test_a_host_does_not_annotate_what_decides_over_it(key: str) -> None:
    assert draft.host_annotations({key: "x"}) == {}


def test_a_host_annotates_what_it_says_of_itself() -> None:
    told = {
        "elemental.cattle.io/registration-ip": "10.0.0.5",
        "elemental.cattle.io/reg-version": "1",
        "elemental.cattle.io/os.id": "debian",
    }
    assert draft.host_annotations(told) == told


def test_a_host_leaves_the_prefix_to_the_server_as_elemental_register_does() -> None:
    assert draft.host_annotations({"registration-ip": "10.0.0.5", "os.id": "debian", "resettable": "true", "auth": "x"}) == {
        "elemental.cattle.io/registration-ip": "10.0.0.5",
        "elemental.cattle.io/os.id": "debian",
    }


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"rack": "7"}, {"rack": "7"}),
        ({"example.com/rack": "7"}, {"example.com/rack": "7"}),
        ({"zone": "mine"}, {}),
        ({"cluster.x-k8s.io/cluster-name": "c"}, {}),
        ({"bootstrap.cluster.x-k8s.io/x": "c"}, {}),
        ({"node-role.kubernetes.io/control-plane": ""}, {}),
        ({"elemental.cattle.io/managed": "true"}, {}),
        ({"not a key": "7"}, {}),
        ({"rack": "not a value!"}, {}),
    ],
)
def test_the_labels_that_a_host_may_bring(given: dict[str, str], taken: dict[str, str]) -> None:
    assert draft.host_labels(given, {"zone": "operators"}) == taken


def test_an_update_leaves_what_operators_wrote() -> None:
    made = draft.create(registration(), WHO, Said(values=SMBIOS))
    made["metadata"]["labels"]["team"] = "blue"
    made["metadata"]["annotations"]["baremetal.alauda.io/pool"] = "workers"
    again = draft.update(made, registration(), WHO, Said(values=SMBIOS))
    assert again == made


@pytest.mark.parametrize(
    "serials",
    [
        {},
        {"System Information": "text"},
        {"System Information": {"UUID": "00000000-0000-0000-0000-000000000000", "Serial Number": "To be filled by O.E.M."}},
        {"System Information": {"UUID": "ffffffff-ffff-ffff-ffff-ffffffffffff", "Serial Number": "Default string"}},
        {"System Information": {"Serial Number": "Not Specified"}, "Base Board Information": {"Serial Number": ["a"]}},
    ],
)
def test_a_board_that_nobody_numbered_tells_no_host_from_another(serials: dict[str, Any]) -> None:
    assert draft.fingerprint(serials) == ""
    known = draft.create(registration(), WHO, Said(values=SMBIOS))
    assert not draft.other_host(known, WHO, serials)


def test_another_board_is_another_host() -> None:
    known = draft.create(registration(), WHO, Said(values=SMBIOS))
    assert not draft.other_host(known, WHO, SMBIOS)
    assert draft.other_host(known, WHO, {"System Information": {"UUID": "4c4c4544-0042-3510-8051-b7c04f4e4a33"}})


def test_a_host_that_registers_again_stays_in_the_pool_and_with_the_machine_that_have_it() -> None:
    """What a registration says of the provider's annotations is where a host begins."""
    begins = {"baremetal.alauda.io/pool": "new", "baremetal.alauda.io/allocation-state": "Available", "rack": "7"}
    given = registration(machine_inventory_annotations=begins)
    made = draft.create(given, WHO, Said(values=SMBIOS))
    assert begins.items() <= made["metadata"]["annotations"].items()
    since = {"baremetal.alauda.io/pool": "workers", "baremetal.alauda.io/allocation-state": "Allocated"}
    made["metadata"]["annotations"] |= {**since, "rack": "8"}
    again = draft.update(made, given, WHO, Said(values=SMBIOS))
    assert {**since, "rack": "7"}.items() <= again["metadata"]["annotations"].items()


@pytest.mark.parametrize("template", ["", "node-${Random/Hex/6}", "node-${Random/Int/1000}-${Random/UUID}"])
def test_what_is_random_in_a_name_follows_from_the_identity(template: str) -> None:
    """Two replicas that name one host at the same time make one inventory of it."""
    given = registration(machine_name=template)
    first = draft.name(given, WHO, Said())
    assert draft.name(given, WHO, Said()) == first
    assert draft.name(given, Identity("tpmHash", "b" * 64, "tpm"), Said()) != first
    assert draft.name(given, WHO, Said(), attempt=1) != first


@pytest.mark.parametrize("name", ["c-ca", "c-etcd", "c-sa", "c-proxy", "c-kubeconfig", "tpm-ca", "all-seed", "platform-registry"])
def test_a_host_is_not_named_as_a_secret_that_others_trust(name: str) -> None:
    """It could write to it: Cluster API takes a Secret of such a name for the authority of a cluster."""
    values = {"System Information": {"Serial Number": name}}
    assert draft.name(registration(machine_name="${System Information/Serial Number}"), WHO, Said(values=values)) == f"{name}-host"


def test_a_host_that_registers_again_and_again_does_not_fill_its_inventory() -> None:
    made = draft.create(registration(), WHO, Said(values=SMBIOS))
    for turn in range(10):
        labels = {f"rack-{turn}-{number}": "x" for number in range(60)}
        annotations = {f"os.{turn}-{number}": "x" * 1024 for number in range(60)}
        made = draft.update(made, registration(), WHO, Said(values=SMBIOS, labels=labels, annotations=annotations))
    assert len(made["metadata"]["labels"]) <= 65
    assert len(made["metadata"]["annotations"]) <= 70


@pytest.mark.parametrize(
    ("auth", "values", "other"),
    [("tpm", {}, False), ("mac", {}, True), ("mac", SMBIOS, False), ("sys-uuid", {"System Information": {"UUID": "x"}}, True)],
)
def test_a_host_that_proves_nothing_must_know_its_serial_numbers(auth: str, values: dict[str, Any], other: bool) -> None:
    made = draft.create(registration(), WHO, Said(values=SMBIOS))
    assert draft.other_host(made, WHO._replace(auth=auth), values) is other
