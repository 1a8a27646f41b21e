"""Configuration files and what the real kubeadm says of them: the inputs, and how its words are brought into a form to compare.

The recorder (tests/oracles/config_record.py) runs ``config validate``, ``config migrate`` and ``config print`` of each
release with these inputs; the tests compare with what it wrote.  Many rows are those of kubeadm's own unit tests
(app/apis/kubeadm/validation/validation_test.go, app/util/config/*_test.go), as files.
Every input names the node, its address, its token, its CRI socket and the version, so that no outcome depends on the machine.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

VERSIONS = ("v1.33.13", "v1.34.10", "v1.35.4", "v1.36.3")
GOLDEN = Path(__file__).parents[1] / "golden"

SOCKET = "unix:///var/run/containerd/containerd.sock"
TOKEN = "abcdef.0123456789abcdef"
KEY = "e6a2eb8581237ab72a4f494f30285ec12a9694d750b9785706a83bfcbbbd2204"


class ConfigCase(NamedTuple):
    """One run: ``arguments`` follow ``kubeadm config``; ``text`` is the file, whose path the recorder adds."""

    name: str
    arguments: tuple[str, ...]
    text: str = ""

    def text_for(self, version: str) -> str:
        return self.text.replace("${VERSION}", version)


class Recorded(NamedTuple):
    """What the real kubeadm did: warnings and the error without the marks of its logger."""

    code: int
    stdout: str
    warnings: list[str]
    error: str


def golden_file(version: str) -> Path:
    return GOLDEN / version / "config" / "recorded.json"


def read_recorded(version: str) -> dict[str, Recorded]:
    rows: dict[str, Any] = json.loads(golden_file(version).read_text())
    return {name: Recorded(**row) for name, row in rows.items()}


def understood(code: int, stdout: str, stderr: str) -> Recorded:
    """Standard error apart: lines of klog are warnings, the rest is the error."""
    warnings, error = [], []
    for line in stderr.splitlines():
        logged = re.match(r"[IWE]\d{4} [\d:.]+ +\d+ [\w.]+:\d+\] (.*)", line)
        if logged:
            warnings.append(logged.group(1))
        elif line and not line.startswith("To see the stack trace of this error"):
            # Go shows where an object is in memory.
            error.append(re.sub(r"0x[0-9a-f]{6,}", "0x", line))
    return Recorded(code, stdout, warnings, "\n".join(error).removeprefix("error: "))


def document(kind: str, version: str = "v1beta4", **fields: Any) -> str:
    """A document as JSON, which is YAML too, and cannot go wrong in its indentation."""
    return json.dumps({"apiVersion": f"kubeadm.k8s.io/{version}", "kind": kind, **fields}, indent=1) + "\n"


def init(version: str = "v1beta4", **fields: Any) -> str:
    registration = {"name": "node-1", "criSocket": SOCKET, **fields.pop("nodeRegistration", {})}
    endpoint = {"advertiseAddress": "10.0.0.11", **fields.pop("localAPIEndpoint", {})}
    tokens = fields.pop("bootstrapTokens", [{"token": TOKEN}])
    return document(
        "InitConfiguration", version, nodeRegistration=registration, localAPIEndpoint=endpoint, bootstrapTokens=tokens, **fields
    )


def cluster(version: str = "v1beta4", **fields: Any) -> str:
    return document("ClusterConfiguration", version, **{"kubernetesVersion": "${VERSION}", **fields})


def both(version: str = "v1beta4", **fields: Any) -> str:
    return f"{init(version)}---\n{cluster(version, **fields)}"


def join(version: str = "v1beta4", **fields: Any) -> str:
    registration = {"name": "node-1", "criSocket": SOCKET, **fields.pop("nodeRegistration", {})}
    discovery = fields.pop("discovery", {"bootstrapToken": {"token": TOKEN, "apiServerEndpoint": "1.2.3.4:6443", "caCertHashes": ["aaaa"]}})
    return document("JoinConfiguration", version, nodeRegistration=registration, discovery=discovery, **fields)


def reset(**fields: Any) -> str:
    return document("ResetConfiguration", **{"criSocket": SOCKET, **fields})


_SANS = (
    ["1,2,,3"],
    ["my-hostname", "???&?.garbage"],
    ["my-hostname", "my.subdomain", "1.2.3.4"],
    ["my-hostname", "my.subdomain", "2001:db8::4"],
    ["*.my-hostname2", "*.my.other.subdomain"],
    ["**.my-hostname2", "my.other.subdomain"],
    ["*.*.my-hostname2", "my.other.subdomain"],
    ["a.*.my-hostname2", "my.other.subdomain"],
    ["*", "my.other.subdomain", "2001:db8::10"],
    ["UPPER.example.com"],
    ["a" * 254],
    [""],
)
_ADDRESSES = (
    "1234",
    "1.2",
    "1.2.3.4/16",
    "1.2.3.4",
    "2001:db8::1",
    "2001:db8::1/64",
    "2001:xb8::",
    "2001::db8::",
    "010.1.2.3",
    "::ffff:1.2.3.4",
)
_SERVICE_SUBNETS = (
    "10.0.0.16/12",
    "2001:db8::/112",
    "1.2.3.4,2001:db8::/112",
    "10.0.0.16/29,2001:db8::/112",
    "10.0.0.16/12,2001:db8::/125",
    "10.0.0.16/12,192.168.0.0/16",
    "2001:db8::/112,2005:db8::/112",
    "10.0.0.16/12,2001:db8::/112",
    "10.0.0.16/12,2001:db8::/112,192.168.0.0/16",
    "10.0.0.16/12,2001:db8::/112,192.168.0.0/16,a.b.c.d/24",
    "10.0.0.16/2",
    "2001:db8::1/64",
    "2001:db8::1/112,10.0.0.16/6",
    "2001:db8::1/12,10.0.0.16/16",
    "0.0.0.0/0",
    "::/0",
    "fec0::/112",
    "fe00::/8",
    "10.96.0.0/33",
    "10.96.0.0/-1",
    "10.96.0.0/012",
    "010.96.0.0/16",
    " 10.96.0.0/16",
    "10.96.0.0/16, 2001:db8::/112",
    "::ffff:10.0.0.0/112",
)
_POD_SUBNETS = (
    ("10.0.0.16/29", None),
    ("10.0.0.16/24", ("node-cidr-mask-size-ipv4", "23")),
    ("2001:db8::1/112", None),
    ("2001:db8::1/64", ("node-cidr-mask-size-ipv6", "24")),
    ("2001:db8::1/12", None),
    ("2001:db8::1/64", ("node-cidr-mask-size-ipv6", "120")),
    ("10.0.0.16/12", None),
    ("2001:db8::/48", None),
    ("10.0.0.16/29,2001:db8::/48", None),
    ("10.0.0.16/24,2001:db8::/48", ("node-cidr-mask-size-ipv4", "23")),
    ("2001:db8::1/112,10.0.0.16/16", None),
    ("10.0.0.16/16,2001:db8::1/64", ("node-cidr-mask-size-ipv6", "24")),
    ("2001:db8::1/12,10.0.0.16/16", None),
    ("10.0.0.16/16,2001:db8::1/64", ("node-cidr-mask-size-ipv6", "120")),
    ("2001:db8::/48,10.0.0.16/12", None),
    ("10.0.1.15", None),
    ("10.0.0.0/24", ("node-cidr-mask-size-ipv4", "aa")),
    ("10.0.0.0/24", ("node-cidr-mask-size", "21")),
    ("10.0.0.0/8", ("allocate-node-cidrs", "false")),
    ("10.0.0.0/29", ("allocate-node-cidrs", "false")),
)
_ENDPOINTS = ("cp.k8s.io:8081", "cp.k8s.io", "1.2.3.4:8081", "1.2.3.4", "[2001:db7::1]:8081", "2001:db7::1", "1.2.34")
_WRONG_ENDPOINTS = ("a.B.c.d.e", "2001:db7:1", "1.2.3.4:0", "1.2.3.4:65536", "cp:http", "[1.2.3.4", "a:b:c", "-cp.k8s.io")
_REPOSITORIES = (
    "a",
    "a.b.c",
    "a.b.c/repo",
    "a:5000",
    "a.b.c:5000",
    "a.b.c:5000/repo",
    "a/b/c",
    "127.0.0.1:5000/repo",
    "[::1]:5000/x",
    "a.b/c\n\t\t\ts",
    " a.b.c",
    "a.b c",
    "a.b.c:5000/",
    "https://a.b.c:5000",
    "a//b/c",
    "a.b.c:5000/test:1.0",
    "A/b",
    "a_b",
    "a__b/c",
    "a___b",
)
_SOCKETS = ("unix:///some/path", "bla:///some/path", "/some/path", ":::", "unix//x", "unixfoo", "unix://[::1", "unix:///a b", "unix:///%zz")
_NAMES = ("INVALID-NODENAME", "invalid-nodename-", "invalid-node?name", "valid-nodename", "  spaced ", "a" * 254, "-a", "a..b")
_URLS = (
    ["http://example.com", "https://example.org"],
    ["::://example.com"],
    ["example.com"],
    ["10.100.0.1:2379"],
    ["https://a b:2379"],
    ["https://etcd:port"],
    ["https://[::1]:2379"],
    ["https://[::1:2379"],
    ["https://etcd/%zz"],
    ["https://user name@etcd:2379"],
    [" https://x"],
    ["1https://x"],
    ["https:etcd"],
    [""],
)
_EXTERNAL_ETCD: tuple[dict[str, Any], ...] = (
    {"endpoints": ["https://external.etcd1:2379"], "certFile": "/some/file.crt"},
    {"endpoints": ["https://external.etcd1:2379"], "certFile": "/some/file.crt", "keyFile": "/some/file.key"},
    {"endpoints": ["https://external.etcd1:2379"], "certFile": "/etcd.crt", "keyFile": "/etcd.key", "caFile": "/etcd-ca.crt"},
    {"endpoints": ["http://external.etcd1:2379"], "certFile": "/etcd.crt", "keyFile": "/etcd.key", "caFile": "/etcd-ca.crt"},
    {"endpoints": ["http://10.100.0.1:2379", "http://10.100.0.2:2379"]},
    {"endpoints": ["https://etcd:2379"], "caFile": "ca.crt", "certFile": "c.crt", "keyFile": "k.key"},
    {"endpoints": []},
    {"caFile": "/ca.crt"},
    {"endpoints": ["http://etcd:2379"], "httpEndpoints": ["http://etcd:2381"]},
    {"endpoints": ["http://etcd:2379"], "httpEndpoints": ["etcd:2381", "etcd"]},
)
_DISCOVERIES: tuple[dict[str, Any], ...] = (
    {},
    {"bootstrapToken": {"token": TOKEN}, "file": {"kubeConfigPath": "https://url/file.conf"}},
    {"bootstrapToken": {"token": "abcdef.1234567890123456@foobar"}, "file": {"kubeConfigPath": "foo"}},
    {"bootstrapToken": {"token": TOKEN}},
    {"bootstrapToken": {"token": TOKEN, "apiServerEndpoint": "192.168.122.100:6443"}},
    {"bootstrapToken": {"token": TOKEN, "apiServerEndpoint": "192.168.122.100", "unsafeSkipCAVerification": True}},
    {"bootstrapToken": {"token": TOKEN, "apiServerEndpoint": "::1:6443", "unsafeSkipCAVerification": True}},
    {"bootstrapToken": {"token": TOKEN, "apiServerEndpoint": "[::1]6443", "unsafeSkipCAVerification": True}},
    {"bootstrapToken": {"token": TOKEN, "apiServerEndpoint": "[::1", "unsafeSkipCAVerification": True}},
    {"bootstrapToken": {"token": TOKEN, "apiServerEndpoint": "[::1]:64:43", "unsafeSkipCAVerification": True}},
    {"bootstrapToken": {"token": "", "apiServerEndpoint": "a:1", "unsafeSkipCAVerification": True}},
    {"bootstrapToken": {"token": TOKEN, "apiServerEndpoint": "a:1", "caCertHashes": ["x"]}, "tlsBootstrapToken": "wrong"},
    {"file": {"kubeConfigPath": "foo"}},
    {"file": {"kubeConfigPath": "/foo/bar/file_which_i_believe_not_existing.conf"}},
    {"file": {"kubeConfigPath": "http://[::1]a"}},
    {"file": {"kubeConfigPath": "http://url/file.conf"}},
    {"file": {"kubeConfigPath": "https://u r l/file.conf"}},
    {"file": {"kubeConfigPath": "https://url/file.conf"}},
    {"file": {"kubeConfigPath": "file:///foo/file_which_i_believe_not_existing.conf"}},
    {"file": {"kubeConfigPath": "https://url/file.conf"}, "tlsBootstrapToken": "wrong"},
)
_TOKENS: tuple[dict[str, Any], ...] = (
    {"token": TOKEN, "usages": ["something else", "and more"]},
    {"token": TOKEN, "usages": ["signing"], "groups": ["system:bootstrappers:foo"]},
    {"token": TOKEN, "groups": ["some group", "system:bootstrappers:"]},
    {"token": TOKEN, "usages": ["authentication"], "groups": ["system:bootstrappers:anygroup"]},
    {"token": TOKEN, "ttl": "1h", "expires": "2030-01-02T03:04:05Z"},
    {"token": TOKEN, "expires": "2030-01-02T03:04:05Z"},
    {"token": TOKEN, "ttl": "0s"},
)
_CLUSTERS: dict[str, dict[str, Any]] = {
    "certificates-dir-relative": {"certificatesDir": "./tmp"},
    "certificates-dir-dots": {"certificatesDir": "foo.."},
    "algorithm-p256": {"encryptionAlgorithm": "ECDSA-P256"},
    "algorithm-p384": {"encryptionAlgorithm": "ECDSA-P384"},
    "algorithm-4096": {"encryptionAlgorithm": "RSA-4096"},
    "algorithm-unknown": {"encryptionAlgorithm": "foo"},
    "gate-unknown": {"featureGates": {"Unknown": True}},
    "gate-ecdsa": {"featureGates": {"PublicKeysECDSA": True}},
    "gate-cri-socket": {"featureGates": {"NodeLocalCRISocket": False}},
    "gate-local-mode": {"featureGates": {"ControlPlaneKubeletLocalMode": True}},
    "gate-wait": {"featureGates": {"WaitForAllControlPlaneComponents": True}},
    "validity-long": {"certificateValidityPeriod": "17520h", "caCertificateValidityPeriod": "175200h"},
    "validity-mismatched": {"certificateValidityPeriod": "2h", "caCertificateValidityPeriod": "1h"},
    "dns-domain-upper": {"networking": {"dnsDomain": "Cluster.local"}},
    "dns-domain-long": {"networking": {"dnsDomain": "a" * 254}},
    "arg-without-name": {"apiServer": {"extraArgs": [{"value": "x"}, {"name": "a", "value": "b"}, {"value": "y"}]}},
    "arg-without-name-everywhere": {
        "controllerManager": {"extraArgs": [{"name": "", "value": "x"}]},
        "scheduler": {"extraArgs": [{"name": "", "value": "x"}]},
        "etcd": {"local": {"extraArgs": [{"name": "", "value": "x"}]}},
    },
    "etcd-both": {"etcd": {"local": {"dataDir": "/some/path"}, "external": {"endpoints": ["10.100.0.1:2379"]}}},
    "etcd-data-dir": {"etcd": {"local": {"dataDir": "relative"}}},
    "etcd-sans": {"etcd": {"local": {"serverCertSANs": ["*bad"], "peerCertSANs": ["UP"]}}},
    "etcd-repository": {"etcd": {"local": {"imageRepository": "https://x"}}},
    "dns-repository": {"dns": {"imageRepository": "https://x"}},
    "many-errors": {
        "networking": {"dnsDomain": "-", "serviceSubnet": "nonsense", "podSubnet": "10.0.0.0/30"},
        "certificatesDir": "x",
        "controlPlaneEndpoint": "",
        "imageRepository": "a b",
        "encryptionAlgorithm": "x",
    },
}


def _validate_cases() -> list[ConfigCase]:
    texts: dict[str, str] = {name: both(**fields) for name, fields in _CLUSTERS.items()}
    texts |= {f"san-{number}": both(apiServer={"certSANs": names}) for number, names in enumerate(_SANS)}
    texts |= {
        f"address-{number}": init(localAPIEndpoint={"advertiseAddress": text}) + "---\n" + cluster()
        for number, text in enumerate(_ADDRESSES)
    }
    texts |= {f"port-{port}": init(localAPIEndpoint={"bindPort": port}) + "---\n" + cluster() for port in (-1234, 1, 65535, 65538)}
    texts |= {f"service-subnet-{number}": both(networking={"serviceSubnet": text}) for number, text in enumerate(_SERVICE_SUBNETS)}
    for number, (subnet, argument) in enumerate(_POD_SUBNETS):
        arguments = [{"name": argument[0], "value": argument[1]}] if argument else []
        texts[f"pod-subnet-{number}"] = both(networking={"podSubnet": subnet}, controllerManager={"extraArgs": arguments})
    texts |= {f"endpoint-{number}": both(controlPlaneEndpoint=text) for number, text in enumerate(_ENDPOINTS)}
    texts |= {f"repository-{number}": both(imageRepository=text) for number, text in enumerate(_REPOSITORIES)}
    texts |= {f"socket-{number}": init(nodeRegistration={"criSocket": text}) + "---\n" + cluster() for number, text in enumerate(_SOCKETS)}
    texts |= {f"name-{number}": init(nodeRegistration={"name": text}) + "---\n" + cluster() for number, text in enumerate(_NAMES)}
    texts |= {f"urls-{number}": both(etcd={"external": {"endpoints": urls}}) for number, urls in enumerate(_URLS)}
    texts |= {f"external-etcd-{number}": both(etcd={"external": etcd}) for number, etcd in enumerate(_EXTERNAL_ETCD)}
    texts |= {f"discovery-{number}": join(discovery=discovery) for number, discovery in enumerate(_DISCOVERIES)}
    texts |= {f"token-{number}": init(bootstrapTokens=[token]) + "---\n" + cluster() for number, token in enumerate(_TOKENS)}
    texts |= {
        f"certificate-key-{number}": init(certificateKey=key) + "---\n" + cluster()
        for number, key in enumerate((KEY, "z" + KEY[1:], "e6a2", "e6a", "é" * 32))
    }
    texts |= {
        f"pull-policy-{policy}": init(nodeRegistration={"imagePullPolicy": policy}) + "---\n" + cluster() for policy in ("Never", "foo")
    }
    control_plane = {"localAPIEndpoint": {"advertiseAddress": "1.2.3.4", "bindPort": 1234}}
    texts |= {
        "join-control-plane": join(controlPlane=control_plane),
        "join-control-plane-port": join(controlPlane={"localAPIEndpoint": {"advertiseAddress": "1.2.3.4", "bindPort": -1}}),
        "join-control-plane-key": join(controlPlane={**control_plane, "certificateKey": "ff"}),
        "join-ca-cert-path": join(caCertPath="ca.crt"),
        "join-ca-cert-suffix": join(caCertPath="/etc/ca.pem"),
        "kubelet-arg-without-name": join(nodeRegistration={"kubeletExtraArgs": [{"name": "", "value": "x"}]}),
        "reset": reset(),
        "reset-3-errors": reset(criSocket="unixfoo", certificatesDir="bar", unmountFlags=["baz"]),
        "reset-flags": reset(unmountFlags=["MNT_FORCE", "MNT_DETACH", "MNT_EXPIRE", "UMOUNT_NOFOLLOW"]),
        "v1beta3-init": both("v1beta3"),
        "v1beta3-join": join("v1beta3"),
        "v1beta3-extra-args": both("v1beta3", apiServer={"extraArgs": {"": "x", "a": "b"}}),
        "kubelet-and-proxy": both() + "---\napiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        "---\napiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n",
        "empty": "",
        "null-values": both(etcd=None, networking=None, apiServer=None, featureGates=None),
    }
    return [ConfigCase(f"validate-{name}", ("validate",), text) for name, text in texts.items()]


_ARGS = {"b": "2", "a": "1", "c": ""}
_ARG_LIST = [{"name": "b", "value": "2"}, {"name": "a", "value": "1"}, {"name": "b", "value": "3"}]
_VOLUMES = [
    {"name": "v", "hostPath": "/h", "mountPath": "/m", "readOnly": True, "pathType": "File"},
    {"name": "w", "hostPath": "/i", "mountPath": "/n"},
]
_ENVS = [
    {"name": "A", "value": "1"},
    {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    {"name": "D", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1000m", "containerName": "x"}}},
    {"name": "E", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": False}}},
    {"name": "F", "valueFrom": {"configMapKeyRef": {"key": "k"}}},
]
_FULL: dict[str, Any] = {
    "clusterName": "c",
    "certificatesDir": "/pki",
    "controlPlaneEndpoint": "cp.example.com",
    "imageRepository": "registry.example.com/k8s",
    "featureGates": {"RootlessControlPlane": True, "PublicKeysECDSA": False},
    "networking": {"serviceSubnet": "10.96.0.0/16", "podSubnet": "10.244.0.0/16", "dnsDomain": "c.local"},
    "dns": {"imageRepository": "r.example.com", "imageTag": "v1"},
}
_TAINTS = [
    {"key": "a", "effect": "NoSchedule", "value": "v", "timeAdded": "2030-01-02T03:04:05+01:00"},
    {"key": "b", "effect": "NoExecute"},
]


def _component(arguments: Any, **more: Any) -> dict[str, Any]:
    return {"extraArgs": arguments, "extraVolumes": _VOLUMES, **more}


def _migrate_cases() -> list[ConfigCase]:
    full3 = {
        **_FULL,
        "apiServer": _component(_ARGS, certSANs=["Upper.Example.com", "10.1.1.1"], timeoutForControlPlane="7m"),
        "controllerManager": _component(_ARGS),
        "scheduler": _component({}),
        "etcd": {"local": {"extraArgs": _ARGS, "imageTag": "3.5.0", "serverCertSANs": ["s"], "peerCertSANs": ["p"]}},
    }
    full4 = {
        **_FULL,
        "apiServer": _component(_ARG_LIST, certSANs=["Upper.Example.com"], extraEnvs=_ENVS),
        "controllerManager": _component(_ARG_LIST, extraEnvs=_ENVS[:1]),
        "scheduler": _component([], extraEnvs=[]),
        "etcd": {"local": {"extraArgs": _ARG_LIST, "extraEnvs": _ENVS[:2], "imageRepository": "r.example.com/etcd"}},
        "proxy": {"disabled": True},
        "encryptionAlgorithm": "RSA-4096",
        "certificateValidityPeriod": "100h",
        "caCertificateValidityPeriod": "1000h30m",
    }
    full4["dns"] = {**_FULL["dns"], "disabled": True}
    registration = {"taints": _TAINTS, "ignorePreflightErrors": ["Swap"], "imagePullPolicy": "Always"}
    init_fields: dict[str, Any] = {
        "certificateKey": KEY,
        "skipPhases": ["addon/kube-proxy"],
        "patches": {"directory": "/patches"},
        "localAPIEndpoint": {"bindPort": 8443},
        "bootstrapTokens": [
            {"token": TOKEN, "description": "d", "ttl": "1.5h", "usages": ["signing", "authentication"], "groups": []},
            {"token": "abcdee.0123456789abcdef", "groups": ["system:bootstrappers:x"], "usages": ["authentication"], "ttl": "0"},
        ],
    }
    external: dict[str, Any] = {"etcd": {"external": {"endpoints": ["https://e:2379"], "caFile": "/ca", "certFile": "/c", "keyFile": "/k"}}}
    timeouts = {"controlPlaneComponentHealthCheck": "6m", "discovery": "90s", "kubernetesAPICall": "0s"}
    control_plane = {"localAPIEndpoint": {"advertiseAddress": "10.0.0.12", "bindPort": 7443}, "certificateKey": KEY}
    texts = {
        "v1beta3-both": both("v1beta3"),
        "v1beta3-full": init("v1beta3", nodeRegistration={**registration, "kubeletExtraArgs": _ARGS}, **init_fields)
        + "---\n"
        + cluster("v1beta3", **full3),
        "v1beta3-timeout-zero": both("v1beta3", apiServer={"timeoutForControlPlane": "0s"}),
        "v1beta3-external-etcd": both("v1beta3", **external),
        "v1beta3-join": join("v1beta3"),
        "v1beta3-join-full": join(
            "v1beta3",
            nodeRegistration={**registration, "kubeletExtraArgs": _ARGS},
            controlPlane=control_plane,
            caCertPath="/x/ca.crt",
            patches={"directory": "/p"},
            skipPhases=["preflight"],
            discovery={
                "bootstrapToken": {"token": TOKEN, "apiServerEndpoint": "a:1", "caCertHashes": ["sha256:x"]},
                "timeout": "10m",
                "tlsBootstrapToken": TOKEN,
            },
        ),
        "v1beta3-init-and-join": both("v1beta3", apiServer={"timeoutForControlPlane": "7m"}) + "---\n" + join("v1beta3"),
        "v1beta3-cluster-v1beta4-init": init() + "---\n" + cluster("v1beta3", apiServer={"timeoutForControlPlane": "7m"}),
        "v1beta4-cluster-v1beta3-init": init("v1beta3") + "---\n" + cluster(),
        "v1beta4-both": both(),
        "v1beta4-full": init(
            nodeRegistration={**registration, "kubeletExtraArgs": _ARG_LIST, "imagePullSerial": False},
            timeouts=timeouts,
            dryRun=True,
            **init_fields,
        )
        + "---\n"
        + cluster(**full4),
        "v1beta4-external-etcd": both(**external),
        "v1beta4-taints-empty": init(nodeRegistration={"taints": []}) + "---\n" + cluster(),
        "v1beta4-join": join(),
        "v1beta4-join-full": join(
            nodeRegistration={**registration, "kubeletExtraArgs": _ARG_LIST}, controlPlane=control_plane, timeouts=timeouts, dryRun=True
        ),
        "v1beta4-join-file": join(discovery={"file": {"kubeConfigPath": "https://url/file.conf"}, "tlsBootstrapToken": TOKEN}),
        "v1beta4-reset": reset(),
        "v1beta4-reset-full": reset(
            cleanupTmpDir=True,
            dryRun=True,
            force=True,
            ignorePreflightErrors=["a"],
            skipPhases=["b"],
            unmountFlags=["MNT_FORCE"],
            timeouts=timeouts,
        ),
        "v1beta4-upgrade": document("UpgradeConfiguration"),
        "v1beta4-upgrade-full": document(
            "UpgradeConfiguration",
            apply={
                "kubernetesVersion": "${VERSION}",
                "allowRCUpgrades": False,
                "patches": {"directory": "/p"},
                "printConfig": True,
                "imagePullSerial": False,
            },
            diff={"kubernetesVersion": "${VERSION}", "contextLines": 5},
            node={"skipPhases": ["a"], "dryRun": True, "etcdUpgrade": False},
            plan={"allowExperimentalUpgrades": True},
            timeouts=timeouts,
        ),
        "v1beta4-init-join-reset": both() + "---\n" + join() + "---\n" + reset(),
        "component-configs": both() + "---\napiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 5\n",
        "version-without-v": init() + "---\n" + cluster(kubernetesVersion="1.36.1"),
        "ci-version": init() + "---\n" + cluster(kubernetesVersion="ci/${VERSION}"),
        "empty": "",
        "components-only": "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n",
    }
    return [ConfigCase(f"migrate-{name}", ("migrate",), text) for name, text in texts.items()]


def _refused_cases() -> list[ConfigCase]:
    """Files that are refused for their form; our words differ, the exit code and the key phrases do not."""
    head = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: ${VERSION}\n"
    old = {version: document("InitConfiguration", version) for version in ("v1alpha3", "v1beta1", "v1beta2")}
    texts = {
        "comment-only-document": f"# license\n---\n{head}",
        "kind-twice": f"{head}---\n{head}",
        "unknown-fields": f"{head}foo: 1\nnetworking:\n  podsubnet: a\n  bar: x\nscheduler:\n  extraArgs:\n  - name: a\n    nam: b\n",
        "duplicate-key": f"{head}clusterName: a\nclusterName: b\n",
        "duplicate-and-unknown": f"{head}clusterName: a\nclusterName: b\nfoo: 1\n",
        "wrong-types": f"{head}clusterName: [a]\ncertificatesDir: 3\n",
        "no-kind": "apiVersion: kubeadm.k8s.io/v1beta4\n",
        "no-api-version": "kind: ClusterConfiguration\n",
        "no-group": "apiVersion: v1\nkind: ClusterConfiguration\n",
        "nested-colon": "a: b: c\n",
        "scalar": "abc\n",
        "list": "- a\n",
        "unknown-group": "apiVersion: foo/v1\nkind: Foo\n",
        "unknown-version": document("InitConfiguration", "v1beta9"),
        "unknown-kind": document("FooConfiguration"),
        "v1beta3-reset": document("ResetConfiguration", "v1beta3"),
        "component-version": f"{head}---\napiVersion: kubelet.config.k8s.io/v1\nkind: KubeletConfiguration\n",
        "component-unknown-field": f"{head}---\napiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfoo: bar\n",
        "token-form": init(bootstrapTokens=[{"token": "abc"}]),
        "token-empty": init(bootstrapTokens=[{"token": ""}]),
        "expires-form": init(bootstrapTokens=[{"token": TOKEN, "expires": "tomorrow"}]),
        "duration-form": init(timeouts={"discovery": "abc"}),
        "duration-number": init(timeouts={"discovery": 5}),
        "version-nonsense": both(kubernetesVersion="foo"),
        "version-spaces": both(kubernetesVersion="foo bar"),
        "advertise-address": init(localAPIEndpoint={"advertiseAddress": "1.2.34"}) + "---\n" + cluster(),
        **{f"control-plane-endpoint-{number}": both(controlPlaneEndpoint=text) for number, text in enumerate(_WRONG_ENDPOINTS)},
        **{f"old-{version}": text for version, text in old.items()},
        "http-endpoints-in-v1beta3": both("v1beta3", etcd={"external": {"endpoints": ["http://e:1"], "httpEndpoints": ["http://e:1"]}}),
        "v1beta4-field-in-v1beta3": init("v1beta3", timeouts={}) + "---\n" + cluster("v1beta3"),
        "file-key-ref": both(
            apiServer={"extraEnvs": [{"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}}}]}
        ),
    }
    return [ConfigCase(f"refused-{name}", ("validate",), text) for name, text in texts.items()]


def _print_cases() -> list[ConfigCase]:
    cases = [ConfigCase(f"print-{kind}", ("print", f"{kind}-defaults")) for kind in ("init", "join", "reset", "upgrade")]
    for name, kinds in (
        ("kubelet", "KubeletConfiguration"),
        ("proxy", "KubeProxyConfiguration"),
        ("both", "KubeProxyConfiguration,KubeletConfiguration"),
    ):
        cases.append(ConfigCase(f"print-init-{name}", ("print", "init-defaults", "--component-configs", kinds)))
    return [*cases, ConfigCase("print-init-unknown", ("print", "init-defaults", "--component-configs", "Foo"))]


CASES = (*_validate_cases(), *_migrate_cases(), *_refused_cases(), *_print_cases())
