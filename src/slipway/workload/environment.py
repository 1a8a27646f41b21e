"""The variables that a component's container gets: the proxies of the machine it was set up from, and a user's ``extraEnvs``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.kubeadm.internal import EnvVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slipway.api.machinery.objects import Manifest


def proxies(environment: Mapping[str, str]) -> list[EnvVar]:
    """The variables of the environment that name a proxy, in either case."""
    return [EnvVar(name=name, value=value) for name, value in environment.items() if name.lower().endswith("_proxy") and value]


def manifests(*groups: Sequence[EnvVar]) -> list[Manifest]:
    """The ``env`` of a container, sorted by name; a later group wins."""
    merged = {variable.name: variable for group in groups for variable in group}
    return [_manifest(merged[name]) for name in sorted(merged)]


def _manifest(variable: EnvVar) -> Manifest:
    made: Manifest = {"name": variable.name}
    if variable.value:
        made["value"] = variable.value
    if variable.value_from is not None:
        made["valueFrom"] = variable.value_from
    return made
