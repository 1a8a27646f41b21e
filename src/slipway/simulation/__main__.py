"""Simulated hosts in a process of their own, so that what they cost is not counted as the manager's.

::

    python -m slipway.simulation --registration-url URL --registration-ca-cert FILE --hosts 1000 --image registry.sim:5000/os:a=v1.35.4

It runs until it is told to end, and says then what it took.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import signal
import sys
from pathlib import Path

from slipway.simulation.world import World


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m slipway.simulation", description="Simulated hosts that register with a manager.")
    parser.add_argument("--registration-url", required=True, help="where hosts register: status.registrationURL of a MachineRegistration")
    parser.add_argument("--registration-ca-cert", required=True, type=Path, help="the file with the authority of that address")
    parser.add_argument("--hosts", type=int, default=1, help="how many")
    parser.add_argument("--image", action="append", required=True, help="an image of the registry and its Kubernetes: REFERENCE=VERSION")
    parser.add_argument("--auth", default="tpm", choices=("tpm", "mac", "sys-uuid"), help="how hosts prove who they are")
    parser.add_argument("--pace", type=float, default=1.0, help="how long a second of a host takes")
    asyncio.run(_run(parser.parse_args(words)))
    return 0


async def _run(given: argparse.Namespace) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for ending in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(ending, stop.set)
    registry = given.image[0].partition("/")[0]
    async with World(registry=registry, pace=given.pace) as world:
        images = []
        for entry in given.image:
            reference, _, version = entry.rpartition("=")
            repository, _, tag = reference.partition("/")[2].rpartition(":")
            images.append(world.registry.push(repository, tag, version))
        authority = given.registration_ca_cert.read_text()
        for number in range(given.hosts):
            host = world.add_host(f"host-{number}", images[0])
            world.give_registration(host, given.registration_url, authority, auth=given.auth)
            await host.power_on()
        sys.stdout.write(f"{given.hosts} hosts are on\n")
        sys.stdout.flush()
        await stop.wait()
    used = resource.getrusage(resource.RUSAGE_SELF)
    sys.stdout.write(f"{used.ru_utime + used.ru_stime:.2f} seconds of processor, {used.ru_maxrss >> 10} MiB\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
