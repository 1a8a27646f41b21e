"""Rows of kubeadm's phases/etcd/local_test.go (1.36.3 and 1.34.10) and of GetEtcdProbeEndpoint in util/staticpod."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from slipway.api.kubeadm.internal import APIEndpoint, Arg, ClusterConfiguration, EnvVar, Etcd, ExternalEtcd, LocalEtcd
from slipway.api.machinery.errors import ConfigurationError
from slipway.node.dryrun import host_for
from slipway.node.etcd import pod
from slipway.node.etcd.pod import Member
from slipway.node.staticpods import pod as componentpod

if TYPE_CHECKING:
    from pathlib import Path

    from node.conftest import Lines, MakeContext

    from slipway.node.context import NodeContext

pytestmark = pytest.mark.upstream_table

FLAGS = {
    "name": "foo",
    "feature-gates": "InitialCorruptCheck=true",
    "watch-progress-notify-interval": "5s",
    "listen-client-urls": "https://127.0.0.1:2379,https://1.2.3.4:2379",
    "listen-metrics-urls": "http://127.0.0.1:2381",
    "advertise-client-urls": "https://1.2.3.4:2379",
    "listen-peer-urls": "https://1.2.3.4:2380",
    "initial-advertise-peer-urls": "https://1.2.3.4:2380",
    "data-dir": "/var/lib/etcd",
    "cert-file": "etcd/server.crt",
    "key-file": "etcd/server.key",
    "trusted-ca-file": "etcd/ca.crt",
    "client-cert-auth": "true",
    "peer-cert-file": "etcd/peer.crt",
    "peer-key-file": "etcd/peer.key",
    "peer-trusted-ca-file": "etcd/ca.crt",
    "snapshot-count": "10000",
    "peer-client-cert-auth": "true",
    "initial-cluster": "foo=https://1.2.3.4:2380",
}
GRADUATED = ("feature-gates", "watch-progress-notify-interval")


def cluster(**local: object) -> ClusterConfiguration:
    return ClusterConfiguration(kubernetes_version="v1.36.3", etcd=Etcd(local=LocalEtcd(data_dir="/var/lib/etcd", **local)))  # type: ignore[arg-type]


def context(make_context: MakeContext, configured: ClusterConfiguration, address: str, name: str, version: str = "v1.36.3") -> NodeContext:
    ctx = make_context(configured, endpoint=APIEndpoint(advertise_address=address), version=version)
    ctx.config.node_registration.name = name
    return ctx


def flags(ctx: NodeContext, members: tuple[Member, ...] = ()) -> dict[str, str]:
    program, *words = pod.manifest(ctx, members)["spec"]["containers"][0]["command"]
    assert program == "etcd"
    return dict(word.removeprefix("--").partition("=")[::2] for word in words)


@pytest.mark.parametrize(
    ("address", "name", "extra", "members", "changed"),
    [
        pytest.param("1.2.3.4", "foo", [], (), {}, id="the first member"),
        pytest.param(
            "1.2.3.4",
            "foo",
            [],
            (Member("foo", "https://1.2.3.4:2380"), Member("bar", "https://5.6.7.8:2380")),
            {"initial-cluster-state": "existing", "initial-cluster": "foo=https://1.2.3.4:2380,bar=https://5.6.7.8:2380"},
            id="a member that joins",
        ),
        pytest.param(
            "1.2.3.4",
            "bar",
            [
                Arg(name="listen-client-urls", value="https://10.0.1.10:2379"),
                Arg(name="advertise-client-urls", value="https://10.0.1.10:2379"),
            ],
            (),
            {
                "name": "bar",
                "listen-client-urls": "https://10.0.1.10:2379",
                "advertise-client-urls": "https://10.0.1.10:2379",
                "initial-cluster": "bar=https://1.2.3.4:2380",
            },
            id="extra flags",
        ),
        pytest.param(
            "2001:db8::3",
            "foo",
            [],
            (),
            {
                "listen-client-urls": "https://[::1]:2379,https://[2001:db8::3]:2379",
                "listen-metrics-urls": "http://[::1]:2381",
                "advertise-client-urls": "https://[2001:db8::3]:2379",
                "listen-peer-urls": "https://[2001:db8::3]:2380",
                "initial-advertise-peer-urls": "https://[2001:db8::3]:2380",
                "initial-cluster": "foo=https://[2001:db8::3]:2380",
            },
            id="IPv6",
        ),
    ],
)
def test_flags(
    make_context: MakeContext, address: str, name: str, extra: list[Arg], members: tuple[Member, ...], changed: dict[str, str]
) -> None:
    ctx = context(make_context, cluster(extra_args=extra), address, name)
    assert flags(ctx, members) == {**FLAGS, **changed}


@pytest.mark.parametrize(
    ("version", "kubernetes_version", "tag", "experimental"),
    [
        ("v1.33.13", "v1.33.13", "", True),
        ("v1.33.13", "v1.33.13", "3.6.5-0", True),
        ("v1.34.10", "v1.34.10", "", False),
        ("v1.34.10", "v1.33.1", "", True),
        ("v1.34.10", "v1.34.10", "3.5.21-0", True),
        ("v1.34.10", "v1.34.10", "v3.6.0", False),
        ("v1.34.10", "v1.34.10", "3.6.0-rc.1", True),
        ("v1.34.10", "v1.34.10", "latest", True),
        ("v1.35.4", "v1.33.9", "", True),
        ("v1.35.4", "v1.35.4", "", False),
        ("v1.36.3", "v1.36.3", "3.5.24-0", False),
        ("v1.36.3", "v1.36.3", "latest", False),
    ],
)
def test_the_image_tag_decides_between_experimental_flags_and_their_successors(
    make_context: MakeContext, version: str, kubernetes_version: str, tag: str, experimental: bool
) -> None:
    configured = cluster(image_tag=tag)
    configured.kubernetes_version = kubernetes_version
    made = flags(context(make_context, configured, "1.2.3.4", "foo", version))
    old = {"experimental-initial-corrupt-check": "true", "experimental-watch-progress-notify-interval": "5s"}
    rest = {name: value for name, value in FLAGS.items() if name not in GRADUATED}
    assert made == ({**rest, **old} if experimental else FLAGS)


@pytest.mark.parametrize(
    ("urls", "loopback", "expected"),
    [
        ("https://1.2.3.4:1234,https://4.3.2.1:2381", "127.0.0.1", ("1.2.3.4", 1234, "HTTPS")),
        ("http://1.2.3.4:1234", "127.0.0.1", ("1.2.3.4", 1234, "HTTP")),
        ("1.2.3.4", "127.0.0.1", ("127.0.0.1", 2381, "HTTP")),
        ("1.2.3.4:1234", "127.0.0.1", ("127.0.0.1", 2381, "HTTP")),
        ("https://1.2.3.4", "127.0.0.1", ("1.2.3.4", 2381, "HTTPS")),
        ("https://[2001:abcd:bcda::1]:1234,https://[2001:abcd:bcda::2]:2381", "::1", ("2001:abcd:bcda::1", 1234, "HTTPS")),
        ("http://[::1]:1234", "::1", ("::1", 1234, "HTTP")),
        ("https://[2001:abcd:bcda::1]", "::1", ("2001:abcd:bcda::1", 2381, "HTTPS")),
        (None, "127.0.0.1", ("127.0.0.1", 2381, "HTTP")),
        (None, "::1", ("::1", 2381, "HTTP")),
        # Go's net/url keeps the case of a host, refuses a port that is no number and kubeadm one that is too large.
        ("HTTPS://Etcd.example.org:1234/metrics", "127.0.0.1", ("Etcd.example.org", 1234, "HTTPS")),
        ("https://1.2.3.4:http", "127.0.0.1", ("127.0.0.1", 2381, "HTTP")),
        ("https://1.2.3.4:70000", "127.0.0.1", ("1.2.3.4", 2381, "HTTPS")),
        ("https://:1234", "::1", ("::1", 1234, "HTTPS")),
    ],
)
def test_the_metrics_address_is_the_one_that_is_probed(urls: str | None, loopback: str, expected: tuple[str, int, str]) -> None:
    local = LocalEtcd(extra_args=[] if urls is None else [Arg(name="listen-metrics-urls", value=urls)])
    assert componentpod.etcd_endpoint(local, loopback) == expected


# kubeadm 1.36.3, TestCreateLocalEtcdStaticPodManifestFile, with another data folder.
MANIFEST = """\
apiVersion: v1
kind: Pod
metadata:
  annotations:
    kubeadm.kubernetes.io/etcd.advertise-client-urls: https://:2379
  labels:
    component: etcd
    tier: control-plane
  name: etcd
  namespace: kube-system
