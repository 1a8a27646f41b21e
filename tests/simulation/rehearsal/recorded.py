"""A management cluster with a bare-metal cluster of one control plane and one worker, as `slipway demo --keep --no-upgrade` left it.

``recorded.json`` is made anew by ``python tests/simulation/rehearsal/recorded.py KUBECONFIG`` beside
``slipway demo --keep --no-upgrade --control-planes 1 --workers 1 --hosts 3``.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec

from slipway.api.cluster.kinds import CLUSTER, CONFIG_MAP, Kind
from slipway.kube import kubeconfig
from slipway.kube.aio import AsyncClient
from slipway.kube.connection import from_kubeconfig
from slipway.simulation.rehearsal.original import LISTED, WORKLOADS, read

Manifest = dict[str, Any]
FILE = Path(__file__).with_suffix(".json")
SPACE, NAME = "cpaas-system", "demo"
FIRST, SECOND = "v1.34.10", "v1.35.4"


class Recording(msgspec.Struct):
    """Objects by the plurals of their kinds."""

    management: dict[str, list[Manifest]]
    workload: dict[str, list[Manifest]]

    def all(self) -> list[tuple[Kind, Manifest]]:
        known = {kind.plural: kind for kind in (CLUSTER, CONFIG_MAP, *LISTED)}
        return [(known[plural], each) for plural, listed in self.management.items() for each in listed]

    def all_of_workload(self) -> list[tuple[Kind, Manifest]]:
        known = {kind.plural: kind for kind in WORKLOADS}
        return [(known[plural], each) for plural, listed in self.workload.items() for each in listed]


def load() -> Recording:
    return msgspec.json.decode(FILE.read_bytes(), type=Recording)


async def record(path: str) -> None:
    connection = from_kubeconfig(kubeconfig.load(Path(path).read_bytes(), path), lambda name: Path(name).read_bytes(), source=path)
    async with AsyncClient(connection) as client:
        found = await read(client, SPACE, NAME)
        catalog = await client.get(CONFIG_MAP, "elemental-image-catalog", SPACE)
    assert found.workload is not None, found.workload_unknown
    management = {CLUSTER.plural: [found.cluster], CONFIG_MAP.plural: [catalog]}
    management |= {kind.plural: list(listed) for kind, listed in found.objects.items() if listed}
    workload = {kind.plural: list(listed) for kind, listed in found.workload.items() if listed}
    everything = [each for listed in (*management.values(), *workload.values()) for each in listed]
    uids = {each["metadata"]["uid"] for each in everything}
    for each in everything:
        each["metadata"].pop("managedFields", None)
        # Whose owner is not recorded would be collected as garbage.
        owners = [owner for owner in each["metadata"].pop("ownerReferences", ()) if owner["uid"] in uids]
        each["metadata"] |= {"ownerReferences": owners} if owners else {}
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(Recording(management, workload)), indent=1) + b"\n")


if __name__ == "__main__":
    asyncio.run(record(sys.argv[1]))
