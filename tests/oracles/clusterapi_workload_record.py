"""Records what Cluster API's control-plane provider makes of workload clusters; needs Go.

``python tests/oracles/clusterapi_workload_record.py`` puts tests/oracles/clusterapi_workload into a copy of the module, where it reaches
what is not exported, builds it, and asks it about the cases below.  Each row of tests/golden/clusterapi/workload is a case and its answer.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from slipway.lab.programs.cache import cache_root
from slipway.lab.programs.gobuild import CLUSTER_API, module_source

VERSION = "v1.14.2"
HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden/clusterapi/workload"
LABEL = "node-role.kubernetes.io/control-plane"
TAINT = {"key": LABEL, "effect": "NoSchedule"}
UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")
PLACES = {
    "pkg.go.txt": "controlplane/kubeadm/pkg/zz_oracle.go",
    "reconciler.go.txt": "controlplane/kubeadm/reconcilers/kubeadmcontrolplane/zz_oracle.go",
    "main.go.txt": "cmd/workload_oracle/main.go",
}

Case = dict[str, Any]


def oracle() -> Path:
    """The oracle, built inside a copy of the module."""
    work = cache_root() / "build" / VERSION / "clusterapi_workload"
    if not work.exists():
        # The module replaces its api by a folder beside it, which its archive does not have.
        for source, target in ((module_source(CLUSTER_API, VERSION), work), (module_source(f"{CLUSTER_API}/api", VERSION), work / "api")):
            shutil.copytree(source, target)
            subprocess.run(["chmod", "-R", "u+w", str(target)], check=True)
    for name, place in PLACES.items():
        (work / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(HERE / "clusterapi_workload" / name, work / place)
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": f"-mod=mod {os.environ.get('GOFLAGS', '')}".strip()}
    subprocess.run(["go", "build", "-o", "workload_oracle", "./cmd/workload_oracle"], cwd=work, env=environment, check=True)
    return work / "workload_oracle"


# What cases are made of.


def machine(name: str, node: str | None = "", *, conditions: dict[str, str] | None = None, **fields: Any) -> Case:
    """A Machine whose Node is named after it, or another; ``None``: it has none yet."""
    node_name = f"node-{name}" if node == "" else node
    metadata: Case = {"name": name, "creationTimestamp": fields.pop("created", "2026-01-01T00:00:00Z")}
    if fields.pop("deleting", False):
        metadata |= {"deletionTimestamp": "2026-01-02T00:00:00Z", "finalizers": ["x/y"]}
    provider = fields.pop("provider", f"host://{name}")
    spec: Case = {
        "infrastructureRef": {"kind": "HostMachine", "name": name, "apiGroup": "x"},
        **({"providerID": provider} if provider else {}),
    }
    if taints := fields.pop("taints", None):
        spec["taints"] = taints
    assert not fields, fields
    listed = [
        {"type": kind, "status": status, "reason": "R", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind, status in (conditions or {}).items()
    ]
    status: Case = {"conditions": listed, **({"nodeRef": {"name": node_name}} if node_name else {})}
    return {"metadata": metadata, "spec": spec, "status": status}


def node(name: str, *, label: bool = True, taints: list[Case] | None = None, ready: str = "True") -> Case:
    labels = {LABEL: ""} if label else {}
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [TAINT] if taints is None else taints},
        "status": {"conditions": conditions},
    }


def pod(component: str, of: str, **status: Any) -> Case:
    running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": f"{component}-{of}"}, "status": status or running}


def pods(*nodes: str, **special: Case) -> list[Case]:
    """All Pods of some Nodes, well but for those given by component, with underscores, on the first Node."""
    replaced = {key.replace("_", "-"): status for key, status in special.items()}
    return [pod(component, name, **(replaced.get(component, {}) if name == nodes[0] else {})) for name in nodes for component in COMPONENTS]


def etcd(*names: str, learners: tuple[str, ...] = (), alarms: dict[str, int] | None = None, **errors: Any) -> Case:
    """Members by name; the first one leads.  One whose name begins with a question mark has not got its name yet."""
    ids = {name: number + 11 for number, name in enumerate(names)}
    return {
        "members": [{"id": ids[name], "name": "" if name.startswith("?") else name, "learner": name in learners} for name in names],
        "leader": ids[names[0]] if names else 0,
        "alarms": [{"id": ids[name], "type": kind} for name, kind in (alarms or {}).items()],
        **errors,
    }


def control_plane(cluster_configuration: Case | None = None, version: str = "v1.35.4", **annotations: str) -> Case:
    return {
        "metadata": {
            "name": "cp",
            "annotations": {f"controlplane.cluster.x-k8s.io/{key.replace('_', '-')}": v for key, v in annotations.items()},
        },
        "spec": {"version": version, "kubeadmConfigSpec": {"clusterConfiguration": cluster_configuration or {}}},
    }


EXTERNAL = {"etcd": {"external": {"endpoints": ["https://10.0.0.1:2379"], "caFile": "/a", "certFile": "/b", "keyFile": "/c"}}}


def waiting(reason: str, **terminated: Any) -> Case:
    last = {"lastState": {"terminated": terminated}} if terminated else {}
    return {
        "phase": "Running",
        "containerStatuses": [
            {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 1, "state": {"waiting": {"reason": reason}}, **last}
        ],
    }


def conditions() -> Iterator[Case]:
    three = [machine("a"), machine("b"), machine("c")]
    names = ("node-a", "node-b", "node-c")
    nodes = [node(name) for name in names]
    well: Case = {"machines": three, "nodes": nodes, "pods": pods(*names), "etcd": etcd(*names), "ages": dict.fromkeys(names, 3600)}

    def case(name: str, **changes: Any) -> Case:
        return {"kind": "conditions", "name": name, "controlPlane": control_plane(), **well, **changes}

    yield case("three that are well")
    yield case(
        "an external etcd",
        controlPlane=control_plane(EXTERNAL),
        etcd={},
        pods=[p for p in pods(*names) if "etcd" not in p["metadata"]["name"]],
    )
    yield case("no Machine at all", machines=[], nodes=[], pods=[], etcd={})
    yield case("Nodes cannot be listed", nodeListError="the server is out")
    statuses: dict[str, Case] = {
        "is pending, and not scheduled": {"phase": "Pending"},
        "is pending, and runs init containers": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]},
        "is pending, and about to start": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Initialized", "status": "True"}],
        },
        "runs, and is not ready": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]},
        "runs, and waits for its image": waiting("ErrImagePull"),
        "crashes": waiting("CrashLoopBackOff", exitCode=1),
        "has ended well, and is restarted": waiting("ContainerCreating", exitCode=0),
        "has ended": {
            "phase": "Running",
            "containerStatuses": [
                {
                    "name": "c",
                    "image": "i",
                    "imageID": "",
                    "ready": False,
                    "restartCount": 0,
                    "state": {"terminated": {"exitCode": 2, "reason": "Error"}},
                }
            ],
        },
        "has succeeded": {"phase": "Succeeded"},
        "has failed": {"phase": "Failed"},
        "is unknown": {"phase": "Unknown"},
        "has no phase yet": {"phase": ""},
    }
    for what, status in statuses.items():
        yield case(f"an API server that {what}", pods=pods(*names, kube_apiserver=status))
    yield case("an etcd Pod that crashes", pods=pods(*names, etcd=waiting("CrashLoopBackOff", exitCode=1)))
    yield case("a Pod that is not there", pods=[p for p in pods(*names) if p["metadata"]["name"] != "kube-scheduler-node-b"])
    yield case("no Pods on one Node", pods=pods("node-a", "node-b"))
    yield case("a Pod that cannot be read", podErrors=["kube-controller-manager-node-c"])
    yield case("a Node that is unreachable", nodes=[*nodes[:2], node("node-c", taints=[TAINT, UNREACHABLE])])
    yield case("a Node whose readiness is unknown", nodes=[*nodes[:2], node("node-c", ready="Unknown")])
    yield case(
        "a Node whose readiness is unknown, without Pods",
        nodes=[*nodes[:2], node("node-c", ready="Unknown")],
        pods=pods("node-a", "node-b"),
    )
    yield case("a Node that does not exist", nodes=nodes[:2])
    yield case("no Node exists", nodes=[])
    yield case("a Node without the label", nodes=[*nodes[:2], node("node-c", label=False)])
    configs: Case = {name: {"spec": {"joinConfiguration": {"controlPlane": {}}}} for name in "abc"}
    yield case("a Node without the taint", nodes=[*nodes[:2], node("node-c", taints=[])], configs=configs)
    yield case("a Node without the taint, and without a configuration", nodes=[*nodes[:2], node("node-c", taints=[])])
    yield case("a Node without label and taint", nodes=[*nodes[:2], node("node-c", label=False, taints=[])], configs=configs)
    for what, spec in {
        "a join without taints": {"joinConfiguration": {"controlPlane": {}, "nodeRegistration": {"taints": []}}},
        "an init without taints": {"initConfiguration": {"nodeRegistration": {"taints": []}}},
        "an init that says nothing": {"initConfiguration": {}},
        "an init that names the taint": {"initConfiguration": {"nodeRegistration": {"taints": [TAINT]}}},
        "an init that names another taint": {"initConfiguration": {"nodeRegistration": {"taints": [{"key": "x", "effect": "NoSchedule"}]}}},
        "a join by its kubelet arguments": {
            "initConfiguration": {},
            "joinConfiguration": {"nodeRegistration": {"taints": [], "kubeletExtraArgs": [{"name": "v", "value": "2"}]}},
        },
    }.items():
        yield case(
            f"a Node without the taint, made by {what}", nodes=[*nodes[:2], node("node-c", taints=[])], configs={"c": {"spec": spec}}
        )
    yield case(
        "a Machine that wants the taint",
        machines=[*three[:2], machine("c", taints=[{**TAINT, "propagation": "Always"}])],
        nodes=[*nodes[:2], node("node-c", taints=[])],
    )
    yield case(
        "a Machine that has no host yet",
        machines=[*three[:2], machine("c", None, provider="")],
        nodes=nodes[:2],
        pods=pods(*names[:2]),
        etcd=etcd(*names[:2]),
    )
    yield case(
        "a Machine whose Node is awaited",
        machines=[*three[:2], machine("c", None)],
        nodes=nodes[:2],
        pods=pods(*names[:2]),
        etcd=etcd(*names[:2]),
    )
    yield case("a Node before its Machine knows it", machines=[*three[:2], machine("c", None)])
    yield case("a Node that no Machine has", machines=three[:2])
    yield case("a Machine that is going", machines=[*three[:2], machine("c", deleting=True)])
    yield case("a Machine that is going, without its Node", machines=[*three[:2], machine("c", deleting=True)], nodes=nodes[:2])
    yield case(
        "a Machine that is going before it had a Node",
        machines=[*three[:2], machine("c", None, deleting=True)],
        nodes=nodes[:2],
        pods=pods(*names[:2]),
        etcd=etcd(*names[:2]),
    )
    yield case("a Machine that is going, whose member has gone", machines=[*three[:2], machine("c", deleting=True)], etcd=etcd(*names[:2]))
    yield case("all Machines are going", machines=[machine(name, deleting=True) for name in "abc"])
    yield case("the first Machine, without a host", machines=[machine("a", None, provider="")], nodes=[], pods=[], etcd={})
    yield case("etcd cannot be reached", etcd={"connectError": "no route"})
    yield case("etcd does not tell its members", etcd=etcd(*names, membersError="no quorum"))
    yield case("etcd does not tell its alarms", etcd=etcd(*names, alarmsError="no quorum"))
    yield case("a learner", etcd=etcd(*names, learners=("node-c",)))
    yield case("a member with an alarm", etcd=etcd(*names, alarms={"node-b": 1}))
    yield case(
        "members with several alarms",
        etcd={**etcd(*names), "alarms": [{"id": 11, "type": 1}, {"id": 11, "type": 2}, {"id": 12, "type": 0}, {"id": 13, "type": 2}]},
    )
    yield case("a Machine without its member", etcd=etcd(*names[:2]))
    yield case(
        "a Machine without its member, whose Node is new", etcd=etcd(*names[:2]), ages={"node-a": 3600, "node-b": 3600, "node-c": 60}
    )
    yield case("a member that no Machine has", machines=three[:2], nodes=nodes[:2], pods=pods(*names[:2]))
    yield case("a member without a name", etcd=etcd(*names, "?"))
    yield case("a member without a name, and a Machine without a Node", machines=[*three, machine("d", None)], etcd=etcd(*names, "?"))
    yield case("a member without a name instead of that of a Machine", etcd=etcd("node-a", "node-b", "?"))
    yield case(
        "the same trouble on four Machines",
        machines=[machine(name) for name in "abcd"],
        nodes=[node(f"node-{name}") for name in "abcd"],
        pods=[],
        etcd=etcd(*(f"node-{name}" for name in "abcd")),
        ages={f"node-{name}": 3600 for name in "abcd"},
    )
    yield case(
        "different trouble on three",
        pods=[
            *pods("node-a", kube_apiserver=waiting("CrashLoopBackOff", exitCode=1)),
            *pods("node-b", kube_scheduler={"phase": "Failed"}),
            *pods("node-c"),
        ],
    )


def trouble() -> Iterator[Case]:
    machines = [machine("a"), machine("b", None)]

    def case(
        name: str, initialized: int | None = 3600, probed: int | None = 1, failures: int = 0, *, connected: bool = True, **changes: Any
    ) -> Case:
        kept = [
            {"type": kind, "status": "True", "reason": "R", "message": "as it was", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            for kind in changes.pop("present", ())
        ]
        plane = {**control_plane(changes.pop("spec", None)), "status": {"conditions": kept}}
        told = {"initialized": initialized, "probed": probed, "failures": failures, "connected": connected}
        return {"kind": "trouble", "name": name, "controlPlane": plane, "machines": machines, **told}

    both = ("EtcdClusterHealthy", "ControlPlaneComponentsHealthy")
    yield case("it can be seen")
    yield case("it is not initialised", initialized=None, probed=None)
    yield case("it is not initialised, and was seen", initialized=None, present=both)
    yield case("it was never probed", probed=None)
    yield case("it was never probed, and was seen before", probed=None, present=both)
    yield case("four probes have failed", probed=None, failures=4)
    yield case("five probes have failed from the start, initialised a minute ago", initialized=60, probed=None, failures=5)
    yield case("five probes have failed from the start, initialised an hour ago", probed=None, failures=5)
    yield case("no connection for a minute", probed=60, failures=5, connected=False)
    yield case("no connection for a minute, and it was seen before", probed=60, failures=5, connected=False, present=both)
    yield case("no connection for a minute, and only etcd was seen before", probed=60, connected=False, present=both[:1])
    yield case("no connection for a minute, and only Pods were seen before", probed=60, connected=False, present=both[1:])
    yield case("no connection for six minutes", probed=360, failures=36, connected=False, present=both)
    yield case("no success for six minutes, initialised a minute ago", initialized=60, probed=360, failures=36)
    yield case("no connection for six minutes, with an external etcd", probed=360, failures=36, connected=False, spec=EXTERNAL)


def quorum() -> Iterator[Case]:
    def case(name: str, members: Case, sick: str = "", *, without: str = "", **changes: Any) -> Case:
        strangers = changes.pop("strangers", ())
        known = [item["name"] for item in members["members"] if item["name"] and item["name"] not in strangers]
        machines = [
            machine(f"m-{each}", each, conditions={"EtcdMemberHealthy": "False" if each in sick.split() else "True"}) for each in known
        ]
        return {
            "kind": "quorum",
            "name": name,
            "controlPlane": control_plane(),
            "machines": machines,
            "etcd": members,
            "remove": without,
            **changes,
        }

    def sized(count: int) -> tuple[str, ...]:
        return tuple(f"n{number}" for number in range(1, count + 1))

    for count in (1, 2, 3, 4, 5, 7):
        for sick in range(min(count, 4)):
            bad = " ".join(sized(count)[count - sick :])
            yield case(f"{count} members, {sick} sick, a healthy one goes", etcd(*sized(count)), bad, without="n1")
            if sick:
                yield case(f"{count} members, {sick} sick, a sick one goes", etcd(*sized(count)), bad, without=f"n{count}")
            yield case(f"{count} members, {sick} sick, one more comes", etcd(*sized(count)), bad, add=True)
    yield case("the first member comes", etcd(), add=True)
    yield case("a learner stays", etcd(*sized(3), learners=("n3",)), without="n1")
    yield case("a learner goes", etcd(*sized(3), learners=("n3",)), without="n3")
    yield case("one comes while there is a learner", etcd(*sized(3), learners=("n3",)), add=True)
    yield case("one without a name stays", etcd(*sized(3), "?"), without="n1")
    yield case("one comes while one has no name", etcd("n1", "?"), add=True)
    yield case("the member that goes is not there", etcd(*sized(3)), without="other")
    yield case("a member without a Machine counts", etcd(*sized(3)), without="n1", strangers=("n3",))
    yield case("a member without a Machine has an alarm", etcd(*sized(3), alarms={"n3": 1}), without="n1", strangers=("n3",))
    yield case("a member with a Machine has an alarm that its condition does not show", etcd(*sized(3), alarms={"n3": 1}), without="n1")


def members() -> Iterator[Case]:
    three = [machine("a"), machine("b"), machine("c")]
    names = ("node-a", "node-b", "node-c")
    fine = {"EtcdMemberHealthy": "True"}

    def case(name: str, members: Case, machines: list[Case] | None = None, ages: dict[str, int] | None = None) -> Case:
        machines = [machine(each, conditions=fine) for each in "abc"] if machines is None else machines
        return {
            "kind": "members",
            "name": name,
            "controlPlane": control_plane(),
            "machines": machines,
            "nodes": [node(each) for each in names],
            "ages": {**dict.fromkeys(names, 3600), **(ages or {})},
            "etcd": members,
        }

    yield case("all are known", etcd(*names))
    yield case("one is unknown", etcd(*names, "node-x"))
    yield case("two are unknown", etcd(*names, "node-y", "node-x"))
    yield case("one has no name", etcd(*names, "?"))
    yield case("one has no name, and one is unknown", etcd(*names, "?", "node-x"))
    yield case("one is unknown, and a Machine has no Node", etcd(*names, "node-x"), [*three, machine("d", None)])
    yield case("one has no name, and a Node is new", etcd(*names, "?"), ages={"node-c": 5})
    yield case("one has no name, and a Node is 21 seconds old", etcd(*names, "?"), ages={"node-c": 21})
    yield case("one is unknown, and a Node is new", etcd(*names, "node-x"), ages={"node-c": 5})
    yield case(
        "one has no name, and the new Node's Machine is going",
        etcd(*names, "?"),
        [machine("a", conditions=fine), machine("b", conditions=fine), machine("c", conditions=fine, deleting=True)],
        ages={"node-c": 5},
    )
    yield case("one is unknown, and all Machines' are sick", etcd(*names, "node-x"), three)
    yield case(
        "one is unknown, and one Machine's is sick",
        etcd(*names, "node-x"),
        [machine("a", conditions=fine), machine("b", conditions=fine), machine("c")],
    )
    yield case(
        "one is unknown, of five",
        etcd(*names, "node-x", "node-y"),
        [machine("a", conditions=fine), machine("b", conditions=fine), machine("c")],
    )
    yield case("one is unknown, and one is a learner", etcd(*names, "node-x", learners=("node-c",)))
    yield case("the unknown one is a learner", etcd(*names, "node-x", learners=("node-x",)))
    yield case("there are no Machines", etcd(*names), [])
    yield case("no members are known", etcd())


def candidates() -> Iterator[Case]:
    kinds = {"e": "EtcdMemberHealthy", "h": "HealthCheckSucceeded", "u": "UpToDate"}

    def case(name: str, leaving: str = "a", **machines: str) -> Case:
        made = []
        for number, (key, marks) in enumerate(machines.items()):
            states = {kind: "True" for mark, kind in kinds.items() if mark in marks}
            made.append(
                machine(
                    key,
                    None if "?" in marks else "",
                    conditions=states,
                    deleting="x" in marks,
                    created=f"2026-01-{number + 1:02}T00:00:00Z",
                )
            )
        return {"kind": "candidates", "name": name, "machines": made, "leaving": leaving}

    yield case("the newest of equals", a="ehu", b="ehu", c="ehu")
    yield case("a healthy member before a newer one", a="ehu", b="ehu", c="hu")
    yield case("health check before up to date", a="ehu", b="eh", c="eu")
    yield case("up to date before newer", a="ehu", b="eu", c="e")
    yield case("not those without a Node, nor those that go", a="ehu", b="e", c="ehu?", d="ehux")
    yield case("nobody", a="ehu", b="ehu?")
    yield case("a member above all else", a="e", b="e", c="hu", d="h")


def components() -> Iterator[Case]:
    kinds = ("APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy", "EtcdPodHealthy")

    def case(name: str, remove: str, external: bool = False, **machines: str) -> Case:
        made = [
            machine(key, conditions=dict(zip(kinds, ({"t": "True", "f": "False", "u": "Unknown"}[mark] for mark in marks), strict=False)))
            for key, marks in machines.items()
        ]
        return {
            "kind": "components",
            "name": name,
            "controlPlane": control_plane(EXTERNAL if external else None),
            "machines": made,
            "remove": remove,
        }

    yield case("all are well", "a", a="tttt", b="tttt", c="tttt")
    yield case("only the one that goes is well", "a", a="tttt", b="tttf", c="fttt")
    yield case("one other is well", "a", a="ffff", b="utft", c="tttt")
    yield case("unknown is not well", "a", a="tttt", b="tttu")
    yield case("the etcd Pod counts", "a", a="tttt", b="tttf")
    yield case("the etcd Pod of an external etcd does not", "a", external=True, a="ttt", b="ttt")
    yield case("the last one goes", "a", a="tttt")


_OWN = """apiServer: {}
apiVersion: kubeadm.k8s.io/v1beta4
caCertificateValidityPeriod: 87600h0m0s
certificateValidityPeriod: 8760h0m0s
certificatesDir: /etc/kubernetes/pki
clusterName: c1
controlPlaneEndpoint: 10.0.0.1:6443
controllerManager: {}
dns: {}
encryptionAlgorithm: RSA-2048
etcd:
  local:
    dataDir: /var/lib/etcd
