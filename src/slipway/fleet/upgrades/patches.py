"""The edits of the upgrade guide: one merge patch of a control plane, or one of a MachineDeployment, as an operator would type it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.kinds import KUBEADM_CONTROL_PLANE, MACHINE_DEPLOYMENT
from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.api.releases import release_for
from slipway.fleet.upgrades.versions import is_older

if TYPE_CHECKING:
    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.fleet.upgrades.steps import Patch


class _Component(NamedTuple):
    field: str
    flag: str
    usual: re.Pattern[str]
    """How the tags of its official image look; what looks otherwise was made by somebody who has a scheme of their own."""


_DNS = _Component("dns.imageTag", "--dns-image-tag", re.compile(r"v\d+\.\d+\.\d+"))
_ETCD = _Component("etcd.local.imageTag", "--etcd-image-tag", re.compile(r"\d+\.\d+\.\d+-\d+"))


class Tags(NamedTuple):
    """The tags of a version's CoreDNS and etcd; empty where they are not known."""

    dns: str = ""
    etcd: str = ""


class Edit(NamedTuple):
    """A merge patch of one object, and what is to be said about it."""

    kind: Kind
    name: str
    body: Manifest
    notes: tuple[str, ...] = ()

    def command(self, namespace: str) -> str:
        """As kubectl does it."""
        return f"kubectl -n {namespace} patch {self.kind.kind.lower()} {self.name} --type=merge -p '{json.dumps(self.body)}'"


def edit(step: Patch, control_plane: Manifest, given: Tags = Tags()) -> Edit:  # noqa: B008 - a value that nobody changes
    """``control_plane`` is the KubeadmControlPlane as it is; ``given`` are tags that the operator wants to be pinned."""
    if not step.group.is_control_plane:
        return Edit(MACHINE_DEPLOYMENT, step.group.name, {"spec": {"template": {"spec": {"version": step.version}}}})
    configuration = ((control_plane.get("spec") or {}).get("kubeadmConfigSpec") or {}).get("clusterConfiguration") or {}
    pinned = Tags(
        str((configuration.get("dns") or {}).get("imageTag") or ""),
        str(((configuration.get("etcd") or {}).get("local") or {}).get("imageTag") or ""),
    )
    tags, notes = _tags(pinned, step.version, given)
    changed: Manifest = {}
    if tags.dns:
        changed["dns"] = {"imageTag": tags.dns}
    if tags.etcd:
        changed["etcd"] = {"local": {"imageTag": tags.etcd}}
    spec: Manifest = {"version": step.version}
    if changed:
        spec["kubeadmConfigSpec"] = {"clusterConfiguration": changed}
    return Edit(KUBEADM_CONTROL_PLANE, step.group.name, {"spec": spec}, notes)


def component_tags(version: str) -> Tags:
    """Those that the kubeadm of a version uses."""
    try:
        release = release_for(Version.tolerant(version))
    except (OperatorError, ValueError):
        return Tags()
    return Tags(release.coredns_version, release.etcd_versions[release.version.minor])


def _tags(pinned: Tags, version: str, given: Tags) -> tuple[Tags, tuple[str, ...]]:
    """What each pinned tag becomes, empty where it stays, and why it stays."""
    usual = component_tags(version)
    dns, dns_note = _tag(_DNS, pinned.dns, usual.dns, given.dns, version)
    etcd, etcd_note = _tag(_ETCD, pinned.etcd, usual.etcd, given.etcd, version)
    return Tags(dns, etcd), tuple(each for each in (dns_note, etcd_note) if each)


def _tag(component: _Component, is_now: str, usual: str, asked: str, version: str) -> tuple[str, str]:
    if asked or not is_now:
        return ("" if asked == is_now else asked), ""
    if not component.usual.fullmatch(is_now):
        way = f"where {version} needs another one, say {component.flag}"
        return "", f"{component.field} is {is_now}, a tag of somebody's own, and stays: {way}"
    if not usual:
        return "", f"{component.field} stays {is_now}: which one belongs to {version} is not known here; say {component.flag}"
    return (usual if is_older(is_now, usual) else ""), ""
