"""Each clause of each step, by a fragment before and after.

What is expected is from the conversion functions of the kubeadm that last read the version (v1alpha1: 1.11, v1alpha2:
1.12, v1alpha3: 1.13, v1beta1: 1.21, v1beta2: 1.22, v1beta3: 1.35), less the defaults that they add.
"""

from __future__ import annotations

from importlib import import_module
from textwrap import dedent
from typing import Any

import pytest

from slipway.api.kubeadm.history import VERSIONS, Component, Journal, kinds
from slipway.api.kubeadm.migrate import sparse
from slipway.api.machinery import strict
from slipway.api.machinery.yaml import goyaml


def read(text: str) -> Any:
    documents = goyaml.load(dedent(text))
    return documents[0].value if documents else {}


def take_step(version: str, kind: str, text: str) -> tuple[dict[str, Any], Journal]:
    """The documents after one step, by kind, without what is at its zero value."""
    (document,) = goyaml.load(dedent(text) or "{}")
    old, problems = strict.decode(kinds(version)[kind], document)
    assert problems == []
    journal = Journal()
    found = import_module(f"slipway.api.kubeadm.history.{version}").convert(old, journal)
    return {
        new.kind if isinstance(new, Component) else type(new).__name__: new.value if isinstance(new, Component) else sparse(new)
        for new in found
    }, journal


def case(version: str, kind: str, before: str, after: dict[str, str], *notes: str, id: str) -> Any:  # noqa: A002 (pytest's word)
    return pytest.param(version, kind, before, after, notes, id=f"{version}-{kind}-{id}")


MASTER, NODE = "MasterConfiguration", "NodeConfiguration"
INIT, CLUSTER, JOIN = "InitConfiguration", "ClusterConfiguration", "JoinConfiguration"

