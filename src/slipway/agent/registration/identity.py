"""Who this host is to those it registers with: a TPM, the machine's or one in software, or an address or number of its board."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from slipway.agent import paths
from slipway.agent.registration import inspection
from slipway.api.elemental import names, protocol
from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from slipway.agent.machine import Machine
    from slipway.agent.registration.settings import Settings
    from slipway.credentials.tpm import Identity

KEY_BYTES = 32


def tpm(machine: Machine, settings: Settings) -> Identity:
    """The machine's TPM, else one in software whose key is made at the first registration and kept, for root alone."""
    if not settings.emulate_tpm and machine.host.exists(paths.TPM_DEVICE):
        from slipway.credentials.tpm.device import TPMDevice

        return TPMDevice(machine.host.location(paths.TPM_DEVICE))
    from slipway.credentials.tpm.software import SoftwareTPM

    return SoftwareTPM(key(machine))


def key(machine: Machine) -> bytes:
    """256 bits that no other host has: a seed of 64 taken from the board's number is shared by boards that have none."""
    try:
        found = machine.host.read(paths.KEY)
    except FileNotFoundError:
        found = os.urandom(KEY_BYTES).hex().encode()
        machine.keep(paths.KEY, found)
    try:
        material = bytes.fromhex(found.decode().strip())
    except ValueError:
        material = b""
    if len(material) != KEY_BYTES:
        raise OperatorError(
            f"{paths.KEY} is not the key of this host: it must have {KEY_BYTES * 2} hexadecimal digits; restore or remove it"
        )
    return material


def plain(machine: Machine, settings: Settings) -> protocol.PlainAuthorization:
    """What elemental-register sends for ``mac`` and ``sys-uuid``."""
    if settings.auth == names.AUTH_MAC:
        found = min((each["mac"] for each in inspection.interfaces(machine) if each["mac"]), default="")
        if not found:
            raise OperatorError("the host has no network interface with a hardware address to register by")
        return protocol.PlainAuthorization(found)
    found = inspection.system_uuid(machine.host)
    if not found:
        raise OperatorError("the firmware of the host tells no system UUID to register by")
    return protocol.PlainAuthorization(found)
