"""One registration: who the host is, what it has, and where its Secret is from now on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway import __version__
from slipway.agent import connection, paths
from slipway.agent.registration import identity, inspection, websocket
from slipway.agent.registration.settings import section
from slipway.api.elemental import names, protocol
from slipway.api.elemental.protocol import Frame
from slipway.api.machinery.errors import ConfigurationError, OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.agent.machine import Machine
    from slipway.agent.registration.settings import Settings
    from slipway.credentials.tpm import Identity

NOT_FOUND = "MachineInventory not found"


def register(machine: Machine, settings: Settings, *, log: Callable[[str], None], tpm: Identity | None = None) -> None:
    """Register, and keep what came of it.  The inventory of a host that was registered before is only brought up to date.

    ``tpm`` is that of a host whose caller has one already, as simulated hosts do.
    """
    if settings.auth != names.AUTH_TPM:
        tpm = None
    elif tpm is None:
        tpm = identity.tpm(machine, settings)
    try:
        config = exchange(machine, settings, tpm, update=machine.host.exists(paths.CONNECTION), log=log)
    except ForgottenError:
        log("the host's inventory is gone, so that the host registers as a new one")
        config = exchange(machine, settings, tpm, update=False, log=log)
    finally:
        if tpm is not None:
            tpm.close()
    keep(machine, config)
    place = connection.load(machine.host)
    if place is not None:
        log(f"registered; the Secret of this host is {place.namespace}/{place.name}")


def exchange(machine: Machine, settings: Settings, tpm: Identity | None, *, update: bool, log: Callable[[str], None]) -> dict[str, Any]:
    """What the server tells a host that has registered."""
    shown = settings.url.rpartition("/")[0]
    authorization: protocol.TpmAuthorization | protocol.PlainAuthorization
    if tpm is not None:
        authorization = protocol.TpmAuthorization(tpm.endorsement_pem, tpm.attestation_key())
    else:
        authorization = identity.plain(machine, settings)
    # All that takes a while is done before the clock of the exchange runs.
    board = {} if settings.no_smbios else inspection.board(machine.host)
    hardware = {} if settings.no_smbios else inspection.system_data(machine)
    observed = inspection.network(machine)
    log(f"registering at {shown} by {settings.auth}")
    channel = websocket.connect(
        settings.url,
        ca=settings.ca,
        headers={"Authorization": authorization.header()},
        environment=machine.host.environment,
        timeout=protocol.DEADLINE_SECONDS,
    )
    try:
        talk = _Talk(channel, shown)
        if tpm is not None:
            credential, secret = protocol.read_challenge(channel.receive())
            channel.send(protocol.encode_answer(tpm.activate(credential, secret)))
        talk.expect(Frame.READY)
        version = talk.negotiate()
        if update:
            talk.ask(Frame.UPDATE, b"", needs=version)
        if not settings.no_smbios:
            talk.tell(Frame.SMBIOS, board)
            if version >= Frame.SYSTEM_DATA_V2:
                talk.tell(Frame.SYSTEM_DATA_V2, hardware)
        if version >= Frame.OBSERVED_NETWORK_CONFIG:
            talk.tell(Frame.OBSERVED_NETWORK_CONFIG, observed)
        if version >= Frame.ANNOTATIONS:
            talk.tell(Frame.ANNOTATIONS, _annotations(machine, settings, channel.local_address, emulated=tpm is not None))
        if settings.labels:
            talk.tell(Frame.LABELS, settings.labels)
        return _document(talk.configuration(version), shown)
    except protocol.ProtocolError as error:
        raise OperatorError(f"{shown} does not keep to the protocol of registrations: {error}") from None
    finally:
        channel.close()


class ForgottenError(OperatorError):
    """The host was registered, and its inventory is not there any more."""


class RefusedError(OperatorError):
    """The server says why it does not register the host."""


class _Talk:
    def __init__(self, channel: websocket.WebSocket, shown: str) -> None:
        self._channel = channel
        self._shown = shown

    def negotiate(self) -> int:
        self._channel.send(protocol.encode(Frame.VERSION, bytes((protocol.VERSION,))))
        return protocol.agreed(self.expect(Frame.VERSION))

    def tell(self, frame: Frame, value: Any) -> None:
        self._channel.send(protocol.encode_object(frame, value))
        self.expect(Frame.READY)

    def ask(self, frame: Frame, payload: bytes, *, needs: int) -> None:
        if needs < frame:
            raise OperatorError(f"{self._shown} is too old to be told of a change of a host that is registered")
        self._channel.send(protocol.encode(frame, payload))
        self.expect(Frame.READY)

    def configuration(self, version: int) -> bytes:
        self._channel.send(protocol.encode(Frame.GET))
        return self.expect(Frame.CONFIG) if version >= Frame.CONFIG else self._channel.receive()

    def expect(self, frame: Frame) -> bytes:
        found, payload = protocol.decode(self._channel.receive())
        if found == Frame.ERROR:
            sentence = protocol.read_error(payload)
            kind = ForgottenError if NOT_FOUND in sentence else RefusedError
            raise kind(f"{self._shown} refuses the registration: {sentence}")
        if found != frame:
            raise protocol.ProtocolError(f"it answers with {found.name} where {frame.name} was expected")
        return payload


def _annotations(machine: Machine, settings: Settings, address: str, *, emulated: bool) -> dict[str, str]:
    software = emulated and (settings.emulate_tpm or not machine.host.exists(paths.TPM_DEVICE))
    auth = "emulated-tpm" if software else settings.auth
    return inspection.tags(machine.host, auth=auth, version=__version__, address=address, managed=not settings.no_toolkit)


def _document(payload: bytes, shown: str) -> dict[str, Any]:
    from slipway.api.machinery.yaml import goyaml

    try:
        documents = goyaml.load(payload.decode(), "the configuration")
    except (UnicodeDecodeError, ConfigurationError) as error:
        raise OperatorError(f"the configuration that {shown} sends cannot be read: {error}") from None
    value = documents[0].value if documents else None
    if not isinstance(value, dict):
        raise OperatorError(f"the configuration that {shown} sends is none")
    return value


def keep(machine: Machine, config: dict[str, Any]) -> None:
    """What the agent needs from now on, for root alone: the connection first, since it is the only thing that cannot be made again."""
    from slipway.api.machinery.yaml import goyaml
    from slipway.kube import kubeconfig

    source = "the configuration of the registration"
    told = section(config, source, "elemental", "system-agent")
    missing = [key for key in ("url", "token", "secret-name", "secret-namespace") if not isinstance(told.get(key), str) or not told[key]]
    if missing:
        raise OperatorError(f"{source} does not say where the host's Secret is: elemental.system-agent has no {', '.join(missing)}")
    registration = section(config, source, "elemental", "registration")
    # elemental-operator has one bundle for both servers.
    authorities = str(told.get("ca-cert") or registration.get("ca-cert") or "").encode()
    document = kubeconfig.document(server=told["url"], cluster="cluster", user="user", ca=authorities, credentials={"token": told["token"]})
    connection.save(machine, document, told["secret-namespace"], told["secret-name"])
    agent = {
        "workDirectory": paths.WORK,
        "appliedPlanDirectory": f"{paths.FOLDER}/applied",
        "remoteEnabled": True,
        "connectionInfoFile": paths.CONNECTION,
        "preserveWorkDirectory": False,
    }
    machine.host.write(paths.CONFIG, goyaml.dump(agent).encode(), 0o600)
    if registration.get("url") and not machine.host.exists(paths.REGISTRATION):
        # Whoever registered by a command line is to be found again by it.
        machine.keep(paths.REGISTRATION, goyaml.dump({"elemental": {"registration": registration}}).encode())
    state = {"initialRegistration": machine.host.now().strftime("%Y-%m-%dT%H:%M:%SZ"), "emulatedTPM": machine.host.exists(paths.KEY)}
    if not machine.host.exists(paths.REGISTRATION_STATE):
        machine.keep(paths.REGISTRATION_STATE, goyaml.dump(state).encode())
