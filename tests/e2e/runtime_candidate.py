"""A manager as a process of its own, for tests that kill or stop it: tells on standard output when it reconciles, by the machine's clock.

python runtime_candidate.py KUBECONFIG IDENTITY
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from slipway.api.cluster.kinds import CONFIG_MAP
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.kube.connection import from_kubeconfig
from slipway.runtime import logs
from slipway.runtime.controller import Watch
from slipway.runtime.leader import LeaseTimes
from slipway.runtime.manager import Manager, ManagerOptions
from slipway.runtime.objects import Request, Result
from slipway.runtime.rbac import Rule

TIMES = LeaseTimes(lease_duration=4.0, renew_deadline=2.0, retry_period=0.5)
NAMESPACE = "leaders"


class Ticking:
    """Reconciles again and again, as fast as it is let."""

    name = "ticking"
    watches = (Watch(CONFIG_MAP),)
    rules: Sequence[Rule] = ()

    async def reconcile(self, request: Request) -> Result:
        print(f"reconcile {time.monotonic()}", flush=True)
        return Result(requeue_after=0.02)


async def run(kubeconfig: str, who: str) -> None:
    document = goyaml.load(Path(kubeconfig).read_text())[0].value
    assert isinstance(document, dict)
    connection = from_kubeconfig(document, lambda path: Path(path).read_bytes(), source=kubeconfig)
    options = ManagerOptions(
        namespace=NAMESPACE, leader_elect=True, leader_namespace=NAMESPACE, leader_name="test", identity=who, lease=TIMES, grace=5.0
    )
    manager = Manager(connection, options)
    manager.add(Ticking())
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    try:
        await manager.run(stop)
    except OperatorError as error:
        print(f"error {time.monotonic()} {error.message}", flush=True)
        raise SystemExit(1) from None


if __name__ == "__main__":
    logs.configure("text", stream=sys.stdout)
    asyncio.run(run(sys.argv[1], sys.argv[2]))
