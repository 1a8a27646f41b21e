"""``upgrade diff``: what an upgrade would change in the static Pods of this node's control plane.

As in kubeadm, etcd is left out and so are a user's patches.
"""

from __future__ import annotations

from difflib import unified_diff
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml
from slipway.node.staticpods import components

if TYPE_CHECKING:
    from slipway.host.interface import Host
    from slipway.node.context import NodeContext


def check_manifests(host: Host) -> None:
    """There is nothing to compare with on a machine that is no control plane."""
    for component in components.COMPONENTS:
        path = components.path_of(component)
        if host.is_dir(path):
            raise OperatorError(f'"{path}" is a directory')
        if not host.exists(path):
            raise OperatorError(f'the manifest file "{path}" does not exist: run this on a control plane')


def show(ctx: NodeContext, context_lines: int) -> None:
    """The differences, component by component, to the version of the context's configuration."""
    for component in components.COMPONENTS:
        path = components.path_of(component)
        new = goyaml.dump(components.manifest(component, ctx))
        ctx.progress.show(compare(ctx.host.read(path).decode(), new, path, context_lines))


def compare(old: str, new: str, path: str, context_lines: int) -> str:
    """A unified diff; the lines are cut as kubeadm's library does, with an empty one at the end."""
    before, after = ([f"{line}\n" for line in text.split("\n")] for text in (old, new))
    return "".join(unified_diff(before, after, fromfile=path, tofile="new manifest", n=context_lines))
