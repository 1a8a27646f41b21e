"""One host's conversation after it has proved who it is: a state machine over frames, without a connection, a clock or an API server.

Each message is answered by a reply, by a refusal that ends the conversation, or by the request to write the inventory down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from slipway.api.elemental import protocol, systemdata
from slipway.api.elemental.inventory import ObservedNetwork
from slipway.api.elemental.placeholders import TemplateError
from slipway.api.elemental.protocol import Frame, ProtocolError
from slipway.fleet.inventory.registration import draft
from slipway.fleet.inventory.registration.draft import Said

if TYPE_CHECKING:
    from slipway.api.elemental.registration import MachineRegistration
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.inventory.registration.draft import Identity

NOT_FOUND = "MachineInventory not found"
"""In elemental-operator's words: a host that hears it knows that it has to be provisioned anew."""
MOST_FRAMES = 32
MOST_BYTES = 2 << 20
_MOST = {"interfaces": 256, "routes": 1024, "dns_servers": 64, "search_domains": 64}
_LONGEST = 256
_VALUES = (Frame.SMBIOS, Frame.SYSTEM_DATA_V2)


class Reply(NamedTuple):
    """What is sent back; the conversation goes on."""

    message: bytes


class Refusal(NamedTuple):
    """Why the conversation ends."""

    sentence: str


class Commit(NamedTuple):
    """The host has said everything: its inventory is to be written, and its configuration to be sent."""

    updating: bool


Step = Reply | Refusal | Commit


class Session:
    """``known`` is the inventory that the identity has already."""

    def __init__(self, registration: MachineRegistration, identity: Identity, known: Manifest | None) -> None:
        self.registration = registration
        self.identity = identity
        self.known = known
        self.version = 0
        """What both sides agreed on; 0 before they did."""
        self.said = Said()
        self._updating = False
        self._frames = self._bytes = 0

    def heard(self, message: bytes) -> Step:
        """What to do about a message of the host."""
        self._frames += 1
        self._bytes += len(message)
        if self._frames > MOST_FRAMES or self._bytes > MOST_BYTES:
            return Refusal(f"a registration takes at most {MOST_FRAMES} messages and {MOST_BYTES} bytes")
        try:
            frame, payload = protocol.decode(message)
            return self._answer(frame, payload)
        except ProtocolError as error:
            return Refusal(str(error))

    def manifest(self, found: Manifest | None, attempt: int = 0) -> Manifest | Refusal:
        """The inventory to write, over the one that was ``found`` just now; ``attempt`` counts the names that other hosts had."""
        try:
            if found is None:
                return draft.create(self.registration, self.identity, self.said, attempt)
            if draft.other_host(found, self.identity, self.said.values):
                return Refusal(
                    f"another host registered as {found['metadata']['name']} with the same identity: give this host a key of its own, "
                    f"or, if that host's board was exchanged, remove {draft.FINGERPRINT_ANNOTATION} from its MachineInventory"
                )
            return draft.update(found, self.registration, self.identity, self.said)
        except TemplateError as error:
            return Refusal(f"the MachineRegistration {self.registration.metadata['name']} cannot name this host: {error}")

    def _answer(self, frame: Frame, payload: bytes) -> Step:
        if frame is Frame.VERSION:
            if self.version:
                return Refusal("the version of the protocol was agreed on already")
            self.version = protocol.agree(payload)
            return Reply(protocol.encode(Frame.VERSION, bytes((self.version,))))
        if not self.version:
            return Refusal(f"the version of the protocol must be agreed on before {frame.name}")
        if frame > self.version:
            return Refusal(f"{frame.name} is not in version {self.version} of the protocol, which was agreed on")
        if frame is Frame.GET:
            self.said.values = systemdata.completed(self.said.values)
            return Commit(self._updating)
        if frame is Frame.UPDATE:
            if self.known is None:
                return Refusal(NOT_FOUND)
            self._updating = True
        elif frame is Frame.SYSTEM_DATA:
            self.said.values.update(systemdata.from_ghw(protocol.read_object(frame, payload)))
        elif frame in _VALUES:
            self.said.values.update(protocol.read_object(frame, payload))
        elif frame is Frame.LABELS:
            self.said.labels.update(protocol.read_texts(frame, payload))
        elif frame is Frame.ANNOTATIONS:
            self.said.annotations.update(protocol.read_texts(frame, payload))
        elif frame is Frame.OBSERVED_NETWORK_CONFIG:
            self.said.network = _network(protocol.read_object(frame, payload))
        elif frame is not Frame.NETWORK_CONFIG:
            return Refusal(f"{frame.name} is not for a host to say")
        return Reply(protocol.encode(Frame.READY))


def _network(value: Manifest) -> ObservedNetwork:
    """The network of a host, where it is one."""
    try:
        network = msgspec.convert(value, ObservedNetwork)
    except msgspec.ValidationError as error:
        raise ProtocolError(f"the observed network cannot be read: {error}") from None
    for field, most in _MOST.items():
        if len(getattr(network, field)) > most:
            raise ProtocolError(f"the observed network has more than {most} {field.replace('_', ' ')}")
    texts = [*network.dns_servers, *network.search_domains]
    for interface in network.interfaces:
        texts += (interface.name, interface.mac, interface.master, *interface.addresses)
        if len(interface.addresses) > _LONGEST:
            raise ProtocolError(f"the device {interface.name[:64]} has more than {_LONGEST} addresses")
    for route in network.routes:
        texts += (route.destination, route.gateway, route.interface)
    if any(len(text) > _LONGEST for text in texts):
        raise ProtocolError(f"the observed network has a text of more than {_LONGEST} characters")
    return network
