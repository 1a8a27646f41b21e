"""The way from every old version of the kubeadm configuration to v1beta4, one module a step.

Each step module has ``convert(old, journal)``: it takes an object of its version and returns the objects of the next
version that stand in its place.  Steps add no defaults: what a user left out stays left out, because every later
version has a default of its own.  Steps follow the conversion functions of the kubeadm that last read the version.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from slipway.api.kubeadm.history.components import Component
from slipway.api.kubeadm.history.journal import Journal, Note

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.api.machinery.objects import Object

__all__ = ["CURRENT", "VERSIONS", "Component", "Journal", "Note", "kinds", "to_current"]

VERSIONS = ("v1alpha1", "v1alpha2", "v1alpha3", "v1beta1", "v1beta2", "v1beta3", "v1beta4")
CURRENT = VERSIONS[-1]


def kinds(version: str) -> dict[str, type[Object]]:
    """The types of ``version`` by kind."""
    known: dict[str, type[Object]] = import_module(f"slipway.api.kubeadm.{version}").KINDS
    return known


def to_current(version: str, old: Object, journal: Journal) -> list[Object]:
    """The objects of v1beta4 that stand for ``old``, an object of ``version``."""
    objects = [old]
    for name in VERSIONS[VERSIONS.index(version) : -1]:
        convert = _step(name)
        objects = [new for each in objects for new in ([each] if isinstance(each, Component) else convert(each, journal))]
    return objects


def _step(version: str) -> Callable[[Object, Journal], list[Object]]:
    # By name: a file of v1beta3 should not pay for the types of v1alpha1.
    step: Callable[[Object, Journal], list[Object]] = import_module(f"{__name__}.{version}").convert
    return step