V1ALPHA1 = [
    case("v1alpha1", MASTER, "{}", {MASTER: "{}"}, id="nothing stays nothing"),
    case(
        "v1alpha1",
        MASTER,
        """
        etcd:
          endpoints: [https://a:2379, https://b:2379]
          caFile: /ca
          certFile: /cert
          keyFile: /key
        """,
        {MASTER: "etcd: {external: {endpoints: [https://a:2379, https://b:2379], caFile: /ca, certFile: /cert, keyFile: /key}}"},
        "moved MasterConfiguration.etcd",
        id="etcd with endpoints is external",
    ),
    case(
        "v1alpha1",
        MASTER,
        """
        etcd:
          image: registry/etcd:3.2
          dataDir: /data
          extraArgs: {a: b}
          serverCertSANs: [s]
          peerCertSANs: [p]
        """,
        {MASTER: "etcd: {local: {image: 'registry/etcd:3.2', dataDir: /data, extraArgs: {a: b}, serverCertSANs: [s], peerCertSANs: [p]}}"},
        "moved MasterConfiguration.etcd",
        id="etcd without endpoints is local",
    ),
    case(
        "v1alpha1",
        MASTER,
        "etcd: {endpoints: [https://a:2379], dataDir: /data, image: i}",
        {MASTER: "etcd: {external: {endpoints: [https://a:2379]}}"},
        "dropped MasterConfiguration.etcd.image",
        "dropped MasterConfiguration.etcd.dataDir",
        "moved MasterConfiguration.etcd",
        id="external etcd has no local settings",
    ),
    case(
        "v1alpha1",
        MASTER,
        "etcd: {caFile: /ca, dataDir: /data}",
        {MASTER: "etcd: {local: {dataDir: /data}}"},
        "dropped MasterConfiguration.etcd.caFile",
        "moved MasterConfiguration.etcd",
        id="local etcd has no client files",
    ),
    case(
        "v1alpha1",
        MASTER,
        "etcd: {selfHosted: {certificatesDir: /pki, clusterServiceName: s, etcdVersion: v, operatorVersion: o}}",
        {MASTER: "{}"},
        "dropped MasterConfiguration.etcd.selfHosted",
        id="self-hosted etcd is dropped",
    ),
    case(
        "v1alpha1",
        MASTER,
        "cloudProvider: aws",
        {
            MASTER: """
            apiServerExtraArgs: {cloud-provider: aws}
            controllerManagerExtraArgs: {cloud-provider: aws}
            nodeRegistration: {kubeletExtraArgs: {cloud-provider: aws}}
            """
        },
        "moved MasterConfiguration.cloudProvider",
        id="cloudProvider becomes three arguments",
    ),
    case(
        "v1alpha1",
        MASTER,
        "{cloudProvider: aws, apiServerExtraArgs: {cloud-provider: gce, v: '2'}}",
        {
            MASTER: """
            apiServerExtraArgs: {cloud-provider: aws, v: "2"}
            controllerManagerExtraArgs: {cloud-provider: aws}
            nodeRegistration: {kubeletExtraArgs: {cloud-provider: aws}}
            """
        },
        "moved MasterConfiguration.cloudProvider",
        id="cloudProvider comes before an argument of the same name",
    ),
    case("v1alpha1", MASTER, "authorizationModes: [Node, RBAC]", {MASTER: "{}"}, id="default authorization modes leave no trace"),
    case(
        "v1alpha1",
        MASTER,
        "authorizationModes: [RBAC, Node]",
        {MASTER: "apiServerExtraArgs: {authorization-mode: 'RBAC,Node'}"},
        "moved MasterConfiguration.authorizationModes",
        id="another order of authorization modes is not the default",
    ),
    case(
        "v1alpha1",
        MASTER,
        "authorizationModes: [Node, RBAC, Webhook]",
        {MASTER: "apiServerExtraArgs: {authorization-mode: 'Node,RBAC,Webhook'}"},
        "moved MasterConfiguration.authorizationModes",
        id="other authorization modes become an argument",
    ),
    case(
        "v1alpha1",
        MASTER,
        "{nodeName: node, criSocket: /run/crio.sock}",
        {MASTER: "nodeRegistration: {name: node, criSocket: /run/crio.sock}"},
        "moved MasterConfiguration.nodeName",
        "moved MasterConfiguration.criSocket",
        id="the node's name and socket move",
    ),
    case(
        "v1alpha1",
        MASTER,
        "noTaintMaster: true",
        {MASTER: "nodeRegistration: {taints: []}"},
        "moved MasterConfiguration.noTaintMaster",
        id="noTaintMaster is an empty list of taints",
    ),
    case("v1alpha1", MASTER, "noTaintMaster: false", {MASTER: "{}"}, id="the master taint is a default and is not written"),
    case(
        "v1alpha1",
        MASTER,
        "{token: abcdef.0123456789abcdef, tokenTTL: 0s, tokenUsages: [signing], tokenGroups: ['system:bootstrappers:a']}",
        {
            MASTER: """
            bootstrapTokens: [{token: abcdef.0123456789abcdef, ttl: 0s, usages: [signing], groups: ['system:bootstrappers:a']}]
            """
        },
        "moved MasterConfiguration.token, tokenTTL, tokenUsages, tokenGroups",
        id="the token and its settings become the first bootstrap token",
    ),
    case(
        "v1alpha1",
        MASTER,
        "tokenTTL: 12h",
        {MASTER: "bootstrapTokens: [{ttl: 12h0m0s}]"},
        "moved MasterConfiguration.token, tokenTTL, tokenUsages, tokenGroups",
        id="a lifetime without a token is kept",
    ),
    case(
        "v1alpha1",
        MASTER,
        "privilegedPods: true",
        {MASTER: "{}"},
        "dropped MasterConfiguration.privilegedPods",
        id="privilegedPods is dropped",
    ),
    case(
        "v1alpha1",
        MASTER,
        "imagePullPolicy: Always",
        {MASTER: "{}"},
        "dropped MasterConfiguration.imagePullPolicy",
        id="imagePullPolicy is dropped",
    ),
    case(
        "v1alpha1",
        MASTER,
        "kubeProxy: {config: {featureGates: 'A=true'}}",
        {MASTER: "kubeProxy: {config: {featureGates: 'A=true'}}"},
        id="component configurations are carried along",
    ),
    case(
        "v1alpha1",
        NODE,
        "{nodeName: node, criSocket: /s, token: t, discoveryTokenAPIServers: ['a:6443'], clusterName: c, featureGates: {A: true}}",
        {
            NODE: """
            nodeRegistration: {name: node, criSocket: /s}
            token: t
            discoveryTokenAPIServers: ["a:6443"]
            clusterName: c
            featureGates: {A: true}
            """
        },
        "moved NodeConfiguration.nodeName",
        "moved NodeConfiguration.criSocket",
        id="the node's name and socket move, the rest stays",
    ),
]

