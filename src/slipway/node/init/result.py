"""What an ``init`` made, for programs that call it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.node import paths

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slipway.host.progress import PhaseEvent, Progress
    from slipway.node.init.steps import InitRun


class InitResult(msgspec.Struct, frozen=True, kw_only=True):
    """The new control plane.  Of a run of one phase, or with phases skipped, what was not made is empty."""

    node_name: str
    kubernetes_version: str
    endpoint: str
    """The URL under which clients reach the control plane."""
    ca_pins: tuple[str, ...] = ()
    """``sha256:…`` of the public keys of the cluster's certificate authorities, for ``--discovery-token-ca-cert-hash``."""
    tokens: tuple[str, ...] = ()
    certificate_key: str = ""
    """Decrypts the uploaded certificates; empty where none were uploaded."""
    worker_join_command: str = ""
    control_plane_join_command: str = ""
    admin_kubeconfig: str = ""
    certificates_dir: str = ""
    manifests_dir: str = ""
    seconds: Mapping[str, float] = msgspec.field(default_factory=dict)
    """How long each phase took that ran, by its path."""


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


def result_of(state: InitRun, seconds: Mapping[str, float]) -> InitResult:
    from slipway.node.init import joincommand
    from slipway.workload import endpoints

    ctx, options = state.ctx, state.options
    result = InitResult(
        node_name=ctx.config.node_registration.name,
        kubernetes_version=ctx.config.cluster.kubernetes_version,
        endpoint=endpoints.control_plane_url(ctx.config),
        admin_kubeconfig=ctx.host.location(paths.ADMIN_CONF),
        certificates_dir=ctx.host.location(ctx.config.cluster.certificates_dir),
        manifests_dir=ctx.host.location(paths.MANIFESTS_DIR),
        seconds=dict(seconds),
    )
    if "bootstrap-token" not in seconds:
        return result
    path = paths.ADMIN_CONF if ctx.host.dry_run else options.kubeconfig
    server, ca = joincommand.cluster_of(ctx, path)
    pins = joincommand.pins_of(ca, path)
    texts = [token.token for token in ctx.config.bootstrap_tokens]
    key = ctx.config.certificate_key if options.upload_certs and "upload-certs" in seconds else ""
    joins_control_planes = bool(texts and ctx.config.cluster.control_plane_endpoint)
    return msgspec.structs.replace(
        result,
        ca_pins=tuple(pins),
        tokens=tuple(texts),
        certificate_key=key,
        worker_join_command=one_line(joincommand.worker(server, pins, texts[0])) if texts else "",
        control_plane_join_command=one_line(joincommand.control_plane(server, pins, texts[0], key)) if joins_control_planes else "",
    )


def one_line(command: str) -> str:
    """A command without the line breaks that it is shown with."""
    return " ".join(command.replace("\\\n", " ").split())
