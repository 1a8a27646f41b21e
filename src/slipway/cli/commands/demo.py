"""``demo``: argv in, a run shown, an exit code out; what is run is in slipway.demo."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.argv.parser import Invocation


def run(call: Invocation) -> None:
    from slipway.cli.commands import managerflags
    from slipway.demo.options import Options

    form = managerflags.one_of(call, "output")
    options = Options(
        hosts=call.number("hosts"),
        control_planes=call.number("control-planes"),
        workers=call.number("workers"),
        start=call.text("from"),
        to=call.text("to"),
        speed=float(call.number("speed")),
        upgrade=not call.switch("no-upgrade"),
        keep=call.switch("keep"),
        fault=call.text("fault"),
        report=call.text("report"),
    )
    from slipway.demo import run as demonstration

    code = demonstration.main(options, form, verbosity=call.verbosity)
    if code:
        raise SystemExit(code)