V1ALPHA2 = [
    case(
        "v1alpha2",
        MASTER,
        """
        api: {advertiseAddress: 192.0.2.1, bindPort: 6444, controlPlaneEndpoint: "cp:6443"}
        bootstrapTokens: [{token: abcdef.0123456789abcdef}]
        nodeRegistration: {name: node, taints: []}
        kubernetesVersion: v1.11.0
        networking: {podSubnet: 10.0.0.0/8}
        apiServerCertSANs: [san]
        auditPolicy: {logDir: /log}
        """,
        {
            INIT: """
            apiEndpoint: {advertiseAddress: 192.0.2.1, bindPort: 6444}
            bootstrapTokens: [{token: abcdef.0123456789abcdef}]
            nodeRegistration: {name: node, taints: []}
            """,
            CLUSTER: """
            controlPlaneEndpoint: "cp:6443"
            kubernetesVersion: v1.11.0
            networking: {podSubnet: 10.0.0.0/8}
            apiServerCertSANs: [san]
            auditPolicy: {logDir: /log}
            """,
        },
        "moved MasterConfiguration",
        "moved MasterConfiguration.api",
        "moved MasterConfiguration.api.controlPlaneEndpoint",
        id="is split in two",
    ),
    case(
        "v1alpha2",
        MASTER,
        "{kubeProxy: {config: {mode: ipvs}}, kubeletConfiguration: {baseConfig: {maxPods: 50}}}",
        {
            INIT: "{}",
            CLUSTER: "{}",
            "KubeProxyConfiguration": "{apiVersion: kubeproxy.config.k8s.io/v1alpha1, kind: KubeProxyConfiguration, mode: ipvs}",
            "KubeletConfiguration": "{apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration, maxPods: 50}",
        },
        "moved MasterConfiguration",
        "moved MasterConfiguration.kubeProxy.config",
        "moved MasterConfiguration.kubeletConfiguration.baseConfig",
        id="component configurations become documents",
    ),
    case(
        "v1alpha2",
        NODE,
        "{advertiseAddress: 192.0.2.2, bindPort: 6444, controlPlane: true, token: t, nodeRegistration: {name: node}}",
        {
            JOIN: """
            apiEndpoint: {advertiseAddress: 192.0.2.2, bindPort: 6444}
            controlPlane: true
            token: t
            nodeRegistration: {name: node}
            """
        },
        "moved NodeConfiguration",
        "moved NodeConfiguration.advertiseAddress, bindPort",
        id="is JoinConfiguration",
    ),
]

