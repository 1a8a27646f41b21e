"""The guide's section *Verification*, sentence by sentence, and what a demonstration can see beyond it: pure functions of what was read."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.infrastructure.names import PLAN_REPROVISION, PLAN_TYPE_ANNOTATION, RUNNING_PHASE
from slipway.demo.events import Check
from slipway.fleet.overview.stages import condition, host_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from slipway.api.machinery.objects import Manifest

COUNTERS = ("available", "allocated", "preparing", "reprovisioning", "unavailable")


class Expected(NamedTuple):
    version: str
    control_planes: int
    workers: int
    before: frozenset[str] = frozenset()
    """The Machines before the upgrade, none of which may be left."""

    @property
    def nodes(self) -> int:
        return self.control_planes + self.workers


class Found(NamedTuple):
    baremetal_machines: Sequence[Manifest]
    machines: Sequence[Manifest]
    nodes: Sequence[Manifest]
    pools: Sequence[Manifest]
    secrets: Mapping[str, Manifest]
    """The plan Secrets by the names of their hosts."""
    etcd_members: int = 0
    etcd_quorum: bool = True
    doubled: int = 0
    """How often the virtual address was seen on two hosts."""
    touched: Sequence[str] = ()
    """Hosts of no pool that were booted anew all the same."""


def checks(found: Found, expected: Expected) -> list[Check]:
    version = expected.version
    made = [
        _counted(
            "every BaremetalMachine is Running",
            (str((each.get("status") or {}).get("phase") or "without a phase") for each in found.baremetal_machines),
            RUNNING_PHASE,
            expected.nodes,
        ),
        _counted(
            f"every Machine has spec.version {version}",
            (str((each.get("spec") or {}).get("version") or "without a version") for each in found.machines),
            version,
            expected.nodes,
        ),
        _counted(f"every Node is Ready with kubelet {version}", (_node(each) for each in found.nodes), f"Ready {version}", expected.nodes),
        _plans(found),
        *(_pool(each) for each in found.pools),
    ]
    if expected.before:
        made.append(_replaced(found, expected))
    members = f"{found.etcd_members}, {'with' if found.etcd_quorum else 'without'} a quorum"
    made += [
        Check(
            "etcd has as many members as there are control planes",
            found.etcd_members == expected.control_planes and found.etcd_quorum,
            members,
        ),
        Check("the virtual address was never on two hosts", not found.doubled, f"{found.doubled} times"),
        Check("hosts of no pool were left alone", not found.touched, ", ".join(found.touched) or "none was booted anew"),
    ]
    return made


def _counted(name: str, seen: Iterable[str], wanted: str, number: int) -> Check:
    counted = Counter(seen)
    shown = ", ".join(f"{count} × {word}" for word, count in sorted(counted.items())) or "none"
    return Check(name, counted == Counter({wanted: number}) if number else not counted, shown)


def _node(node: Manifest) -> str:
    ready = "Ready" if condition(node, "Ready").get("status") == "True" else "NotReady"
    return f"{ready} {((node.get('status') or {}).get('nodeInfo') or {}).get('kubeletVersion')}"


def _plans(found: Found) -> Check:
    hosts = [host_of(each) for each in found.baremetal_machines]
    kinds = [
        str(((found.secrets.get(host) or {}).get("metadata") or {}).get("annotations", {}).get(PLAN_TYPE_ANNOTATION, "none"))
        for host in hosts
    ]
    return _counted(f"every plan Secret in use carries {PLAN_TYPE_ANNOTATION}={PLAN_REPROVISION}", kinds, PLAN_REPROVISION, len(hosts))


def at_rest(pool: Manifest) -> bool:
    """Whether a pool's counters add up, and nothing is under way."""
    status = pool.get("status") or {}
    numbers = {name: int(status.get(name) or 0) for name in COUNTERS}
    return (
        status.get("total") is not None
        and sum(numbers.values()) == status["total"]
        and not (numbers["preparing"] or numbers["reprovisioning"])
    )


def _pool(pool: Manifest) -> Check:
    status = pool.get("status") or {}
    seen = " + ".join(f"{int(status.get(name) or 0)} {name}" for name in COUNTERS)
    return Check(f"{pool['metadata']['name']} adds up, at rest", at_rest(pool), f"{seen} = {status.get('total')}")


def _replaced(found: Found, expected: Expected) -> Check:
    left = sorted({str(each["metadata"]["name"]) for each in found.machines} & expected.before)
    return Check(
        "every node was replaced", not left, f"left: {', '.join(left)}" if left else f"{len(expected.before)} of {len(expected.before)}"
    )
