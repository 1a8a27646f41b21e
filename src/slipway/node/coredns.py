"""The CoreDNS add-on: name service for Pods and Services, at the tenth address of the Services."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.machinery.errors import ConfigurationError, OperatorError
from slipway.node import images, patches, rbac

if TYPE_CHECKING:
    from slipway.api.kubeadm.internal import ClusterConfiguration
    from slipway.api.releases import Release
    from slipway.node.cluster import Cluster, Manifest
    from slipway.node.context import NodeContext

NAME = "coredns"
NAMESPACE = "kube-system"
REPLICAS = 2
_LABEL = {"k8s-app": "kube-dns"}


def install(ctx: NodeContext, cluster: Cluster) -> None:
    """Create or update the add-on; replicas that an operator chose are kept."""
    replicas = _deployed_replicas(cluster)
    workload = patches.patch(ctx, "corednsdeployment", deployment(ctx.config.cluster, ctx.release, replicas))
    # A Corefile that is there may be a user's own: moving it to a newer CoreDNS is the upgrade's business.
    if cluster.get("v1", "ConfigMap", NAME, NAMESPACE) is None:
        cluster.apply(config_map(ctx.config.cluster))
    for manifest in (*access(), account(), workload, service(ctx.config.cluster)):
        cluster.apply(manifest)
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
    return [rbac.cluster_role(role, *rules), rbac.cluster_role_binding(role, role, rbac.service_account(NAME, NAMESPACE))]


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
                    "volumes": [{"name": "config-volume", "configMap": {"name": NAME, "items": [{"key": "Corefile", "path": "Corefile"}]}}],
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


def _deployed_replicas(cluster: Cluster) -> int:
    deployed = cluster.list("apps/v1", "Deployment", NAMESPACE, _LABEL)
    if len(deployed) > 1:
        names = ", ".join(manifest["metadata"]["name"] for manifest in deployed)
        raise OperatorError(f"multiple DNS addon deployments found: {names}: delete all but one")
    return int(deployed[0]["spec"].get("replicas", REPLICAS)) if deployed else REPLICAS