V1ALPHA3 = [
    case(
        "v1alpha3",
        INIT,
        "apiEndpoint: {advertiseAddress: 192.0.2.1, bindPort: 6444}",
        {INIT: "localAPIEndpoint: {advertiseAddress: 192.0.2.1, bindPort: 6444}"},
        "moved InitConfiguration.apiEndpoint",
        id="apiEndpoint is localAPIEndpoint",
    ),
    case(
        "v1alpha3",
        CLUSTER,
        """
        apiServerExtraArgs: {a: "1"}
        apiServerCertSANs: [san]
        controllerManagerExtraArgs: {b: "2"}
        schedulerExtraArgs: {c: "3"}
        """,
        {
            CLUSTER: """
            apiServer: {extraArgs: {a: "1"}, certSANs: [san]}
            controllerManager: {extraArgs: {b: "2"}}
            scheduler: {extraArgs: {c: "3"}}
            """
        },
        "moved ClusterConfiguration.apiServerExtraArgs",
        "moved ClusterConfiguration.apiServerCertSANs",
        "moved ClusterConfiguration.controllerManagerExtraArgs",
        "moved ClusterConfiguration.schedulerExtraArgs",
        id="settings are grouped by component",
    ),
    case(
        "v1alpha3",
        CLUSTER,
        """
        apiServerExtraVolumes:
        - {name: r, hostPath: /r, mountPath: /mr, pathType: File}
        - {name: w, hostPath: /w, mountPath: /mw, writable: true}
        controllerManagerExtraVolumes: [{name: c, hostPath: /c, mountPath: /mc, writable: false}]
        schedulerExtraVolumes: [{name: s, hostPath: /s, mountPath: /ms, writable: true}]
        """,
        {
            CLUSTER: """
            apiServer:
              extraVolumes:
              - {name: r, hostPath: /r, mountPath: /mr, pathType: File, readOnly: true}
              - {name: w, hostPath: /w, mountPath: /mw}
            controllerManager: {extraVolumes: [{name: c, hostPath: /c, mountPath: /mc, readOnly: true}]}
            scheduler: {extraVolumes: [{name: s, hostPath: /s, mountPath: /ms}]}
            """
        },
        "moved ClusterConfiguration.apiServerExtraVolumes",
        "moved ClusterConfiguration.controllerManagerExtraVolumes",
        "moved ClusterConfiguration.schedulerExtraVolumes",
        id="a volume is read-only unless it was writable",
    ),
    case(
        "v1alpha3",
        CLUSTER,
        "{unifiedControlPlaneImage: 'k8s.gcr.io/hyperkube:v1.12.2', kubernetesVersion: v1.12.2}",
        {CLUSTER: "{useHyperKubeImage: true, kubernetesVersion: v1.12.2}"},
        "moved ClusterConfiguration.unifiedControlPlaneImage",
        id="the hyperkube image of the default repository",
    ),
    case(
        "v1alpha3",
        CLUSTER,
        "{unifiedControlPlaneImage: 'r.example/k/hyperkube:v1.12.2_b', kubernetesVersion: v1.12.2+b, imageRepository: r.example/k}",
        {CLUSTER: "{useHyperKubeImage: true, kubernetesVersion: v1.12.2+b, imageRepository: r.example/k}"},
        "moved ClusterConfiguration.unifiedControlPlaneImage",
        id="the hyperkube image of another repository, with a plus in the version",
    ),
    case(
        "v1alpha3",
        CLUSTER,
        "featureGates: {CoreDNS: false, Other: true}",
        {CLUSTER: "{dns: {type: kube-dns}, featureGates: {Other: true}}"},
        "moved ClusterConfiguration.featureGates.CoreDNS",
        id="the gate CoreDNS off is kube-dns",
    ),
    case(
        "v1alpha3",
        CLUSTER,
        "featureGates: {CoreDNS: true}",
        {CLUSTER: "dns: {type: CoreDNS}"},
        "moved ClusterConfiguration.featureGates.CoreDNS",
        id="the gate CoreDNS on is CoreDNS",
    ),
    case(
        "v1alpha3",
        CLUSTER,
        "etcd: {local: {image: 'localhost:5000/a/etcd:3.2.24', dataDir: /d}}",
        {CLUSTER: "etcd: {local: {imageRepository: 'localhost:5000/a', imageTag: 3.2.24, dataDir: /d}}"},
        "moved ClusterConfiguration.etcd.local.image",
        id="etcd's image is split",
    ),
    case(
        "v1alpha3",
        CLUSTER,
        "etcd: {external: {endpoints: [https://a:2379], caFile: /ca}}",
        {CLUSTER: "etcd: {external: {endpoints: [https://a:2379], caFile: /ca}}"},
        id="external etcd stays",
    ),
    case(
        "v1alpha3",
        CLUSTER,
        "auditPolicy: {logDir: /var/log/kubernetes/audit, logMaxAge: 2}",
        {CLUSTER: "{}"},
        id="the default audit policy leaves no trace",
    ),
    case(
        "v1alpha3",
        CLUSTER,
        "auditPolicy: {logDir: /elsewhere}",
        {CLUSTER: "{}"},
        "dropped ClusterConfiguration.auditPolicy",
        id="an audit log without a policy is dropped",
    ),
    case(
        "v1alpha3",
        JOIN,
        """
        token: t.t
        discoveryTokenAPIServers: ["a:6443", "b:6443", "c:6443"]
        discoveryTokenCACertHashes: ["sha256:a"]
        discoveryTokenUnsafeSkipCAVerification: true
        discoveryTimeout: 1m
        """,
        {
            JOIN: """
            discovery:
              bootstrapToken: {token: t.t, apiServerEndpoint: "a:6443", caCertHashes: ["sha256:a"], unsafeSkipCAVerification: true}
              tlsBootstrapToken: t.t
              timeout: 1m0s
            """
        },
        "moved JoinConfiguration.token, discoveryToken*",
        "dropped JoinConfiguration.discoveryTokenAPIServers",
        "dropped JoinConfiguration.discoveryTokenAPIServers",
        "moved JoinConfiguration.token",
        "moved JoinConfiguration.discoveryTimeout",
        id="a token serves discovery and bootstrap, and the first server is asked",
    ),
    case(
        "v1alpha3",
        JOIN,
        "{token: t.t, discoveryToken: d.d, tlsBootstrapToken: b.b}",
        {JOIN: "discovery: {bootstrapToken: {token: d.d}, tlsBootstrapToken: b.b}"},
        "moved JoinConfiguration.token, discoveryToken*",
        "moved JoinConfiguration.tlsBootstrapToken",
        id="the more specific tokens come first",
    ),
    case(
        "v1alpha3",
        JOIN,
        "{discoveryFile: /f, tlsBootstrapToken: b.b, discoveryTokenCACertHashes: ['sha256:a']}",
        {JOIN: "discovery: {file: {kubeConfigPath: /f}, tlsBootstrapToken: b.b}"},
        "moved JoinConfiguration.discoveryFile",
        "dropped JoinConfiguration.discoveryTokenCACertHashes",
        "moved JoinConfiguration.tlsBootstrapToken",
        id="a discovery file comes before a token",
    ),
    case(
        "v1alpha3",
        JOIN,
        "{controlPlane: true, apiEndpoint: {advertiseAddress: 192.0.2.1, bindPort: 6444}}",
        {JOIN: "controlPlane: {localAPIEndpoint: {advertiseAddress: 192.0.2.1, bindPort: 6444}}"},
        "moved JoinConfiguration.controlPlane, apiEndpoint",
        id="controlPlane true becomes an object",
    ),
    case(
        "v1alpha3",
        JOIN,
        "controlPlane: true",
        {JOIN: "controlPlane: {}"},
        "moved JoinConfiguration.controlPlane, apiEndpoint",
        id="an empty controlPlane is kept",
    ),
    case(
        "v1alpha3",
        JOIN,
        "apiEndpoint: {advertiseAddress: 192.0.2.1}",
        {JOIN: "{}"},
        "dropped JoinConfiguration.apiEndpoint",
        id="a worker has no API endpoint",
    ),
    case(
        "v1alpha3",
        JOIN,
        "clusterName: kubernetes",
        {JOIN: "{}"},
        "dropped JoinConfiguration.clusterName",
        id="the default cluster name is dropped",
    ),
    case(
        "v1alpha3",
        "ClusterStatus",
        "apiEndpoints: {node: {advertiseAddress: a, bindPort: 1}}",
        {"ClusterStatus": "apiEndpoints: {node: {advertiseAddress: a, bindPort: 1}}"},
        id="is carried along",
    ),
]

