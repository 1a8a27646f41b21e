"""The resources that the server has: the built-in ones as a table, and those of CustomResourceDefinitions as they come.

The facts of the table (names, short names, categories, sub-resources) are Kubernetes 1.35's own discovery documents; only
versions that are on by default there are served.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.embedded.apiextensions.resources import CustomVersion

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_VERSION = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?\Z")
_STAGES = {"": 2, "beta": 1, "alpha": 0}
STATUS_VERBS = ("get", "patch", "update")


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """One resource in one API version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    bucket: str
    """Where the store keeps its objects: the same for all versions of a resource."""
    storage_version: str
    """The apiVersion in which the store keeps them."""
    generation: bool = False
    """Whether objects have a metadata.generation, which counts the changes of what users ask for."""
    creates_on_update: bool = False
    """Whether an update of an object that is not there creates it."""
    unconditional: bool = True
    """Whether an update may come without a resourceVersion."""
    custom: CustomVersion | None = None
    """What a CustomResourceDefinition says of this version."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources


class Subresource(NamedTuple):
    """What discovery says of a sub-resource that is not the object itself."""

    kind: str
    group: str
    version: str
    verbs: tuple[str, ...]


SUBRESOURCES = {
    "scale": Subresource("Scale", "autoscaling", "v1", STATUS_VERBS),
    "eviction": Subresource("Eviction", "policy", "v1", ("create",)),
    "binding": Subresource("Binding", "", "", ("create",)),
    "token": Subresource("TokenRequest", "authentication.k8s.io", "v1", ("create",)),
    "finalize": Subresource("", "", "", ("update",)),
}

# Group/version, then one line a resource: plural, Kind, then words.  "cluster": not in a namespace; "short=", "in=" (categories) and
# "sub=" take lists; "generation", "creates" and "conditional" are the flags of Resource.
_TABLE = """
v1
  configmaps ConfigMap short=cm
  endpoints Endpoints singular=endpoints short=ep creates
  events Event short=ev creates
  limitranges LimitRange short=limits creates
  namespaces Namespace cluster short=ns sub=finalize,status verbs=create,delete,get,list,patch,update,watch
  nodes Node cluster short=no sub=status
  persistentvolumeclaims PersistentVolumeClaim short=pvc sub=status
  persistentvolumes PersistentVolume cluster short=pv sub=status
  pods Pod short=po in=all sub=binding,ephemeralcontainers,eviction,resize,status generation
  podtemplates PodTemplate generation
  replicationcontrollers ReplicationController short=rc in=all sub=scale,status generation
  resourcequotas ResourceQuota short=quota sub=status
  secrets Secret
  serviceaccounts ServiceAccount short=sa sub=token
  services Service short=svc in=all sub=status creates
admissionregistration.k8s.io/v1
  mutatingwebhookconfigurations MutatingWebhookConfiguration cluster in=api-extensions generation conditional
  validatingadmissionpolicies ValidatingAdmissionPolicy cluster in=api-extensions sub=status generation conditional
  validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding cluster in=api-extensions generation conditional
  validatingwebhookconfigurations ValidatingWebhookConfiguration cluster in=api-extensions generation conditional
apiextensions.k8s.io/v1
  customresourcedefinitions CustomResourceDefinition cluster short=crd,crds in=api-extensions sub=status generation conditional
apiregistration.k8s.io/v1
  apiservices APIService cluster in=api-extensions sub=status
apps/v1
  controllerrevisions ControllerRevision
  daemonsets DaemonSet short=ds in=all sub=status generation
  deployments Deployment short=deploy in=all sub=scale,status generation
  replicasets ReplicaSet short=rs in=all sub=scale,status generation
  statefulsets StatefulSet short=sts in=all sub=scale,status generation
authentication.k8s.io/v1
  selfsubjectreviews SelfSubjectReview cluster verbs=create
  tokenreviews TokenReview cluster verbs=create
authorization.k8s.io/v1
  localsubjectaccessreviews LocalSubjectAccessReview verbs=create
  selfsubjectaccessreviews SelfSubjectAccessReview cluster verbs=create
  selfsubjectrulesreviews SelfSubjectRulesReview cluster verbs=create
  subjectaccessreviews SubjectAccessReview cluster verbs=create
autoscaling/v2
  horizontalpodautoscalers HorizontalPodAutoscaler short=hpa in=all sub=status
batch/v1
  cronjobs CronJob short=cj in=all sub=status generation
  jobs Job in=all sub=status generation
certificates.k8s.io/v1
  certificatesigningrequests CertificateSigningRequest cluster short=csr sub=approval,status
coordination.k8s.io/v1
  leases Lease creates conditional
discovery.k8s.io/v1
  endpointslices EndpointSlice generation
events.k8s.io/v1
  events Event short=ev creates
