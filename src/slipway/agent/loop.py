"""The agent's work, for as long as it lives: registers where that is needed, looks at the Secret, decides, does, reports."""

from __future__ import annotations

import math
import os
import threading
import time
from typing import TYPE_CHECKING

import msgspec

from slipway.agent import connection, hostfacts, renewal
from slipway.agent.mailbox import Mailbox, Watcher
from slipway.agent.plan import decision, periodic, probes, report
from slipway.agent.plan.decision import Nothing, Report, Run, Wait, next_action
from slipway.agent.plan.journal import JournalFile
from slipway.agent.plan.runner import Runner, end_leftovers
from slipway.agent.progress import LOST, Progress
from slipway.agent.secret import SecretClient
from slipway.agent.staging.stager import Stager
from slipway.api.elemental import names, staging
from slipway.api.elemental import plan as plans
from slipway.api.machinery.errors import OperatorError
from slipway.kube.client import Client
from slipway.kube.errors import ApiError, InvalidError, UnauthorizedError, UnreachableError, UntrustedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.agent.connection import Place
    from slipway.agent.machine import Machine
    from slipway.agent.plan.decision import PlanSecret
    from slipway.agent.plan.journal import Journal
    from slipway.api.elemental.plan import Plan

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0


class Agent:
    """``register`` makes a new connection file, or raises an OperatorError.  A signal may end the agent at any line."""

    def __init__(self, machine: Machine, *, register: Callable[[], None], log: Callable[[str], None]) -> None:
        self._machine = machine
        self._register = register
        self._log = log
        self._ending = threading.Event()
        self._mailbox = Mailbox()
        self._file = JournalFile(machine)
        self._journal = self._file.load()
        if self._file.problem:
            log(self._file.problem)
        if ended := end_leftovers(machine, self._journal):
            log(f"{ended} processes of a plan that a former agent left running were ended")

    def run(self) -> None:
        pause = 0.0
        anew = False
        # By a clock that is years ahead, every token is about to end.
        renew_after = 0.0
        while not self._ending.is_set():
            began = time.monotonic()
            try:
                if anew:
                    self._register()
                place = connection.load(self._machine.host)
                if place is None:
                    anew = True
                    continue
                self._mailbox = Mailbox()
                session = Session(self._machine, place, self._file, self._journal, self._mailbox, self._log, self._ending, renew_after)
            except (OperatorError, OSError) as error:
                pause = max(pause, _FIRST_PAUSE)
                self._log(f"{error}; the next attempt is in {pause:.0f}s")
                # Where there is a connection it is tried once more, in turn with the registration: the server may have erred.
                anew = not anew
                pause = self._rest(pause)
                continue
            try:
                session.run()
                anew, renew_after = False, time.monotonic() + renewal.PERIOD if session.renewed else renew_after
            except (UnauthorizedError, UntrustedError) as error:
                self._log(f"the API server does not take this host's credentials any more, which registers anew: {error.message}")
                anew = True
                # The first time at once.  Where that is refused again, or there are no others to be had, whatever is wrong takes longer.
                pause = self._rest(pause if time.monotonic() - began < _LONGEST_PAUSE else 0.0)
            self._journal = session.journal

    def _rest(self, pause: float) -> float:
        """The next pause, after this one; a server that forgot all hosts is not asked by all of them in one moment."""
        self._ending.wait(pause * (0.5 + os.urandom(1)[0] / 255))
        return min(max(pause * 2, _FIRST_PAUSE), _LONGEST_PAUSE)

    def end(self) -> None:
        """Have ``run`` return in another thread, once what it does is done."""
        self._ending.set()
        self._mailbox.wake()