V1BETA = [
    case(
        "v1beta1",
        INIT,
        "{nodeRegistration: {name: node, taints: [], kubeletExtraArgs: {a: b}}, localAPIEndpoint: {bindPort: 1}}",
        {INIT: "{nodeRegistration: {name: node, taints: [], kubeletExtraArgs: {a: b}}, localAPIEndpoint: {bindPort: 1}}"},
        id="stays as it is",
    ),
    case(
        "v1beta1",
        CLUSTER,
        "{dns: {type: kube-dns}, useHyperKubeImage: true, apiServer: {timeoutForControlPlane: 3m}}",
        {CLUSTER: "{dns: {type: kube-dns}, useHyperKubeImage: true, apiServer: {timeoutForControlPlane: 3m0s}}"},
        id="stays as it is",
    ),
    case(
        "v1beta1",
        JOIN,
        "{discovery: {timeout: 1m}, controlPlane: {}}",
        {JOIN: "{discovery: {timeout: 1m0s}, controlPlane: {}}"},
        id="stays as it is",
    ),
    case(
        "v1beta2",
        INIT,
        "{certificateKey: k, nodeRegistration: {ignorePreflightErrors: [Swap]}}",
        {INIT: "{certificateKey: k, nodeRegistration: {ignorePreflightErrors: [Swap]}}"},
        id="keeps the certificate key and ignored errors",
    ),
    case(
        "v1beta2",
        CLUSTER,
        "dns: {type: CoreDNS, imageTag: 1.6.5}",
        {CLUSTER: "dns: {imageTag: 1.6.5}"},
        "dropped ClusterConfiguration.dns.type",
        id="CoreDNS needs no type",
    ),
    case(
        "v1beta2",
        CLUSTER,
        "dns: {type: kube-dns, imageTag: 1.14.13, imageRepository: r}",
        {CLUSTER: "dns: {imageRepository: r}"},
        "dropped ClusterConfiguration.dns.type",
        "dropped ClusterConfiguration.dns.imageTag",
        id="kube-dns goes with its tag",
    ),
    case(
        "v1beta2",
        CLUSTER,
        "useHyperKubeImage: true",
        {CLUSTER: "{}"},
        "dropped ClusterConfiguration.useHyperKubeImage",
        id="hyperkube is gone",
    ),
    case("v1beta2", "ClusterStatus", "apiEndpoints: {}", {}, "dropped ClusterStatus", id="is dropped"),
    case(
        "v1beta2",
        JOIN,
        "{controlPlane: {certificateKey: k}, caCertPath: /ca}",
        {JOIN: "{controlPlane: {certificateKey: k}, caCertPath: /ca}"},
        id="keeps the certificate key",
    ),
    case(
        "v1beta3",
        CLUSTER,
        """
        apiServer: {extraArgs: {b: "2", a: "1"}, certSANs: [san]}
        controllerManager: {extraArgs: {z: ""}}
        scheduler: {extraArgs: {v: "2"}}
        etcd: {local: {extraArgs: {d: "4", c: "3"}, dataDir: /d}}
        """,
        {
            CLUSTER: """
            apiServer: {extraArgs: [{name: a, value: "1"}, {name: b, value: "2"}], certSANs: [san]}
            controllerManager: {extraArgs: [{name: z, value: ""}]}
            scheduler: {extraArgs: [{name: v, value: "2"}]}
            etcd: {local: {extraArgs: [{name: c, value: "3"}, {name: d, value: "4"}], dataDir: /d}}
            """
        },
        id="flags become lists sorted by name",
    ),
    case(
        "v1beta3",
        CLUSTER,
        "apiServer: {timeoutForControlPlane: 9m}",
        {INIT: "timeouts: {controlPlaneComponentHealthCheck: 9m0s}", CLUSTER: "{}"},
        "moved ClusterConfiguration.apiServer.timeoutForControlPlane",
        id="the control plane's timeout moves to InitConfiguration",
    ),
    case("v1beta3", CLUSTER, "apiServer: {timeoutForControlPlane: 0s}", {CLUSTER: "{}"}, id="a timeout of zero is none"),
    case(
        "v1beta3",
        CLUSTER,
        "etcd: {external: {endpoints: [https://a:2379]}}",
        {CLUSTER: "etcd: {external: {endpoints: [https://a:2379]}}"},
        id="httpEndpoints are a default of 1.35 and not written",
    ),
    case(
        "v1beta3",
        INIT,
        "{nodeRegistration: {kubeletExtraArgs: {b: '2', a: '1'}, imagePullPolicy: Never}, skipPhases: [addon], patches: {directory: /p}}",
        {
            INIT: """
            nodeRegistration: {kubeletExtraArgs: [{name: a, value: "1"}, {name: b, value: "2"}], imagePullPolicy: Never}
            skipPhases: [addon]
            patches: {directory: /p}
            """
        },
        id="the kubelet's flags become a list",
    ),
    case(
        "v1beta3",
        JOIN,
        "{discovery: {timeout: 2m, tlsBootstrapToken: t}, nodeRegistration: {kubeletExtraArgs: {a: '1'}}}",
        {
            JOIN: """
            discovery: {tlsBootstrapToken: t}
            timeouts: {discovery: 2m0s}
            nodeRegistration: {kubeletExtraArgs: [{name: a, value: "1"}]}
            """
        },
        "moved JoinConfiguration.discovery.timeout",
        id="the discovery timeout moves",
    ),
]


