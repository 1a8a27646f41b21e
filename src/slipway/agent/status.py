"""What is known of this host's registration and of its last plan, from the files that the agent keeps."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from slipway.agent import connection, paths
from slipway.agent.plan import journal as journals
from slipway.api.machinery.errors import OperatorError

if TYPE_CHECKING:
    from slipway.agent.plan.journal import Journal
    from slipway.host.interface import Host


def gather(host: Host) -> dict[str, Any]:
    """Nothing is changed: a journal that cannot be read is left to the agent."""
    found: dict[str, Any] = {"registered": False, "configured": host.exists(paths.REGISTRATION)}
    try:
        place = connection.load(host)
    except OperatorError as error:
        found["problem"] = error.message
        place = None
    if place is not None:
        found |= {"registered": True, "server": place.connection.shown, "secret": f"{place.namespace}/{place.name}"}
    try:
        journal = journals.read(host)
    except journals.UnreadableError as error:
        found["problem"] = error.message
        return found
    if journal.checksum:
        found["plan"] = _plan(journal)
    return found


def _plan(journal: Journal) -> dict[str, Any]:
    told: dict[str, Any] = {
        "checksum": journal.checksum,
        "state": journal.state,
        "attempt": journal.attempt,
        "failures": journal.failures,
        "completed": journal.completed,
        "of": journal.total,
        "started": _time(journal.started),
    }
    if journal.running is not None and journal.state == "running":
        told["instruction"] = journal.running.name
    if journal.finished:
        told |= {"finished": _time(journal.finished), "reported": journal.reported}
    if journal.message:
        told["message"] = journal.message
    return told


def lines(status: dict[str, Any]) -> str:
    """The same for a person."""
    rows = [("Registered", status.get("secret", "no")), ("Server", status.get("server", "")), ("Problem", status.get("problem", ""))]
    if plan := status.get("plan"):
        where = f", at {plan['instruction']}" if "instruction" in plan else ""
        told = "" if plan.get("reported", True) else ", not reported yet"
        rows += [
            ("Plan", plan["checksum"][:12]),
            ("State", f"{plan['state']}{where}{told}"),
            ("Instructions", f"{plan['completed']} of {plan['of']}"),
            ("Attempt", str(plan["attempt"])),
            ("Message", plan.get("message", "")),
        ]
    return "".join(f"{name + ':':<14}{value}\n" for name, value in rows if value)


def _time(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
