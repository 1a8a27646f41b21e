"""Records what upstream's managers make of a cluster at each rest of its life; needs root, Go while the cache is cold, and ten minutes.

``python tests/oracles/rests_record.py`` runs core, control plane and bootstrap of Cluster API on a real API server with the simulated
infrastructure of the tests, and writes every object, without names and times, to tests/golden/clusterapi/rests.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from e2e.upstream import plane
from fleet.lives import STAGES

GOLDEN = Path(__file__).parent.parent / "golden/clusterapi/rests"


async def main(folder: Path) -> None:
    GOLDEN.mkdir(parents=True, exist_ok=True)
    with plane(folder) as management:
        management.install_crds()
        names = ("core", "control-plane", "bootstrap")
        for name in names:
            management.start_upstream(name)
        for running in management.running:
            running.await_health()
        for name in names:
            management.install_webhooks(name)
        async with management.life() as one:
            for stage, play in STAGES.items():
                await play(one)
                found = [json.loads(line) for line in await one.taken_down()]
                (GOLDEN / f"{stage}.json").write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
                print(f"{stage}: {len(found)} objects", file=sys.stderr)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