@pytest.mark.parametrize(("version", "kind", "before", "after", "notes"), V1ALPHA1 + V1ALPHA2 + V1ALPHA3 + V1BETA)
def test_a_step_converts(version: str, kind: str, before: str, after: dict[str, str], notes: tuple[str, ...]) -> None:
    documents, journal = take_step(version, kind, before)
    assert documents == {name: read(text) for name, text in after.items()}
    assert tuple(f"{note.action} {note.path}" for note in journal.notes) == notes
    assert journal.refusals == []


@pytest.mark.parametrize(
    ("version", "kind", "before", "path", "words"),
    [
        ("v1alpha1", MASTER, "token: nonsense", "MasterConfiguration.token", '"nonsense" is not of the form abcdef.0123456789abcdef'),
        ("v1alpha3", CLUSTER, "auditPolicy: {path: /policy.yaml}", "ClusterConfiguration.auditPolicy.path", "audit-policy-file"),
        (
            "v1alpha3",
            CLUSTER,
            "{unifiedControlPlaneImage: 'r/hyperkube:v1.12.1', imageRepository: r, kubernetesVersion: v1.12.2}",
            "ClusterConfiguration.unifiedControlPlaneImage",
            "r/hyperkube:v1.12.2",
        ),
        (
            "v1alpha3",
            CLUSTER,
            "{unifiedControlPlaneImage: 'other/hyperkube:v1.12.2', kubernetesVersion: v1.12.2}",
            "ClusterConfiguration.unifiedControlPlaneImage",
            "k8s.gcr.io/hyperkube:v1.12.2",
        ),
        (
            "v1alpha3",
            CLUSTER,
            "etcd: {local: {image: 'etcd:3.2'}}",
            "ClusterConfiguration.etcd.local.image",
            "with its repository and its tag",
        ),
        (
            "v1alpha3",
            CLUSTER,
            "etcd: {local: {image: registry.example/etcd}}",
            "ClusterConfiguration.etcd.local.image",
            "with its repository and its tag",
        ),
        (
            "v1alpha3",
            CLUSTER,
            "etcd: {local: {image: 'host:5000/etcd'}}",
            "ClusterConfiguration.etcd.local.image",
            "with its repository and its tag",
        ),
        (
            "v1alpha3",
            CLUSTER,
            "etcd: {local: {image: 'r/etcd-amd64:3.1'}}",
            "ClusterConfiguration.etcd.local.image",
            "must be etcd, not etcd-amd64",
        ),
        ("v1alpha3", JOIN, "clusterName: prod", "JoinConfiguration.clusterName", "ClusterConfiguration.clusterName"),
        ("v1alpha3", JOIN, "featureGates: {A: false}", "JoinConfiguration.featureGates", "ClusterConfiguration.featureGates"),
    ],
)
def test_a_step_refuses(version: str, kind: str, before: str, path: str, words: str) -> None:
    _, journal = take_step(version, kind, before)
    assert [refusal.path for refusal in journal.refusals] == [path]
    assert words in journal.refusals[0].sentence


def test_each_version_but_the_last_has_a_step() -> None:
    for version in VERSIONS[:-1]:
        assert callable(import_module(f"slipway.api.kubeadm.history.{version}").convert)
