"""The bootstrap data of a machine: which kubeadm configuration it gets, in which format, and the Secret that holds it.

``spec`` is the spec of a KubeadmConfig v1beta2 in its JSON form, complete: discovery is filled in, and ``files`` and ``users`` are what
became of those of the spec, with nothing left to look up.  It is not changed.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from slipway.api.cluster.kinds import KUBEADM_CONFIG
from slipway.api.cluster.names import CLUSTER_NAME_LABEL, SECRET_TYPE
from slipway.api.machinery.errors import ConfigurationError
from slipway.api.machinery.version import Version
from slipway.api.machinery.yaml.goyaml import dump
from slipway.fleet.bootstrap.data import cloudinit
from slipway.fleet.bootstrap.data.cloudinit import HostSetup
from slipway.fleet.bootstrap.ignition import render
from slipway.fleet.kubeadm import v1beta3, v1beta4
from slipway.fleet.kubeadm.v1beta4 import JSON, Source, filled, is_defined, part

if TYPE_CHECKING:
    from slipway.api.machinery.objects import Manifest

__all__ = ["CLOUD_CONFIG", "IGNITION", "AdditionalData", "BootstrapData", "File", "init_control_plane", "join_control_plane", "join_worker"]

Spec = Mapping[str, Any]
File = Mapping[str, Any]
User = Mapping[str, Any]

CLOUD_CONFIG = "cloud-config"
IGNITION = "ignition"

_FIRST_V1BETA3, _FIRST_V1BETA4 = Version(1, 22), Version(1, 31)

VERSION_ANNOTATION = "bootstrap.slipway.io/control-plane-version"
TOKEN_ANNOTATION = "bootstrap.slipway.io/token-id"
KEYS = ("value", "format")

# Removed by the Machine controller once the Node has its labels and annotations.
UNINITIALIZED_TAINT = {"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}


class AdditionalData(NamedTuple):
    """What stands in kubeadm's ClusterConfiguration but not in a KubeadmConfig's: it comes from the Cluster and the Machine."""

    kubernetes_version: str = ""
    cluster_name: str = ""
    dns_domain: str = ""
    service_subnet: str = ""
    pod_subnet: str = ""
    control_plane_component_health_check_seconds: int | None = None


class BootstrapData(NamedTuple):
    """What the data Secret of a machine holds, and what is odd about the user's additions to it."""

    value: bytes
    format: str
    warnings: str = ""


class Rendering(NamedTuple):
    """What data was rendered with, as its Secret tells it: data that has other values than the cluster now is outdated."""

    control_plane_version: str = ""
    token_id: str = ""


def init_control_plane(
    spec: Spec, *, version: str, additional: AdditionalData, certificates: Sequence[File], files: Sequence[File], users: Sequence[User]
) -> BootstrapData:
    """For the machine that creates the cluster."""
    setup = _setup(spec, [*certificates, *files], users)
    cluster = cluster_configuration(part(spec, "clusterConfiguration"), version, additional)
    init = init_configuration(part(spec, "initConfiguration"), version)
    if _is_ignition(spec):
        return _ignition(render.init_control_plane(setup, _additions(spec), cluster, init))
    return BootstrapData(cloudinit.init_control_plane(setup, cluster, init), CLOUD_CONFIG)


def join_control_plane(
    spec: Spec, *, version: str, certificates: Sequence[File], files: Sequence[File], users: Sequence[User]
) -> BootstrapData:
    """For a machine that joins the control plane; kubeadm knows that it does by the section that is added here if it is missing."""
    setup = _setup(spec, [*certificates, *files], users)
    source = part(spec, "joinConfiguration")
    join = join_configuration({**source, "controlPlane": source.get("controlPlane") or {}}, version)
    if _is_ignition(spec):
        return _ignition(render.join(setup, _additions(spec), join))
    return BootstrapData(cloudinit.join_control_plane(setup, join), CLOUD_CONFIG)


def join_worker(spec: Spec, *, version: str, files: Sequence[File], users: Sequence[User]) -> BootstrapData:
    """For a machine that joins as a worker: its Node is tainted until the Machine controller has taken it in."""
    source = part(spec, "joinConfiguration")
    join = join_configuration(_with_uninitialized_taint(source), version)
    if source.get("controlPlane") is not None:
        raise ConfigurationError("Machine is a Worker, but JoinConfiguration.ControlPlane is set in the KubeadmConfig object")
    setup = _setup(spec, files, users)
    if _is_ignition(spec):
        return _ignition(render.join(setup, _additions(spec), join))
    return BootstrapData(cloudinit.join_worker(setup, join), CLOUD_CONFIG)


