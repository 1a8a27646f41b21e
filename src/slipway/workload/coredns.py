"""The CoreDNS add-on: name service for Pods and Services, at the tenth address of the Services."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from slipway.api.machinery.errors import ConfigurationError, OperatorError
from slipway.node.staticpods import patches
from slipway.workload import images, roles

if TYPE_CHECKING:
    from collections.abc import Collection

    from slipway.api.kubeadm.internal import ClusterConfiguration
    from slipway.api.machinery.objects import Manifest
    from slipway.api.releases import Release
    from slipway.node.cluster.interface import Cluster
    from slipway.node.context import NodeContext
    from slipway.node.preflight.check import Findings

NAME = "coredns"
COREFILE, BACKUP = "Corefile", "Corefile-backup"
NAMESPACE = "kube-system"
REPLICAS = 2
_LABEL = {"k8s-app": "kube-dns"}


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


def install(ctx: NodeContext, cluster: Cluster) -> None:
    """Create or update the add-on; replicas that an operator chose are kept, and a Corefile that is an operator's own."""
    replicas = deployed(cluster).replicas
    workload = patches.patch(ctx, "corednsdeployment", deployment(ctx.config.cluster, ctx.release, replicas))
    found = running(cluster)
    kept = _update_corefile(ctx, cluster, found)
    made = [*([] if kept.corefile else [config_map(ctx.config.cluster)]), *access(), account()]
    made += [*([] if kept.deployment else [workload]), service(ctx.config.cluster)]
    cluster.apply_all(made)
    ctx.progress.say("[addons] Applied essential addon: CoreDNS")


def manifests(ctx: NodeContext) -> list[Manifest]:
    """Everything that the add-on consists of, for other tools to apply."""
    workload = patches.patch(ctx, "corednsdeployment", deployment(ctx.config.cluster, ctx.release))
    return [workload, config_map(ctx.config.cluster), service(ctx.config.cluster), *access(), account()]


def address(service_subnet: str) -> str:
    """The address of the name service: the tenth of the first service subnet."""
    from ipaddress import ip_network

    subnet = service_subnet.split(",")[0]
    try:
        return str(ip_network(subnet, strict=False)[10])
    except (ValueError, IndexError) as error:
        raise ConfigurationError(f'unable to get the DNS IP from the service subnet "{service_subnet}": {error}') from error


def corefile(dns_domain: str) -> str:
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
    data = {"Corefile": corefile(cluster.networking.dns_domain)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "namespace": NAMESPACE}, "data": data}


def access() -> list[Manifest]:
    role = f"system:{NAME}"
    watched = {"": ["endpoints", "services", "pods", "namespaces"], "discovery.k8s.io": ["endpointslices"]}
    rules = [{"apiGroups": [group], "resources": resources, "verbs": ["list", "watch"]} for group, resources in watched.items()]
    return [roles.cluster_role(role, *rules), roles.cluster_role_binding(role, role, roles.service_account(NAME, NAMESPACE))]


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
            "labels": {**_LABEL, "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS"},
            "annotations": {"prometheus.io/port": "9153", "prometheus.io/scrape": "true"},
            # Without one an update of a Service is refused.
            "resourceVersion": "0",
        },
        "spec": {
            "clusterIP": address(cluster.networking.service_subnet),
            "ports": [{"name": name, "port": port, "protocol": protocol, "targetPort": port} for name, port, protocol in ports],
            "selector": dict(_LABEL),
        },
    }


