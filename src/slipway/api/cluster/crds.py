"""The CustomResourceDefinitions of the kinds that Slipway brings, made from their types."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster.bootstrap import config, v1beta1
from slipway.api.cluster.kinds import CUSTOM_RESOURCE_DEFINITION, KUBEADM_CONFIG, KUBEADM_CONFIG_TEMPLATE, Kind
from slipway.api.machinery.openapi import schema_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.cluster.meta import Type
    from slipway.api.machinery.objects import Manifest

CATEGORY = "cluster-api"
# Which version of a kind satisfies which version of Cluster API's contract; without it the core controllers do not find the kind.
CONTRACT_LABELS = {"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"}


class Column(NamedTuple):
    """A column of ``kubectl get``."""

    name: str
    path: str
    description: str
    type: str = "string"
    priority: int = 0

    def manifest(self) -> Manifest:
        out: Manifest = {"name": self.name, "type": self.type, "jsonPath": self.path, "description": self.description}
        return out | ({"priority": self.priority} if self.priority else {})


class Version(NamedTuple):
    name: str
    type: type[Type]
    columns: Sequence[Column]
    storage: bool = False
    deprecated: bool = False


class Definition(NamedTuple):
    kind: Kind
    versions: Sequence[Version]
    # Where true, .status is written by itself.
    status: bool = False
    short_names: Sequence[str] = ()

    @property
    def name(self) -> str:
        return f"{self.kind.plural}.{self.kind.group}"


def _age(kind: Kind) -> Column:
    return Column("Age", ".metadata.creationTimestamp", f"Time duration since creation of {kind.kind}", "date")


_CLUSTER = Column("Cluster", ".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']", "Cluster")
_PAUSED = Column("Paused", '.status.conditions[?(@.type=="Paused")].status', "Reconciliation paused", priority=10)

DEFINITIONS = (
    Definition(
        KUBEADM_CONFIG,
        (
            Version("v1beta1", v1beta1.KubeadmConfig, (_CLUSTER, _age(KUBEADM_CONFIG)), deprecated=True),
            Version(
                "v1beta2",
                config.KubeadmConfig,
                (
                    _CLUSTER,
                    _PAUSED,
                    Column("Data secret created", ".status.initialization.dataSecretCreated", "Bootstrap secret is created"),
                    _age(KUBEADM_CONFIG),
                ),
                storage=True,
            ),
        ),
        status=True,
    ),
    Definition(
        KUBEADM_CONFIG_TEMPLATE,
        (
            Version("v1beta1", v1beta1.KubeadmConfigTemplate, (_age(KUBEADM_CONFIG_TEMPLATE),), deprecated=True),
            Version(
                "v1beta2",
                config.KubeadmConfigTemplate,
                (
                    Column(
                        "ClusterClass",
                        '.metadata.ownerReferences[?(@.kind=="ClusterClass")].name',
                        "Name of the ClusterClass owning this template",
                    ),
                    Column("Cluster", '.metadata.ownerReferences[?(@.kind=="Cluster")].name', "Name of the Cluster owning this template"),
                    _age(KUBEADM_CONFIG_TEMPLATE),
                ),
                storage=True,
            ),
        ),
    ),
)


def crds() -> list[Manifest]:
    """Every CustomResourceDefinition, without the clause on conversion: where the webhook is, the manager knows."""
    return [crd(definition) for definition in DEFINITIONS]


def crd(definition: Definition) -> Manifest:
    kind = definition.kind
    names = {
        "categories": [CATEGORY],
        "kind": kind.kind,
        "listKind": kind.list_kind,
        "plural": kind.plural,
        "singular": kind.kind.lower(),
    }
    if definition.short_names:
        names["shortNames"] = list(definition.short_names)
    return {
        "apiVersion": CUSTOM_RESOURCE_DEFINITION.api_version,
        "kind": CUSTOM_RESOURCE_DEFINITION.kind,
        "metadata": {"name": definition.name, "labels": dict(CONTRACT_LABELS)},
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [_version(definition, version) for version in definition.versions],
        },
    }


def _version(definition: Definition, version: Version) -> Manifest:
    out: Manifest = {
        "name": version.name,
        "served": True,
        "storage": version.storage,
        "additionalPrinterColumns": [column.manifest() for column in version.columns],
        "schema": {"openAPIV3Schema": schema_of(version.type)},
        "subresources": {"status": {}} if definition.status else {},
    }
    return out | ({"deprecated": True} if version.deprecated else {})
