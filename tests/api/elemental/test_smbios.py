"""SMBIOS data: what dmidecode prints becomes a tree; garbage and megabytes are refused in a sentence."""

import time

import pytest

from slipway.api.elemental import smbios
from slipway.api.elemental.smbios import SmbiosError

# As dmidecode 3.4 prints it: `dmidecode -t 0 -t 1 …`, with names of our own.
OUTPUT = b"""\
# dmidecode 3.4
Getting SMBIOS data from sysfs.
SMBIOS 3.1.1 present.

Handle 0x0000, DMI type 0, 26 bytes
BIOS Information
\tVendor: ACME
\tVersion: N2OET47W (1.34 )
\tROM Size: 32 MB
\tCharacteristics:
\t\tPCI is supported
\t\t3.5"/720 kB floppy services are supported (int 13h)
\tBIOS Revision: 1.34

# dmidecode 3.4
Getting SMBIOS data from sysfs.
SMBIOS 3.1.1 present.

Handle 0x0001, DMI type 1, 27 bytes
System Information
\tManufacturer: ACME
\tSerial Number: \x20
\tUUID: 069a9e4c-2eec-11b2-a85c-e9c6a8e86998
\tWake-up Type: Power Switch
\tFamily: Type 0, Family: 6

Handle 0x0004, DMI type 4, 48 bytes
Processor Information
\tSocket Designation: CPU1

Handle 0x0005, DMI type 4, 48 bytes
Processor Information
\tSocket Designation: CPU2

Handle 0x0006, DMI type 13, 22 bytes
BIOS Language Information
\tInstallable Languages: 1
\t\ten-US
\tCurrently Installed Language: en-US

Handle 0x0007, DMI type 11, 5 bytes
OEM Strings
\tString 1: rack: 7
\tString 2: \xb5-server

Handle 0x0008, DMI type 222, 14 bytes
OEM-specific Type
\tHeader and Data:
\t\tDE 0E 00 00 01 99 00 03 10 01 20 02 30 03

Handle 0x0009, DMI type 126, 9 bytes
Inactive

Handle 0xFEFF, DMI type 127, 4 bytes
End Of Table

"""


def test_the_structures_are_a_tree_of_texts() -> None:
    assert smbios.parse(OUTPUT) == {
        "BIOS Information": {
            "Vendor": "ACME",
            "Version": "N2OET47W (1.34 )",
            "ROM Size": "32 MB",
            "Characteristics": ["PCI is supported", '3.5"/720 kB floppy services are supported (int 13h)'],
            "BIOS Revision": "1.34",
        },
        "System Information": {
            "Manufacturer": "ACME",
            "Serial Number": "",
            "UUID": "069a9e4c-2eec-11b2-a85c-e9c6a8e86998",
            "Wake-up Type": "Power Switch",
            "Family": "Type 0, Family: 6",
        },
        "Processor Information": {"Socket Designation": "CPU2"},
        "BIOS Language Information": {"Installable Languages": ["en-US"], "Currently Installed Language": "en-US"},
        "OEM Strings": {"String 1": "rack: 7", "String 2": "\ufffd-server"},
        "Inactive": {},
    }


def test_no_data_at_all_is_an_empty_tree() -> None:
    assert smbios.parse(b"") == {}


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (b"\x7fELF\x02\x01\x01\x00" * 50, "control characters"),
        (b"bash: dmidecode: command not found\n", "no structure in it"),
        (b"Handle 0x0001\nA\n\tb: c\n" * 20_000, "440000 bytes, more than the 262144"),
    ],
    ids=["binary", "another text", "megabytes"],
)
def test_what_is_no_output_of_dmidecode_is_refused(output: bytes, sentence: str) -> None:
    with pytest.raises(SmbiosError, match=sentence):
        smbios.parse(output)


@pytest.mark.parametrize(
    "lines",
    [b"\t\ta\n", b"\t" * 50 + b"a: b\n", b"\ta:\n\t\tb: c\n\t\td\n", b"a\n", b": \n", b"\t:\n\t\t:\n"],
    ids=["list", "deep", "mixed", "flat", "nameless", "nameless lists"],
)
def test_the_most_data_that_is_taken_is_read_in_no_time(lines: bytes) -> None:
    head = b"Handle 0x0001, DMI type 1, 27 bytes\nSystem Information\n\tCharacteristics:\n"
    output = head + lines * ((smbios.MAX_BYTES - len(head)) // len(lines))
    start = time.process_time()
    assert "System Information" in smbios.parse(output)
    assert time.process_time() - start < 1