def deployment(cluster: ClusterConfiguration, release: Release, replicas: int = REPLICAS) -> Manifest:
    """Before a user's patches."""
    apart = {"labelSelector": {"matchExpressions": [{"key": "k8s-app", "operator": "In", "values": ["kube-dns"]}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": dict(_LABEL)},
        "spec": {
            "replicas": replicas,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "selector": {"matchLabels": dict(_LABEL)},
            "template": {
                "metadata": {"labels": dict(_LABEL)},
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


def deployed(cluster: Cluster) -> Deployed:
    """The Deployment that is there."""
    found = cluster.list("apps/v1", "Deployment", NAMESPACE, _LABEL)
    if len(found) > 1:
        names = ", ".join(manifest["metadata"]["name"] for manifest in found)
        raise OperatorError(f"multiple DNS addon deployments found: {names}: delete all but one")
    if not found:
        return Deployed("", REPLICAS)
    spec = found[0]["spec"]
    return Deployed(images.tag_of(spec["template"]["spec"]["containers"][0]["image"]), int(spec.get("replicas", REPLICAS)))


def running(cluster: Cluster) -> Running:
    """The Corefile in use and the version of CoreDNS that reads it; both are empty where there is no Corefile."""
    found = cluster.get("v1", "ConfigMap", NAME, NAMESPACE)
    if found is None:
        return NOTHING
    data = found.get("data") or {}
    if COREFILE not in data:
        raise OperatorError(f'unable to find the CoreDNS Corefile data: the ConfigMap "{NAME}" in {NAMESPACE} has no key "{COREFILE}"')
    return Running(data[COREFILE], deployed(cluster).version.lstrip("v"))


def check_migration(ctx: NodeContext, cluster: Cluster, ignored: Collection[str]) -> None:
    """The preflight checks of an upgrade: can the Corefile be moved to the CoreDNS of this release, and is all of it known.

    ``ignored`` are lower-case names, as of ``--ignore-preflight-errors``.
    """
    from slipway.node.preflight import check

    findings = [("CoreDNSUnsupportedPlugins", unsupported_plugins(running(cluster), ctx.release))]
    findings.append(("CoreDNSMigration", migration_problems(running(cluster), ctx.release)))
    check.tell(findings, ctx.progress, ignored)


def unsupported_plugins(found: Running, release: Release) -> Findings:
    from slipway.node.preflight.check import FINE, Findings
    from slipway.workload import corefile

    try:
        notices = corefile.unsupported(found.corefile, _steps(found, release))
    except OperatorError as error:
        return Findings(errors=(error.message,))
    if not notices:
        return FINE
    listed = " ".join(map(str, notices))
    return Findings(errors=(f"CoreDNS cannot migrate the following plugins:\n[{listed}]",), output=_UNSUPPORTED_ADVICE)


def migration_problems(found: Running, release: Release) -> Findings:
    from slipway.node.preflight.check import FINE, Findings
    from slipway.workload import corefile

    try:
        corefile.migrate(found.corefile, _steps(found, release))
    except OperatorError as error:
        return Findings(errors=(f"CoreDNS will not be upgraded: {error.message}",))
    return FINE


_UNSUPPORTED_ADVICE = (
    "[preflight] The corefile contains plugins that kubeadm/CoreDNS does not know how to migrate. "
    "Each plugin listed should be manually verified for compatibility with the newer version of CoreDNS. "
    "Once ready, the upgrade can be initiated by skipping the preflight check. During the upgrade, "
    "kubeadm will migrate the configuration while leaving the listed plugin configs untouched, "
    "but cannot guarantee that they will work with the newer version of CoreDNS.\n"
)


def _steps(found: Running, release: Release) -> tuple[str, ...]:
    from slipway.workload import corefile

    target = release.coredns_version.lstrip("v")
    # A cluster without CoreDNS has nothing to migrate; kubeadm's checks fail there, and have to be ignored by name.
    return () if found.version == target or found == NOTHING else corefile.steps(found.version, target, newest=target)


class _Kept(NamedTuple):
    """What of the add-on is left as it is."""

    corefile: bool = False
    deployment: bool = False


def _update_corefile(ctx: NodeContext, cluster: Cluster, found: Running) -> _Kept:
    """Move a Corefile that is an operator's own to the new CoreDNS, where anything in it has to change."""
    from slipway.workload import corefile

    if not found.corefile or not found.version:
        return _Kept(corefile=bool(found.corefile) and not corefile.is_default(found.corefile))
    if corefile.is_default(found.corefile):
        return _Kept()
    try:
        steps = _steps(found, ctx.release)
    except OperatorError as error:
        # The preflight checks told it, and were ignored; kubeadm would stop here, half way through an upgrade.
        ctx.progress.warn(
            f"the CoreDNS Configuration was not migrated: {error.message}. The existing CoreDNS Corefile configuration has been retained."
        )
        return _Kept(corefile=True, deployment=True)
    if not any(change.severity in (corefile.REMOVED, corefile.NEW_DEFAULT) for change in corefile.changes(found.corefile, steps)):
        return _Kept(corefile=True)
    made = config_map(ctx.config.cluster)
    made["data"] = {COREFILE: corefile.migrate(found.corefile, steps), BACKUP: found.corefile}
    cluster.apply(made)
    # Until the new CoreDNS is rolled out, the old one goes on with the old Corefile.
    cluster.patch("apps/v1", "Deployment", NAME, NAMESPACE, {"spec": {"template": {"spec": {"volumes": [_volume(BACKUP)]}}}})
    ctx.progress.say("[addons] Migrating CoreDNS Corefile")
    return _Kept(corefile=True)


def _volume(key: str) -> Manifest:
    return {"name": "config-volume", "configMap": {"name": NAME, "items": [{"key": key, "path": COREFILE}]}}
