"""The guide's Verification as checks: each notices what it is about."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.demo.verification import Expected, Found, checks

Manifest = dict[str, Any]
V = "v1.35.4"


def found(**changed: Any) -> Found:
    ready = {"type": "Ready", "status": "True"}
    well = Found(
        baremetal_machines=[{"metadata": {"name": "b"}, "status": {"phase": "Running", "machineInventoryRef": {"name": "h"}}}],
        machines=[{"metadata": {"name": "new"}, "spec": {"version": V}}],
        nodes=[{"status": {"conditions": [ready], "nodeInfo": {"kubeletVersion": V}}}],
        pools=[{"metadata": {"name": "pool"}, "status": {"allocated": 1, "available": 1, "total": 2}}],
        secrets={"h": {"metadata": {"annotations": {"baremetal.alauda.io/plan.type": "reprovision"}}}},
        etcd_members=1,
    )
    return well._replace(**changed)


EXPECTED = Expected(V, 1, 0, frozenset(("old",)))


def failing(**changed: Any) -> list[str]:
    return [check.name for check in checks(found(**changed), EXPECTED) if not check.ok]


def test_all_holds_where_all_is_well() -> None:
    assert failing() == []


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"baremetal_machines": []}, "every BaremetalMachine is Running"),
        ({"machines": [{"metadata": {"name": "new"}, "spec": {"version": "v1.34.10"}}]}, f"every Machine has spec.version {V}"),
        ({"nodes": [{"status": {"nodeInfo": {"kubeletVersion": V}}}]}, f"every Node is Ready with kubelet {V}"),
        ({"nodes": []}, f"every Node is Ready with kubelet {V}"),
        ({"secrets": {}}, "every plan Secret in use carries baremetal.alauda.io/plan.type=reprovision"),
        ({"pools": [{"metadata": {"name": "pool"}, "status": {"allocated": 1, "total": 2}}]}, "pool adds up, at rest"),
        ({"pools": [{"metadata": {"name": "pool"}, "status": {"preparing": 1, "total": 1}}]}, "pool adds up, at rest"),
        ({"pools": [{"metadata": {"name": "pool"}}]}, "pool adds up, at rest"),
        ({"machines": [{"metadata": {"name": "old"}, "spec": {"version": V}}]}, "every node was replaced"),
        ({"etcd_members": 2}, "etcd has as many members as there are control planes"),
        ({"etcd_quorum": False}, "etcd has as many members as there are control planes"),
        ({"doubled": 1}, "the virtual address was never on two hosts"),
        ({"touched": ["host-8"]}, "hosts of no pool were left alone"),
    ],
)
def test_a_check_fails_for_what_it_is_about(changed: dict[str, Any], name: str) -> None:
    assert failing(**changed) == [name]


def test_what_was_seen_is_counted() -> None:
    shown = {check.name: check.seen for check in checks(found(), EXPECTED)}
    assert shown["every BaremetalMachine is Running"] == "1 × Running"
    assert shown["pool adds up, at rest"] == "1 available + 1 allocated + 0 preparing + 0 reprovisioning + 0 unavailable = 2"
