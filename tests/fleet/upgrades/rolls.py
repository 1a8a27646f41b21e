"""Clusters as an upgrade sees them, as plain values, and a manager that does what it is told in one moment."""

from __future__ import annotations

from slipway.fleet.overview.groups import Group, Member, Standing
from slipway.fleet.upgrades.steps import Patch

OLD, NEW, NEWEST = "v1.34.10", "v1.35.4", "v1.36.3"
BETWEEN = {35: NEW}


def group(kind: str, name: str, version: str, replicas: int = 2, *, members: tuple[Member, ...] | None = None, **more: object) -> Group:
    there = tuple(Member(f"{name}-{number}", version) for number in range(replicas)) if members is None else members
    return Group(kind, name, version, replicas, there, **more)  # type: ignore[arg-type]


def plane(version: str = OLD, replicas: int = 3, **more: object) -> Group:
    return group("KubeadmControlPlane", "cp", version, replicas, **more)  # type: ignore[arg-type]


def workers(version: str = OLD, replicas: int = 2, name: str = "w", **more: object) -> Group:
    return group("MachineDeployment", name, version, replicas, **more)  # type: ignore[arg-type]


def cluster(of: Group | None = None, *rest: Group) -> Standing:
    return Standing("ns", "prod", of or plane(), rest)


def patched(now: Standing, step: Patch) -> Standing:
    """The spec is another one, and nobody has done anything about it yet."""
    changed = step.group._replace(version=step.version, observed=False)
    if step.group.is_control_plane:
        return now._replace(plane=changed)
    return now._replace(workers=tuple(changed if each.name == changed.name else each for each in now.workers))


def rolled(now: Standing) -> Standing:
    """Everything has become what it is to be."""

    def there(each: Group) -> Group:
        return each._replace(observed=True, members=tuple(Member(f"{each.name}-{number}", each.version) for number in range(each.replicas)))

    return now._replace(plane=there(now.plane), workers=tuple(map(there, now.workers)))
