"""The life of a simulated host from power to power: boot loader, initramfs, cloud-init, services, and the agent.

What a host does in its own time it does in threads of its own, as its programs block; everything else is the event loop's.
"""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from slipway.simulation.agent import AgentThread
from slipway.simulation.cloudinit import CloudInit
from slipway.simulation.host.faults import PowerLost
from slipway.simulation.host.machine import UNITS
from slipway.simulation.kubelet import Kubelet

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from slipway.simulation.host.machine import Machine
    from slipway.simulation.workload.cluster import WorkloadCluster

CLEANUP_MARKER = "/var/lib/slipway/clear-kubernetes-state"
CLEARED = ("/var/lib/kubelet", "/var/lib/containerd", "/var/lib/etcd", "/etc/kubernetes")
"""What the initramfs clears when it finds the marker, and nothing else."""
BOOT_SECONDS, BOOT_JITTER = 60.0, 0.3
REBOOT_DELAY = 5.0
# However fast the time of a host goes, an agent gets to store the outcome of a plan in most cases, as on a real one.
_LEAST_DELAY = 0.1
Result = TypeVar("Result")


class Life:
    """One host; ``cluster_of`` finds a workload cluster by its CA."""

    def __init__(self, machine: Machine, cluster_of: Callable[[bytes], WorkloadCluster | None], *, with_agent: bool = True) -> None:
        self.machine = machine
        self.agent: AgentThread | None = None
        self.log: list[str] = []
        """What the agent says, the latest last."""
        self._cluster_of, self._with_agent = cluster_of, with_agent
        self._kubelet: Kubelet | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._rebooting: asyncio.Task[None] | None = None

    async def power_on(self) -> None:
        """Switch it on; on return it boots, or does not."""
        self._end_of_boot()
        if self.machine.power_on():
            self._spawn(self._boot(self.machine.boots))

    def power_off(self) -> None:
        """Pull the plug."""
        self.machine.power_off()
        self._end_of_boot()

    async def power_cycle(self) -> None:
        self.power_off()
        await self.power_on()

    def kill_agent(self) -> None:
        """The agent dies, and systemd starts it again: what it did last, it may have done half."""
        if self.agent is not None:
            self.agent.end()
        self._start_agent()

    async def stop(self) -> None:
        self.power_off()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def changed(self) -> None:
        """Something on the machine changed."""
        if self._kubelet is not None:
            self._kubelet.wake()
        if self.machine.powered and self.machine.reboot_wanted.is_set() and self._rebooting is None:
            self._rebooting = self._spawn(self._reboot(self.machine.boots))
        if not self.machine.powered:
            self._end_of_boot()

    async def _reboot(self, boot: int) -> None:
        await asyncio.sleep(max(REBOOT_DELAY * self.machine.pace, _LEAST_DELAY))
        # Whoever tells how it went has done so by now, or will at the next boot.
        self._rebooting = None
        if self.machine.powered and self.machine.boots == boot:
            self.machine.power_off()
            await self.power_on()

    async def _boot(self, boot: int) -> None:
        machine = self.machine
        try:
            known = machine.boot_seconds
            await asyncio.sleep((machine.chance.around(BOOT_SECONDS, BOOT_JITTER) if known is None else known) * machine.pace)
            machine.check_power(boot)
            if machine.faults.hangs_at_boot or machine.chance.happens(machine.faults.boot_failures):
                return
            machine.switch_image()
            clear_when_marked(machine)
            init = CloudInit(machine)
            new = await in_thread(init.begin)
            machine.check_power(boot)
            machine.ready = True
            for unit in UNITS:
                machine.start(unit)
            kubelet = self._kubelet = Kubelet(machine, self._cluster_of)
            self._spawn(kubelet.run())
            kubelet.wake()
            if self._with_agent:
                self._start_agent()
            if new:
                code = await in_thread(init.finish)
                if code:
                    self.log.append(f"cloud-init: the commands ended with {code}")
        except PowerLost:
            return

    def _start_agent(self) -> None:
        again = partial(asyncio.get_running_loop().call_soon_threadsafe, self._agent_killed, self.machine.boots)
        self.agent = AgentThread(self.machine, partial(_noted, self.log), again)
        self.agent.start()

    def _agent_killed(self, boot: int) -> None:
        """As systemd does."""
        if self.machine.powered and self.machine.boots == boot:
            self._start_agent()

    def _end_of_boot(self) -> None:
        if self.agent is not None:
            self.agent.end()
            self.agent = None
        kubelet, self._kubelet = self._kubelet, None
        if kubelet is not None:
            kubelet.wake()

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def clear_when_marked(machine: Machine) -> None:
    """What the initramfs does before anything of the system runs."""
    if machine.tree.exists(CLEANUP_MARKER):
        for folder in CLEARED:
            if machine.tree.is_dir(folder):
                for name in machine.tree.names(folder):
                    machine.tree.remove(f"{folder}/{name}")
        machine.tree.remove(CLEANUP_MARKER)


async def in_thread(work: Callable[[], Result]) -> Result:
    """What a host does in its own time.  A thread that still waits for something when the power goes is not waited for."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Result] = loop.create_future()

    def settle(outcome: Result | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(outcome)  # type: ignore[arg-type]

    def run() -> None:
        outcome, problem = None, None
        try:
            outcome = work()
        except BaseException as error:
            problem = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, outcome, problem)

    threading.Thread(target=run, name="host", daemon=True).start()
    return await done


def _noted(log: list[str], line: str) -> None:
    log.append(line)
    del log[:-200]
