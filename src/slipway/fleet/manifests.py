"""Everything that a management cluster needs before a manager can work in it, as manifests in the order in which they are applied.

They are made from the controllers' own declarations: CRDs from the types, permissions from the reconcilers, webhooks from their table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.cluster import kinds
from slipway.api.machinery.errors import OperatorError
from slipway.fleet.inventory import options as hosts
from slipway.fleet.overview.objects import KINDS as SHOWN
from slipway.runtime import rbac
from slipway.runtime.rbac import Rule, rule
from slipway.runtime.webhook import conversion
from slipway.runtime.webhook.admission import Defaulter, Validator
from slipway.runtime.webhook.store import Target

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slipway.api.cluster.kinds import Kind
    from slipway.api.machinery.objects import Manifest
    from slipway.runtime.manager import Lease

NAMESPACE = "slipway-system"
NAME = "slipway-manager"
WEBHOOK_SERVICE = "slipway-webhook"
WEBHOOK_SECRET = "slipway-webhook-certificate"
MUTATING = "slipway-mutating-webhooks"
VALIDATING = "slipway-validating-webhooks"
DASHBOARD = f"{NAME}-dashboard"
DASHBOARD_SERVICE = "slipway-dashboard"
DASHBOARD_SECRET = "slipway-dashboard-certificate"
WEBHOOK_PORT = 9443
DASHBOARD_PORT = 9444
HEALTH_PORT = 9440
METRICS_PORT = 8080
INVENTORY = "inventory"
"""The controllers with which a manager registers hosts."""
CONTROL_PLANE = "controlplane"
"""Those that take snapshots of etcd."""
_LABELS = {"app.kubernetes.io/name": "slipway", "app.kubernetes.io/component": "manager"}
# clusterctl and the core manager find providers by it.
_PROVIDER_LABEL = "cluster.x-k8s.io/provider"
# Providers whose kinds are in groups of their own label the role that lets Cluster API's controllers work with them.
_AGGREGATED = {"cluster.x-k8s.io/aggregate-to-manager": "true"}
# Who runs the manager in its container; any number but root's would do.
_USER = 65532


class Installation(NamedTuple):
    """What is installed: the controllers' declarations, and where the manager lives."""

    rules: Sequence[Rule]
    crds: Sequence[Manifest]
    webhooks: Sequence[Validator | Defaulter]
    controllers: Sequence[str]
    image: str
    leases: Sequence[Lease] = ()
    """By which the managers of these controllers agree on who works: upstream's own, so that one of upstream's never works beside ours."""
    works_with_providers: bool = False
    """Whether the controllers work with objects of any provider."""
    namespace: str = NAMESPACE
    provider: str = ""
    webhook_url: str = ""
    """Where a manager outside of the cluster is called; without it the manager is a Deployment behind a Service."""
    registration_flags: Sequence[str] = ()
    """What the manager is told of how hosts reach it and the API server."""
    dashboard: bool = False
    """Whether the manager serves its web page."""
    shards: int = 1
    """Over how many replicas the clusters are divided."""
    division: Sequence[Lease] = ()
    """The Leases by which these agree on who has which."""


def manifests(installation: Installation) -> list[Manifest]:
    """In an order in which they can be applied; the webhooks come last, as they refuse everything until the manager answers."""
    check_url(installation.webhook_url)
    inside = [*_services(installation), _deployment(installation)] if not installation.webhook_url else []
    made = [
        *(_namespace(name) for name in dict.fromkeys((installation.namespace, *(lease.namespace for lease in installation.leases)))),
        *(with_conversion(crd, installation) for crd in installation.crds),
        _account(installation),
        *_permissions(installation),
        *(_dashboard_permissions(installation) if installation.dashboard else ()),
        *inside,
        *_configurations(installation),
    ]
    return [_labelled(manifest, installation) for manifest in made]


def cluster_wide(name: str, namespace: str) -> str:
    """The name of an object that is in no namespace: managers in several namespaces, each with controllers of its own, have each theirs."""
    return name if namespace == NAMESPACE else f"{name}-{namespace}"


def targets(crds: Iterable[Manifest], webhooks: Iterable[Validator | Defaulter], namespace: str = NAMESPACE) -> list[Target]:
    """What must know the authority of the webhooks of the manager in a namespace."""
    hooks = list(webhooks)
    found = [Target(kinds.CUSTOM_RESOURCE_DEFINITION, crd["metadata"]["name"]) for crd in crds if _is_converted(crd)]
    if any(isinstance(hook, Defaulter) for hook in hooks):
        found.append(Target(kinds.MUTATING_WEBHOOK_CONFIGURATION, cluster_wide(MUTATING, namespace)))
    if any(isinstance(hook, Validator) for hook in hooks):
        found.append(Target(kinds.VALIDATING_WEBHOOK_CONFIGURATION, cluster_wide(VALIDATING, namespace)))
    return found


