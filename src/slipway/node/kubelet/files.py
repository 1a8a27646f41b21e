"""The files that tell the kubelet of this node how to run: ``config.yaml``, ``instance-config.yaml``, ``kubeadm-flags.env``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api import components
from slipway.api.kubeadm.internal import Arg, Taint
from slipway.api.machinery.errors import ConfigurationError, OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.kube import kubeconfig
from slipway.node import paths
from slipway.node.kubelet import service
from slipway.node.staticpods import patches
from slipway.workload import arguments, images

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.kube.kubeconfig import Document
    from slipway.node.context import NodeContext


_VARIABLE = "KUBELET_KUBEADM_ARGS"
_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\", '"': '\\"'}


def write_files(ctx: NodeContext) -> None:
    """The files of the first control plane, whose taints are set through the API and not by the kubelet."""
    write_flags(ctx, register_taints=False)
    write_configuration(ctx)


def write_joined_files(ctx: NodeContext, *, worker: bool) -> None:
    """The files of a node that joins; a worker registers itself with its taints."""
    write_configuration(ctx)
    write_flags(ctx, register_taints=worker)


def write_flags(ctx: NodeContext, *, register_taints: bool) -> None:
    """Write the flags of this node, for the unit file of the kubelet to read."""
    defaults = _default_flags(ctx, register_taints=register_taints)
    flags = arguments.to_command(defaults, ctx.config.node_registration.kubelet_extra_args, sorted_extra_args=ctx.release.sorted_extra_args)
    location = ctx.host.location(paths.KUBELET_FLAGS_ENV)
    ctx.progress.say(f'[kubelet-start] Writing kubelet environment file with flags to file "{location}"')
    ctx.host.keep(paths.KUBELET_FLAGS_ENV, environment_file(flags).encode(), 0o644)


def write_configuration(ctx: NodeContext, *, instance: bool = True) -> None:
    """Write the cluster's kubelet configuration with this node's patches; the socket of the runtime is one of them.

    Without ``instance`` the file with what is this node's own is left as it is.
    """
    node_local = ctx.release.gate(ctx.config.cluster.feature_gates, "NodeLocalCRISocket")
    if node_local and instance:
        _write_config(ctx, paths.KUBELET_INSTANCE_CONFIG, instance_configuration(ctx.config.node_registration.cri_socket))
    _write_config(ctx, paths.KUBELET_CONFIG, _configuration(ctx, node_local=node_local))


def instance_configuration(cri_socket: str) -> str:
    return f"containerRuntimeEndpoint: {quoted(cri_socket)}\n"


def environment_file(flags: Sequence[str]) -> str:
    """The one variable of ``kubeadm-flags.env``."""
    return f"{_VARIABLE}={quoted(' '.join(flags))}\n"


def flags_of_environment_file(text: str) -> list[str]:
    """The flags of a ``kubeadm-flags.env`` that may have been edited, each as ``--name=value``."""
    content = text.strip()
    if not content.startswith(f"{_VARIABLE}="):
        raise OperatorError(f'the file "{paths.KUBELET_FLAGS_ENV}" does not contain the expected prefix "{_VARIABLE}="')
    words = iter(content.removeprefix(f"{_VARIABLE}=").strip('"').split())
    flags = []
    for word in words:
        if "=" in word:
            flags.append(word)
        elif value := next(words, None):
            flags.append(f"{word}={value}")
    return flags


def take_flag(ctx: NodeContext, name: str) -> str:
    """Take a flag out of this node's ``kubeadm-flags.env``, where something else says it from now on; its value, or nothing."""
    flags, _ = arguments.from_command(_flags_of_node(ctx))
    value = arguments.value_of(flags, name)
    if value is not None:
        _write_without(ctx, (name,))
    return value or ""


def drop_flags(ctx: NodeContext, names: Sequence[str]) -> None:
    """Take flags that the kubelet no longer wants out of ``kubeadm-flags.env``; the old file is kept."""
    import random

    folder = f"{paths.TMP_DIR}/kubeadm-kubelet-env{random.randrange(10**9, 10**10)}"
    _flags_of_node(ctx)
    ctx.progress.say(f"[upgrade] Backing up kubelet env file to {folder}/kubeadm-flags.env")
    ctx.host.write(f"{folder}/kubeadm-flags.env", ctx.host.read(paths.KUBELET_FLAGS_ENV), 0o644)
    _write_without(ctx, names)


def _flags_of_node(ctx: NodeContext) -> list[str]:
    try:
        return flags_of_environment_file(ctx.host.read(paths.KUBELET_FLAGS_ENV).decode())
    except FileNotFoundError as error:
        raise OperatorError(f"error reading kubeadm flags file: there is no {ctx.host.location(paths.KUBELET_FLAGS_ENV)}") from error


def _write_without(ctx: NodeContext, names: Sequence[str]) -> None:
    words = _flags_of_node(ctx)
    kept = [word for word in words if word.partition("=")[0].lstrip("-") not in names]
    if kept != words:
        location = ctx.host.location(paths.KUBELET_FLAGS_ENV)
        ctx.progress.say(f'[kubelet-start] Writing kubelet environment file with flags to file "{location}"')
        ctx.host.write(paths.KUBELET_FLAGS_ENV, environment_file(kept).encode(), 0o644)


