"""The checks before a Machine is made, with what they need read from the API: the control plane and the bootstrap template."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster import names
from slipway.api.cluster.core.cluster import Cluster
from slipway.fleet.contract.facts import read
from slipway.fleet.machines.machineset import preflight

if TYPE_CHECKING:
    from slipway.api.cluster.core.machine import MachineTemplateSpec
    from slipway.fleet.contract.references import References
    from slipway.runtime.objects import Object


class Checks:
    """Templates and control planes are of kinds that somebody refers to, and are watched for different reasons."""

    def __init__(self, templates: References, control_planes: References) -> None:
        self._templates, self._control_planes = templates, control_planes

    async def control_plane(self, cluster: Object) -> preflight.ControlPlane | None:
        """None where the Cluster has none, or one without a version."""
        reference = read(cluster, Cluster).spec.control_plane_ref
        if not reference.name:
            return None
        return preflight.control_plane_from(await self._control_planes.last_known(reference, cluster.namespace))

    async def skipped(self, annotation: str, template: MachineTemplateSpec, namespace: str) -> frozenset[str]:
        """The checks that the annotation of a MachineSet names, or that of its bootstrap template where it names none."""
        reference = template.spec.bootstrap.config_ref
        if not annotation and reference.name:
            found = await self._templates.find(reference, namespace)
            annotation = preflight.skip_annotation(found) if found is not None else ""
        return preflight.skipped(annotation)

    async def failed(self, cluster: Object, annotation: str, template: MachineTemplateSpec) -> list[str]:
        """Why no Machine of this template may be made now; empty where one may be."""
        skip = await self.skipped(annotation, template, cluster.namespace)
        if names.PREFLIGHT_ALL in skip:
            return []
        plane = await self.control_plane(cluster)
        content = read(cluster, Cluster)
        topology = None
        if content.spec.topology:
            step = cluster.metadata.annotations.get(names.TOPOLOGY_UPGRADE_STEP_ANNOTATION, "")
            topology = preflight.Topology(content.spec.topology.version, step)
        return preflight.failed_checks(plane, template.spec.version, template.spec.bootstrap.config_ref, skip, topology=topology)
