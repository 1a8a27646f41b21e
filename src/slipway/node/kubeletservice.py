"""The kubelet as a service of the machine: stopped while its files change, started afterwards.

Nothing here fails a run: a machine without systemd may look after its kubelet in another way, and is told so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slipway.node.context import NodeContext

_SERVICE = "kubelet"


def stop(ctx: NodeContext) -> None:
    _control(ctx, "keep the kubelet from running while its files are written", ("stop", _SERVICE))


def restart(ctx: NodeContext) -> None:
    """Let systemd read its units anew, and start the kubelet whether it runs or not."""
    _control(ctx, "make sure that the kubelet is running", ("daemon-reload",), ("restart", _SERVICE))


def exists(ctx: NodeContext) -> bool:
    status = ctx.host.run("systemctl", "status", _SERVICE).stdout
    return "Loaded: not-found" not in status and "could not be found" not in status


def _control(ctx: NodeContext, purpose: str, *steps: tuple[str, ...]) -> None:
    if ctx.host.which("systemctl") is None:
        ctx.progress.say(f"[kubelet-start] No supported init system detected, can't {purpose}.")
        return
    if not exists(ctx):
        ctx.progress.say(f"[kubelet-start] Couldn't detect a kubelet service, can't {purpose}.")
    for step in steps:
        result = ctx.host.run("systemctl", *step)
        if result.code != 0:
            reason = result.stderr.strip() or f"exit status {result.code}"
            ctx.progress.warn(f"[kubelet-start] WARNING: unable to {step[0]} the kubelet service: {reason}")
            return
