"""``agent``: argv in, text out; what is run is in slipway.agent."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.agent.machine import Machine
    from slipway.cli.argv.parser import Invocation


def run(call: Invocation) -> None:
    from slipway.agent.loop import Agent

    machine = _machine(call)

    def register_anew() -> None:
        # Only now: a host that is registered needs none of what these import.
        from slipway.agent.registration import exchange, settings

        exchange.register(machine, settings.settings(settings.load(call.host)), log=_say)

    Agent(machine, register=register_anew, log=_say).run()


def fetch_image(call: Invocation) -> None:
    import msgspec

    from slipway.agent.staging import fetch
    from slipway.api.machinery.errors import UsageError

    if not call.arguments:
        raise UsageError("the image that is to be fetched is missing")
    fetch.give_way()
    config = call.host.location(fetch.KUBELET_CONFIG)
    found = fetch.fetch(call.arguments[0], call.text("into"), call.text("unless"), config)
    sys.stdout.write(f"{msgspec.json.encode(found).decode()}\n")


def register(call: Invocation) -> None:
    from slipway.agent.registration import exchange, settings
    from slipway.api.machinery.errors import OperatorError

    ca = b""
    if path := call.text("registration-ca-cert"):
        try:
            ca = call.host.read(path)
        except OSError as error:
            raise OperatorError(f"cannot read {path}: {error.strerror or error}") from None
    wanted = settings.settings(
        settings.load(call.host, call.text("config")),
        url=call.text("registration-url"),
        token=call.text("token"),
        ca=ca,
        auth=call.text("auth"),
        emulate_tpm=call.switch("emulate-tpm"),
        labels=dict(call.pairs("labels")),
    )
    exchange.register(_machine(call), wanted, log=_say)


def status(call: Invocation) -> None:
    from slipway.agent import status as known
    from slipway.api.machinery.errors import UsageError

    form = call.text("output")
    if form not in ("text", "json"):
        raise UsageError(f'invalid output format "{form}": use text or json')
    found = known.gather(call.host)
    if form == "json":
        import json

        sys.stdout.write(json.dumps(found, indent=2) + "\n")
    else:
        sys.stdout.write(known.lines(found))


def unit(call: Invocation) -> None:
    from slipway.agent import unit as made

    sys.stdout.write(made.text(call.text("program")))


def install_unit(call: Invocation) -> None:
    from slipway.agent import paths
    from slipway.agent import unit as made

    made.install(call.host, call.text("program"))
    _say(f"{call.host.shown(paths.UNIT)} is written; start it with: systemctl enable --now slipway-agent")


def _machine(call: Invocation) -> Machine:
    from slipway.agent.machine import RealMachine

    return RealMachine(call.host)


def _say(line: str) -> None:
    sys.stdout.write(f"[agent] {line}\n")
    sys.stdout.flush()