def node_name_and_hostname(ctx: NodeContext) -> tuple[str, str]:
    """The name of this Node, and the host's: a ``hostname-override`` for the kubelet beats the configured name."""
    registration = ctx.config.node_registration
    hostname = ctx.host.hostname().strip().lower()
    override = arguments.value_of(registration.kubelet_extra_args, "hostname-override")
    return (registration.name or hostname if override is None else override), hostname


def quoted(text: str) -> str:
    """A text in double quotes as Go's ``%q`` writes it."""
    return '"' + "".join(_ESCAPES.get(char) or (char if char.isprintable() else _code(ord(char))) for char in text) + '"'


def _default_flags(ctx: NodeContext, *, register_taints: bool) -> list[Arg]:
    cluster, registration = ctx.config.cluster, ctx.config.node_registration
    flags = {}
    if registration.cri_socket and not ctx.release.gate(cluster.feature_gates, "NodeLocalCRISocket"):
        flags["container-runtime-endpoint"] = registration.cri_socket
    if ctx.release.pod_infra_container_image_flag:
        # Keeps the pause image from being collected as garbage.
        flags["pod-infra-container-image"] = images.pause(cluster, ctx.release)
    if register_taints and registration.taints:
        flags["register-with-taints"] = ",".join(map(_taint, registration.taints))
    node_name, hostname = node_name_and_hostname(ctx)
    if node_name != hostname:
        flags["hostname-override"] = node_name
    return [Arg(name=name, value=value) for name, value in flags.items()]


def _configuration(ctx: NodeContext, *, node_local: bool) -> str:
    """The cluster's configuration with the user's patches; what is this node's own is a patch as well, the last one."""
    component = ctx.config.cluster.component_configs.get(components.KUBELET_GROUP)
    if component is None:
        raise ConfigurationError("no kubelet component config found: the configuration was not defaulted")
    patched = patches.patch(ctx, patches.KUBELET_CONFIGURATION, components.encode(component, ctx.release))
    if node_local:
        patched = patches.patch_from_file(ctx, patches.KUBELET_CONFIGURATION, patched, paths.KUBELET_INSTANCE_CONFIG)
    return goyaml.dump(patched)


def _write_config(ctx: NodeContext, path: str, text: str) -> None:
    ctx.progress.say(f'[kubelet-start] Writing kubelet configuration to file "{ctx.host.location(path)}"')
    ctx.host.keep(path, text.encode(), 0o644)


def _taint(taint: Taint) -> str:
    """A taint as the kubelet's flag has it: ``key=value:effect``, ``key:effect``, ``key=value:`` or ``key``."""
    head = f"{taint.key}={taint.value}" if taint.value else taint.key
    return f"{head}:{taint.effect}" if taint.value or taint.effect else head


def _code(point: int) -> str:
    if point < 0x80:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def announce_rotating_certificate(ctx: NodeContext) -> str:
    """Where the kubelet keeps the certificate that it rotates; nothing, and no word, where it has not written one."""
    folder = arguments.value_of(ctx.config.node_registration.kubelet_extra_args, "cert-dir") or f"{paths.KUBELET_DIR}/pki"
    certificate = f"{folder}/kubelet-client-current.pem"
    if not ctx.host.exists(certificate):
        return ""
    ctx.progress.say(f'[kubelet-finalize] Updating "{paths.KUBELET_CONF}" to point to a rotatable kubelet client certificate and key')
    return certificate


def enable_client_cert_rotation(ctx: NodeContext) -> None:
    """Let kubelet.conf follow the certificate that the kubelet rotates."""
    certificate = announce_rotating_certificate(ctx)
    if not certificate:
        return
    try:
        current = kubeconfig.load(ctx.host.read(paths.KUBELET_CONF), paths.KUBELET_CONF)
    except OSError as error:
        raise OperatorError(f'could not load "{paths.KUBELET_CONF}": {error.strerror or error}') from error
    rotating = pointed_at(current, certificate)
    ctx.host.keep(paths.KUBELET_CONF, kubeconfig.text(rotating, ctx.release).encode(), 0o600)
    if not service.runs_with_its_files(ctx):
        service.restart(ctx)


def pointed_at(config: Document, certificate: str) -> Document:
    """The kubeconfig with a file in place of the certificate and key of its current user."""
    context = kubeconfig.named(config, "context", config.get("current-context") or "")
    if context is None:
        raise OperatorError(f'the file "{paths.KUBELET_CONF}" is not a valid kubeconfig: its current-context is not among its contexts')
    name = context.get("user") or ""
    user = kubeconfig.named(config, "user", name)
    if user is None:
        raise OperatorError(f'the file "{paths.KUBELET_CONF}" does not contain authentication for user "{name}"')
    kept = {field: value for field, value in user.items() if field not in ("client-certificate-data", "client-key-data")}
    rotating = {"name": name, "user": {**kept, "client-certificate": certificate, "client-key": certificate}}
    return {**config, "users": [rotating if entry.get("name") == name else entry for entry in config["users"]]}