spec:
  containers:
  - command:
    - etcd
    - --advertise-client-urls=https://:2379
    - --cert-file=etcd/server.crt
    - --client-cert-auth=true
    - --data-dir=/data/etcd
    - --feature-gates=InitialCorruptCheck=true
    - --initial-advertise-peer-urls=https://:2380
    - --initial-cluster==https://:2380
    - --key-file=etcd/server.key
    - --listen-client-urls=https://127.0.0.1:2379,https://:2379
    - --listen-metrics-urls=http://127.0.0.1:2381
    - --listen-peer-urls=https://:2380
    - --name=
    - --peer-cert-file=etcd/peer.crt
    - --peer-client-cert-auth=true
    - --peer-key-file=etcd/peer.key
    - --peer-trusted-ca-file=etcd/ca.crt
    - --snapshot-count=10000
    - --trusted-ca-file=etcd/ca.crt
    - --watch-progress-notify-interval=5s
    image: /etcd:3.6.8-0
    imagePullPolicy: IfNotPresent
    livenessProbe:
      failureThreshold: 8
      httpGet:
        host: 127.0.0.1
        path: /livez
        port: probe-port
        scheme: HTTP
      initialDelaySeconds: 10
      periodSeconds: 10
      timeoutSeconds: 15
    name: etcd
    ports:
    - containerPort: 2381
      name: probe-port
      protocol: TCP
    readinessProbe:
      failureThreshold: 3
      httpGet:
        host: 127.0.0.1
        path: /readyz
        port: probe-port
        scheme: HTTP
      periodSeconds: 1
      timeoutSeconds: 15
    resources:
      requests:
        cpu: 100m
        memory: 100Mi
    startupProbe:
      failureThreshold: 24
      httpGet:
        host: 127.0.0.1
        path: /readyz
        port: probe-port
        scheme: HTTP
      initialDelaySeconds: 10
      periodSeconds: 10
      timeoutSeconds: 15
    volumeMounts:
    - mountPath: /data/etcd
      name: etcd-data
    - mountPath: /etcd
      name: etcd-certs
  hostNetwork: true
  priority: 2000001000
  priorityClassName: system-node-critical
  securityContext:
    seccompProfile:
      type: RuntimeDefault
  volumes:
  - hostPath:
      path: /etcd
      type: DirectoryOrCreate
    name: etcd-certs
  - hostPath:
      path: /data/etcd
      type: DirectoryOrCreate
    name: etcd-data
