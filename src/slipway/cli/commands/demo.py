"""``demo``: argv in, a run shown, an exit code out; what is run is in slipway.demo."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.argv.parser import Invocation
    from slipway.runtime.manager import Manager


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
        dashboard=call.switch("dashboard"),
    )
    from slipway.demo import run as demonstration

    code = demonstration.main(options, form, verbosity=call.verbosity, dashboard=_attach if options.dashboard else None)
    if code:
        raise SystemExit(code)


def _attach(manager: Manager, port: int) -> None:
    from slipway.dashboard.options import DashboardOptions
    from slipway.dashboard.serving import attach
    from slipway.fleet.manifests import NAMESPACE

    attach(manager, DashboardOptions(bind_address=f"127.0.0.1:{port}"), NAMESPACE)
