"""From v1beta1 to v1beta2: v1beta2 only added fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.kubeadm import v1beta1 as old_version
from slipway.api.kubeadm import v1beta2 as new_version
from slipway.api.kubeadm.history.reshape import reshape

if TYPE_CHECKING:
    from slipway.api.kubeadm.history.journal import Journal
    from slipway.api.machinery.objects import Object


def convert(old: Object, journal: Journal) -> list[Object]:
    for kind, old_type in old_version.KINDS.items():
        if isinstance(old, old_type):
            return [reshape(old, new_version.KINDS[kind])]
    raise TypeError(f"{type(old)} is not of v1beta1")