def cluster_rules(
    rules: Iterable[Rule], crds: Iterable[Manifest], webhooks: Iterable[Validator | Defaulter], namespace: str = NAMESPACE
) -> list[Rule]:
    """What the manager needs in the whole cluster: what its reconcilers need, Events, and its authority's places."""
    names: dict[Kind, list[str]] = {}
    for target in targets(crds, webhooks, namespace):
        names.setdefault(target.kind, []).append(target.name)
    telling = [rule(kind, "get", "patch", names=found) for kind, found in names.items()]
    return rbac.merged([*rules, rule(kinds.CORE_EVENT, "create", "patch"), *telling])


def own_rules() -> list[Rule]:
    """What it needs in its own namespace: the certificates of what it serves.  A name cannot limit a creation."""
    return [rule(kinds.SECRET, "create"), rule(kinds.SECRET, "get", "update", names=(WEBHOOK_SECRET, hosts.SECRET))]


def dashboard_rules() -> list[Rule]:
    """What it needs in the whole cluster to show what there is, to those whom the API server lets see it."""
    reviews = [rule(kind, "create") for kind in (kinds.TOKEN_REVIEW, kinds.SUBJECT_ACCESS_REVIEW)]
    return rbac.merged([*(rule(kind, *rbac.READ) for kind in SHOWN.values()), *reviews])


def lease_rules(leases: Iterable[Lease], division: Iterable[Lease] = ()) -> dict[str, list[Rule]]:
    """What it needs to lead, by namespace; those who share the work look at all Leases of their ``division`` at once."""
    names: dict[str, list[str]] = {}
    listed = {lease.namespace for lease in division}
    for lease in (*leases, *division):
        names.setdefault(lease.namespace, []).append(lease.name)
    return {
        namespace: [
            rule(kinds.LEASE, "create", *(("list",) if namespace in listed else ())),
            rule(kinds.LEASE, "get", "update", names=found),
        ]
        for namespace, found in names.items()
    }


def with_conversion(crd: Manifest, installation: Installation) -> Manifest:
    """A CRD whose versions are converted by the manager, where it has more than one."""
    if not _is_converted(crd):
        return crd
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": _client(installation, conversion.PATH)}
    return {**crd, "spec": {**crd["spec"], "conversion": {"strategy": "Webhook", "webhook": webhook}}}


def check_url(url: str) -> None:
    if url and (not url.startswith("https://") or url == "https://" or "?" in url or "#" in url):
        raise OperatorError(f'"{url}" is not a URL at which the API server can call webhooks: it is to be https://HOST[:PORT][/PATH]')


def _is_converted(crd: Manifest) -> bool:
    return len([version for version in crd["spec"]["versions"] if version.get("served")]) > 1


def _client(installation: Installation, path: str) -> Manifest:
    if installation.webhook_url:
        return {"url": installation.webhook_url.rstrip("/") + path}
    return {"service": {"namespace": installation.namespace, "name": WEBHOOK_SERVICE, "path": path, "port": 443}}


