"""Phases are data: one tree a command gives its sub-commands, ``--skip-phases``, help, progress and the event stream.

A phase is a name, one line of what it does, a condition and a function of the run's state.  Functions are named as text and
imported when their phase runs, so that help and completion read a tree without what is behind it.  This module knows how to
walk a tree; what the phases do is said where the trees are (init, join, reset, upgrade).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from slipway.api.machinery.errors import OperatorError
from slipway.host.progress import PhaseEvent, Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

State = TypeVar("State")


class Phase(msgspec.Struct, Generic[State], frozen=True, kw_only=True):
    """A step of a workflow, or a group of steps.

    ``run``, ``would`` and ``applies`` are functions, or their names in the package of the workflow: ``steps:certificate``.
    """

    name: str
    short: str
    run: Callable[..., None] | str | None = None
    would: Callable[..., None] | str | None = None
    """What a dry run does in place of ``run``; the same where the host and the cluster of a dry run make the difference."""
    given: tuple[str, ...] = ()
    """What ``run`` and ``would`` get before the state of the run, such as the name of a certificate."""
    applies: Callable[[State], bool] | str | None = None
    """Whether the phase has anything to do; a phase that does not apply is reported as skipped."""
    phases: tuple[Phase[State], ...] = ()
    aliases: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    """The flags of the phase's own sub-command, by name; those of a group are its sub-command ``all``'s, which others lack."""
    argument: str = ""
    """The optional argument of the phase's own sub-command (of ``all``, for a group), as help shows it."""
    needs: tuple[str, ...] = ()
    """Phases that must be part of the same run, before this one."""
    hidden: bool = False
    """Runs in the workflow and can be skipped, but has no sub-command."""
    long: str = ""
    example: str = ""


class PlacedPhase(msgspec.Struct, Generic[State], frozen=True):
    """A phase and where it stands in its tree: ``certs/ca``."""

    path: str
    phase: Phase[State]


def walk(phases: Iterable[Phase[State]], parent: str = "") -> Iterator[PlacedPhase[State]]:
    """Every phase with its path, parents before children."""
    for phase in phases:
        path = f"{parent}/{phase.name}" if parent else phase.name
        yield PlacedPhase(path, phase)
        yield from walk(phase.phases, path)


def selected(phases: Iterable[Phase[State]], *, only: str = "", skip: Iterable[str] = ()) -> list[PlacedPhase[State]]:
    """The phases that a run executes: all of them or one branch, less the branches to skip."""
    placed = list(walk(phases))
    known = {item.path for item in placed}
    chosen = [item for item in placed if not only or _within(item.path, only)]
    for path in [*([only] if only else []), *skip]:
        if path not in known:
            raise OperatorError(f"invalid phase name: {path}")
    run = [item for item in chosen if not any(_within(item.path, path) for path in skip)]
    _refuse_missing(run)
    return run


def execute(
    phases: Iterable[Phase[State]],
    state: State,
    progress: Progress,
    *,
    package: str = "",
    only: str = "",
    skip: Iterable[str] = (),
    dry_run: bool = False,
) -> None:
    """Run the selected phases in order, or do what they would do; the first failure ends the run and names the phase.

    ``package`` is where functions are that are named as text.
    """
    skip = tuple(skip)
    run = {item.path for item in selected(phases, only=only, skip=skip)}
    for item in walk(phases):
        phase = item.phase
        if item.path not in run:
            if not only and phase.run is not None:
                progress.phase(PhaseEvent(phase=item.path, event="skipped", seconds=0.0, reason="asked for"))
            continue
        if phase.run is None:
            continue
        if phase.applies is not None and not function(phase.applies, package)(state):
            progress.phase(PhaseEvent(phase=item.path, event="skipped", seconds=0.0, reason="nothing to do"))
            continue
        step = phase.would if dry_run and phase.would is not None else phase.run
        _run(item.path, function(step, package), (*phase.given, state), progress)


def function(named: Callable[..., Any] | str, package: str) -> Callable[..., Any]:
    """A function of a phase, imported only now where it is named as text."""
    if not isinstance(named, str):
        return named
    module, _, name = named.partition(":")
    found: Callable[..., Any] = getattr(__import__(f"{package}.{module}", fromlist=[name]), name)
    return found


class Recorder:
    """A Progress that passes everything on, and keeps how long phases took."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.say, self.warn, self.show = progress.say, progress.warn, progress.show
        self.seconds: dict[str, float] = {}

    def phase(self, event: PhaseEvent) -> None:
        if event.event == "finished":
            self.seconds[event.phase] = event.seconds
        self._progress.phase(event)


def _run(path: str, run: Callable[..., None], arguments: tuple[Any, ...], progress: Progress) -> None:
    began = time.monotonic()
    progress.phase(PhaseEvent(phase=path, event="started", seconds=0.0))
    try:
        run(*arguments)
    except OSError as error:
        place = f"{error.filename}: " if error.filename is not None else ""
        failed = OperatorError(f"error execution phase {path}: {place}{error.strerror or error}")
        progress.phase(PhaseEvent(phase=path, event="failed", seconds=time.monotonic() - began, reason=f"{place}{error.strerror or error}"))
        raise failed from error
    except OperatorError as error:
        elapsed = time.monotonic() - began
        progress.phase(PhaseEvent(phase=path, event="failed", seconds=elapsed, reason=error.message))
        error.message = f"error execution phase {path}: {error.message}"
        error.args = (error.message,)
        raise
    progress.phase(PhaseEvent(phase=path, event="finished", seconds=time.monotonic() - began))


def _refuse_missing(run: Iterable[PlacedPhase[State]]) -> None:
    """Some phases can only be run together with others, which come before them."""
    seen: set[str] = set()
    for item in run:
        missing = [name for name in item.phase.needs if name not in seen]
        if missing:
            raise OperatorError(f'unresolved dependencies:\n\tmissing [{" ".join(missing)}] phase(s) needed by "{item.phase.name}" phase')
        seen.add(item.phase.name)


def _within(path: str, branch: str) -> bool:
    return path == branch or path.startswith(f"{branch}/")