networking.k8s.io/v1
  ingressclasses IngressClass cluster singular=ingressclass generation
  ingresses Ingress singular=ingress short=ing sub=status generation
  networkpolicies NetworkPolicy singular=networkpolicy short=netpol generation
node.k8s.io/v1
  runtimeclasses RuntimeClass cluster singular=runtimeclass creates conditional
policy/v1
  poddisruptionbudgets PodDisruptionBudget short=pdb sub=status generation conditional
rbac.authorization.k8s.io/v1
  clusterrolebindings ClusterRoleBinding cluster creates
  clusterroles ClusterRole cluster creates
  rolebindings RoleBinding creates
  roles Role creates
scheduling.k8s.io/v1
  priorityclasses PriorityClass cluster singular=priorityclass short=pc generation
storage.k8s.io/v1
  csidrivers CSIDriver cluster conditional
  csinodes CSINode cluster conditional
  csistoragecapacities CSIStorageCapacity conditional
  storageclasses StorageClass cluster short=sc
  volumeattachments VolumeAttachment cluster sub=status conditional
"""

# Events are one resource with two faces.
_BUCKETS = {("events.k8s.io", "events"): ("events", "v1")}


def bucket_of(group: str, plural: str) -> str:
    return f"{plural}.{group}" if group else plural


def priority(version: str) -> tuple[int, int, int, int]:
    """How good a version of an API is, by its name: the higher, the better."""
    match = _VERSION.match(version)
    if match is None:
        return (0, 0, 0, 0)
    major, stage, minor = match.groups()
    return (1, _STAGES[stage or ""], int(major), int(minor or 0))


@cache
def built_in() -> tuple[Resource, ...]:
    """The resources of the table, in its order: the same for all servers."""
    found: list[Resource] = []
    api_version = ""
    for line in _TABLE.strip().splitlines():
        if not line.startswith(" "):
            api_version = line
            continue
        found.append(_row(api_version, line.split()))
    return tuple(found)


def _row(api_version: str, words: list[str]) -> Resource:
    plural, kind, *rest = words
    flags = {word for word in rest if "=" not in word}
    values = {name: tuple(listed.split(",")) for name, _, listed in (word.partition("=") for word in rest if "=" in word)}
    group, _, version = api_version.rpartition("/")
    bucket, storage_version = _BUCKETS.get((group, plural), (bucket_of(group, plural), api_version))
    return Resource(
        group=group,
        version=version,
        plural=plural,
        kind=kind,
        singular=values["singular"][0] if "singular" in values else kind.lower(),
        list_kind=f"{kind}List",
        namespaced="cluster" not in flags,
        short_names=values.get("short", ()),
        categories=values.get("in", ()),
        subresources=values.get("sub", ()),
        verbs=values.get("verbs", ALL_VERBS),
        bucket=bucket,
        storage_version=storage_version,
        generation="generation" in flags,
        creates_on_update="creates" in flags,
        unconditional="conditional" not in flags,
    )


class Catalog:
    """All resources that are served now."""

    def __init__(self) -> None:
        self._resources = {(resource.group, resource.version, resource.plural): resource for resource in built_in()}
        self._stored: dict[str, Resource] = {}
        self._buckets: dict[str, list[Resource]] = {}
        self.changed: Callable[[], None] = lambda: None
        """Called after every change."""
        self.generation = 0
        """Counts the changes, for who keeps something made from the catalog."""
        self._index()

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._resources.get((group, version, plural))

    def all(self) -> list[Resource]:
        return list(self._resources.values())

    def of_group(self, group: str) -> list[Resource]:
        return [resource for resource in self._resources.values() if resource.group == group]

    def of_bucket(self, bucket: str) -> list[Resource]:
        """A resource in all its versions, in the order in which its definition has them."""
        return self._buckets.get(bucket, [])

    def stored_as(self, bucket: str) -> Resource | None:
        """The resource of a bucket in the version in which objects are kept; where that is not served, in another one."""
        return self._stored.get(bucket)

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        """The resource of a kind; where that version is not served, the one of another version of the group."""
        group, _, version = api_version.rpartition("/")
        same = [resource for resource in self._resources.values() if resource.group == group and resource.kind == kind]
        return next((resource for resource in same if resource.version == version), same[0] if same else None)

    def set_custom(self, bucket: str, resources: list[Resource]) -> None:
        """Serve these versions of a custom resource, and no others."""
        gone = [key for key, resource in self._resources.items() if resource.custom is not None and resource.bucket == bucket]
        for key in gone:
            del self._resources[key]
        for resource in resources:
            self._resources[resource.group, resource.version, resource.plural] = resource
        self.generation += 1
        self._index()
        self.changed()

    def _index(self) -> None:
        self._stored, self._buckets = {}, {}
        for resource in self._resources.values():
            self._buckets.setdefault(resource.bucket, []).append(resource)
            if resource.bucket not in self._stored or resource.api_version == resource.storage_version:
                self._stored[resource.bucket] = resource
