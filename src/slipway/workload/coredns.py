"""The CoreDNS add-on: name service for Pods and Services, at the tenth address of the Services.

What it consists of, and what becomes of one that runs; nothing here asks or changes a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api import rbac
from slipway.api.machinery.errors import ConfigurationError, OperatorError
from slipway.workload import corefile, images

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.api.kubeadm.internal import ClusterConfiguration
    from slipway.api.machinery.objects import Manifest
    from slipway.api.releases import Release

NAME = "coredns"
COREFILE, BACKUP = "Corefile", "Corefile-backup"
NAMESPACE = "kube-system"
REPLICAS = 2
LABEL = {"k8s-app": "kube-dns"}


class Deployed(NamedTuple):
    """What a cluster runs."""

    version: str
    """The tag of the image; empty where there is no Deployment."""
    replicas: int


class Running(NamedTuple):
    """What is to be upgraded."""

    corefile: str
    version: str
    """Without its v."""


NOTHING = Running("", "")


class Update(NamedTuple):
    """What is to become of an add-on that runs."""

    migrated: Manifest | None = None
    """The ConfigMap with an operator's Corefile in its new form and in its old one, where anything in it has to change."""
    keeps_corefile: bool = False
    keeps_deployment: bool = False
    problem: str = ""
    """Why the Corefile cannot be moved to the new CoreDNS; empty where it can."""


def manifests(cluster: ClusterConfiguration, deployment: Manifest) -> list[Manifest]:
    """Everything that the add-on consists of, for other tools to apply; the Deployment may have been patched."""
    return [deployment, config_map(cluster), service(cluster), *access(), account()]


def written(cluster: ClusterConfiguration, deployment: Manifest, update: Update) -> list[Manifest]:
    """What is to be created or replaced, once a Corefile that must change was migrated."""
    made = [*([] if update.keeps_corefile else [config_map(cluster)]), *access(), account()]
    return [*made, *([] if update.keeps_deployment else [deployment]), service(cluster)]


def address(service_subnet: str) -> str:
    """The address of the name service: the tenth of the first service subnet."""
    from ipaddress import ip_network

    subnet = service_subnet.split(",")[0]
    try:
        return str(ip_network(subnet, strict=False)[10])
    except (ValueError, IndexError) as error:
        raise ConfigurationError(f'unable to get the DNS IP from the service subnet "{service_subnet}": {error}') from error


def default_corefile(dns_domain: str) -> str:
    """What CoreDNS serves; answers for the cluster itself are not cached."""
    cache = ["cache 30 {", f"   disable success {dns_domain}", f"   disable denial {dns_domain}", "}"] if dns_domain else ["cache 30"]
    lines = [
        "errors",
        "health {",
        "   lameduck 5s",
        "}",
        "ready",
        f"kubernetes {dns_domain} in-addr.arpa ip6.arpa {{",
        "   pods insecure",
        "   fallthrough in-addr.arpa ip6.arpa",
        "   ttl 30",
        "}",
        "prometheus :9153",
        "forward . /etc/resolv.conf {",
        "   max_concurrent 1000",
        "}",
        *cache,
        "loop",
        "reload",
        "loadbalance",
    ]
    return "\n".join([".:53 {", *(f"    {line}" for line in lines), "}", ""])


def config_map(cluster: ClusterConfiguration) -> Manifest:
    data = {COREFILE: default_corefile(cluster.networking.dns_domain)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "namespace": NAMESPACE}, "data": data}


def access() -> list[Manifest]:
    role = f"system:{NAME}"
    watched = {"": ["endpoints", "services", "pods", "namespaces"], "discovery.k8s.io": ["endpointslices"]}
    rules = [{"apiGroups": [group], "resources": resources, "verbs": ["list", "watch"]} for group, resources in watched.items()]
    return [rbac.role(role, rules), rbac.binding(role, role, [rbac.service_account(NAME, NAMESPACE)])]


def account() -> Manifest:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": NAMESPACE}}


def service(cluster: ClusterConfiguration) -> Manifest:
    ports = (("dns", 53, "UDP"), ("dns-tcp", 53, "TCP"), ("metrics", 9153, "TCP"))
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kube-dns",
            "namespace": NAMESPACE,
            "labels": {**LABEL, "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS"},
            "annotations": {"prometheus.io/port": "9153", "prometheus.io/scrape": "true"},
            # Without one an update of a Service is refused.
            "resourceVersion": "0",
        },
        "spec": {
            "clusterIP": address(cluster.networking.service_subnet),
            "ports": [{"name": name, "port": port, "protocol": protocol, "targetPort": port} for name, port, protocol in ports],
            "selector": dict(LABEL),
        },
    }


