"""Runs a plan: its files first, then its instructions in their order, until one fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.agent import paths
from slipway.agent.machine import CannotStartError, Command
from slipway.agent.plan import files, images, report
from slipway.agent.plan.files import FileError, RefusedError
from slipway.agent.plan.journal import Journal, Running
from slipway.api.elemental import plan as plans

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.agent.machine import Finished, Machine
    from slipway.agent.plan.decision import Run
    from slipway.agent.plan.journal import JournalFile
    from slipway.api.elemental.plan import Instruction, PeriodicInstruction, Plan

DEFAULT_COMMAND = "run.sh"
ATTEMPT = "CATTLE_AGENT_ATTEMPT_NUMBER"


class Interrupted(Exception):  # noqa: N818 - nothing went wrong
    """Somebody wants the plan canceled, or held."""


class Runner:
    """``progress`` learns which instruction is begun, and ``interruption`` says what somebody wants of the plan meanwhile."""

    def __init__(
        self, machine: Machine, journal: JournalFile, *, progress: Callable[[Running], None], interruption: Callable[[], str]
    ) -> None:
        self._machine = machine
        self._journal = journal
        self._progress = progress
        self._interruption = interruption

    def run(self, raw: bytes, todo: Run) -> Journal:
        """The journal with the outcome, which is saved; whatever happens meanwhile, the attempt was saved before anything was done."""
        known = Journal(checksum=todo.checksum, state="running", attempt=todo.attempt, failures=todo.failures, started=self._now())
        said: dict[str, bytes] = {}
        try:
            if problem := self._journal.try_save(known):
                raise FileError(f"nothing of the plan was done: {problem}")
            plan = _decoded(raw)
            known = msgspec.structs.replace(known, total=len(plan.instructions))
            _check(self._machine, plan)
            for file in plan.files:
                files.apply(self._machine, file)
            for index, instruction in enumerate(plan.instructions):
                self._instruction(known, plan, index, instruction, said)
                known = msgspec.structs.replace(known, completed=index + 1)
        except Interrupted as wanted:
            known = self._held(known, str(wanted))
        except RefusedError as error:
            known = _failure(known, str(error), said, final=True)
        except (FileError, InstructionError) as error:
            known = _failure(known, str(error), said)
        else:
            if plan.files or plan.instructions:
                # A plan is not run again once the journal has its success, so that what it did must not get lost after that.
                self._machine.flush()
            known = msgspec.structs.replace(known, state="succeeded", failures=0)
        known = msgspec.structs.replace(known, finished=self._now(), output=report.outputs(said), running=None)
        if problem := self._journal.try_save(known):
            known = msgspec.structs.replace(known, message=f"{known.message}; {problem}" if known.message else problem)
        self._tidy(f"{paths.WORK}/{todo.checksum}")
        return known

    def _tidy(self, folder: str) -> None:
        try:
            self._machine.host.remove(folder)
        except OSError:
            # Something that an instruction left there is in use; the outcome does not depend on it.
            return

    def _instruction(self, known: Journal, plan: Plan, index: int, instruction: Instruction, said: dict[str, bytes]) -> None:
        name = instruction.name or f"instruction-{index + 1}"
        if wanted := self._interruption():
            raise Interrupted(wanted)
        running = Running(name=name, index=index + 1, of=len(plan.instructions), started=self._now())
        try:
            self._journal.note(msgspec.structs.replace(known, running=running))
        except OSError as error:
            raise FileError(f'the instruction "{name}" was not begun: the journal cannot be written: {error.strerror or error}') from None
        self._progress(running)
        folder = f"{paths.WORK}/{known.checksum}/{index}"
        try:
            finished = execute(self._machine, instruction, folder, attempt=known.attempt, stop=lambda: self._interruption() == "canceled")
        except CannotStartError as error:
            raise _explained(name, f"{error}", b"", said) from None
        if self._interruption() == "canceled":
            said[name] = finished.output
            raise Interrupted("canceled")
        if finished.code != 0:
            raise _explained(name, _ending(finished), finished.output, said)
        if instruction.name and instruction.save_output:
            said[name] = finished.output

    def _held(self, known: Journal, wanted: str) -> Journal:
        if wanted == "canceled":
            return msgspec.structs.replace(known, state="canceled")
        # A plan that is held between two instructions begins anew once it may: it is as if it had been interrupted.
        return msgspec.structs.replace(known, state="running")

    def _now(self) -> float:
        return self._machine.host.now().timestamp()


class InstructionError(Exception):
    """An instruction failed; the message is a sentence."""


def execute(
    machine: Machine,
    instruction: Instruction | PeriodicInstruction,
    folder: str,
    *,
    attempt: int,
    stop: Callable[[], bool],
    timeout: float = 0.0,
) -> Finished:
    """Run the program of an instruction in a folder of its own."""
    host = machine.host
    image = images.folder(host, instruction.image, instruction.name) if instruction.image else ""
    base = host.location(image) if image else host.location(folder)
    environment = {ATTEMPT: str(attempt)}
    for entry in instruction.env:
        key, _, value = entry.partition("=")
        environment[key] = value
    if image:
        path = environment.get("PATH") or host.environment.get("PATH", "")
        environment["PATH"] = f"{base}:{path}" if path else base
    command = Command(
        program=_program(instruction.command, base),
        arguments=tuple(instruction.args),
        environment=environment,
        folder=folder,
        timeout=timeout,
    )
    return machine.execute(command, stop=stop)


def _program(command: str, base: str) -> str:
    """The program of the instruction, or run.sh of its folder; a bare name is looked for in the image first, by PATH."""
    return command or f"{base}/{DEFAULT_COMMAND}"


def _decoded(raw: bytes) -> Plan:
    try:
        return plans.decode(raw)
    except plans.PlanError as error:
        raise RefusedError(error.message) from None


def _check(machine: Machine, plan: Plan) -> None:
    """All that can be known to be wrong is found before anything is done."""
    for file in plan.files:
        files.check(file)
    named = [(each.name, each.image) for each in plan.instructions] + [(each.name, each.image) for each in plan.periodic_instructions]
    for name, image in named:
        if image:
            images.folder(machine.host, image, name)


def _failure(known: Journal, message: str, said: dict[str, bytes], *, final: bool = False) -> Journal:
    said.setdefault("plan", message.encode())
    return msgspec.structs.replace(known, state="failed", failures=known.failures + 1, message=message, final=final)


def _explained(name: str, why: str, output: bytes, said: dict[str, bytes]) -> InstructionError:
    """The failure of an instruction; its output is kept whether it asked for that or not."""
    said[name] = output
    return InstructionError(f'the instruction "{name}" failed: {why}')


def _ending(finished: Finished) -> str:
    if finished.code < 0:
        return f"it was ended by signal {-finished.code}"
    last = finished.output.rstrip().rpartition(b"\n")[2][-200:].decode(errors="replace").strip()
    return f"it ended with exit code {finished.code}" + (f" after it said: {last}" if last else "")


def end_leftovers(machine: Machine, journal: Journal) -> int:
    """End what an agent left running when it was killed in a plan: the plan is run again, and never twice at once."""
    return machine.end_leftovers(f"{paths.WORK}/{journal.checksum}") if journal.state == "running" else 0