imageRepository: registry.k8s.io
kind: ClusterConfiguration
kubernetesVersion: v1.34.10
networking:
  dnsDomain: cluster.local
  podSubnet: 10.1.0.0/16
  serviceSubnet: 10.96.0.0/12
proxy: {}
scheduler: {}
"""
_OLDER = """apiServer:
  extraArgs:
    v: "2"
    audit-log-path: /log
  timeoutForControlPlane: 4m0s
apiVersion: kubeadm.k8s.io/v1beta3
certificatesDir: /etc/kubernetes/pki
clusterName: c1
controlPlaneEndpoint: 10.0.0.1:6443
controllerManager: {}
dns: {}
etcd:
  local:
    dataDir: /var/lib/etcd
    extraArgs:
      snapshot-count: "5"
imageRepository: registry.k8s.io
kind: ClusterConfiguration
kubernetesVersion: v1.30.1
networking:
  dnsDomain: cluster.local
  serviceSubnet: 10.96.0.0/12
scheduler: {}
"""


def kubeadm_config() -> Iterator[Case]:
    def case(name: str, spec: Case | None = None, version: str = "v1.35.4", text: str = _OWN) -> Case:
        return {"kind": "kubeadm-config", "name": name, "controlPlane": control_plane(spec, version), "clusterConfig": text}

    yield case("nothing is said but the version")
    yield case("nothing is said, and the version is there", version="v1.34.10")
    yield case("the gate of 1.35", {"certificatesDir": "/etc/kubernetes/pki"})
    yield case("no gate in 1.36", {"certificatesDir": "/etc/kubernetes/pki"}, "v1.36.3")
    yield case("a gate that is off", {"featureGates": {"ControlPlaneKubeletLocalMode": False, "Other": True}})
    yield case("gates of a version that has none of ours", {"featureGates": {"Other": True}}, "v1.36.3")
    yield case(
        "gates that are no longer there", {"clusterName": "x", "certificatesDir": "/c"}, "v1.36.3", _OWN + "featureGates:\n  Gone: true\n"
    )
    yield case("a repository", {"imageRepository": "registry.example/k8s"})
    yield case(
        "arguments of the components",
        {
            "apiServer": {
                "extraArgs": [{"name": "v", "value": "3"}, {"name": "audit-log-path", "value": "/a"}, {"name": "v", "value": "4"}],
                "certSANs": ["a.example"],
                "extraVolumes": [{"name": "x", "hostPath": "/x", "mountPath": "/y", "readOnly": True, "pathType": "File"}],
                "extraEnvs": [{"name": "A", "value": "b"}],
            },
            "controllerManager": {"extraArgs": [{"name": "a", "value": ""}]},
            "scheduler": {"extraEnvs": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]},
        },
    )
    yield case(
        "arguments that go",
        {"scheduler": {"extraArgs": [{"name": "v", "value": "1"}]}},
        text=_OWN.replace("controllerManager: {}", 'controllerManager:\n  extraArgs:\n  - name: v\n    value: "9"'),
    )
    yield case(
        "a local etcd",
        {
            "etcd": {
                "local": {
                    "dataDir": "/data",
                    "imageTag": "3.6.6-0",
                    "imageRepository": "r.example",
                    "extraArgs": [{"name": "q", "value": "1"}],
                    "serverCertSANs": ["s"],
                    "peerCertSANs": ["p"],
                    "extraEnvs": [{"name": "A", "value": "b"}],
                }
            }
        },
    )
    yield case(
        "an external etcd",
        EXTERNAL,
        text=_OWN.replace(
            "  local:\n    dataDir: /var/lib/etcd",
            "  external:\n    caFile: /old\n    certFile: /old\n    keyFile: /old\n    endpoints: [https://old:2379]",
        ),
    )
    yield case("certificates", {"certificateValidityPeriodDays": 100, "encryptionAlgorithm": "ECDSA-P256"})
    yield case("the validity of a CA stays", {"caCertificateValidityPeriodDays": 10, "certificatesDir": "/c"})
    yield case("the image of CoreDNS stays", {"dns": {"imageTag": "v9"}}, text=_OWN.replace("dns: {}", "dns:\n  imageTag: v1.12.0"))
    yield case("the endpoint stays", {"controlPlaneEndpoint": "other:1"})
    yield case("a version with a build", {"imageRepository": "r.example"}, "v1.35.4+vendor.1")
    yield case("a pre-release", {"imageRepository": "r.example"}, "v1.36.0-rc.1")
    yield case("v1beta3 to v1beta4, nothing said", None, "v1.31.2", _OLDER)
    yield case(
        "v1beta3 to v1beta4",
        {"apiServer": {"extraArgs": [{"name": "v", "value": "5"}]}, "etcd": {"local": {"dataDir": "/var/lib/etcd"}}},
        "v1.31.2",
        _OLDER,
    )
    yield case(
        "v1beta3 stays", {"apiServer": {"extraArgs": [{"name": "v", "value": "5"}]}, "encryptionAlgorithm": "RSA-2048"}, "v1.30.2", _OLDER
    )
    yield case("no ClusterConfiguration", text="apiVersion: kubeadm.k8s.io/v1alpha9\nkind: ClusterConfiguration\n")


_COREFILE = """.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30
    loop
    reload
    loadbalance
}
"""


def addons() -> Iterator[Case]:
    def proxy(name: str, image: str, spec: Case | None = None, version: str = "v1.35.4") -> Case:
        return {"kind": "kube-proxy", "name": name, "image": image, "controlPlane": control_plane(spec, version)}

    yield proxy("another version", "registry.k8s.io/kube-proxy:v1.34.10")
    yield proxy("the same version", "registry.k8s.io/kube-proxy:v1.35.4")
    yield proxy("another repository", "registry.k8s.io/kube-proxy:v1.35.4", {"imageRepository": "r.example/a/b"})
    yield proxy("a repository with a port", "r.example:5000/x/kube-proxy:v1.34.10")
    yield proxy("a version with a build", "registry.k8s.io/kube-proxy:v1.34.10", version="v1.35.4+vendor.1")
    yield proxy("a digest", "registry.k8s.io/kube-proxy@sha256:" + "a" * 64)

    def dns(name: str, image: str, spec: Case | None = None, corefile: str = _COREFILE) -> Case:
        text = _OWN.replace("v1.34.10", "v1.35.4")
        return {
            "kind": "coredns",
            "name": name,
            "image": image,
            "controlPlane": control_plane(spec),
            "corefile": corefile,
            "clusterConfig": text,
        }

    yield dns("nothing is said", "registry.k8s.io/coredns/coredns:v1.12.0", {"certificatesDir": "/c"})
    yield dns("a newer tag", "registry.k8s.io/coredns/coredns:v1.12.0", {"dns": {"imageTag": "v1.13.1"}})
    yield dns("the same tag", "registry.k8s.io/coredns/coredns:v1.12.0", {"dns": {"imageTag": "v1.12.0"}})
    yield dns("an older tag", "registry.k8s.io/coredns/coredns:v1.12.0", {"dns": {"imageTag": "v1.11.1"}})
    yield dns("a repository of its own", "registry.k8s.io/coredns/coredns:v1.12.0", {"dns": {"imageRepository": "r.example/dns/"}})
    yield dns("the repository of all", "registry.k8s.io/coredns/coredns:v1.12.0", {"imageRepository": "r.example/k8s"})
    yield dns(
        "its own before that of all",
        "r.example/coredns:v1.12.0",
        {"imageRepository": "r.example/k8s", "dns": {"imageRepository": "r.example/dns"}},
    )
    yield dns("back to Kubernetes' registry", "r.example/coredns:v1.12.0", {"imageRepository": "registry.k8s.io"})
    yield dns("a tag with a build", "registry.k8s.io/coredns/coredns:v1.12.0", {"dns": {"imageTag": "v1.12.1_vendor.3"}})
    yield dns(
        "a Corefile that must change",
        "registry.k8s.io/coredns:1.6.7",
        {"dns": {"imageTag": "v1.9.3"}},
        _COREFILE.replace("ttl 30", "ttl 30\n       upstream\n       resyncperiod 5m"),
    )
    yield dns("a version that nobody knows", "registry.k8s.io/coredns/coredns:v0.0.9", {"dns": {"imageTag": "v1.13.1"}})
    yield dns("a tag that is no version", "registry.k8s.io/coredns/coredns:v1.12.0", {"dns": {"imageTag": "latest"}})


SUBJECTS = {
    "conditions": conditions,
    "trouble": trouble,
    "quorum": quorum,
    "members": members,
    "candidates": candidates,
    "components": components,
    "kubeadm-config": kubeadm_config,
    "addons": addons,
}


def main() -> None:
    program = Path(sys.argv[1]) if len(sys.argv) > 1 else oracle()
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name, cases in SUBJECTS.items():
        asked = list(cases())
        done = subprocess.run([str(program)], input=json.dumps(asked), capture_output=True, text=True, check=True)
        rows = [{**case, "answer": answer} for case, answer in zip(asked, json.loads(done.stdout), strict=True)]
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        (GOLDEN / f"{name}.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