class Session:
    """The work with one connection; ends when there is a better one, or by an UnauthorizedError or UntrustedError when it is of no use."""

    def __init__(
        self,
        machine: Machine,
        place: Place,
        file: JournalFile,
        journal: Journal,
        mailbox: Mailbox,
        log: Callable[[str], None],
        ending: threading.Event,
        renew_after: float = 0.0,
    ) -> None:
        self._machine = machine
        self._place = place
        self.renewed = False
        """Whether there is a new token for the next session."""
        self._renew_after = renew_after
        self._file = file
        self.journal = journal
        """What is known of the plan that ran last: newer than the file where that could not be written."""
        self._log = log
        self._ending = ending
        environment = machine.host.environment
        self._secret = SecretClient(Client(place.connection, environment=environment, program="slipway-agent"), place)
        self._mailbox = mailbox
        self._watcher = Watcher(self._secret, self._mailbox, log)
        self._said = ""
        self._pause = _FIRST_PAUSE
        self._progress = Progress(self._secret, self._mailbox)
        self._stager = Stager(machine, mailbox.wake, log)
        self._facts_at = self._facts_told_at = 0.0
        self._image: dict[str, str] | None = None
        self._probed_at = 0.0
        self._plan: tuple[bytes, Plan | None] = (b"", None)
        self._kept: tuple[bytes, dict[str, periodic.Kept]] = (b"", {})

    def run(self) -> None:
        self._watcher.start()
        wait: float | None = None
        try:
            while not self._ending.is_set() and not self.renewed:
                secret = self._mailbox.wait(wait)
                wait = self._missing() if secret is None else self._step(secret)
        finally:
            self._watcher.end()
            self._secret.close()
            self._stager.stop()

    def _missing(self) -> float:
        """The Secret was deleted: ask for it now and then.  A watch goes on for an hour after its credentials are worth nothing."""
        try:
            found = self._mailbox.ask(self._secret.read)
        except (UnauthorizedError, UntrustedError):
            raise
        except LOST as error:
            self._say(f"whether the Secret is there again is not known: {error}")
            return self._backed_off()
        if found is None:
            self._say("the Secret of this host is not there")
            return self._backed_off()
        return 0.0

    def _step(self, secret: PlanSecret) -> float | None:
        """Do what comes next; how many seconds later to look again, where the Secret does not change before."""
        action = next_action(secret, self.journal, self._now())
        match action:
            case Run():
                if self._is_current(secret, action):
                    self._run(secret, action)
                return 0.0
            case Report():
                return 0.0 if self._report(action.journal) else self._backed_off()
            case Wait():
                self._say(f"{action.reason} in {action.seconds:.0f}s")
                return action.seconds
            case Nothing():
                self._say(action.reason)
                return self._between(secret)

    def _is_current(self, secret: PlanSecret, todo: Run) -> bool:
        """Whether the Secret still asks for it: what was watched may be older than what was written.  Unasked, it is believed."""
        try:
            found = self._mailbox.ask(self._secret.read)
        except (UnauthorizedError, UntrustedError):
            raise
        except (ApiError, UnreachableError):
            return True
        if found is not None and found.resource_version == secret.resource_version:
            return True
        return found is not None and found.plan == secret.plan and next_action(found, self.journal, self._now()) == todo

    def _run(self, secret: PlanSecret, todo: Run) -> None:
        # A plan has the host for itself.
        self._stager.stop()
        self._log(f"running the plan {todo.checksum[:12]}, attempt {todo.attempt}")
        self._progress.begin(secret.plan)
        runner = Runner(self._machine, self._file, progress=self._progress.instruction, interruption=self._wanted)
        self.journal = runner.run(secret.plan, todo)
        self._progress.end()
        # It may have changed anything.
        self._facts_at = 0.0
        self._log(_told(self.journal))
        if self.journal.state == "running":
            # Held between two instructions: the next look at the Secret says until when.
            return
        self._report(self.journal)

    def _report(self, journal: Journal) -> bool:
        """Whether the Secret has the outcome, or has another plan; else the journal keeps it for later."""
        try:
            written = self._write(lambda secret: self._outcome(secret, journal))
            if written is None:
                written = self._write(lambda secret: self._outcome(secret, journal, with_output=False))
            if written is None:
                self._keep(journal)
                return False
        except (UnauthorizedError, UntrustedError):
            self._keep(journal)
            raise
        except LOST as error:
            self._say(f"the outcome of the plan is kept until the Secret can be written: {error}")
            self._keep(journal)
            return False
        self._keep(msgspec.structs.replace(journal, reported=True))
        self._pause = _FIRST_PAUSE
        return True

    def _outcome(self, secret: PlanSecret, journal: Journal, *, with_output: bool = True) -> dict[str, bytes]:
        told = report.outcome(secret, journal, with_output=with_output)
        known = secret.data.get(plans.HOST_FACTS)
        if told and known and journal.state == "succeeded":
            told[plans.HOST_FACTS] = hostfacts.after(known, self._machine.host, journal.checksum)
        return told

    def _write(self, change: Callable[[PlanSecret], dict[str, bytes]]) -> PlanSecret | None:
        """The Secret after a write; None where the server finds it too big, or otherwise not to be allowed."""
        try:
            written = self._secret.update(change)
        except InvalidError as error:
            self._log(f"the Secret is not taken with what the plan said, which is left out: {error.message}")
            return None
        self._mailbox.put(written)
        return written

    def _keep(self, journal: Journal) -> None:
        if journal != self.journal:
            self.journal = journal
            if problem := self._file.try_save(journal):
                # The Secret has the outcome, or will be told it by this process.
                self._say(problem)

    def _wanted(self) -> str:
        """What somebody wants of the plan that runs; asked twice a second, so that what is owed meanwhile is done here, too."""
        self._progress.tick()
        latest = self._mailbox.latest
        if latest is None:
            return ""
        wanted = decision.interruption(latest)
        # An annotation that says nothing is no reason to stop what has begun.
        return wanted if wanted in ("canceled", "paused") else ""

    def _between(self, secret: PlanSecret) -> float | None:
        """What is done while there is no plan to run: periodic instructions, probes and facts, as far as they are due."""
        duties: list[float | None] = []
        if not decision.interruption(secret):
            wanted = staging.decode(secret.annotations.get(names.STAGE_IMAGE_ANNOTATION, ""))
            # Before the facts, which tell of it.
            duties = [self._stager.look(wanted), self._facts(secret), self._renew(secret)]
        plan = self._applied_plan(secret)
        if plan is not None:
            duties += [self._periodic(secret, plan), self._probes(secret, plan)]
        return min((seconds for seconds in duties if seconds is not None), default=None)

    def _applied_plan(self, secret: PlanSecret) -> Plan | None:
        if secret.text(plans.APPLIED_CHECKSUM) != plans.checksum(secret.plan):
            return None
        if self._plan[0] != secret.plan:
            try:
                self._plan = (secret.plan, plans.decode(secret.plan))
            except plans.PlanError:
                # Somebody else applied it, and can read what we cannot.
                self._plan = (secret.plan, None)
        return self._plan[1]

    def _periodic(self, secret: PlanSecret, plan: Plan) -> float | None:
        if not plan.periodic_instructions or decision.interruption(secret):
            return None
        stored = periodic.read(secret.data.get(plans.APPLIED_PERIODIC_OUTPUT, b""))
        # Where the Secret cannot be written, it does not know of the last run.
        known = self._kept[1] if self._kept[0] == secret.plan else stored
        kept = periodic.run_due(self._machine, plan, known, self._ending.is_set)
        self._kept = secret.plan, kept
        if kept != stored:
            self._tell(lambda _: {plans.APPLIED_PERIODIC_OUTPUT: periodic.pack(kept)})
        return periodic.next_due(plan, kept, self._now())

    def _probes(self, secret: PlanSecret, plan: Plan) -> float | None:
        if not plan.probes:
            return None
        period = float(max(secret.number(plans.PROBE_PERIOD_SECONDS) or 0, 0)) or probes.DEFAULT_PERIOD
        left = self._probed_at + period - time.monotonic()
        if self._probed_at and left > 0:
            return left
        known = probes.read(secret.data.get(plans.PROBE_STATUSES, b""))
        since = self._now() - (self.journal.finished if self.journal.state == "succeeded" else 0.0)
        if since < 0:
            # The clock was set back; how long ago the plan was applied is not known, so that its delays are over.
            since = math.inf
        statuses = probes.ask_all(self._machine, plan, known, since)
        self._probed_at = time.monotonic()
        if statuses != known:
            self._tell(lambda _: {plans.PROBE_STATUSES: msgspec.json.encode(statuses)})
        return period

    def _facts(self, secret: PlanSecret) -> float:
        now = time.monotonic()
        age = now - self._facts_at if self._facts_at else hostfacts.PERIOD
        registry = secret.annotations.get(names.REGISTRY_ADDRESS_ANNOTATION, "")
        told = secret.data.get(plans.HOST_FACTS, b"")
        asked_for = hostfacts.registry_of(told) != registry or hostfacts.staging_of(told) != self._stager.facts
        if age < hostfacts.PERIOD and not asked_for:
            return hostfacts.PERIOD - age
        if self._image is None:
            self._image = hostfacts.image(self._machine)
        applied = secret.text(plans.APPLIED_CHECKSUM)
        of_plan = applied if applied == plans.checksum(secret.plan) else ""
        facts = hostfacts.gather(self._machine, registry, self._image, of_plan, self._stager.facts)
        self._facts_at = time.monotonic()
        told_ago = now - self._facts_told_at if self._facts_told_at else math.inf
        if hostfacts.is_news(told, facts, told_ago):
            self._facts_told_at = self._facts_at
            self._tell(lambda found: {plans.HOST_FACTS: msgspec.json.encode(facts)} if found.plan == secret.plan else {})
        return hostfacts.PERIOD

    def _renew(self, secret: PlanSecret) -> float | None:
        """See to it that the host's token does not end while the host is here."""
        if self._place.connection.token_file:
            return None
        if (left := self._renew_after - time.monotonic()) > 0:
            return left
        what, seconds = renewal.wanted(secret, self._place.connection.token, self._now())
        if what == "take":
            try:
                problem = renewal.take(self._machine, self._place, secret.text(plans.TOKEN))
            except (*LOST, OSError) as error:
                self._say(f"the new token of this host cannot be kept: {error}")
                return self._backed_off()
            self.renewed = not problem
            self._log(problem or "this host has a new token")
        if what == "ask":
            self._say("this host's token ends before long, and another is asked for")
            self._tell(lambda _: {plans.TOKEN_REQUEST: b"true"})
        elif what:
            if not self._tell(lambda _: renewal.NOTHING_OWED):
                return self._backed_off()
            # After one that was no better than what the host has, another is not asked for at once: it would be no better, either.
            self._renew_after = time.monotonic() + renewal.PERIOD
        return seconds

    def _tell(self, change: Callable[[PlanSecret], dict[str, bytes]]) -> bool:
        """Write what can be lost, as it is made anew when it is due the next time; whether it is written."""
        try:
            return self._write(change) is not None
        except (UnauthorizedError, UntrustedError):
            raise
        except LOST as error:
            self._say(f"the Secret cannot be written: {error}")
            return False

    def _backed_off(self) -> float:
        pause, self._pause = self._pause, min(self._pause * 2, _LONGEST_PAUSE)
        return pause

    def _say(self, text: str) -> None:
        """Once, however often it is so."""
        if text != self._said:
            self._said = text
            self._log(text)

    def _now(self) -> float:
        return self._machine.host.now().timestamp()


def _told(journal: Journal) -> str:
    known = f"the plan {journal.checksum[:12]}"
    if journal.state == "succeeded":
        return f"{known} is applied"
    if journal.state == "failed":
        return f"{known} failed for the {journal.failures}. time: {journal.message}"
    return f"{known} is {'canceled' if journal.state == 'canceled' else 'held'} after {journal.completed} of {journal.total} instructions"
