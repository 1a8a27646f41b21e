"""The kubelet as a service of the machine: stopped while its files change, started afterwards.

Nothing here fails a run: a machine without systemd may look after its kubelet in another way, and is told so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.node import paths

if TYPE_CHECKING:
    from slipway.node.context import NodeContext

_SERVICE = "kubelet"
_FILES = (paths.KUBELET_CONF, paths.KUBELET_CONFIG, paths.KUBELET_INSTANCE_CONFIG, paths.KUBELET_FLAGS_ENV)


class State(NamedTuple):
    """What systemd knows of the service."""

    loaded: bool
    active: bool
    stale_unit: bool
    """Whether the unit on disk differs from the one that systemd has read."""
    started: int
    """When it became active, in seconds since 1970; 0 where it is not known."""


def stop(ctx: NodeContext) -> None:
    _control(ctx, "keep the kubelet from running while its files are written", ("stop", _SERVICE))


def restart(ctx: NodeContext) -> None:
    """Let systemd read its units anew where they changed, and start the kubelet whether it runs or not."""
    reload = (("daemon-reload",),) if _state(ctx).stale_unit else ()
    _control(ctx, "make sure that the kubelet is running", *reload, ("restart", _SERVICE))


def exists(ctx: NodeContext) -> bool:
    return _state(ctx).loaded


def is_active(ctx: NodeContext) -> bool:
    return ctx.host.which("systemctl") is not None and _state(ctx).active


def runs_with_its_files(ctx: NodeContext) -> bool:
    """Whether the kubelet runs and was started after its files were written; the files tell, not a log."""
    if not is_active(ctx):
        return False
    files = [ctx.host.location(path) for path in (*_FILES, f"{ctx.config.cluster.certificates_dir}/ca.crt") if ctx.host.exists(path)]
    times = ctx.host.run("stat", "--format=%Y", *files)
    started = _state(ctx).started
    return times.code == 0 and started > 0 and all(int(time) < started for time in times.stdout.split())


def _state(ctx: NodeContext) -> State:
    wanted = "LoadState,ActiveState,NeedDaemonReload,ActiveEnterTimestamp"
    shown = ctx.host.run("systemctl", "show", _SERVICE, "--timestamp=unix", f"--property={wanted}")
    if shown.code != 0:
        # A systemd before 248 does not know the form of the time.
        shown = ctx.host.run("systemctl", "show", _SERVICE, f"--property={wanted}")
    values = dict(line.split("=", 1) for line in shown.stdout.splitlines() if "=" in line)
    entered = values.get("ActiveEnterTimestamp", "").removeprefix("@")
    return State(
        loaded=values.get("LoadState", "not-found") not in ("not-found", "error", "bad-setting"),
        active=values.get("ActiveState") == "active",
        stale_unit=values.get("NeedDaemonReload", "yes") != "no",
        started=int(entered) if entered.isdecimal() else 0,
    )


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
