"""Aggregated ClusterRoles: one whose rules are those of all roles with certain labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.embedded.access.authorization import CLUSTER_ROLES
from slipway.embedded.storage import selectors

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest
    from slipway.embedded.storage.store import Store


def aggregate(store: Store) -> None:
    """Give every aggregated role the rules that it should have."""
    roles = [(stored, stored.manifest()) for stored in store.bucket(CLUSTER_ROLES).within("")]
    for stored, manifest in roles:
        chosen = (manifest.get("aggregationRule") or {}).get("clusterRoleSelectors")
        if not chosen:
            continue
        rules: list[Manifest] = []
        for selector in chosen:
            wanted = selectors.from_label_selector(selector)
            for other, content in roles:
                if other.name != stored.name and selectors.match_labels(wanted, other.labels):
                    rules += [rule for rule in content.get("rules") or () if rule not in rules]
        if rules != (manifest.get("rules") or []):
            store.put(CLUSTER_ROLES, {**manifest, "rules": rules}, stored.version)
