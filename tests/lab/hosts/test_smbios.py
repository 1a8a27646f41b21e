"""The SMBIOS tables of a host, read by the rules of the specification; what the real dmidecode says of them is in the end-to-end tests."""

from __future__ import annotations

import struct
import uuid

from lab.lab_records import LAB, host

from slipway.lab.hosts import smbios


def structures(dump: bytes) -> dict[int, tuple[bytes, list[str]]]:
    """The fields and strings of each structure, by type."""
    found, rest = {}, dump[0x20:]
    while rest:
        kind, length, _ = struct.unpack("<BBH", rest[:4])
        end = rest.index(b"\0\0", length)
        found[kind] = (rest[:length], [text.decode() for text in rest[length:end].split(b"\0")])
        rest = rest[end + 2 :]
    return found


def test_the_entry_point_adds_up_and_names_the_table() -> None:
    dump = smbios.dump(LAB, host())
    assert dump[:5] == b"_SM3_"
    assert sum(dump[: dump[6]]) % 256 == 0
    size, at = struct.unpack("<IQ", dump[12:24])
    assert (at, size) == (0x20, len(dump) - 0x20)


def test_the_table_has_what_a_registration_asks_for_and_an_end() -> None:
    found = structures(smbios.dump(LAB, host()))
    assert list(found) == [0, 1, 2, 3, 4, 11, 127]
    # The lengths of the specification: 2.4, 2.4, 2.0, 2.7 and 2.6.
    assert {kind: len(fields) for kind, (fields, _) in found.items() if kind < 11} == {0: 24, 1: 27, 2: 15, 3: 22, 4: 42}


def test_a_host_is_known_by_its_uuid_and_serial_number() -> None:
    made = host()
    fields, strings = structures(smbios.dump(LAB, made))[1]
    assert str(uuid.UUID(bytes_le=fields[8:24])) == made.uuid
    assert strings[fields[7] - 1] == made.serial
    assert strings[:2] == ["Slipway", "Slipway lab host"]


def test_hosts_differ_and_a_host_stays_the_same() -> None:
    first = host()
    assert smbios.dump(LAB, first) == smbios.dump(LAB, first)
    assert smbios.dump(LAB, first) != smbios.dump(LAB, host("b", first))
