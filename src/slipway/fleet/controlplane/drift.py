"""Whether a machine is as its control plane wants it, or is to be replaced, and why.

Version, KubeadmConfig and infrastructure template count; everything else is changed in place.  An infrastructure template that was edited
instead of replaced does not: its name is what is compared.  Two KubeadmConfigs are the same where a host made from one is like a host made
from the other, so some fields are passed over and the defaults of earlier releases count as written.
"""

from __future__ import annotations

from copy import deepcopy
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.bootstrap.config import CLOUD_CONFIG
from slipway.api.cluster.bootstrap.kubeadm_node import Discovery, InitConfiguration, JoinControlPlane
from slipway.api.cluster.names import CLONED_FROM_GROUP_KIND_ANNOTATION, CLONED_FROM_NAME_ANNOTATION
from slipway.fleet.controlplane.desired import config_spec

if TYPE_CHECKING:
    from slipway.api.cluster.bootstrap.config import KubeadmConfig, KubeadmConfigSpec
    from slipway.api.cluster.controlplane.kubeadmcontrolplane import KubeadmControlPlane
    from slipway.api.cluster.core.machine import Machine
    from slipway.api.machinery.objects import Manifest

_PULL_POLICY = "IfNotPresent"


class Drift(NamedTuple):
    """Why a machine is to be replaced: for its condition, and in more words for the log.  Both are empty where it is up to date."""

    messages: tuple[str, ...] = ()
    log: tuple[str, ...] = ()

    @property
    def up_to_date(self) -> bool:
        return not self.messages


def drift(
    plane: KubeadmControlPlane, machine: Machine, config: KubeadmConfig | None, infrastructure: Manifest | None, now: datetime
) -> Drift:
    """``config`` and ``infrastructure`` are None where they could not be found, which is no reason to replace a machine."""
    reasons = [
        *_expiring(plane, machine, now),
        *_due(plane, machine, now),
        *_version(plane, machine),
        *_config(plane, machine, config),
        *_infrastructure(plane, machine, infrastructure),
    ]
    return Drift(tuple(message for message, _ in reasons), tuple(log for _, log in reasons))


def is_for_join(spec: KubeadmConfigSpec) -> bool:
    """Whether a machine joined with it.  Before Cluster API 1.12 the mark may be missing; the kubelet's flags are there as a rule."""
    join = spec.join_configuration
    return join.control_plane is not None or bool(join.node_registration.kubelet_extra_args)


def fits(wanted: KubeadmControlPlane, found: KubeadmConfigSpec) -> bool:
    """Whether a KubeadmConfig makes the host that the control plane wants.

    The one of the first machine is taken as if it had joined; where init and join are configured differently, that is no reason either.
    """
    if same(config_spec(wanted, join=True), found, as_join=True):
        return True
    return not is_for_join(found) and same(config_spec(wanted, join=False), found, as_join=False)


def same(wanted: KubeadmConfigSpec, found: KubeadmConfigSpec, *, as_join: bool) -> bool:
    wanted, found = deepcopy(wanted), deepcopy(found)
    if as_join and not is_for_join(found):
        _turn_into_join(found, wanted)
    if is_for_join(found) and found.join_configuration.control_plane is None:
        found.join_configuration.control_plane = JoinControlPlane()
    # The bootstrap provider writes it, and it never changes.
    found.cluster_configuration.control_plane_endpoint = wanted.cluster_configuration.control_plane_endpoint
    # CoreDNS is changed in place.
    found.cluster_configuration.dns = wanted.cluster_configuration.dns
    for spec in (wanted, found):
        _apply_earlier_defaults(spec)
        _pass_over(spec)
    return wanted == found


def _expiring(plane: KubeadmControlPlane, machine: Machine, now: datetime) -> list[tuple[str, str]]:
    days, expiry = plane.spec.rollout.before.certificates_expiry_days, machine.status.certificates_expiry_date
    if not days or not expiry or now + timedelta(days=days) <= datetime.fromisoformat(expiry):
        return []
    return [("Certificates will expire soon", "certificates will expire soon, rolloutBefore expired")]


def _due(plane: KubeadmControlPlane, machine: Machine, now: datetime) -> list[tuple[str, str]]:
    after = plane.spec.rollout.after
    if not after or not datetime.fromisoformat(machine.metadata["creationTimestamp"]) < datetime.fromisoformat(after) < now:
        return []
    return [("KubeadmControlPlane spec.rolloutAfter expired", "rolloutAfter expired")]


def _version(plane: KubeadmControlPlane, machine: Machine) -> list[tuple[str, str]]:
    has, wanted = machine.spec.version, plane.spec.version
    if has == wanted:
        return []
    return [(f"Version {has}, {wanted} required", f'Machine version "{has}" is not equal to KCP version "{wanted}"')]


def _config(plane: KubeadmControlPlane, machine: Machine, config: KubeadmConfig | None) -> list[tuple[str, str]]:
    if not machine.spec.bootstrap.config_ref or config is None or fits(plane, config.spec):
        return []
    return [("KubeadmConfig is not up-to-date", "Machine KubeadmConfig is outdated:")]


def _infrastructure(plane: KubeadmControlPlane, machine: Machine, found: Manifest | None) -> list[tuple[str, str]]:
    told = {} if found is None else found["metadata"].get("annotations") or {}
    name, group_kind = told.get(CLONED_FROM_NAME_ANNOTATION), told.get(CLONED_FROM_GROUP_KIND_ANNOTATION)
    if name is None or group_kind is None:
        # Adopted, or made by somebody who does not tell.
        return []
    wanted = plane.spec.machine_template.spec.infrastructure_ref
    wanted_group_kind = f"{wanted.kind}.{wanted.api_group}"
    if (name, group_kind) == (wanted.name, wanted_group_kind):
        return []
    log = f"Infrastructure template on KCP rotated from {group_kind} {name} to {wanted_group_kind} {wanted.name}"
    return [(f"{machine.spec.infrastructure_ref.kind} is not up-to-date", log)]


def _turn_into_join(found: KubeadmConfigSpec, wanted: KubeadmConfigSpec) -> None:
    init, join = found.init_configuration, found.join_configuration
    join.timeouts, join.patches, join.skip_phases = init.timeouts, init.patches, init.skip_phases
    join.node_registration = init.node_registration
    join.control_plane = JoinControlPlane(local_api_endpoint=init.local_api_endpoint)
    found.init_configuration = InitConfiguration()
    # Only who joins has one.
    join.ca_cert_path = wanted.join_configuration.ca_cert_path


def _apply_earlier_defaults(spec: KubeadmConfigSpec) -> None:
    spec.format = spec.format or CLOUD_CONFIG
    for node in (spec.init_configuration.node_registration, spec.join_configuration.node_registration):
        node.image_pull_policy = node.image_pull_policy or _PULL_POLICY


def _pass_over(spec: KubeadmConfigSpec) -> None:
    """Take out what concerns the moment of joining alone, and what is written in two ways."""
    # Of its plugin's version too, which had a default once.
    spec.join_configuration.discovery = Discovery()
    for timeouts in (spec.init_configuration.timeouts, spec.join_configuration.timeouts):
        timeouts.control_plane_component_health_check_seconds = None
    cluster = spec.cluster_configuration
    for component in (cluster.api_server, cluster.controller_manager, cluster.scheduler, cluster.etcd.local):
        component.extra_envs = component.extra_envs or None
