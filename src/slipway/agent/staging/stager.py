"""Has the wanted image on the host's disk, in the background: one job at a time, in a thread, which a plan ends at once.

A job works in programs of its own, so that the agent stays small and a job can be ended in the middle of anything.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec

from slipway.agent import hostfacts, paths
from slipway.agent.machine import CannotStartError, Command
from slipway.agent.staging import decision
from slipway.agent.staging.decision import Drop, Failure, Fetch, Record, Rest
from slipway.api.elemental import staging

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.agent.machine import Machine
    from slipway.api.elemental.staging import Wanted

_PARTIAL, _OLD = ".partial", ".old"
_KUBELETS = ("usr/bin/kubelet", "usr/local/bin/kubelet", "opt/bin/kubelet")
_LONGEST_MESSAGE = 1000


class _Answer(msgspec.Struct):
    """What the program that fetches prints."""

    digest: str
    bytes: int = 0
    same: bool = False


class _FailedError(Exception):
    """A job came to nothing; the message is a sentence."""


class Stager:
    """``wake`` is called when a job has ended.  Everything but the job itself is of the agent's own thread."""

    def __init__(self, machine: Machine, wake: Callable[[], None], log: Callable[[str], None]) -> None:
        self._machine = machine
        self._wake = wake
        self._log = log
        self._job: _Job | None = None
        self._wanted: Wanted | None = None
        self._failure: Failure | None = None
        self._checked: float | None = None
        self._found: dict[str, Record | None] | None = None

    @property
    def facts(self) -> dict[str, object] | None:
        """What the host says of its image: of the last look."""
        record = (self._found or {}).get(staging.place(self._wanted.image).rpartition("/")[2]) if self._wanted is not None else None
        return decision.facts(self._wanted, record, self._failure)

    def look(self, wanted: Wanted | None) -> float | None:
        """Begin with what is to be done, or go on with it; how many seconds later to look again."""
        if wanted != self._wanted and self._job is not None:
            self.stop()
        self._wanted = wanted
        if self._job is not None:
            if not self._job.ended.is_set():
                return None
            self._settle(self._job)
        if self._found is None:
            self._found = self._look()
        now = self._machine.host.now().timestamp()
        todo = decision.next_job(wanted, self._found, self._failure, self._checked, now)
        if isinstance(todo, Rest):
            return todo.seconds
        self._job = _Job(self._machine, todo, self._wake)
        self._job.start()
        return None

    def stop(self) -> None:
        """End the job that runs; on return nothing of it does."""
        if self._job is None:
            return
        self._job.end()
        self._job.join()
        self._job, self._found = None, None

    def _settle(self, job: _Job) -> None:
        self._job, self._found = None, None
        if job.error is not None and not isinstance(job.error, _FailedError):
            # The machine is gone, or we are wrong: either way nothing goes on.
            raise job.error
        if isinstance(job.todo, Drop):
            if job.error is not None:
                self._log(f"an image that nobody wants could not be removed: {job.error}")
            return
        image, now = job.todo.wanted.image, self._machine.host.now().timestamp()
        if job.error is None:
            self._failure, self._checked = None, now
            if not job.same:
                self._log(f"the image {image} is here, ahead of the plan that boots it")
            return
        if job.todo.unless:
            # What is there was right when it was fetched; that its registry is away is no reason to be without it.
            self._checked = now
            return
        times = self._failure.times + 1 if self._failure is not None and self._failure.image == image else 1
        if times == 1 or str(job.error) != (self._failure.message if self._failure is not None else ""):
            self._log(f"the image {image} could not be fetched ahead: {job.error}")
        self._failure = Failure(image, str(job.error)[:_LONGEST_MESSAGE], now, times)

    def _look(self) -> dict[str, Record | None]:
        host = self._machine.host
        found: dict[str, Record | None] = {}
        for name in host.list_dir(staging.FOLDER):
            try:
                found[name] = msgspec.json.decode(host.read(f"{staging.FOLDER}/{name}/{staging.RECORD}"), type=Record)
            except (OSError, msgspec.DecodeError, UnicodeDecodeError):
                found[name] = None
        return found