def _namespace(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _account(installation: Installation) -> Manifest:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": installation.namespace}}


def _permissions(installation: Installation) -> list[Manifest]:
    subject = rbac.service_account(NAME, installation.namespace)
    home = installation.namespace
    roles = [rbac.cluster_role(cluster_wide(NAME, home), cluster_rules(installation.rules, installation.crds, installation.webhooks, home))]
    if installation.works_with_providers:
        roles.append(rbac.aggregated_role(cluster_wide(f"{NAME}-providers", home), _AGGREGATED))
    here = {home: own_rules()}
    for namespace, rules in lease_rules(installation.leases, installation.division).items():
        here[namespace] = [*here.get(namespace, ()), *rules]
    # Two managers may have leases in one namespace, too.
    roles += [rbac.role(cluster_wide(NAME, home), namespace, rules) for namespace, rules in here.items()]
    return [manifest for role in roles for manifest in (role, rbac.binding(role, subject))]


def _dashboard_permissions(installation: Installation) -> list[Manifest]:
    home = installation.namespace
    certificate = [rule(kinds.SECRET, "create"), rule(kinds.SECRET, "get", "update", names=(DASHBOARD_SECRET,))]
    roles = [
        rbac.cluster_role(cluster_wide(DASHBOARD, home), dashboard_rules()),
        rbac.role(cluster_wide(DASHBOARD, home), home, certificate),
    ]
    subject = rbac.service_account(NAME, home)
    return [manifest for role in roles for manifest in (role, rbac.binding(role, subject))]


def _services(installation: Installation) -> list[Manifest]:
    found = [_service(installation, WEBHOOK_SERVICE, "webhook")]
    if installation.dashboard:
        found.append(_service(installation, DASHBOARD_SERVICE, "dashboard"))
    if _registers(installation):
        found.append(_service(installation, hosts.SERVICE, "registration"))
    return found


def _service(installation: Installation, name: str, port: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": installation.namespace},
        "spec": {"selector": _LABELS, "ports": [{"name": port, "port": 443, "protocol": "TCP", "targetPort": port}]},
    }


def _registers(installation: Installation) -> bool:
    """Whether hosts register at this manager."""
    return INVENTORY in installation.controllers


def _deployment(installation: Installation) -> Manifest:
    probe = {"port": "health", "scheme": "HTTP"}
    container: Manifest = {
        "name": "manager",
        "image": installation.image,
        "args": [
            "manager",
            "run",
            "--leader-elect",
            f"--controllers={','.join(installation.controllers)}",
            f"--health-addr=:{HEALTH_PORT}",
            f"--metrics-bind-address=:{METRICS_PORT}",
            f"--webhook-port={WEBHOOK_PORT}",
        ],
        "ports": [
            {"name": "health", "containerPort": HEALTH_PORT, "protocol": "TCP"},
            {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
            {"name": "webhook", "containerPort": WEBHOOK_PORT, "protocol": "TCP"},
        ],
        "livenessProbe": {"httpGet": {"path": "/healthz", **probe}},
        "readinessProbe": {"httpGet": {"path": "/readyz", **probe}},
        "resources": {"requests": {"cpu": "50m", "memory": "96Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if _registers(installation):
        container["args"] += [f"{hosts.FLAG}=:{hosts.PORT}", *installation.registration_flags]
        container["ports"].append({"name": "registration", "containerPort": hosts.PORT, "protocol": "TCP"})
    works_there = _registers(installation) or CONTROL_PLANE in installation.controllers
    if works_there:
        # Images for hosts are put together there, and snapshots of etcd checked on their way to a store.
        container["volumeMounts"] = [{"name": "work", "mountPath": "/tmp"}]
    if installation.shards > 1:
        container["args"].append(f"--shards={installation.shards}")
    if installation.dashboard:
        container["args"].append(f"--dashboard-bind-address=:{DASHBOARD_PORT}")
        container["ports"].append({"name": "dashboard", "containerPort": DASHBOARD_PORT, "protocol": "TCP"})
    pod: Manifest = {
        "serviceAccountName": NAME,
        "terminationGracePeriodSeconds": 30,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}],
        "containers": [container],
    }
    if works_there:
        # etcd advises against databases of more than 8 GiB.
        pod["volumes"] = [{"name": "work", "emptyDir": {"sizeLimit": "10Gi"}}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": installation.namespace},
        "spec": {
            "replicas": installation.shards,
            "selector": {"matchLabels": _LABELS},
            "template": {"metadata": {"labels": _LABELS}, "spec": pod},
        },
    }


def _configurations(installation: Installation) -> list[Manifest]:
    """One object for each of the two sorts, where there is a webhook of it."""
    made = []
    for name, kind, sort in (
        (MUTATING, kinds.MUTATING_WEBHOOK_CONFIGURATION, Defaulter),
        (VALIDATING, kinds.VALIDATING_WEBHOOK_CONFIGURATION, Validator),
    ):
        hooks = [_webhook(hook, installation) for hook in installation.webhooks if isinstance(hook, sort)]
        if hooks:
            metadata = {"name": cluster_wide(name, installation.namespace)}
            made.append({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "webhooks": hooks})
    return made


def _webhook(hook: Validator | Defaulter, installation: Installation) -> Manifest:
    kind = hook.kind
    rules = {
        "apiGroups": [kind.group],
        "apiVersions": [kind.version],
        "operations": list(hook.operations),
        "resources": [f"{kind.plural}/{hook.subresource}" if isinstance(hook, Validator) and hook.subresource else kind.plural],
        "scope": "Namespaced" if kind.namespaced else "Cluster",
    }
    advice = isinstance(hook, Validator) and hook.fails_open
    condition = hook.condition if isinstance(hook, Validator) else ""
    return {
        "name": hook.name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": _client(installation, hook.path),
        "failurePolicy": "Ignore" if advice else "Fail",
        **({"matchConditions": [{"name": "concerned", "expression": condition}]} if condition else {}),
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": 10,
        "rules": [rules],
    }


def _labelled(manifest: Manifest, installation: Installation) -> Manifest:
    metadata = manifest["metadata"]
    labels = {**_LABELS, **({_PROVIDER_LABEL: installation.provider} if installation.provider else {}), **(metadata.get("labels") or {})}
    return {**manifest, "metadata": {**metadata, "labels": labels}}
