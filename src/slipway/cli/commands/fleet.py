"""``fleet``: argv in, text out; what is looked at is in slipway.fleet."""

from __future__ import annotations

import sys

from slipway.api.machinery.errors import OperatorError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.argv.parser import Invocation
    from slipway.fleet.baremetal.rollouts.preflight import Row


def preflight(call: Invocation) -> None:
    """The prerequisites of an upgrade, as a table."""
    from slipway.api.machinery.version import Version
    from slipway.cli.commands import managerflags

    form = managerflags.one_of(call, "output")
    if not call.arguments:
        raise UsageError("which cluster is to be upgraded is missing: name it as CLUSTER")
    to = call.text("to")
    try:
        Version.parse(to)
    except ValueError as error:
        raise UsageError(f"--to: {error}") from None
    from slipway.fleet.baremetal.rollouts.preflight import failed

    table = _rows(call, call.arguments[0], to)
    sys.stdout.write(_json(table) if form == "json" else _text(table))
    wrong = failed(table)
    if wrong:
        raise OperatorError(f"{wrong} of {len(table)} prerequisites of an upgrade to {to} are not met")


def _rows(call: Invocation, cluster: str, to: str) -> list[Row]:
    import asyncio

    from slipway.cli.commands.manager import connection, namespace
    from slipway.cli.commands.managerflags import registry_secret
    from slipway.fleet import registry
    from slipway.fleet.baremetal.rollouts.preflight import rows
    from slipway.fleet.baremetal.rollouts.survey import survey
    from slipway.kube.aio import AsyncClient

    target = connection(call)
    leases, secret = registry.leases(), registry_secret(call)

    async def work() -> list[Row]:
        async with AsyncClient(target) as client:
            found = await survey(client, namespace(call, target), cluster, leases, call.text("catalog-namespace"), secret)
            return rows(found, to)

    return asyncio.run(work())


def _json(table: list[Row]) -> str:
    import json

    from slipway.fleet.baremetal.rollouts.preflight import failed

    return json.dumps({"passed": failed(table) == 0, "checks": [row._asdict() for row in table]}, indent=2) + "\n"


def _text(table: list[Row]) -> str:
    from slipway.api.machinery.tabwriter import aligned

    return aligned([("PREREQUISITE", "STATUS", "MESSAGE"), *((row.check, row.status, row.message) for row in table)])
