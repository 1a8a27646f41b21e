"""The objects of a management cluster, found by kind and name, and what belongs to what."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster import names as core
from slipway.api.cluster.kinds import BAREMETAL_CLUSTER, BAREMETAL_MACHINE, CLUSTER, KUBEADM_CONTROL_PLANE, MACHINE, MACHINE_DEPLOYMENT
from slipway.api.cluster.kinds import MACHINE_INVENTORY as HOST
from slipway.fleet.overview import groups
from slipway.fleet.overview.problems import Ref
from slipway.fleet.overview.references import FIELDS, found
from slipway.fleet.overview.stages import host_of, machine_of
from slipway.fleet.overview.waiting import sentences
from slipway.fleet.overview.waiting.causes import Cause, cause

if TYPE_CHECKING:
    from datetime import datetime

    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.overview.groups import Group
    from slipway.fleet.overview.objects import Objects


class Link(NamedTuple):
    """An object and a sentence about it; ``cause`` is None where the object is well, or merely waits for the next link."""

    ref: Ref
    sentence: str
    cause: Cause | None = None
    to_do: tuple[str, ...] = ()
    """Beyond what the cause has."""
    well: bool = False


class World:
    def __init__(self, objects: Objects, now: datetime) -> None:
        self.objects, self.now = objects, now
        self._named = {(kind, *key(each)): each for kind in FIELDS for each in found(objects, kind)}
        self._secrets = {key(each): each for each in objects.plan_secrets}
        self._machines: dict[tuple[str, str], list[Manifest]] = defaultdict(list)
        for each in objects.machines:
            self._machines[space(each), str((each.get("spec") or {}).get("clusterName") or "")].append(each)

    def get(self, ref: Ref) -> Manifest | None:
        return self._named.get((ref.kind, ref.namespace, ref.name))

    def secret(self, host: Ref) -> Manifest | None:
        """The plan Secret of a host."""
        return self._secrets.get((host.namespace, host.name))

    def machines(self, cluster: Ref) -> list[Manifest]:
        return self._machines[cluster.namespace, cluster.name]

    def groups(self, cluster: Ref, content: Manifest) -> list[tuple[Ref, Group]]:
        """The control plane of a Cluster, where it is one that is known here, and its MachineDeployments."""
        plane = self.referred(cluster, (content.get("spec") or {}).get("controlPlaneRef"))
        own = self.machines(cluster)
        rolled = (
            [(plane[0], groups.control_plane(plane[1], own))] if plane is not None and plane[0].kind == KUBEADM_CONTROL_PLANE.kind else []
        )
        workers = [
            each
            for each in self.objects.machine_deployments
            if space(each) == cluster.namespace and (each.get("spec") or {}).get("clusterName") == cluster.name
        ]
        return [*rolled, *((ref(MACHINE_DEPLOYMENT.kind, each), groups.deployment(each, own)) for each in workers)]

    def group(self, of: Ref, content: Manifest) -> Group:
        """A KubeadmControlPlane or a MachineDeployment, with its Machines."""
        if of.kind == MACHINE_DEPLOYMENT.kind:
            cluster = str((content.get("spec") or {}).get("clusterName") or "")
            return groups.deployment(content, self._machines[of.namespace, cluster])
        named = (content["metadata"].get("labels") or {}).get(core.CLUSTER_NAME_LABEL) or owner(content, CLUSTER.kind)
        return groups.control_plane(content, self._machines[of.namespace, str(named)])

    def referred(self, of: Ref, reference: Manifest | None) -> tuple[Ref, Manifest] | None:
        """What an object of the same namespace refers to; None where it is not there, or of a kind that is not known here."""
        meant = Ref(str((reference or {}).get("kind") or ""), of.namespace, str((reference or {}).get("name") or ""))
        content = self.get(meant)
        return None if content is None else (meant, content)

    def baremetal_machine(self, machine: Manifest) -> Ref | None:
        below = self.referred(ref(MACHINE.kind, machine), (machine.get("spec") or {}).get("infrastructureRef"))
        return below[0] if below is not None and below[0].kind == BAREMETAL_MACHINE.kind else None

    def baremetal_cluster(self, of: Ref, content: Manifest) -> Ref | None:
        """Of the cluster that an object is labelled with."""
        name = str((content["metadata"].get("labels") or {}).get(core.CLUSTER_NAME_LABEL) or "")
        cluster = self.get(Ref(CLUSTER.kind, of.namespace, name))
        base = self.referred(of, ((cluster or {}).get("spec") or {}).get("infrastructureRef"))
        return base[0] if base is not None and base[0].kind == BAREMETAL_CLUSTER.kind else None

    def host(self, of: Ref, content: Manifest) -> Ref | None:
        """Of a BaremetalMachine."""
        host = Ref(HOST.kind, of.namespace, host_of(content))
        return host if self.get(host) is not None else None

    def surges(self, of: Ref, content: Manifest) -> bool:
        """Whether a BaremetalMachine may be one more than its MachineDeployment is to have."""
        machine = self.get(Ref(MACHINE.kind, of.namespace, machine_of(content)))
        labels = {} if machine is None else machine["metadata"].get("labels") or {}
        above = self.get(Ref(MACHINE_DEPLOYMENT.kind, of.namespace, str(labels.get(core.DEPLOYMENT_NAME_LABEL) or "")))
        return above is not None and groups.surge(above) > 0

    def caused(self, of: Ref, content: Manifest, told: Manifest) -> Link:
        """What a condition says, as a link."""
        why = cause(of.kind, content, told)
        return Link(of, sentences.cause(why, str(told.get("status") or ""), self.now), why)

    def paused(self, of: Ref, content: Manifest) -> Link:
        return self.caused(of, content, {"type": core.PAUSED_CONDITION, "status": "True"})


def ref(kind: str, manifest: Manifest) -> Ref:
    return Ref(kind, *key(manifest))


def key(manifest: Manifest) -> tuple[str, str]:
    return space(manifest), str(manifest["metadata"]["name"])


def space(manifest: Manifest) -> str:
    return str(manifest["metadata"].get("namespace") or "")


def owner(manifest: Manifest, kind: str) -> str:
    """The name of the first owner of a kind; empty where there is none."""
    owners = manifest["metadata"].get("ownerReferences") or ()
    return next((str(each["name"]) for each in owners if each.get("kind") == kind), "")