class _Job(threading.Thread):
    def __init__(self, machine: Machine, todo: Drop | Fetch, wake: Callable[[], None]) -> None:
        super().__init__(name="staging", daemon=True)
        self._machine = machine
        self.todo = todo
        self._wake = wake
        self._ending = threading.Event()
        self.ended = threading.Event()
        self.error: BaseException | None = None
        self.same = False
        """The image that was there is still the one that its registry has."""

    def run(self) -> None:
        try:
            # What a former agent left running would write where this job does.
            self._machine.end_leftovers(paths.STAGING_WORK)
            if isinstance(self.todo, Drop):
                self._remove(*(f"{staging.FOLDER}/{name}" for name in self.todo.names))
            else:
                self._fetch(self.todo)
        except OSError as error:
            self.error = _FailedError(f"it cannot be kept: {error.strerror or error}")
        except BaseException as error:
            self.error = error
        finally:
            self.ended.set()
            self._wake()

    def end(self) -> None:
        self._ending.set()

    def _fetch(self, todo: Fetch) -> None:
        host = self._machine.host
        target = staging.place(todo.wanted.image)
        partial, root = f"{target}{_PARTIAL}", f"{target}{_PARTIAL}/{staging.ROOT}"
        self._remove(partial)
        words = [*self._machine.slipway, "agent", "fetch-image", todo.wanted.image, f"--into={host.location(root)}"]
        said = self._run(*words, *([f"--unless={todo.unless}"] if todo.unless else []))
        try:
            answer = msgspec.json.decode(said.strip().rpartition("\n")[2], type=_Answer)
        except msgspec.DecodeError:
            raise _FailedError(f"what fetches it said something that is not understood: {said[-200:]}") from None
        if answer.same:
            self.same = True
            return
        version = self._version(root)
        if decision.is_other_version(todo.wanted.version, version):
            self._remove(partial)
            raise _FailedError(
                f"its kubelet is {version}, and {todo.wanted.version} is wanted: mend the entry {todo.wanted.version} of the image catalog"
            )
        record = Record(reference=todo.wanted.image, digest=answer.digest, bytes=answer.bytes, version=version)
        # All of the image is on the disk before the record is, and the record before the folder has its name.
        self._machine.flush()
        self._machine.keep(f"{partial}/{staging.RECORD}", msgspec.json.encode(record))
        if todo.unless:
            host.rename(target, f"{target}{_OLD}")
        host.rename(partial, target)
        self._machine.flush()

    def _version(self, root: str) -> str:
        host = self._machine.host
        for place in _KUBELETS:
            if host.exists(f"{root}/{place}"):
                return hostfacts.kubelet_version(self._machine, host.location(f"{root}/{place}"), paths.STAGING_WORK)
        return ""

    def _remove(self, *folders: str) -> None:
        there = [folder for folder in folders if self._machine.host.exists(folder)]
        for folder in there:
            # Without its record it is nothing that a plan would use, however far the removal gets.
            self._machine.host.remove(f"{folder}/{staging.RECORD}")
        if there:
            self._run("rm", "-rf", *(self._machine.host.location(folder) for folder in there))

    def _run(self, program: str, *arguments: str) -> str:
        command = Command(program=program, arguments=arguments, folder=f"{paths.STAGING_WORK}/job")
        try:
            finished = self._machine.execute(command, stop=self._ending.is_set)
        except CannotStartError as error:
            raise _FailedError(str(error)) from None
        said = finished.output.decode(errors="replace")
        if self._ending.is_set():
            raise _FailedError("it was ended, as something else came up")
        if finished.code != 0:
            raise _FailedError(said.strip().rpartition("\n")[2].removeprefix("error: ") or f"{program} ended with {finished.code}")
        return said
