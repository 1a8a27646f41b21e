"""``alive``: the side car of keepalived in the static Pod of a control plane's virtual address."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slipway.cli.argv.parser import Invocation


def run(call: Invocation) -> None:
    from slipway.workload.alive import sidecar

    sidecar.run()