def _with_uninitialized_taint(join: Mapping[str, Any]) -> Mapping[str, Any]:
    registration = part(join, "nodeRegistration")
    taints = registration.get("taints") or []
    wanted = (UNINITIALIZED_TAINT["key"], UNINITIALIZED_TAINT["effect"])
    if any((taint.get("key"), taint.get("effect")) == wanted for taint in taints):
        return join
    return {**join, "nodeRegistration": {**registration, "taints": [*taints, UNINITIALIZED_TAINT]}}


def _setup(spec: Spec, files: Sequence[File], users: Sequence[User]) -> HostSetup:
    ntp, disks, verbosity = spec.get("ntp"), spec.get("diskSetup"), spec.get("verbosity")
    return HostSetup(
        files=files,
        boot_commands=spec.get("bootCommands") or (),
        pre_kubeadm_commands=spec.get("preKubeadmCommands") or (),
        post_kubeadm_commands=spec.get("postKubeadmCommands") or (),
        users=users,
        ntp=ntp if is_defined(ntp) else None,
        disk_setup=disks if is_defined(disks) else None,
        mounts=spec.get("mounts") or (),
        verbosity="" if verbosity is None else f"--v {verbosity}",
    )


def _is_ignition(spec: Spec) -> bool:
    return spec.get("format") == IGNITION


def _ignition(rendered: tuple[bytes, str]) -> BootstrapData:
    value, warnings = rendered
    return BootstrapData(value, IGNITION, warnings)


def _additions(spec: Spec) -> Mapping[str, Any]:
    return part(part(spec, "ignition"), "containerLinuxConfig")


# The Secret.


def config_reference(config: Mapping[str, Any]) -> Manifest:
    """The owner reference of what a KubeadmConfig makes."""
    metadata = config["metadata"]
    return {
        "apiVersion": KUBEADM_CONFIG.api_version,
        "kind": KUBEADM_CONFIG.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }


def data_secret(config: Mapping[str, Any], cluster: str, value: bytes, data_format: str, rendering: Rendering) -> Manifest:
    metadata = config["metadata"]
    made: Manifest = {
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": {CLUSTER_NAME_LABEL: cluster},
            "ownerReferences": [config_reference(config)],
        },
        "type": SECRET_TYPE,
        "data": {"value": b64encode(value).decode(), "format": b64encode(data_format.encode()).decode()},
    }
    annotations = {VERSION_ANNOTATION: rendering.control_plane_version, TOKEN_ANNOTATION: rendering.token_id}
    if any(annotations.values()):
        made["metadata"]["annotations"] = {name: value for name, value in annotations.items() if value}
    return made


def rendering_of(annotations: Mapping[str, str]) -> Rendering:
    """What the annotations of the Secret tell; empty where they do not."""
    return Rendering(annotations.get(VERSION_ANNOTATION, ""), annotations.get(TOKEN_ANNOTATION, ""))


# kubeadm's documents, byte by byte as Cluster API v1.14 writes them.


def cluster_configuration(source: Source, version: str, additional: AdditionalData) -> str:
    if _is_v1beta3(version):
        document = v1beta3.cluster_configuration(source, additional.control_plane_component_health_check_seconds)
    else:
        document = v1beta4.cluster_configuration(source)
    document["networking"] = filled(
        {
            "dnsDomain": additional.dns_domain,
            "serviceSubnet": additional.service_subnet,
            "podSubnet": additional.pod_subnet,
        }
    )
    document |= filled({"kubernetesVersion": additional.kubernetes_version, "clusterName": additional.cluster_name})
    return _written(document, "ClusterConfiguration", version)


def init_configuration(source: Source, version: str) -> str:
    convert = v1beta3.init_configuration if _is_v1beta3(version) else v1beta4.init_configuration
    return _written(convert(source), "InitConfiguration", version)


def join_configuration(source: Source, version: str) -> str:
    convert = v1beta3.join_configuration if _is_v1beta3(version) else v1beta4.join_configuration
    return _written(convert(source), "JoinConfiguration", version)


def _written(document: JSON, kind: str, version: str) -> str:
    api_version = v1beta3.API_VERSION if _is_v1beta3(version) else v1beta4.API_VERSION
    return dump({"apiVersion": api_version, "kind": kind, **document})


def _is_v1beta3(text: str) -> bool:
    """Which of the two APIs kubeadm of that version is given; a pre-release counts as its release."""
    try:
        version = Version.tolerant(text)
    except ValueError as error:
        raise ConfigurationError(f'failed to parse kubernetes version "{text}": {error}') from None
    release = Version(version.major, version.minor, version.patch)
    if release < _FIRST_V1BETA3:
        raise ConfigurationError("the bootstrap provider for kubeadm doesn't support Kubernetes version lower than v1.22.0")
    return release < _FIRST_V1BETA4
