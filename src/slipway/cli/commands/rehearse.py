"""``fleet rehearse``: argv in, a report out, an exit code; what is rehearsed is in slipway.simulation.rehearsal."""

from __future__ import annotations

from slipway.api.machinery.errors import OperatorError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.argv.parser import Invocation
    from slipway.kube.connection import Connection


def run(call: Invocation) -> None:
    from slipway.api.machinery.version import Version
    from slipway.cli.commands import managerflags
    from slipway.cli.commands.manager import connection, namespace

    form = managerflags.one_of(call, "output")
    if not call.arguments:
        raise UsageError("which cluster is to be upgraded is missing: name it as CLUSTER")
    try:
        Version.parse(call.text("to"))
    except ValueError as error:
        raise UsageError(f"--to: {error}") from None
    target, workload = connection(call), _workload(call)
    from slipway.simulation.rehearsal import run as rehearsing
    from slipway.simulation.rehearsal.rehearsal import Wanted

    wanted = Wanted(namespace(call, target), call.arguments[0], call.text("to"), call.text("catalog-namespace"), workload)
    code = rehearsing.main(target, wanted, form, call.text("report"), verbosity=call.verbosity)
    if code:
        raise SystemExit(code)


def _workload(call: Invocation) -> Connection | None:
    from slipway.kube import kubeconfig
    from slipway.kube.connection import from_kubeconfig

    path = call.text("workload-kubeconfig")
    if not path:
        return None
    try:
        document = kubeconfig.load(call.host.read(path), path)
    except OSError as error:
        raise OperatorError(f"cannot read the kubeconfig {path}: {error.strerror or error}") from None
    return from_kubeconfig(document, call.host.read, source=path)
