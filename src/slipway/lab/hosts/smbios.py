"""The SMBIOS tables of a virtual host, as the firmware of a physical one has them: a dump that the real ``dmidecode`` reads.

A container has no firmware of its own, so the tables are a file of the host.  Structures are those of the SMBIOS specification 3.0;
what is in them follows from the host's record alone and stays the same for as long as the host is there.
"""

from __future__ import annotations

import struct
import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slipway.lab.record import HostRecord, LabRecord

MANUFACTURER = "Slipway"
PRODUCT = "Slipway lab host"

_ENTRY_POINT_SIZE = 0x18
_TABLE_AT = 0x20
"""Where dmidecode puts, and expects, the table in a dump."""
_NO_HANDLE = 0xFFFF
_END = 127


def dump(record: LabRecord, host: HostRecord) -> bytes:
    """An entry point and the table behind it."""
    table = b"".join(
        [
            _structure(0, struct.pack("<BBHBBQBBBBBB", 1, 2, 0, 3, 0, 0x8, 0, 0x10, 1, 0, 255, 255), "Slipway", "1.0", "01/01/2024"),
            _structure(1, _system(host), MANUFACTURER, PRODUCT, "1", host.serial, "SLIPWAY-LAB", "Lab"),
            _structure(2, struct.pack("<BBBBBBBHBB", 1, 2, 3, 4, 5, 9, 6, 3, 10, 0), *_board(host)),
            _structure(3, struct.pack("<BBBBBBBBBIBBBBB", 1, 23, 2, 3, 4, 3, 3, 3, 3, 0, 1, 1, 0, 0, 5), *_chassis(record, host)),
            _structure(4, _processor(), "CPU 0", MANUFACTURER, "Virtual processor", host.serial, "CPU-0", "VCPU"),
            _structure(11, struct.pack("<B", 2), f"lab={record.name}", f"host={host.name}"),
            _structure(_END, b""),
        ]
    )
    return _entry_point(len(table)).ljust(_TABLE_AT, b"\0") + table


def _system(host: HostRecord) -> bytes:
    return struct.pack("<BBBB16sBBB", 1, 2, 3, 4, uuid.UUID(host.uuid).bytes_le, 6, 5, 6)


def _board(host: HostRecord) -> tuple[str, ...]:
    return (MANUFACTURER, "Slipway lab board", "1", host.serial, host.name, "Slot 1")


def _chassis(record: LabRecord, host: HostRecord) -> tuple[str, ...]:
    return (MANUFACTURER, "1", host.serial, f"{record.name}/{host.index}", "SLIPWAY-CHASSIS")


def _processor() -> bytes:
    before_caches = struct.pack("<BBBBQBBHHHBB", 1, 3, 2, 2, 0, 3, 0x80, 100, 2000, 2000, 0x41, 1)
    return before_caches + struct.pack("<HHHBBBBBBHH", *([_NO_HANDLE] * 3), 4, 5, 6, 1, 1, 1, 4, 2)


def _structure(kind: int, fields: bytes, *strings: str) -> bytes:
    """One structure: a header with its length and handle, its fields, and the strings that the fields refer to by number."""
    header = struct.pack("<BBH", kind, 4 + len(fields), kind)
    texts = b"".join(text.encode("ascii") + b"\0" for text in strings) or b"\0"
    return header + fields + texts + b"\0"


def _entry_point(size: int) -> bytes:
    """The 64-bit entry point, whose bytes add up to zero."""
    made = struct.pack("<5sBBBBBBBIQ", b"_SM3_", 0, _ENTRY_POINT_SIZE, 3, 0, 0, 1, 0, size, _TABLE_AT)
    return made[:5] + bytes([-sum(made) % 256]) + made[6:]