status: {}
"""


def test_the_local_member_gets_its_manifest_and_its_data_folder(make_context: MakeContext, lines: Lines, tmp_path: Path) -> None:
    ctx = make_context(ClusterConfiguration(kubernetes_version="v1.99.0", etcd=Etcd(local=LocalEtcd(data_dir="/data/etcd"))))
    pod.write_local(ctx)
    assert (tmp_path / "etc/kubernetes/manifests/etcd.yaml").read_text() == MANIFEST
    assert (tmp_path / "data/etcd").stat().st_mode & 0o777 == 0o700
    assert lines.said == [f'[etcd] Creating static Pod manifest for local etcd in "{tmp_path}/etc/kubernetes/manifests"']


def test_a_dry_run_makes_no_data_folder(make_context: MakeContext, lines: Lines, tmp_path: Path) -> None:
    folder = tmp_path / "dry"
    folder.mkdir()
    configured = ClusterConfiguration(kubernetes_version="v1.99.0", etcd=Etcd(local=LocalEtcd(data_dir="/data/etcd")))
    ctx = make_context(configured, environment={"KUBEADM_INIT_DRYRUN_DIR": str(folder)})
    ctx.host = host_for(ctx.host, "KUBEADM_INIT_DRYRUN_DIR", "kubeadm-init-dryrun", ctx.progress)
    pod.would_write_local(ctx)
    assert (folder / "etcd.yaml").read_text() == MANIFEST
    assert not (tmp_path / "data").exists()
    assert lines.said == [
        '[etcd] Would ensure that "/data/etcd" directory is present',
        f'[etcd] Creating static Pod manifest for local etcd in "{folder}"',
    ]


def test_variables_of_the_user_reach_etcd_but_proxies_do_not(make_context: MakeContext) -> None:
    ctx = make_context(cluster(extra_envs=[EnvVar(name="Foo", value="Bar")]), environment={"http_proxy": "http://p:1"})
    assert pod.manifest(ctx)["spec"]["containers"][0]["env"] == [{"name": "Foo", "value": "Bar"}]


def test_an_external_etcd_has_no_manifest(make_context: MakeContext) -> None:
    ctx = make_context(ClusterConfiguration(etcd=Etcd(external=ExternalEtcd(endpoints=["https://etcd-instance:2379"]))))
    with pytest.raises(ConfigurationError, match="etcd static pod manifest cannot be generated for cluster using external etcd"):
        pod.manifest(ctx)


def test_a_member_that_joins_says_so(make_context: MakeContext, lines: Lines, tmp_path: Path) -> None:
    ctx = context(make_context, cluster(), "1.2.3.4", "foo")
    pod.write_joined(ctx, [Member("foo", pod.peer_url(ctx.config.local_api_endpoint)), Member("bar", "https://5.6.7.8:2380")])
    written = (tmp_path / "etc/kubernetes/manifests/etcd.yaml").read_text()
    assert "    - --initial-cluster=foo=https://1.2.3.4:2380,bar=https://5.6.7.8:2380\n" in written
    assert lines.said == ['[etcd] Creating static Pod manifest for "etcd"']
