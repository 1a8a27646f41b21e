"""A part of what there is: one cluster, or the hosts that somebody asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from slipway.api.cluster.infrastructure.names import ALLOCATION_STATES
from slipway.api.cluster.kinds import (
    BAREMETAL_CLUSTER,
    BAREMETAL_MACHINE,
    CLUSTER,
    CONFIG_MAP,
    CORE_EVENT,
    MACHINE_INVENTORY,
    MACHINE_INVENTORY_POOL,
    SECRET,
)
from slipway.api.machinery.errors import OperatorError, UsageError
from slipway.fleet.overview.objects import NOT_INSTALLED
from slipway.fleet.overview.stages import STAGES

if TYPE_CHECKING:
    from collections.abc import Collection

    from slipway.fleet.overview.model import HostView, Overview

_NAMED = 10
_BARE_METAL = frozenset(kind.kind for kind in (BAREMETAL_CLUSTER, BAREMETAL_MACHINE, MACHINE_INVENTORY, MACHINE_INVENTORY_POOL))


def seen(view: Overview) -> Overview:
    """What there is; an OperatorError where this is no management cluster at all, or nothing of it may be seen."""
    if CLUSTER.kind in view.missing and MACHINE_INVENTORY.kind in view.missing:
        absent = [view.missing[kind] for kind in (CLUSTER.kind, MACHINE_INVENTORY.kind)]
        if all(sentence.endswith(NOT_INSTALLED) for sentence in absent):
            raise OperatorError(
                "this is no management cluster that can be read: neither Cluster API's v1beta2 types nor hosts are installed "
                "(Cluster API 1.11 and newer have them, and `slipway manager install` installs all)"
            )
        raise OperatorError("; and ".join(absent))
    return view


def seen_hosts(view: Overview) -> Overview:
    """The same for who looks at hosts alone."""
    if MACHINE_INVENTORY.kind in view.missing:
        raise OperatorError(f"there are no hosts to see: {view.missing[MACHINE_INVENTORY.kind]}")
    return view


def worth_telling(view: Overview) -> list[str]:
    """What is not seen and would change the picture: kinds that nobody here uses are not missed."""
    used = bool(view.hosts) or any(cluster.bare_metal for cluster in view.clusters)

    def is_missed(kind: str, sentence: str) -> bool:
        if kind in (CONFIG_MAP.kind, CORE_EVENT.kind):
            return False
        if used or kind not in (*_BARE_METAL, SECRET.kind):
            return True
        # A kind that may be there and may not be seen is another matter than one that is not there.
        return kind != SECRET.kind and not sentence.endswith(NOT_INSTALLED)

    return [sentence for kind, sentence in view.missing.items() if is_missed(kind, sentence)]


def of_cluster(view: Overview, name: str, namespace: str) -> Overview:
    """What belongs to the cluster of a name; where several namespaces have one, to all of those."""
    clusters = tuple(cluster for cluster in view.clusters if cluster.name == name)
    if not clusters:
        place = f"in the namespace {namespace}" if namespace else "in any namespace"
        if CLUSTER.kind in view.missing:
            raise OperatorError(view.missing[CLUSTER.kind])
        known = [f"{cluster.namespace}/{cluster.name}" for cluster in view.clusters]
        more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
        raise OperatorError(
            f'there is no Cluster "{name}" {place}' + (f": there are {', '.join(known[:_NAMED])}{more}" if known else ", nor any other")
        )
    places = {(cluster.namespace, cluster.name) for cluster in clusters}
    pools = tuple(pool for pool in view.pools if (pool.namespace, pool.cluster) in places)
    own = {(pool.namespace, pool.name) for pool in pools}
    hosts = tuple(host for host in view.hosts if (host.namespace, host.cluster) in places or (host.namespace, host.pool) in own)
    return msgspec.structs.replace(view, clusters=clusters, pools=pools, hosts=hosts, problems=())


def hosts_of(view: Overview, *, pool: str = "", state: str = "", among: Collection[tuple[str, str]] | None = None) -> tuple[HostView, ...]:
    """Those of a pool, in a state or stage, and among those that a selector chose."""
    wanted = state.lower()
    known = {each.lower(): each for each in (*ALLOCATION_STATES, *STAGES)}
    if wanted and wanted not in known:
        raise UsageError(f'"{state}" is no state of a host: use one of {", ".join((*ALLOCATION_STATES, *STAGES))}')
    if pool and all(each.name != pool for each in view.pools) and MACHINE_INVENTORY.kind not in view.missing:
        names = sorted({each.name for each in view.pools})
        raise OperatorError(f'there is no pool "{pool}": ' + (f"there are {', '.join(names[:_NAMED])}" if names else "there are none"))
    return tuple(
        host
        for host in view.hosts
        if (not pool or host.pool == pool)
        and (not wanted or wanted in (host.state.lower(), host.stage))
        and (among is None or (host.namespace, host.name) in among)
    )
