"""Objects of control planes to ask Cluster API's code about: specs and what became of them, statuses, kubeconfigs."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from oracles.controlplane_cases import CHECKS, Case, machine, members, plane, sick, starting, three

NOW = "2026-03-01T12:00:00Z"
GROUP = "infrastructure.cluster.x-k8s.io"
CLUSTER = {"metadata": {"name": "c", "namespace": "n"}, "spec": {"controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}}}
TAINT = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}


def control_plane(version: str = "v1.35.4", config: Case | None = None, **spec: Any) -> Case:
    reference = {"apiGroup": GROUP, "kind": "TestMachineTemplate", "name": "t"}
    template = {"spec": {"infrastructureRef": reference}}
    return {
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmControlPlane",
        "metadata": {"name": "cp", "namespace": "n", "uid": "u"},
        "spec": {"replicas": 3, "version": version, "machineTemplate": template, "kubeadmConfigSpec": config or {}, **spec},
    }


def a_machine(version: str = "v1.35.4", *, created: str = "2026-02-01T00:00:00Z", status: Case | None = None, **metadata: Any) -> Case:
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {"name": "cp-x", "namespace": "n", "uid": "m", "creationTimestamp": created, **metadata},
        "spec": {
            "clusterName": "c",
            "version": version,
            "bootstrap": {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "cp-x"}},
            "infrastructureRef": {"apiGroup": GROUP, "kind": "TestMachine", "name": "cp-x"},
        },
        **({"status": status} if status else {}),
    }


def kubeadm_config(spec: Case) -> Case:
    return {"metadata": {"name": "cp-x", "namespace": "n", "uid": "k"}, "spec": spec}


def infra(name: str = "t", group_kind: str = f"TestMachineTemplate.{GROUP}") -> Case:
    told = {"cluster.x-k8s.io/cloned-from-name": name, "cluster.x-k8s.io/cloned-from-groupkind": group_kind}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "TestMachine",
        "metadata": {"name": "cp-x", "namespace": "n", "annotations": told},
        "spec": {"size": "small"},
    }


def template(**metadata: Any) -> Case:
    inner = {"spec": {"size": "large"}, **({"metadata": metadata} if metadata else {})}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "TestMachineTemplate",
        "metadata": {"name": "t", "namespace": "n"},
        "spec": {"template": inner},
    }


GATES = {"ControlPlaneKubeletLocalMode": True}
JOIN: Case = {"joinConfiguration": {"controlPlane": {}}}


def drifts() -> dict[str, Case]:
    """``wanted`` is what the control plane has, ``has`` what the KubeadmConfig of the machine has."""
    made: dict[str, Case] = {}

    def case(name: str, **changes: Any) -> None:
        usual = {"now": NOW, "controlPlane": control_plane(), "cluster": CLUSTER, "machine": a_machine(), "template": template()}
        made[name] = {**usual, **changes}

    def configs(name: str, wanted: Case, has: Case, version: str = "v1.36.1") -> None:
        case(name, controlPlane=control_plane(version, wanted), machine=a_machine(version), config=kubeadm_config(has))

    case("nothing to compare with")
    case("another version", machine=a_machine("v1.34.10"))
    case("a version without v", machine=a_machine("1.35.4"))
    case("no version", machine=a_machine(""))
    for name, after in {
        "past": "2026-02-15T00:00:00Z",
        "to come": "2026-04-01T00:00:00Z",
        "before it was made": "2026-01-01T00:00:00Z",
    }.items():
        case(f"rollout after, {name}", controlPlane=control_plane(rollout={"after": after}))
    for name, expiry in {"soon": "2026-03-15T00:00:00Z", "late": "2026-12-01T00:00:00Z", "on the day": "2026-03-31T12:00:00Z"}.items():
        rollout = {"before": {"certificatesExpiryDays": 30}}
        case(
            f"certificates expire, {name}",
            controlPlane=control_plane(rollout=rollout),
            machine=a_machine(status={"certificatesExpiryDate": expiry}),
        )
    case("certificates without a date", controlPlane=control_plane(rollout={"before": {"certificatesExpiryDays": 30}}))
    case("a date and no wish", machine=a_machine(status={"certificatesExpiryDate": "2026-03-02T00:00:00Z"}))
    case(
        "everything at once",
        controlPlane=control_plane(rollout={"after": "2026-02-15T00:00:00Z"}),
        machine=a_machine("v1.34.1"),
        infra=infra("old"),
    )
    case("the template it came from", infra=infra())
    case("another template", infra=infra("old"))
    case("another kind of template", infra=infra(group_kind=f"OtherMachineTemplate.{GROUP}"))
    case("an infrastructure that does not tell", infra={**infra(), "metadata": {"name": "cp-x", "namespace": "n"}})
    case("a template that is gone", infra=infra(), template=None)
    case("a template edited in place", infra=infra(), template={**template(), "spec": {"template": {"spec": {"size": "huge"}}}})
    case(
        "no reference to a configuration",
        machine={**a_machine(), "spec": {**a_machine()["spec"], "bootstrap": {"dataSecretName": "s"}}},
        config=kubeadm_config({"verbosity": 9}),
    )

    node = {"nodeRegistration": {"kubeletExtraArgs": [{"name": "v", "value": "4"}]}}
    other = {"nodeRegistration": {"kubeletExtraArgs": [{"name": "v", "value": "8"}]}}
    args = {"apiServer": {"extraArgs": [{"name": "profiling", "value": "false"}]}}
    configs("joined, the same", {**JOIN}, {**JOIN})
    configs("joined, the mark added", {"joinConfiguration": node}, {"joinConfiguration": {**node, "controlPlane": {}}})
    configs("joined, the mark missing", {"joinConfiguration": node}, {"joinConfiguration": node})
    configs("joined, other flags", {"joinConfiguration": node}, {"joinConfiguration": {**other, "controlPlane": {}}})
    configs(
        "joined, init has other flags",
        {"joinConfiguration": node, "initConfiguration": other},
        {"joinConfiguration": {**node, "controlPlane": {}}},
    )
    configs("first, init and join alike", {"initConfiguration": node, "joinConfiguration": node}, {"initConfiguration": node})
    configs("first, init and join unlike, fits init", {"initConfiguration": node, "joinConfiguration": other}, {"initConfiguration": node})
    configs("first, init and join unlike, fits join", {"initConfiguration": node, "joinConfiguration": other}, {"initConfiguration": other})
    configs("first, fits neither", {"initConfiguration": node, "joinConfiguration": node}, {"initConfiguration": other})
    configs("first, only join is configured", {"joinConfiguration": node}, {"initConfiguration": node})
    configs("first, a path of the CA for joining", {"joinConfiguration": {"caCertPath": "/x"}}, {})
    configs(
        "joined, another path of the CA",
        {"joinConfiguration": {"caCertPath": "/x"}},
        {"joinConfiguration": {"caCertPath": "/y", "controlPlane": {}}},
    )
    configs(
        "first, another bind port",
        {"initConfiguration": {"localAPIEndpoint": {"bindPort": 6443}}},
        {"initConfiguration": {"localAPIEndpoint": {"bindPort": 7443}}},
    )
    configs(
        "first, a bind port for both",
        {
            "initConfiguration": {"localAPIEndpoint": {"bindPort": 6443}},
            "joinConfiguration": {"controlPlane": {"localAPIEndpoint": {"bindPort": 6443}}},
        },
        {"initConfiguration": {"localAPIEndpoint": {"bindPort": 6443}}},
    )
    configs("first, bootstrap tokens of init", {}, {"initConfiguration": {"bootstrapTokens": [{"token": "abcdef.0123456789abcdef"}]}})
    configs("cluster, the endpoint was added", {**JOIN}, {**JOIN, "clusterConfiguration": {"controlPlaneEndpoint": "10.0.0.1:6443"}})
    configs(
        "cluster, another DNS image",
        {**JOIN, "clusterConfiguration": {"dns": {"imageTag": "v1.12.0"}}},
        {**JOIN, "clusterConfiguration": {"dns": {"imageTag": "v1.11.3"}}},
    )
    configs("cluster, DNS was not set", {**JOIN, "clusterConfiguration": {"dns": {"imageTag": "v1.12.0"}}}, {**JOIN})
    configs("cluster, other arguments", {**JOIN, "clusterConfiguration": args}, {**JOIN})
    configs("cluster, the same arguments", {**JOIN, "clusterConfiguration": args}, {**JOIN, "clusterConfiguration": args})
    configs(
        "cluster, empty environment",
        {**JOIN, "clusterConfiguration": {**args, "scheduler": {"extraEnvs": []}}},
        {**JOIN, "clusterConfiguration": args},
    )
    configs(
        "cluster, another repository",
        {**JOIN, "clusterConfiguration": {"imageRepository": "a"}},
        {**JOIN, "clusterConfiguration": {"imageRepository": "b"}},
    )
    configs(
        "cluster, another etcd image",
        {**JOIN, "clusterConfiguration": {"etcd": {"local": {"imageTag": "3.6.1-0"}}}},
        {**JOIN, "clusterConfiguration": {"etcd": {"local": {"imageTag": "3.5.1-0"}}}},
    )
    configs(
        "cluster, other endpoints of etcd",
        {
            **JOIN,
            "clusterConfiguration": {
                "etcd": {"external": {"endpoints": ["https://a:2379"], "caFile": "a", "certFile": "b", "keyFile": "c"}}
            },
        },
        {
            **JOIN,
            "clusterConfiguration": {
                "etcd": {"external": {"endpoints": ["https://b:2379"], "caFile": "a", "certFile": "b", "keyFile": "c"}}
            },
        },
    )
    configs("cluster, another validity", {**JOIN, "clusterConfiguration": {"certificateValidityPeriodDays": 100}}, {**JOIN})
    configs(
        "joined, discovery was added",
        {**JOIN},
        {
            "joinConfiguration": {
                "controlPlane": {},
                "discovery": {"bootstrapToken": {"token": "abcdef.0123456789abcdef", "apiServerEndpoint": "10.0.0.1:6443"}},
            }
        },
    )
    configs(
        "joined, another time-out of health",
        {"joinConfiguration": {"timeouts": {"controlPlaneComponentHealthCheckSeconds": 60}}},
        {"joinConfiguration": {"controlPlane": {}, "timeouts": {"controlPlaneComponentHealthCheckSeconds": 240}}},
    )
    configs(
        "joined, another time-out",
        {"joinConfiguration": {"timeouts": {"discoverySeconds": 60}}},
        {"joinConfiguration": {"controlPlane": {}, "timeouts": {"discoverySeconds": 240}}},
    )
    configs(
        "first, a time-out converted to join",
        {},
        {
            "joinConfiguration": {"timeouts": {"controlPlaneComponentHealthCheckSeconds": 240}},
            "initConfiguration": {"timeouts": {"controlPlaneComponentHealthCheckSeconds": 240}},
        },
    )
    configs("joined, no taints and not said", {"joinConfiguration": {"nodeRegistration": {"taints": []}}}, {**JOIN})
    configs("joined, the usual taint and not said", {"joinConfiguration": {"nodeRegistration": {"taints": [TAINT]}}}, {**JOIN})
    configs(
        "joined, no taints",
        {"joinConfiguration": {"nodeRegistration": {"taints": []}}},
        {"joinConfiguration": {"controlPlane": {}, "nodeRegistration": {"taints": []}}},
    )
    configs(
        "joined, the policy of pulling by default",
        {"joinConfiguration": {"nodeRegistration": {"imagePullPolicy": "IfNotPresent"}}},
        {**JOIN},
    )
    configs("joined, another policy of pulling", {"joinConfiguration": {"nodeRegistration": {"imagePullPolicy": "Always"}}}, {**JOIN})
    configs("the format by default", {**JOIN, "format": "cloud-config"}, {**JOIN})
    configs("another format", {**JOIN, "format": "ignition"}, {**JOIN})
    configs("other files", {**JOIN, "files": [{"path": "/a", "content": "1"}]}, {**JOIN, "files": [{"path": "/a", "content": "2"}]})
    configs("files that were not there", {**JOIN, "files": [{"path": "/a", "content": "1"}]}, {**JOIN})
    configs("other commands", {**JOIN, "preKubeadmCommands": ["a"]}, {**JOIN, "preKubeadmCommands": ["b"]})
    configs("commands in another order", {**JOIN, "postKubeadmCommands": ["a", "b"]}, {**JOIN, "postKubeadmCommands": ["b", "a"]})
    configs("another user", {**JOIN, "users": [{"name": "a"}]}, {**JOIN, "users": [{"name": "b"}]})
    configs("keys of a user, empty", {**JOIN, "users": [{"name": "a", "sshAuthorizedKeys": []}]}, {**JOIN, "users": [{"name": "a"}]})
    configs("NTP off and not said", {**JOIN, "ntp": {"enabled": False}}, {**JOIN})
    configs("verbosity", {**JOIN, "verbosity": 5}, {**JOIN})
    configs("gates of 1.35 added", {**JOIN}, {**JOIN, "clusterConfiguration": {"featureGates": GATES}}, version="v1.35.4")
    configs("gates of 1.35 missing", {**JOIN}, {**JOIN}, version="v1.35.4")
    configs("gates of 1.36 left", {**JOIN}, {**JOIN, "clusterConfiguration": {"featureGates": GATES}}, version="v1.36.0")
    configs(
        "the gate off by hand",
        {**JOIN, "clusterConfiguration": {"featureGates": {"ControlPlaneKubeletLocalMode": False}}},
        {**JOIN, "clusterConfiguration": {"featureGates": {"ControlPlaneKubeletLocalMode": False}}},
        version="v1.34.2",
    )
    return made


def desired() -> dict[str, Case]:
    made: dict[str, Case] = {}

    def case(name: str, **changes: Any) -> None:
        usual = {"controlPlane": control_plane(machineNaming={}), "cluster": CLUSTER, "join": True}
        made[name] = deepcopy({**usual, **changes})

    both = {
        "clusterConfiguration": {"apiServer": {"certSANs": ["a"]}},
        "initConfiguration": {"skipPhases": ["addon"]},
        "joinConfiguration": {"skipPhases": ["control-plane-join"]},
    }
    for version in ("v1.30.9", "v1.31.0-alpha.2", "v1.31.0", "v1.35.4", "v1.36.0-beta.0", "v1.36.1"):
        for join in (False, True):
            case(f"{'join' if join else 'init'} {version}", controlPlane=control_plane(version, both), join=join)
    case("nothing configured, init", controlPlane=control_plane("v1.36.1"), join=False)
    case("nothing configured, join", controlPlane=control_plane("v1.36.1"))
    case(
        "the gate off by hand",
        controlPlane=control_plane(config={"clusterConfiguration": {"featureGates": {"ControlPlaneKubeletLocalMode": False, "X": True}}}),
    )
    case(
        "an endpoint of its own",
        controlPlane=control_plane(config={"joinConfiguration": {"controlPlane": {"localAPIEndpoint": {"bindPort": 7443}}}}),
    )
    case("a failure domain", domain="x")
    case(
        "external etcd",
        controlPlane=control_plane(
            config={
                "clusterConfiguration": {
                    "etcd": {"external": {"endpoints": ["https://e:2379"], "caFile": "a", "certFile": "b", "keyFile": "c"}}
                }
            }
        ),
    )
    rich = control_plane()
    rich["spec"]["machineTemplate"] |= {
        "metadata": {"labels": {"l": "1", "cluster.x-k8s.io/cluster-name": "other"}, "annotations": {"a": "2"}}
    }
    rich["spec"]["machineTemplate"]["spec"] |= {
        "deletion": {"nodeDrainTimeoutSeconds": 1, "nodeVolumeDetachTimeoutSeconds": 2, "nodeDeletionTimeoutSeconds": 3},
        "readinessGates": [{"conditionType": "Mine"}, {"conditionType": "EtcdPodHealthy", "polarity": "Negative"}],
        "taints": [{"key": "k", "effect": "NoSchedule", "propagation": "Always"}],
    }
    case("labels, annotations, gates, time-outs, taints", controlPlane=rich, template=template(labels={"t": "3"}, annotations={"u": "4"}))
    case("an infrastructure template", template=template())
    case("an existing Machine of another version", machine=a_machine("v1.34.1"))
    case(
        "an existing Machine in a failure domain",
        machine={**a_machine(), "spec": {**a_machine()["spec"], "failureDomain": "y"}},
        domain="y",
    )
    note = '{"machine":"z","timestamp":"2026-03-01T11:00:00Z","retryCount":1}'
    remediating = control_plane()
    remediating["metadata"]["annotations"] = {"controlplane.cluster.x-k8s.io/remediation-in-progress": note}
    case("a replacement", controlPlane=remediating)
    case("an existing replacement", machine=a_machine(annotations={"controlplane.cluster.x-k8s.io/remediation-for": note, "other": "x"}))
    case("an existing Machine while another is replaced", controlPlane=remediating, machine=a_machine())
    long = control_plane()
    long["metadata"]["name"] = "a-control-plane-whose-name-is-longer-than-a-label-may-be-in-kubernetes"
    case("a long name", controlPlane=long)
    case("a version that is none", controlPlane=control_plane("latest"))
    case("a naming template without randomness", controlPlane=control_plane(machineNaming={"template": "{{ .cluster.name }}-x"}))
    return made


def statuses() -> dict[str, Case]:
    ready = {"Ready": ["True", "Ready", ""], "Available": ["True", "Available", ""], "UpToDate": ["True", "UpToDate", ""]}
    old = {"UpToDate": ["False", "NotUpToDate", "* Version v1.34.10, v1.35.4 required\n* KubeadmConfig is not up-to-date"]}
    not_ready = {"Ready": ["False", "NotReady", "* NodeHealthy: Node is gone\n* EtcdPodHealthy: it is down"]}
    unknown = {"Ready": ["Unknown", "ReadyUnknown", "* NodeHealthy: nobody knows"]}

    def up(name: str, age: int = 900, **changes: Any) -> Case:
        others = {**ready, **changes.pop("others", {})}
        return machine(name, age, others=others, **changes)

    a, b, c, d = (up(name, 900 - place) for place, name in enumerate("abcd"))
    down: Case = {"others": {**ready, **not_ready}}
    return {
        "not initialized": plane(starting("a"), replicas=3, uninitialized=True),
        "nothing": plane(replicas=3, uninitialized=True),
        "nothing, the template is missing": plane(replicas=3, uninitialized=True, templateMissing=True),
        "well": plane(a, b, c),
        "well, the template is missing": plane(a, b, c, templateMissing=True),
        "well, no certificates": plane(a, b, c, noCertificates=True),
        "well, being deleted": plane(a, b, c, deleting=True),
        "scaling up": plane(a, b, replicas=3),
        "scaling down": plane(a, b, c, replicas=1),
        "scaling down, stale": plane(a, b, up("c", deletedAgo=1200), replicas=1),
        "scaling down, several stale": plane(*(up(name, deletedAgo=1200) for name in "abcd"), up("e"), replicas=1),
        "rolling": plane(up("a", others=old), up("b", others=old), c),
        "rolling for two reasons": plane(
            up("a", others=old), up("b", others={"UpToDate": ["False", "NotUpToDate", "* KubeadmConfig is not up-to-date"]}), c
        ),
        "rolling without a reason": plane(up("a", others={"UpToDate": ["False", "NotUpToDate", ""]}), b, c),
        "not ready": plane(up("a", **down), b, c),
        "two not ready alike": plane(up("a", **down), up("b", **down), c),
        "not ready and unknown": plane(up("a", **down), up("b", others={**ready, **unknown}), c),
        "five with different troubles": plane(
            *(up(name, others={**ready, "Ready": ["False", "NotReady", f"* trouble {place}"]}) for place, name in enumerate("abcde"))
        ),
        "four with one trouble": plane(*(up(name, **down) for name in "abcd"), up("e")),
        "ready with a message": plane(up("a", others={**ready, "Ready": ["True", "Ready", "* Fine: indeed"]}), b, c),
        "nothing said about readiness": plane(machine("a"), b, c),
        "up to date not said, young": plane(machine("a", 5), b, c),
        "up to date not said, old": plane(machine("a", 50), b, c),
        "unhealthy, not ours": plane(up("a", unhealthy=True), b, c),
        "several unhealthy, not ours": plane(*(up(name, unhealthy=True) for name in "abcd"), up("e")),
        "unhealthy and ours": plane(sick("a", ill=()), b, c),
        "remediation refused": plane(
            up("a", unhealthy=True, others={**ready, "OwnerRemediated": ["False", "CannotBeRemediated", "no"]}), b, c
        ),
        "a member ill": plane(up("a", ill=CHECKS[4:]), b, c, membersHealthy=False),
        "a member ill, just now": plane(up("a", ill=CHECKS[4:], since=3), b, c, membersHealthy=False),
        "two members ill": plane(up("a", ill=CHECKS[4:]), up("b", ill=CHECKS[4:]), c, membersHealthy=False),
        "all members ill": plane(*(up(name, ill=CHECKS[4:]) for name in "abc"), membersHealthy=False),
        "an API server ill": plane(up("a", ill=CHECKS[:1]), b, c),
        "an API server ill, just now": plane(up("a", ill=CHECKS[:1], since=3), b, c),
        "two API servers ill, one just now": plane(up("a", ill=CHECKS[:1], since=3), up("b", ill=CHECKS[:1]), c),
        "all API servers ill": plane(*(up(name, ill=CHECKS[:1]) for name in "abc")),
        "members not known, just initialized": plane(a, members=None, initializedAgo=30),
        "members not known": plane(a, b, c, members=None, initializedAgo=600),
        "members of others": plane(a, b, c, membersMatch=False),
        "a learner": plane(a, b, up("c", ill=CHECKS[4:]), members=[*members([a, b]), {"id": 3, "name": "node-c", "learner": True}]),
        "a member without a name": plane(a, b, starting("c"), members=[*members([a, b]), {"id": 3, "name": ""}]),
        "a member of a Machine without a Node": plane(a, b, starting("c"), members=[*members([a, b]), {"id": 3, "name": "node-c"}]),
        "a member of nobody": plane(a, b, c, members=[*members([a, b, c]), {"id": 4, "name": "node-z"}]),
        "no provider ID": plane(a, b, starting("c", noProviderID=True)),
        "external etcd": plane(a, b, c, externalEtcd=True, members=None),
        "external etcd, all ill": plane(*(up(name, ill=CHECKS[:1]) for name in "abc"), externalEtcd=True, members=None),
        "external etcd, one ill": plane(up("a", ill=CHECKS[1:2]), b, c, externalEtcd=True, members=None),
        "five, two ill": plane(a, b, c, up("d", ill=CHECKS), up("e", ill=CHECKS)),
        "three of three in other words": three(),
        "four of three": plane(a, b, c, d, replicas=3),
    }


def kubeconfigs() -> dict[str, Case]:
    year = 365 * 24
    return {
        "a cluster": {"cluster": "c", "server": "https://10.0.0.1:6443", "threshold": year // 2},
        "an IPv6 address": {"cluster": "c", "server": "https://[fd00::1]:6443", "threshold": year // 2},
        "another name": {"cluster": "my-cluster.1", "server": "https://api.example.com:6443", "threshold": year // 2},
        "keys of ECDSA": {"cluster": "c", "server": "https://10.0.0.1:6443", "algorithm": "ECDSA-P256", "threshold": year // 2},
        "keys of ECDSA, longer": {"cluster": "c", "server": "https://10.0.0.1:6443", "algorithm": "ECDSA-P384", "threshold": year // 2},
        "renewed when under the threshold": {"cluster": "c", "server": "https://10.0.0.1:6443", "threshold": year + 24},
    }