def deployment(cluster: ClusterConfiguration, release: Release, replicas: int = REPLICAS) -> Manifest:
    """Before a user's patches."""
    apart = {"labelSelector": {"matchExpressions": [{"key": "k8s-app", "operator": "In", "values": ["kube-dns"]}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": dict(LABEL)},
        "spec": {
            "replicas": replicas,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "selector": {"matchLabels": dict(LABEL)},
            "template": {
                "metadata": {"labels": dict(LABEL)},
                "spec": {
                    "priorityClassName": "system-cluster-critical",
                    "serviceAccountName": NAME,
                    "affinity": {
                        "podAntiAffinity": {
                            "preferredDuringSchedulingIgnoredDuringExecution": [
                                {"weight": 100, "podAffinityTerm": {**apart, "topologyKey": "kubernetes.io/hostname"}}
                            ]
                        }
                    },
                    "tolerations": [
                        {"key": "CriticalAddonsOnly", "operator": "Exists"},
                        {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"},
                    ],
                    "nodeSelector": {"kubernetes.io/os": "linux"},
                    "containers": [_container(cluster, release)],
                    "dnsPolicy": "Default",
                    "volumes": [_volume(COREFILE)],
                },
            },
        },
    }


def _container(cluster: ClusterConfiguration, release: Release) -> Manifest:
    ports = [("dns", 53, "UDP"), ("dns-tcp", 53, "TCP"), ("metrics", 9153, "TCP")]
    liveness: int | str = 8080
    readiness: int | str = 8181
    if release.named_probe_ports:
        ports += [("liveness-probe", 8080, "TCP"), ("readiness-probe", 8181, "TCP")]
        liveness, readiness = "liveness-probe", "readiness-probe"
    return {
        "name": NAME,
        "image": images.coredns(cluster, release),
        "imagePullPolicy": "IfNotPresent",
        "resources": {"limits": {"memory": "170Mi"}, "requests": {"cpu": "100m", "memory": "70Mi"}},
        "args": ["-conf", "/etc/coredns/Corefile"],
        "volumeMounts": [{"name": "config-volume", "mountPath": "/etc/coredns", "readOnly": True}],
        "ports": [{"containerPort": port, "name": name, "protocol": protocol} for name, port, protocol in ports],
        "livenessProbe": {
            "httpGet": {"path": "/health", "port": liveness, "scheme": "HTTP"},
            "initialDelaySeconds": 60,
            "timeoutSeconds": 5,
            "successThreshold": 1,
            "failureThreshold": 5,
        },
        "readinessProbe": {"httpGet": {"path": "/ready", "port": readiness, "scheme": "HTTP"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }


def deployed(found: Sequence[Manifest]) -> Deployed:
    """What the Deployments with the add-on's label say; more than one cannot be told apart."""
    if len(found) > 1:
        names = ", ".join(manifest["metadata"]["name"] for manifest in found)
        raise OperatorError(f"multiple DNS addon deployments found: {names}: delete all but one")
    if not found:
        return Deployed("", REPLICAS)
    spec = found[0]["spec"]
    return Deployed(images.tag_of(spec["template"]["spec"]["containers"][0]["image"]), int(spec.get("replicas", REPLICAS)))


def corefile_of(found: Manifest) -> str:
    """The Corefile of the add-on's ConfigMap."""
    data = found.get("data") or {}
    if COREFILE not in data:
        raise OperatorError(f'unable to find the CoreDNS Corefile data: the ConfigMap "{NAME}" in {NAMESPACE} has no key "{COREFILE}"')
    return str(data[COREFILE])


def unsupported_plugins(found: Running, release: Release) -> list[corefile.Notice]:
    """What nobody has looked at of a Corefile that is to be moved to the CoreDNS of the release."""
    return corefile.unsupported(found.corefile, _steps(found, release))


def migrated(found: Running, release: Release) -> str:
    """The Corefile for the CoreDNS of the release; OperatorError says why there is none."""
    return corefile.migrate(found.corefile, _steps(found, release))


def update(found: Running, cluster: ClusterConfiguration, release: Release) -> Update:
    """An operator's own Corefile is kept, and moved to the new CoreDNS where anything in it has to change."""
    if not found.corefile or not found.version:
        return Update(keeps_corefile=bool(found.corefile) and not corefile.is_default(found.corefile))
    if corefile.is_default(found.corefile):
        return Update()
    try:
        steps = _steps(found, release)
    except OperatorError as error:
        # The preflight checks told it, and were ignored; kubeadm would stop here, half way through an upgrade.
        return Update(keeps_corefile=True, keeps_deployment=True, problem=error.message)
    if not any(change.severity in (corefile.REMOVED, corefile.NEW_DEFAULT) for change in corefile.changes(found.corefile, steps)):
        return Update(keeps_corefile=True)
    made = config_map(cluster)
    made["data"] = {COREFILE: corefile.migrate(found.corefile, steps), BACKUP: found.corefile}
    return Update(migrated=made, keeps_corefile=True)


def on_old_corefile() -> Manifest:
    """The patch with which a CoreDNS that runs goes on with its old Corefile until the new one is rolled out."""
    return {"spec": {"template": {"spec": {"volumes": [_volume(BACKUP)]}}}}


def _steps(found: Running, release: Release) -> tuple[str, ...]:
    target = release.coredns_version.lstrip("v")
    # A cluster without CoreDNS has nothing to migrate; kubeadm's checks fail there, and have to be ignored by name.
    return () if found.version == target or found == NOTHING else corefile.steps(found.version, target, newest=target)


def _volume(key: str) -> Manifest:
    return {"name": "config-volume", "configMap": {"name": NAME, "items": [{"key": key, "path": COREFILE}]}}
