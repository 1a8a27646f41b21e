"""Rows of kubeadm's phases/controlplane/{manifests,volumes}_test.go and util/staticpod/utils_test.go (1.36.3).

Whole manifests are compared with the real ones by the golden cases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from slipway.api.kubeadm.internal import (
    APIEndpoint,
    APIServer,
    Arg,
    ClusterConfiguration,
    ControlPlaneComponent,
    EnvVar,
    Etcd,
    ExternalEtcd,
    HostPathMount,
    LocalEtcd,
    Networking,
    Patches,
)
from slipway.api.machinery.duration import Duration
from slipway.node.etcd.pod import write_local
from slipway.node.staticpods import components, pod

if TYPE_CHECKING:
    from pathlib import Path

    from node.conftest import Lines, MakeContext

    from slipway.node.context import NodeContext

pytestmark = [pytest.mark.upstream_table, pytest.mark.recorded]

CERTS = "/var/lib/certs"
CM_CONF, SCHEDULER_CONF = "/etc/kubernetes/controller-manager.conf", "/etc/kubernetes/scheduler.conf"
ENDPOINT, ENDPOINT_V6 = APIEndpoint(bind_port=123, advertise_address="1.2.3.4"), APIEndpoint(bind_port=123, advertise_address="2001:db8::1")
NETWORKING = Networking(service_subnet="bar", dns_domain="cluster.local")

API_SERVER = {
    "enable-admission-plugins": "NodeRestriction",
    "service-cluster-ip-range": "bar",
    "service-account-key-file": f"{CERTS}/sa.pub",
    "service-account-signing-key-file": f"{CERTS}/sa.key",
    "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
    "client-ca-file": f"{CERTS}/ca.crt",
    "tls-cert-file": f"{CERTS}/apiserver.crt",
    "tls-private-key-file": f"{CERTS}/apiserver.key",
    "kubelet-client-certificate": f"{CERTS}/apiserver-kubelet-client.crt",
    "kubelet-client-key": f"{CERTS}/apiserver-kubelet-client.key",
    "enable-bootstrap-token-auth": "true",
    "secure-port": "123",
    "allow-privileged": "true",
    "kubelet-preferred-address-types": "InternalIP,ExternalIP,Hostname",
    "proxy-client-cert-file": f"{CERTS}/front-proxy-client.crt",
    "proxy-client-key-file": f"{CERTS}/front-proxy-client.key",
    "requestheader-username-headers": "X-Remote-User",
    "requestheader-group-headers": "X-Remote-Group",
    "requestheader-extra-headers-prefix": "X-Remote-Extra-",
    "requestheader-client-ca-file": f"{CERTS}/front-proxy-ca.crt",
    "requestheader-allowed-names": "front-proxy-client",
    "authorization-mode": "Node,RBAC",
    "advertise-address": "1.2.3.4",
    "etcd-servers": "https://127.0.0.1:2379",
    "etcd-cafile": f"{CERTS}/etcd/ca.crt",
    "etcd-certfile": f"{CERTS}/apiserver-etcd-client.crt",
    "etcd-keyfile": f"{CERTS}/apiserver-etcd-client.key",
}
API_SERVER_V6 = {**API_SERVER, "advertise-address": "2001:db8::1", "etcd-servers": "https://[::1]:2379"}

CONTROLLER_MANAGER = {
    "bind-address": "127.0.0.1",
    "leader-elect": "true",
    "kubeconfig": CM_CONF,
    "root-ca-file": f"{CERTS}/ca.crt",
    "service-account-private-key-file": f"{CERTS}/sa.key",
    "cluster-signing-cert-file": f"{CERTS}/ca.crt",
    "cluster-signing-key-file": f"{CERTS}/ca.key",
    "use-service-account-credentials": "true",
    "controllers": "*,bootstrapsigner,tokencleaner",
    "authentication-kubeconfig": CM_CONF,
    "authorization-kubeconfig": CM_CONF,
    "client-ca-file": f"{CERTS}/ca.crt",
    "requestheader-client-ca-file": f"{CERTS}/front-proxy-ca.crt",
}


def args(**values: str) -> list[Arg]:
    return [Arg(name=name.replace("_", "-"), value=value) for name, value in values.items()]


def container(component: str, ctx: NodeContext) -> dict[str, Any]:
    (only,) = components.manifest(component, ctx)["spec"]["containers"]
    assert isinstance(only, dict)
    return only


def flags(component: str, ctx: NodeContext) -> dict[str, str]:
    """The flags of a command in which no name occurs twice."""
    program, *words = container(component, ctx)["command"]
    assert program == component
    pairs = [word.removeprefix("--").partition("=")[::2] for word in words]
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def without(given: dict[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in given.items() if name not in names}


@pytest.mark.parametrize(
    ("etcd", "extra", "endpoint", "expected"),
    [
        pytest.param(Etcd(), {}, ENDPOINT, API_SERVER, id="defaults"),
        pytest.param(Etcd(), {}, ENDPOINT_V6, API_SERVER_V6, id="IPv6"),
        pytest.param(
            Etcd(
                external=ExternalEtcd(
                    endpoints=["https://[2001:abcd:bcda::1]:2379", "https://[2001:abcd:bcda::2]:2379"],
                    ca_file="fuz",
                    cert_file="fiz",
                    key_file="faz",
                )
            ),
            {},
            ENDPOINT_V6,
            {
                **API_SERVER_V6,
                "etcd-servers": "https://[2001:abcd:bcda::1]:2379,https://[2001:abcd:bcda::2]:2379",
                "etcd-cafile": "fuz",
                "etcd-certfile": "fiz",
                "etcd-keyfile": "faz",
            },
            id="external etcd with certificates",
        ),
        pytest.param(
            Etcd(external=ExternalEtcd(endpoints=["http://[::1]:2379", "http://[::1]:2380"])),
            {},
            ENDPOINT_V6,
            without(
                {**API_SERVER_V6, "etcd-servers": "http://[::1]:2379,http://[::1]:2380"}, "etcd-cafile", "etcd-certfile", "etcd-keyfile"
            ),
            id="external etcd without certificates",
        ),
        pytest.param(
            Etcd(local=LocalEtcd(extra_args=args(advertise_client_urls="https://etcd.example.org:2379"))),
            {},
            ENDPOINT,
            {**API_SERVER, "etcd-servers": "https://etcd.example.org:2379"},
            id="local etcd that advertises another address",
        ),
        pytest.param(
            Etcd(),
            {
                "service_cluster_ip_range": "baz",
                "advertise_address": "9.9.9.9",
                "audit_policy_file": "/etc/config/audit.yaml",
                "audit_log_path": "/var/log/kubernetes",
            },
            ENDPOINT,
            {
                **API_SERVER,
                "service-cluster-ip-range": "baz",
                "advertise-address": "9.9.9.9",
                "audit-policy-file": "/etc/config/audit.yaml",
                "audit-log-path": "/var/log/kubernetes",
            },
            id="extra flags",
        ),
        pytest.param(
            Etcd(), {"authorization_mode": "ABAC"}, ENDPOINT, {**API_SERVER, "authorization-mode": "ABAC"}, id="another authorization mode"
        ),
        pytest.param(
            Etcd(),
            {"authorization_mode": "Node,RBAC,Webhook"},
            ENDPOINT,
            {**API_SERVER, "authorization-mode": "Node,RBAC,Webhook"},
            id="one more authorization mode",
        ),
        pytest.param(
            Etcd(),
            {"authorization_config": "/path/to/authorization/config/file"},
            ENDPOINT,
            {**without(API_SERVER, "authorization-mode"), "authorization-config": "/path/to/authorization/config/file"},
            id="an authorization file takes the place of the mode",
        ),
        pytest.param(
            Etcd(),
            {"authorization_config": "/path/to/authorization/config/file", "authorization_mode": "Node,RBAC,Webhook"},
            ENDPOINT,
            {**API_SERVER, "authorization-config": "/path/to/authorization/config/file", "authorization-mode": "Node,RBAC,Webhook"},
            id="an authorization file and a mode are both passed on",
        ),
    ],
)
def test_flags_of_the_api_server(
    make_context: MakeContext, etcd: Etcd, extra: dict[str, str], endpoint: APIEndpoint, expected: dict[str, str]
) -> None:
    cluster = ClusterConfiguration(networking=NETWORKING, certificates_dir=CERTS, etcd=etcd, api_server=APIServer(extra_args=args(**extra)))
    assert flags("kube-apiserver", make_context(cluster, endpoint=endpoint)) == expected


@pytest.mark.parametrize(
    ("cluster", "added"),
    [
        pytest.param(
            ClusterConfiguration(cluster_name="some-other-cluster-name"), {"cluster-name": "some-other-cluster-name"}, id="cluster name"
        ),
        pytest.param(ClusterConfiguration(), {}, id="defaults"),
        pytest.param(
            ClusterConfiguration(networking=Networking(pod_subnet="10.0.1.15/16")),
            {"allocate-node-cidrs": "true", "cluster-cidr": "10.0.1.15/16"},
            id="Pod subnet",
        ),
        pytest.param(
            ClusterConfiguration(networking=Networking(pod_subnet="10.0.1.15/16", service_subnet="172.20.0.0/24")),
            {"allocate-node-cidrs": "true", "cluster-cidr": "10.0.1.15/16", "service-cluster-ip-range": "172.20.0.0/24"},
            id="Pod and service subnets",
        ),
        pytest.param(
            ClusterConfiguration(networking=Networking(service_subnet="172.20.0.0/24")), {}, id="a service subnet alone is no concern"
        ),
        pytest.param(
            ClusterConfiguration(
                networking=Networking(pod_subnet="10.0.1.15/16"),
                controller_manager=ControlPlaneComponent(extra_args=args(node_cidr_mask_size="20")),
            ),
            {"allocate-node-cidrs": "true", "cluster-cidr": "10.0.1.15/16", "node-cidr-mask-size": "20"},
            id="a mask of the user",
        ),
        pytest.param(
            ClusterConfiguration(networking=Networking(pod_subnet="2001:db8::/64", service_subnet="fd03::/112")),
            {"allocate-node-cidrs": "true", "cluster-cidr": "2001:db8::/64", "service-cluster-ip-range": "fd03::/112"},
            id="IPv6",
        ),
        pytest.param(
            ClusterConfiguration(
                networking=Networking(pod_subnet="2001:db8::/64", service_subnet="fd03::/112"),
                controller_manager=ControlPlaneComponent(extra_args=args(allocate_node_cidrs="false")),
            ),
            {"allocate-node-cidrs": "false", "cluster-cidr": "2001:db8::/64", "service-cluster-ip-range": "fd03::/112"},
            id="no allocation",
        ),
        pytest.param(
            ClusterConfiguration(networking=Networking(pod_subnet="2001:db8::/64,10.1.0.0/16", service_subnet="fd03::/112,192.168.0.0/16")),
            {
                "allocate-node-cidrs": "true",
                "cluster-cidr": "2001:db8::/64,10.1.0.0/16",
                "service-cluster-ip-range": "fd03::/112,192.168.0.0/16",
            },
            id="dual-stack",
        ),
        pytest.param(
            ClusterConfiguration(
                networking=Networking(pod_subnet="10.0.1.15/16,2001:db8::/64"),
                controller_manager=ControlPlaneComponent(extra_args=args(node_cidr_mask_size_ipv4="20", node_cidr_mask_size_ipv6="80")),
            ),
            {
                "allocate-node-cidrs": "true",
                "cluster-cidr": "10.0.1.15/16,2001:db8::/64",
                "node-cidr-mask-size-ipv4": "20",
                "node-cidr-mask-size-ipv6": "80",
            },
            id="masks of the user for both families",
        ),
    ],
)
def test_flags_of_the_controller_manager(make_context: MakeContext, cluster: ClusterConfiguration, added: dict[str, str]) -> None:
    cluster.certificates_dir = CERTS
    assert flags("kube-controller-manager", make_context(cluster)) == {**CONTROLLER_MANAGER, **added}


@pytest.mark.parametrize(
    ("files", "cert", "key"),
    [
        (["ca.crt"], "", ""),
        (["ca.crt", "ca.key"], f"{CERTS}/ca.crt", f"{CERTS}/ca.key"),
        ([], f"{CERTS}/ca.crt", f"{CERTS}/ca.key"),
    ],
)
def test_the_controller_manager_signs_nothing_for_a_ca_without_its_key(
    make_context: MakeContext, files: list[str], cert: str, key: str
) -> None:
    ctx = make_context(ClusterConfiguration(certificates_dir=CERTS))
    for name in files:
        ctx.host.write(f"{CERTS}/{name}", b"")
    assert flags("kube-controller-manager", ctx) == {
        **CONTROLLER_MANAGER,
        "cluster-signing-cert-file": cert,
        "cluster-signing-key-file": key,
    }


def test_flags_of_the_scheduler(make_context: MakeContext) -> None:
    assert flags("kube-scheduler", make_context()) == {
        "bind-address": "127.0.0.1",
        "leader-elect": "true",
        "kubeconfig": SCHEDULER_CONF,
        "authentication-kubeconfig": SCHEDULER_CONF,
        "authorization-kubeconfig": SCHEDULER_CONF,
    }


@pytest.mark.parametrize(
    ("asked", "unknown", "used"),
    [
        ("", [], ""),
        ("Node,RBAC", [], ""),
        ("FooAuthzMode", ["FooAuthzMode"], ""),
        ("Node,foo,RBAC,bar", ["foo", "bar"], ""),
        ("AlwaysDeny", [], "AlwaysDeny"),
        ("Node,Webhook,RBAC,ABAC", [], "Node,Webhook,RBAC,ABAC"),
    ],
)
def test_odd_authorization_modes_are_warned_about(asked: str, unknown: list[str], used: str) -> None:
    warnings = components.authorization_warnings(args(authorization_mode=asked))
    assert [warning.split('"')[1] for warning in warnings if "unknown" in warning] == unknown
    assert [warning.split('"')[3] for warning in warnings if "default" in warning] == ([used] if used else [])


@pytest.mark.parametrize("version", ["v1.33.13", "v1.34.10", "v1.35.4", "v1.36.3"])
@pytest.mark.parametrize(
    ("component", "port", "probes"),
    [
        ("kube-apiserver", 6443, {"livenessProbe": "/livez", "readinessProbe": "/readyz", "startupProbe": "/livez"}),
        ("kube-controller-manager", 10257, {"livenessProbe": "/healthz", "startupProbe": "/healthz"}),
        ("kube-scheduler", 10259, {"livenessProbe": "/livez", "readinessProbe": "/readyz", "startupProbe": "/livez"}),
    ],
)
def test_probes_have_a_numbered_port_in_1_33_and_a_named_one_later(
    make_context: MakeContext, version: str, component: str, port: int, probes: dict[str, str]
) -> None:
    made = container(component, make_context(endpoint=APIEndpoint(bind_port=6443), version=version))
    named = version != "v1.33.13"
    assert {name: probe["httpGet"]["path"] for name, probe in made.items() if name.endswith("Probe")} == probes
    assert {made[name]["httpGet"]["port"] for name in probes} == {"probe-port" if named else port}
    assert made.get("ports") == ([{"name": "probe-port", "containerPort": port, "protocol": "TCP"}] if named else None)


@pytest.mark.parametrize(
    ("address", "host"),
    [("", "127.0.0.1"), ("10.10.10.10", "10.10.10.10"), ("2001:abcd:bcda::1", "2001:abcd:bcda::1"), ("0.0.0.0", None), ("::", None)],
)
def test_the_api_server_is_probed_where_it_is_advertised(make_context: MakeContext, address: str, host: str | None) -> None:
    made = container("kube-apiserver", make_context(endpoint=APIEndpoint(advertise_address=address)))
    assert made["livenessProbe"]["httpGet"].get("host") == host


@pytest.mark.parametrize("component", ["kube-controller-manager", "kube-scheduler"])
@pytest.mark.parametrize(
    ("extra", "host"),
    [
        ([], "127.0.0.1"),
        (args(bind_address="10.10.10.10"), "10.10.10.10"),
        (args(bind_address="2001:abcd:bcda::1"), "2001:abcd:bcda::1"),
        (args(bind_address="0.0.0.0"), None),
        (args(bind_address="::"), None),
    ],
)
def test_the_others_are_probed_where_they_listen(make_context: MakeContext, component: str, extra: list[Arg], host: str | None) -> None:
    configured = ControlPlaneComponent(extra_args=extra)
    made = container(component, make_context(ClusterConfiguration(controller_manager=configured, scheduler=configured)))
    assert made["startupProbe"]["httpGet"].get("host") == host


@pytest.mark.parametrize(
    ("timeout", "failures"), [(None, 24), ("4m0s", 24), ("3m20s", 20), ("3m21s", 21), ("10s", 1), ("1ns", 1), ("0s", None)]
)
def test_the_startup_probe_lasts_as_long_as_the_health_check(make_context: MakeContext, timeout: str | None, failures: int | None) -> None:
    ctx = make_context()
    ctx.config.timeouts.control_plane_component_health_check = None if timeout is None else Duration.parse(timeout)
    assert container("kube-scheduler", ctx)["startupProbe"].get("failureThreshold") == failures


def test_proxies_of_the_environment_reach_the_pods_and_extra_variables_win(make_context: MakeContext) -> None:
    cluster = ClusterConfiguration(
        scheduler=ControlPlaneComponent(
            extra_envs=[
                EnvVar(name="Foo", value="Bar"),
                EnvVar(name="HTTPS_PROXY", value="http://mine:1"),
                EnvVar(name="POD", value_from={"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}),
                EnvVar(name="EMPTY"),
            ]
        )
    )
    environment = {
        "http_proxy": "http://p:1", "HTTPS_PROXY": "http://p:2", "NO_PROXY": "", "my_Proxy": "x", "PROXY": "no", "PATH": "/bin"
    }  # fmt: skip
    ctx = make_context(cluster, environment=environment)
    assert container("kube-scheduler", ctx)["env"] == [
        {"name": "EMPTY"},
        {"name": "Foo", "value": "Bar"},
        {"name": "HTTPS_PROXY", "value": "http://mine:1"},
        {"name": "POD", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
        {"name": "http_proxy", "value": "http://p:1"},
        {"name": "my_Proxy", "value": "x"},
    ]


def test_a_pod_without_variables_has_no_env(make_context: MakeContext) -> None:
    assert "env" not in container("kube-scheduler", make_context(environment={"PATH": "/bin"}))


@pytest.mark.parametrize(
    ("ca", "cert", "key", "expected"),
    [
        pytest.param("/etc/ssl/certs/my-etcd-ca.crt", "/etc/ssl/certs/my-etcd.crt", "/etc/ssl/certs/my-etcd.key", [], id="/etc/ssl/certs"),
        pytest.param("/etc/ssl/certs/etcd/ca.crt", "/etc/ssl/certs/etcd/e.crt", "/etc/ssl/certs/etcd/e.key", [], id="below /etc/ssl/certs"),
        pytest.param("/etc/pki/ca-trust/ca.crt", "/etc/pki/ca-trust/e.crt", "/etc/pki/ca-trust/e.key", [], id="/etc/pki/ca-trust"),
        pytest.param(
            "/etc/kubernetes/pki/ca/ca.crt", "/etc/kubernetes/pki/e.crt", "/etc/kubernetes/pki/e.key", [], id="the folder of certificates"
        ),
        pytest.param(
            "/var/lib/certs/etcd/ca.crt", "/var/lib/certs/etcd/e.crt", "/var/lib/certs/etcd/e.key", ["/var/lib/certs/etcd"], id="one folder"
        ),
        pytest.param(
            "/etc/certs/etcd/ca.crt",
            "/var/lib/certs/etcd/e.crt",
            "/var/lib/certs/etcd/e.key",
            ["/etc/certs/etcd", "/var/lib/certs/etcd"],
            id="two folders",
        ),
        pytest.param(
            "/etc/certs/etcd/ca.crt",
            "/var/lib/certs/etcd/e.crt",
            "/var/lib/certs/private/e.key",
            ["/etc/certs/etcd", "/var/lib/certs/etcd", "/var/lib/certs/private"],
            id="three folders",
        ),
        pytest.param(
            "/etc/certs/etcd/ca.crt",
            "/etc/certs/etcd/serving/e.crt",
            "/etc/certs/etcd/serving/e.key",
            ["/etc/certs/etcd"],
            id="the outer folder first",
        ),
        pytest.param(
            "/etc/certs/etcd/ca/ca.crt", "/etc/certs/etcd/e.crt", "/etc/certs/etcd/e.key", ["/etc/certs/etcd"], id="the outer folder later"
        ),
        pytest.param("", "", "", [], id="no files"),
    ],
)
def test_folders_of_an_external_etcd_are_mounted_once(ca: str, cert: str, key: str, expected: list[str]) -> None:
    etcd = ExternalEtcd(ca_file=ca, cert_file=cert, key_file=key)
    assert pod.external_etcd_folders(etcd, "/etc/kubernetes/pki") == expected


def test_each_component_mounts_what_it_reads(make_context: MakeContext) -> None:
    cluster = ClusterConfiguration(
        certificates_dir=CERTS,
        etcd=Etcd(
            external=ExternalEtcd(
                endpoints=["foo"],
                ca_file="/etc/certs/etcd/my-etcd-ca.crt",
                cert_file=f"{CERTS}/etcd/my-etcd.crt",
                key_file="/var/lib/etcd/certs/my-etcd.key",
            )
        ),
    )
    ctx = make_context(cluster)
    paths = {component: _host_paths(components.manifest(component, ctx)) for component in components.COMPONENTS}
    certificates = {"k8s-certs": (CERTS, "DirectoryOrCreate"), "ca-certs": ("/etc/ssl/certs", "DirectoryOrCreate")}
    assert paths == {
        "kube-apiserver": {
            **certificates,
            "etcd-certs-0": ("/etc/certs/etcd", "DirectoryOrCreate"),
            "etcd-certs-1": ("/var/lib/etcd/certs", "DirectoryOrCreate"),
        },
        "kube-controller-manager": {**certificates, "kubeconfig": (CM_CONF, "FileOrCreate")},
        "kube-scheduler": {"kubeconfig": (SCHEDULER_CONF, "FileOrCreate")},
    }
    for component in components.COMPONENTS:
        assert all(mount["readOnly"] for mount in container(component, ctx)["volumeMounts"])


def test_folders_that_ca_certificates_link_into_are_mounted_where_the_host_has_them(make_context: MakeContext, tmp_path: Path) -> None:
    for path in ("etc/pki/tls/certs", "usr/share/ca-certificates"):
        (tmp_path / path).mkdir(parents=True)
    ctx = make_context(ClusterConfiguration(certificates_dir=CERTS))
    for component in ("kube-apiserver", "kube-controller-manager"):
        names = [mount["name"] for mount in container(component, ctx)["volumeMounts"]]
        assert names == sorted(names)
        assert {"etc-pki-tls-certs", "usr-share-ca-certificates"} <= set(names)
        assert not {"etc-pki-ca-trust", "etc-ca-certificates", "usr-local-share-ca-certificates"} & set(names)


@pytest.mark.parametrize(
    ("version", "extra", "path"),
    [
        ("v1.33.13", [], "/usr/libexec/kubernetes/kubelet-plugins/volume/exec"),
        ("v1.35.4", args(flex_volume_plugin_dir="/opt/flex"), "/opt/flex"),
        ("v1.36.3", args(flex_volume_plugin_dir="/opt/flex"), None),
    ],
)
def test_flexvolumes_are_mounted_until_1_35(make_context: MakeContext, version: str, extra: list[Arg], path: str | None) -> None:
    cluster = ClusterConfiguration(controller_manager=ControlPlaneComponent(extra_args=extra))
    made = container("kube-controller-manager", make_context(cluster, version=version))
    mounts = [mount for mount in made["volumeMounts"] if mount["name"] == "flexvolume-dir"]
    assert mounts == ([{"name": "flexvolume-dir", "mountPath": path}] if path else [])


def test_extra_volumes_are_sorted_in_and_replace_those_of_the_same_name(make_context: MakeContext) -> None:
    extra = [
        HostPathMount(name="foo-0", host_path="/tmp/qux-0", mount_path="/tmp/qux-0", read_only=True, path_type="File"),
        HostPathMount(name="bar-0", host_path="/tmp/asd-0", mount_path="/tmp/asd-1"),
        HostPathMount(name="kubeconfig", host_path="/mine.conf", mount_path=SCHEDULER_CONF, path_type="File"),
    ]
    pod = components.manifest("kube-scheduler", make_context(ClusterConfiguration(scheduler=ControlPlaneComponent(extra_volumes=extra))))
    assert pod["spec"]["volumes"] == [
        {"name": "bar-0", "hostPath": {"path": "/tmp/asd-0", "type": ""}},
        {"name": "foo-0", "hostPath": {"path": "/tmp/qux-0", "type": "File"}},
        {"name": "kubeconfig", "hostPath": {"path": "/mine.conf", "type": "File"}},
    ]
    assert pod["spec"]["containers"][0]["volumeMounts"] == [
        {"name": "bar-0", "mountPath": "/tmp/asd-1"},
        {"name": "foo-0", "mountPath": "/tmp/qux-0", "readOnly": True},
        {"name": "kubeconfig", "mountPath": SCHEDULER_CONF},
    ]


@pytest.mark.parametrize("component", components.COMPONENTS)
def test_a_manifest_is_written_where_only_root_reads_it(make_context: MakeContext, lines: Lines, tmp_path: Path, component: str) -> None:
    ctx = make_context(ClusterConfiguration(certificates_dir=CERTS, kubernetes_version="v1.36.3"))
    components.write(ctx, component)
    written = tmp_path / "etc/kubernetes/manifests" / f"{component}.yaml"
    assert written.stat().st_mode & 0o777 == 0o600
    assert written.read_text().startswith("apiVersion: v1\nkind: Pod\n")
    assert lines.said == [f'[control-plane] Creating static Pod manifest for "{component}"']


@pytest.mark.parametrize("component", [*components.COMPONENTS, "etcd"])
def test_patches_of_the_user_are_applied(make_context: MakeContext, tmp_path: Path, lines: Lines, component: str) -> None:
    ctx = make_context(ClusterConfiguration(kubernetes_version="v1.36.3", etcd=Etcd(local=LocalEtcd(data_dir="/var/lib/etcd"))))
    ctx.config.patches = Patches(directory="/patches")
    ctx.host.write(f"/patches/{component}.yaml", b'metadata:\n  annotations:\n    patched: "true"\n')
    if component == "etcd":
        write_local(ctx)
    else:
        components.write(ctx, component)
    assert '\n    patched: "true"\n' in (tmp_path / f"etc/kubernetes/manifests/{component}.yaml").read_text()
    assert f'[patches] Applied patch of type "application/strategic-merge-patch+json" to target "{component}"' in lines.said


# The first row was seen with kubeadm 1.36.3; the second is what Go's filepath.Join does.
@pytest.mark.parametrize(
    ("certificates_dir", "flag"),
    [("/etc//kubernetes/./pki2", "/etc/kubernetes/pki2/ca.crt"), ("//pki/", "/pki/ca.crt")],
)
def test_flags_have_clean_paths_and_mounts_the_path_that_was_given(make_context: MakeContext, certificates_dir: str, flag: str) -> None:
    ctx = make_context(ClusterConfiguration(certificates_dir=certificates_dir))
    assert flags("kube-apiserver", ctx)["client-ca-file"] == flag
    assert _host_paths(components.manifest("kube-apiserver", ctx))["k8s-certs"] == (certificates_dir, "DirectoryOrCreate")


def _host_paths(pod: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {volume["name"]: (volume["hostPath"]["path"], volume["hostPath"]["type"]) for volume in pod["spec"]["volumes"]}
