"""What a MachineDeployment says, before anything is done with it: what would do harm is refused, and what the webhook writes is there.

The webhooks refuse and write the same; who runs without them must not lose machines by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.cluster import names
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.contract import selectors
from slipway.fleet.machines.deployment import status
from slipway.fleet.machines.limits import refuse_number

if TYPE_CHECKING:
    from slipway.api.cluster.core.machinedeployment import MachineDeployment
    from slipway.api.machinery.objects import Manifest


def refuse(deployment: MachineDeployment) -> None:
    """An error where a rollout would do harm: what the webhooks refuse, and who runs without them may have."""
    replicas, spec = deployment.spec.replicas, deployment.spec
    if replicas is None:
        raise OperatorError("the MachineDeployment does not say how many replicas it has")
    refuse_number("MachineDeployment", replicas)
    status.limits_of(deployment)
    labels = {
        **spec.template.metadata.labels,
        names.CLUSTER_NAME_LABEL: spec.cluster_name,
        names.DEPLOYMENT_NAME_LABEL: deployment.metadata["name"],
    }
    if not selectors.matches(spec.selector, labels):
        chosen = selectors.text(spec.selector)
        raise OperatorError(f'the selector "{chosen}" of the MachineDeployment does not choose the Machines of its own template')


def defaulted(deployment: Manifest) -> Manifest:
    """With the Cluster's label in selector and template, as the webhook writes it: what is applied must not lack what MachineSets add."""
    spec = deployment["spec"]
    name = {names.CLUSTER_NAME_LABEL: spec["clusterName"]}
    selector, template = spec.get("selector") or {}, spec["template"]
    metadata = template.get("metadata") or {}
    return {
        **deployment,
        "spec": {
            **spec,
            "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **name}},
            "template": {**template, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **name}}},
        },
    }
