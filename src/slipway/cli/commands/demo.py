"""``demo``: argv in, a run shown, an exit code out; what is run is in slipway.demo."""

from __future__ import annotations

from slipway.api.machinery.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.argv.parser import Invocation


def run(call: Invocation) -> None:
    from slipway.cli.commands import managerflags
    from slipway.demo.options import Options

    form = managerflags.one_of(call, "output")
    fault = call.text("fault")
    known = call.flags["fault"].completes
    if fault and fault not in known:
        raise UsageError(f'"{fault}" is not a value of --fault: use {", ".join(known)}')
    if fault and call.switch("no-upgrade"):
        raise UsageError("--fault is about an upgrade: it does not go with --no-upgrade")
    options = Options(
        hosts=call.number("hosts"),
        control_planes=call.number("control-planes"),
        workers=call.number("workers"),
        start=call.text("from"),
        to=call.text("to"),
        speed=float(call.number("speed")),
        upgrade=not call.switch("no-upgrade"),
        keep=call.switch("keep"),
        fault=fault,
        report=call.text("report"),
    )
    from slipway.demo import run as demonstration

    code = demonstration.main(options, form, verbosity=call.verbosity)
    if code:
        raise SystemExit(code)
