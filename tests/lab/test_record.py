"""A lab's records: names, ranges and what is refused."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.lab import record as state
from slipway.lab.network import addresses
from slipway.lab.processes import Process
from slipway.lab.record import HostRecord, ImageRecord, Lab, LabRecord, Status

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
IMAGE = ImageRecord(digest="d1", version="v1.35.4", layers=("/os/d1/layer", "/os/base"))


def new_lab(name: str = "dev", *, links: tuple[str, ...] = (), used: tuple[str, ...] = (), **given: str) -> LabRecord:
    lab = Lab(name, Path("/labs") / name)
    return state.new_lab(lab, links=links, networks=[IPv4Network(text) for text in used], now=NOW, **given)


def hosts(count: int) -> list[HostRecord]:
    record = new_lab()
    made: list[HostRecord] = []
    for number in range(1, count + 1):
        made.append(state.new_host(record, made, f"host-{number}", IMAGE, uuid.UUID(int=number)))
    return made


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a_b", "a.b", "a/b", "..", "a" * 33])
def test_names_that_could_not_be_part_of_a_host_name_are_refused(name: str) -> None:
    with pytest.raises(OperatorError, match="cannot be the name of a lab: use at most 32 lower-case letters"):
        Lab(name, Path("/labs/x"))


@pytest.mark.parametrize(
    ("used", "hosts_range", "pods_range"),
    [
        ((), "10.88.0.0/24", "10.128.0.0/16"),
        (("10.88.0.0/24",), "10.88.1.0/24", "10.128.0.0/16"),
        (("10.88.0.17/32", "10.88.1.0/25"), "10.88.2.0/24", "10.128.0.0/16"),
        (("10.88.0.0/17", "10.128.0.0/15"), "10.88.128.0/24", "10.130.0.0/16"),
        (("192.168.0.0/16", "172.17.0.0/16"), "10.88.0.0/24", "10.128.0.0/16"),
    ],
)
def test_the_first_ranges_that_the_machine_does_not_use_are_chosen(used: tuple[str, ...], hosts_range: str, pods_range: str) -> None:
    record = new_lab(used=used)
    assert (record.hosts, record.pods) == (hosts_range, pods_range)


def test_a_machine_without_a_free_range_is_told_so() -> None:
    with pytest.raises(OperatorError, match="every address range for the hosts is in use"):
        new_lab(used=("10.0.0.0/8",))


def test_the_ranges_of_labs_stay_clear_of_kubeadms_service_range() -> None:
    services = IPv4Network("10.96.0.0/12")
    assert not any(candidate.overlaps(services) for candidate in (*addresses.host_ranges(), *addresses.pod_ranges()))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"hosts": "10.5.0.0/24"}, "10.5.0.0/24 for the hosts is taken: this machine uses 10.5.0.0/16"),
        ({"hosts": "10.88.0.0/16"}, "must be a /24, and 10.88.0.0/16 is a /16"),
        ({"hosts": "10.88.0.1/24"}, "10.88.0.1/24 is not an address range for the hosts"),
        ({"hosts": "somewhere"}, "somewhere is not an address range"),
        ({"pods": "10.5.0.0/16"}, "10.5.0.0/16 for their Pods is taken"),
        ({"hosts": "10.140.7.0/24", "pods": "10.140.0.0/16"}, "10.140.0.0/16 for their Pods is taken: this machine uses 10.140.7.0/24"),
        ({"bridge": "eth0"}, "the bridge name eth0 is taken"),
        ({"bridge": "sixteen-letters-"}, "cannot be the name of a bridge: Linux takes 1 to 15 characters"),
        ({"bridge": "a b"}, "cannot be the name of a bridge"),
        ({"bridge": ""}, "cannot be the name of a bridge"),
    ],
)
def test_ranges_and_names_that_cannot_be_used_are_refused_with_a_sentence(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(OperatorError) as refused:
        new_lab(links=("eth0",), used=("10.5.0.0/16",), **given)
    assert sentence in refused.value.message


@pytest.mark.parametrize(
    ("name", "links", "readable"),
    [("dev", (), True), ("twelve-chars", (), True), ("thirteen-char", (), False), ("dev", ("sw-dev",), False)],
)
def test_a_bridge_is_named_after_its_lab_where_that_fits_and_is_free(name: str, links: tuple[str, ...], readable: bool) -> None:
    record = new_lab(name, links=links)
    assert record.bridge == (f"sw-{name}" if readable else f"sw-{record.tag}")
    assert len(record.bridge) <= 15


def test_labs_of_one_name_in_two_places_share_nothing() -> None:
    here, there = (
        state.new_lab(Lab("dev", Path(place)), links=(), networks=[], now=NOW)
        for place in ("/var/lib/slipway/labs/dev", "/home/me/labs/dev")
    )
    assert here.tag != there.tag
    assert here.cgroup != there.cgroup
    assert here.bridge_mac != there.bridge_mac


def test_every_host_has_an_address_a_mac_and_a_pod_range_of_its_own() -> None:
    first, second = hosts(2)
    assert (first.address, first.pod_range) == ("10.88.0.11", "10.128.1.0/24")
    assert (second.address, second.pod_range) == ("10.88.0.12", "10.128.2.0/24")
    assert first.mac != second.mac
    assert first.machine_id == "0" * 31 + "1"
    # The second digit of the first byte of a MAC address says: locally administered, and not a group.
    assert int(first.mac[:2], 16) & 0b11 == 0b10


def test_the_index_of_a_deleted_host_is_given_again_and_a_full_lab_says_so() -> None:
    record = new_lab()
    first, second, third = hosts(3)
    assert state.new_host(record, [first, third], "again", IMAGE, uuid.uuid4()).address == second.address
    with pytest.raises(OperatorError, match="a lab holds at most 200 hosts"):
        state.new_host(record, hosts(200), "too-many", IMAGE, uuid.uuid4())


def test_the_last_host_of_a_lab_is_inside_its_ranges_and_its_link_has_a_name_that_linux_takes() -> None:
    record = new_lab()
    last = hosts(200)[-1]
    assert IPv4Network(last.pod_range).subnet_of(record.pod_network)
    assert last.address == "10.88.0.210"
    assert len(state.port_name(record, last)) <= 15


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    lab = Lab("dev", tmp_path / "dev")
    record = new_lab()
    lab.save(record)
    made = hosts(3)
    for host in reversed(made):
        lab.save_host(host)
    status = Status(phase="running", launcher=Process(pid=7, started=8, boot="b"), boots=2)
    lab.save_status("host-2", status)
    again = Lab("dev", tmp_path / "dev")
    assert again.record == record
    assert again.hosts() == made
    assert again.host("host-2") == made[1]
    assert again.status("host-2") == status
    assert again.status("host-1") == Status()
    assert [found.name for found in state.labs(tmp_path)] == ["dev"]


def test_a_lab_or_host_that_is_not_there_is_named(tmp_path: Path) -> None:
    lab = Lab("dev", tmp_path / "dev")
    with pytest.raises(OperatorError, match='there is no lab named "dev"'):
        lab.host("a")
    with pytest.raises(OperatorError, match='there is no lab named "dev"'), lab.locked():
        pass
    assert not lab.folder.exists()
    lab.save(new_lab())
    lab.save_host(hosts(1)[0])
    with pytest.raises(OperatorError, match='the lab "dev" has no host named "a"; its hosts: host-1'):
        lab.host("a")
    with pytest.raises(OperatorError, match=r'"\.\./\.\./etc" cannot be the name of a host'):
        lab.host("../../etc")


def test_a_damaged_record_is_refused_by_its_path(tmp_path: Path) -> None:
    lab = Lab("dev", tmp_path)
    lab.save(new_lab())
    lab.file.write_text("{")
    with pytest.raises(OperatorError, match=r"lab\.json is not a record of this lab"):
        _ = lab.record


def test_a_half_made_host_is_seen_by_its_folder_and_is_not_a_host(tmp_path: Path) -> None:
    lab = Lab("dev", tmp_path)
    lab.save(new_lab())
    lab.host_folder("half").path.mkdir(parents=True)
    assert lab.host_names() == ["half"]
    assert lab.hosts() == []
